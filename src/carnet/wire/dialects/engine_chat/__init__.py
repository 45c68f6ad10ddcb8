"""The contract between a gateway and an agent loop: one request, one stream (seed 002).

It is pure. It has both sides: what a loop reads a gateway writes, and the other way round. It is no
dialect of the public port: no gateway answers it, and nobody is found by it.

    request    read_request, write_request     the body          request.py
    stream     EngineWriter                    ← events          writer.py
               EngineReader                    → events          stream.py
    errors     write_refusal                   before the stream refusals.py
               end_of, MESSAGES                in it

Law 1. The events are text-delta, tool-call, tool-result, done and error; there are no others, and
       one of the last two is the end.
Law 2. What a request is configured with (model, tools, keys) is no part of it, and neither is who
       sent it: that crosses in headers.
"""

from carnet.wire.dialects.engine_chat.refusals import MESSAGES, end_of, write_refusal
from carnet.wire.dialects.engine_chat.request import EngineRequest, read_request, write_request
from carnet.wire.dialects.engine_chat.stream import EngineReader
from carnet.wire.dialects.engine_chat.writer import EngineWriter

__all__ = [
    "MESSAGES",
    "EngineReader",
    "EngineRequest",
    "EngineWriter",
    "end_of",
    "read_request",
    "write_refusal",
    "write_request",
]
