"""Anthropic's messages, toward models alone: requests that leave, answers that come.

It is pure. What is asked has the names of chat completions (`core.messages.parameters`) and is
written in the words of this interface; what it has no word for is left out.

    outbound   write_request                   ← Ask      request.py
               read_answer                     → events   answer.py
               MessageReader                   → events   stream.py
               read_refusal                    → error    reports.py
               MODEL                           all of it  codec.py
"""

from carnet.wire.dialects.anthropic.codec import HEADERS, KEY_HEADER, MESSAGES, MODEL

__all__ = ["HEADERS", "KEY_HEADER", "MESSAGES", "MODEL"]
