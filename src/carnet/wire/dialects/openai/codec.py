"""Chat completions toward others: requests that leave, answers that come."""

from typing import Final

from msgspec.structs import replace

from carnet.wire.dialects.openai.answer import digest_content, read_answer
from carnet.wire.dialects.openai.reports import read_model_refusal, read_refusal
from carnet.wire.dialects.openai.request import NAME, write_request
from carnet.wire.dialects.openai.stream import ChunkReader, ModelChunkReader
from carnet.wire.dialects.outbound import Codec, Spoken

COMPLETIONS: Final = "/chat/completions"  # after a URL that names the version


def _path(agent: str) -> str:
    return f"/agents/{agent}/v1{COMPLETIONS}" if agent else f"/v1{COMPLETIONS}"


CODEC: Final = Codec(
    dialect=NAME,
    path=_path,
    write=write_request,
    read=read_answer,
    follow=ChunkReader,
    refusal=read_refusal,
    result=digest_content,
)


# Peers are listed by the name of the stamp that they read: a model has the dialect as well.
# A model: its refusals are read as what providers mean by them, and not as those of a gateway.
MODEL: Final = replace(CODEC, follow=ModelChunkReader, refusal=read_model_refusal)
SPOKEN: Final = Spoken(name="tangle", reach=lambda ways: ways.by_request(CODEC))
