"""Plain words toward others."""

from collections.abc import Sequence
from typing import Any

from carnet.core.call import Agent, Ask
from carnet.core.messages.events import Done, Event, Text, joined_text
from carnet.errors import BY_CODE, PeerRefused, ProviderError, SkillNotFound
from carnet.wire.dialects.outbound import Codec, Refusal, Spoken, Ways
from carnet.wire.dialects.refusal import UNRECOGNISED
from carnet.wire.grammar import json

NAME = "words"


def path(agent: str) -> str:
    del agent  # it is named in the body
    return "/words"


def write(ask: Ask, *, model: str, stream: bool, with_skill: bool) -> bytes:
    del stream  # answers come whole
    if with_skill:
        raise SkillNotFound("plain words know no skills")
    return json.write({"to": model, "say": ask.text})


def read(body: bytes, /, *, currency: str) -> list[Event]:
    del currency
    word, _, text = body.decode(errors="replace").partition(" ")
    if word != "SAID":
        raise ProviderError("the answer is not plain words")
    return [Text(text), Done()]


def refusal(
    status: int, body: bytes, *, currency: str, retry_after: str | None, date: str | None
) -> Refusal:
    del currency, retry_after, date
    words = body.decode(errors="replace").split()
    code = words[1] if words[:1] == ["NO"] and words[1:2] and words[1] in BY_CODE else UNRECOGNISED
    return Refusal(error=PeerRefused(peer_status=status, peer_code=code))


def result(events: Sequence[Event], /) -> dict[str, Any]:
    return {"words": joined_text(events)}


CODEC = Codec(dialect=NAME, path=path, write=write, read=read, refusal=refusal, result=result)


def reach(ways: Ways) -> Agent:
    return ways.by_request(CODEC)


SPOKEN = Spoken(name=NAME, reach=reach)
