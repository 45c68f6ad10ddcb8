"""Approvals of BeeAI's Agent Stack, `.../interactions/approval/v1`, and of its heir Kagenti.

    up     {action: "generic" | "tool-call", title, description, name, input}
    down   {decision: "approve" | "reject"}

Law. It names no question: an answer is to the only one of its task, and one is asked at a time.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.messages.interrupt import MOST_DATA_BYTES, Interrupt, Outcome, Resolution
from carnet.wire.dialects.a2a.extensions.interrupt import words_of
from carnet.wire.dialects.a2a.extensions.questions.state import read_state, write_state
from carnet.wire.dialects.a2a.extensions.row import (
    AnswerClaim,
    AnswerClaims,
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    PayloadBroken,
    members,
    one,
    payload,
    printable,
    shown,
)
from carnet.wire.dialects.policy import MOST_WORDS
from carnet.wire.grammar import json

BEEAI_URI: Final = "https://a2a-extensions.agentstack.beeai.dev/interactions/approval/v1"
KAGENTI_URI: Final = "https://a2a-extensions.adk.kagenti.dev/interactions/approval/v1"
URIS: Final = (BEEAI_URI, KAGENTI_URI)


_STATE: Final = "beeai"
_DECISIONS: Final[dict[object, Outcome]] = {"approve": "accepted", "reject": "rejected"}


def read(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """The answer that a message brings."""
    del last_depth
    given = [value for uri in URIS if (value := payload(found, uri)) is not None]
    if not given:
        return None
    decisions = {_decision(members(value)) for value in given}
    if len(decisions) > 1:
        raise PayloadBroken("decides twice and differently")
    return ExtensionClaim(answer=AnswerClaim(outcome=decisions.pop()), shown=shown(given[0]))


def _decision(given: dict[str, Any]) -> Outcome:
    decision = given.get("decision")
    outcome = _DECISIONS.get(decision) if isinstance(decision, str) else None
    if outcome is None:
        raise PayloadBroken("has a decision that is neither approve nor reject")
    return outcome


def ask(interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    """What a turn waits for, if that is one thing: an answer could not say which of several."""
    if len(interrupts) != 1:
        return {}
    (asked,) = interrupts
    more = asked.more or {}
    tool, arguments = more.get("tool"), more.get("arguments")
    request: dict[str, Any] = {"action": "generic", "title": None, "description": words_of(asked)}
    if isinstance(tool, str):
        given = arguments if isinstance(arguments, dict) else None
        request |= {"action": "tool-call", "name": tool, "input": given}
    return dict.fromkeys(URIS, request)


def answer(metadata: Metadata, currency: str) -> AnswerClaims | None:
    """What whoever we called waits for."""
    del currency
    uri = next((uri for uri in URIS if uri in metadata), None)
    if uri is None:
        return None
    given = members(metadata[uri])
    texts = [given.get(name) for name in ("title", "description")]
    words = " ".join([printable(text, MOST_WORDS) for text in texts if isinstance(text, str)])
    asked = Interrupt(
        kind="approval",
        id="approval",
        state=write_state(_STATE, [uri]),
        message=words.strip()[:MOST_WORDS] or "An approval is asked for.",
        more=_tool(given),
    )
    return AnswerClaims(interrupts=one(asked), claimed={"beeai": shown(given)})


def _tool(given: dict[str, Any]) -> dict[str, Any] | None:
    name, arguments = given.get("name"), given.get("input")
    if given.get("action") != "tool-call" or not isinstance(name, str):
        return None
    tool = {"tool": printable(name)}
    more = tool | ({"arguments": arguments} if isinstance(arguments, dict) else {})
    return more if len(json.write(more)) <= MOST_DATA_BYTES else tool


def reply(state: str, resolution: Resolution) -> dict[str, Any] | None:
    """The answer to what has this state; None where it was not asked so."""
    asked = read_state(_STATE, state, str)
    if asked is None or asked[0] not in URIS:
        return None
    return {asked[0]: {"decision": "approve" if resolution.accepted else "reject"}}


BEEAI: Final = ExtensionRow(
    name="beeai",
    uris=URIS,
    keys=URIS,
    is_declared=True,
    description="Approvals in the words of Agent Stack (BeeAI) and Kagenti.",
    reads="the decision about the only interrupt of a task; what an agent that we called asks for",
    writes="the interrupt of a task that waits for one thing; the decision toward who asked so",
    believes="an answer as much as its sender may answer, and once; a question is passed on",
    read=read,
    ask=ask,
    answer=answer,
    reply=reply,
)
