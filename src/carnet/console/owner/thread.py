"""A conversation as it is read: the oldest message first, each with its tools and its questions.

Law. Whose words they are is on every message: the person's own, an agent's, or those of an agent
     that was mentioned and asked.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.console.owner.inbox import with_fields
from carnet.console.runs.hops import organisation_of

Page = dict[str, Any]

# What a message has that is an answer.
_NO_ANSWER: Final[Page] = {"tools": [], "code": None, "waits": False, "run": None, "cost": None}


def thread(messages: Sequence[Page], approvals: Sequence[Page], domain: str) -> list[Page]:
    """The messages of a page of the API, which has the newest first."""
    asked: dict[str, list[Page]] = {}
    for each in reversed(approvals):
        asked.setdefault(each["run"], []).append(with_fields(each))
    numbers = {domain: 0}
    found = []
    for message in reversed(messages):
        author = message["author"] or ""
        organisation = organisation_of(author, domain)
        shown = (
            _NO_ANSWER
            | message
            | {
                "organisation": organisation,
                "number": numbers.setdefault(organisation, len(numbers)) % 8,
                "asks": asked.pop(message.get("run") or "", []),
            }
        )
        found.append(shown)
    return found
