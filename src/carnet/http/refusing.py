"""The answer to a request that never became a call, in the words of the dialect it was sent in.

Law. The path alone decides which words: a refusal can come before anything else was read.
"""

import re
from typing import Final

from carnet.errors import CarnetError, MethodNotAllowed, TaskNotFound
from carnet.wire import openai, samvad

_SAMVAD: Final = re.compile(rb"(?:/agents/[^/]*)?/(?:agent(?:/.*)?|\.well-known/agent\.json)")

Refusal = tuple[int, dict[str, str], bytes]


def speaks_samvad(path: bytes) -> bool:
    """Whether a path belongs to the SAMVAD dialect."""
    return _SAMVAD.fullmatch(path) is not None


def write_refusal(error: CarnetError, path: bytes) -> Refusal:
    """Status, headers and body of a refusal at this path."""
    if speaks_samvad(path):
        if isinstance(error, TaskNotFound):  # whichever way it is not there
            return samvad.write_not_found()
        status, headers, body = samvad.write_error(error, trace_id=error.run or "")
    else:
        status, headers, body = openai.write_error(error, run=error.run)
    if isinstance(error, MethodNotAllowed):  # RFC 9110, 15.5.6
        headers["allow"] = str(error.facts.get("allow") or "")
    return status, headers, body
