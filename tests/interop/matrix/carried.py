"""What each dialect can carry of a call and its answer: by this the table of the docs is made.

A pair carries what the dialect of its caller and the dialect of its callee both have words for.
`test_pairs.py` finds out for each pair whether that is so, also of what is said to be lost.
"""

from collections.abc import Mapping
from typing import Final

FEATURES: Final[Mapping[str, str]] = {
    "text": "a text and its answer",
    "stream": "the answer piece by piece, as it is made",
    "earlier": "the earlier messages of a conversation",
    "data_in": "data beside the text of the caller",
    "file_in": "a file of the caller",
    "data_out": "data in the answer",
    "file_out": "a file in the answer",
    "tools": "which tools the agent has used",
    "question": "what the agent asks for before it goes on, and the answer to that",
    "payment": "a payment that it asks for",
    "failure": "that it has failed, and nothing of its own words",
    "cost": "what the call has cost",
    "chain": "its run and its depth",
    "task": "work that is handed over, and asked for later",
}

# As people call them.
NAMES: Final[Mapping[str, str]] = {
    "openai": "OpenAI",
    "tangle": "Tangle",
    "samvad": "SAMVAD",
    "a2a": "A2A",
    "a2a_http": "A2A over HTTP+JSON",
    "mentionable": "Mentionable over A2A",
    "agents_api": "agents-api",
}

_ALWAYS: Final = frozenset({"text", "stream", "failure"})
_ASKS: Final = frozenset({"question", "payment"})
_CHAT: Final = frozenset({"earlier", "file_in"})
_PARTS: Final = frozenset({"data_in", "file_in", "data_out", "file_out"})

# What somebody who calls us can say, and is told, in the dialect of the request.
ASKED_IN: Final[Mapping[str, frozenset[str]]] = {
    "openai": _ALWAYS | _CHAT | _ASKS | {"cost", "chain", "task"},
    "tangle": _ALWAYS | _CHAT | _ASKS | {"cost", "chain", "task"},
    "samvad": _ALWAYS | _ASKS | {"chain", "task"},
    "a2a": _ALWAYS | _PARTS | _ASKS | {"cost", "chain", "task"},
    "a2a_http": _ALWAYS | _PARTS | _ASKS | {"cost", "chain", "task"},
    "mentionable": _ALWAYS | _PARTS | _ASKS | {"cost", "chain", "task", "tools"},
    "agents_api": _ALWAYS | _CHAT | _ASKS | {"data_out", "file_out", "chain"},
}

# What we can say to an agent that we call, and are told. A task is handed over to us, whoever
# answers it.
CALLED_IN: Final[Mapping[str, frozenset[str]]] = {
    "openai": _ALWAYS | _CHAT | {"task"},
    "tangle": _ALWAYS | _CHAT | _ASKS | {"cost", "chain", "task"},
    "samvad": _ALWAYS | _ASKS | {"chain", "task"},
    "agents_api": _ALWAYS | _CHAT | _ASKS | {"data_out", "file_out", "cost", "chain", "task"},
    "a2a": _ALWAYS | _PARTS | _ASKS | {"cost", "chain", "task", "tools"},
}


def carries(asked_in: str, called_in: str) -> frozenset[str]:
    """What gets through from a caller of one dialect to an agent of another, and back."""
    return ASKED_IN[asked_in] & CALLED_IN[called_in]
