"""Policy parts as an extension of A2A: where they lie, and the resolution that answers one.

    up     the parts in metadata under the URI: {policies: [part, ...]}
    down   metadata.mentionable.policy_resolution {in_reply_to_state, outcome, value, ...}

What a part says, `policy_part` reads and writes.

Law 1. The state travels unchanged. A resolution names one, or the message is refused; what else it
       says is the value of the answer, and is sent on.
Law 2. Only an agreement is sent down as a resolution: who reads the state and nothing else must not
       take a refusal for one.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.messages.interrupt import Interrupt, Outcome, Resolution
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions.questions.policy_part import (
    FORM,
    MOST_STATE,
    POLICY_ALIAS,
    POLICY_URI,
    read_parts,
    state_as_carried,
    state_as_issued,
    write_part,
)
from carnet.wire.dialects.a2a.extensions.row import (
    AnswerClaim,
    AnswerClaims,
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    PayloadBroken,
    items,
    members,
    shown,
)
from carnet.wire.dialects.policy import MOST_INTERRUPTS
from carnet.wire.grammar import json
from carnet.wire.grammar.mentionable import (
    NAMESPACE,
    POLICY_RESOLUTION,
    place,
    read_member,
    spellings,
)

MOST_VALUE_BYTES: Final = 8 * 1024  # of what a resolution says beside its state

_ACCEPTED: Final = frozenset({"accepted", "approved", "granted", "paid", "completed", "done"})
_REJECTED: Final = frozenset({"rejected", "denied", "declined", "cancelled", "canceled"})


# ------------------------------------------------------------------ called: read


def answer(metadata: Metadata, currency: str) -> AnswerClaims | None:
    """What whoever we called asks for in its metadata."""
    values = [metadata[key] for key in (POLICY_URI, POLICY_ALIAS) if key in metadata]
    namespace = metadata.get(NAMESPACE)
    nested = namespace.get(FORM) if isinstance(namespace, dict) else None
    values += [each for each in (nested, metadata.get(f"{NAMESPACE}.{FORM}")) if each is not None]
    if not values:
        return None
    parts = [part for value in values for part in _listed(value)]
    asked = read_parts(parts, currency)
    kinds = [{"kind": each.kind, "message": shown(each.message)} for each in asked]
    return AnswerClaims(interrupts=asked, claimed={FORM: kinds})


def _listed(value: object) -> list[Any]:
    if isinstance(value, list):
        return items(value, MOST_INTERRUPTS)
    given = members(value)
    return items(given["policies"], MOST_INTERRUPTS) if "policies" in given else [given]


# ------------------------------------------------------------------ called: resolved


def resolution_metadata(
    metadata: Metadata, asked: Interrupt, resolution: Resolution
) -> dict[str, Any]:
    """The metadata of a call that is made again, with what resolves a part beside it.

    What had no state is asked for again without: there is nothing to name it by.
    """
    if not asked.state or not asked.policy:
        return dict(metadata)
    value = resolution.value
    beside = value if isinstance(value, dict) else {} if value is None else {"value": value}
    state = state_as_issued(asked.state)
    stated = {**beside, "in_reply_to_state": state, "outcome": resolution.outcome}
    before = metadata.get(NAMESPACE)
    namespace = before if isinstance(before, dict) else {}
    return {**metadata, NAMESPACE: {**namespace, POLICY_RESOLUTION: stated}}


# ------------------------------------------------------------------ served: asked


def ask(interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    """What a turn waits for, as parts."""
    return {POLICY_URI: {"policies": [write_part(asked) for asked in interrupts]}}


# ------------------------------------------------------------------ served: resolved


def speaks(metadata: object) -> bool:
    """Whether metadata has anything of the namespace in it."""
    if not isinstance(metadata, dict):
        return False
    return any(key == NAMESPACE or key.startswith(f"{NAMESPACE}.") for key in metadata)


def read(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """The resolution that a message brings."""
    del last_depth
    value = read_member(tuple(found), POLICY_RESOLUTION)
    if value is None:
        return None
    try:
        claim = _read_resolution(members(value))
    except PayloadBroken as broken:
        raise InvalidRequest(place(POLICY_RESOLUTION), str(broken)) from None
    return ExtensionClaim(answer=claim, shown={"outcome": claim.outcome})


def _read_resolution(given: dict[str, Any]) -> AnswerClaim:
    state = given.get("in_reply_to_state")
    if not isinstance(state, str) or not 0 < len(state) <= MOST_STATE:
        raise PayloadBroken("has no in_reply_to_state")
    beside = {n: v for n, v in given.items() if n not in {"in_reply_to_state", "outcome", "value"}}
    value = given.get("value", beside or None)
    if len(json.write(value)) > MOST_VALUE_BYTES:
        raise PayloadBroken(f"has more than {MOST_VALUE_BYTES} bytes beside its state")
    return AnswerClaim(
        outcome=_outcome(given.get("outcome")),
        state=state_as_carried(state),
        value=value,
        is_resumption=True,
    )


def _outcome(value: object) -> Outcome:
    """Who names a state and no outcome has done what was asked for."""
    word = "accepted" if value is None else value
    if isinstance(word, str) and word in _ACCEPTED:
        return "accepted"
    if isinstance(word, str) and word in _REJECTED:
        return "rejected"
    raise PayloadBroken("has an outcome that is neither accepted nor rejected")


POLICY: Final = ExtensionRow(
    name=FORM,
    uris=(POLICY_URI,),
    aliases=(POLICY_ALIAS,),
    keys=(POLICY_URI,),
    secrets=spellings(POLICY_RESOLUTION),
    is_declared=True,
    description="Policy parts of Mentionable: consent, sign-in, payment, and refusals.",
    reads="`metadata.mentionable.policy_resolution`; the policy parts of an agent that we called",
    writes="what a task waits for or was refused, to who activated it or speaks Mentionable; "
    "resolutions toward agents that asked so",
    believes="a resolution as much as its sender may answer, and once; a link to its agent's host",
    read=read,
    ask=ask,
    answer=answer,
)
