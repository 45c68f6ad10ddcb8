"""The OpenAI dialect: chat completions, whole and streamed, on both sides of the gateway.

It is pure, and it reads and writes bodies alone: what rides in headers (the Tangle chain, who
pays) belongs to the stamps.

    inbound    read_ask, request_digest        → Ask      request.py
               write_answer, write_models      ← events   answer.py
               digest_content                  ← events
               ChunkWriter                     ← events   chunk.py
               REFUSALS, error_object, write_error        refusals.py
    outbound   write_request                   ← Ask      request.py
               read_answer                     → events   answer.py
               ChunkReader                    → events   stream.py
               read_refusal                    → error    reports.py
               CODEC                           all of it  codec.py
"""

from carnet.wire.dialects.openai.answer import (
    digest_content,
    read_answer,
    write_answer,
    write_models,
)
from carnet.wire.dialects.openai.chunk import ChunkWriter
from carnet.wire.dialects.openai.codec import CODEC, COMPLETIONS, MODEL
from carnet.wire.dialects.openai.dialect import DIALECT
from carnet.wire.dialects.openai.refusals import REFUSALS, error_object, write_error
from carnet.wire.dialects.openai.reports import read_refusal
from carnet.wire.dialects.openai.request import read_ask, request_digest, write_request
from carnet.wire.dialects.openai.stream import ChunkReader

__all__ = [
    "CODEC",
    "COMPLETIONS",
    "DIALECT",
    "MODEL",
    "REFUSALS",
    "ChunkReader",
    "ChunkWriter",
    "digest_content",
    "error_object",
    "read_answer",
    "read_ask",
    "read_refusal",
    "request_digest",
    "write_answer",
    "write_error",
    "write_models",
    "write_request",
]
