"""One extension of A2A as one row: by what it is known, what it does, and how little is believed.

A row has up to five functions. `read` looks at what came with a message of a caller, `ask` writes
what a turn waits for, `task` what a task tells beside its answer, `send` what goes with a call that
we make; `answer` looks at what whoever we called tells, and `reply` answers what it asked for.

Law 1. What is read is a claim. Of a foreign extension only a depth is used, and it can only raise
       ours; everything else is shown as claimed.
Law 2. What is broken in an extension of ours, or a depth that is none in any, is refused. Other
       broken payloads of foreign extensions are passed over and shown as broken.
Law 3. What is shown is bounded, can be printed, and holds no credential.
Law 4. Nothing is written that the other side has not asked for, but our own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NoReturn

from msgspec import Struct

from carnet.core.chain.carnet import Carnet, Mark, Trace
from carnet.core.messages.events import Usage
from carnet.core.messages.interrupt import Interrupt, Outcome, Resolution
from carnet.core.people.identity import Secret
from carnet.core.people.proof import Spending
from carnet.errors import MalformedCallerContext
from carnet.wire.dialects.policy import kept
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import MAX_COUNT

MOST_TEXT: Final = 256  # characters of one text that is shown
MOST_ITEMS: Final = 16  # of a list or an object that is shown
MOST_LEVELS: Final = 4  # of what is shown
MOST_SHOWN_BYTES: Final = 4096  # of one extension

Metadata = Mapping[str, Any]


class PayloadBroken(ValueError):
    """A payload is not in its form; the text is ours."""


class AnswerClaim(Struct, frozen=True, kw_only=True):
    """What a message answers: the interrupt by its id or its state; neither: the only one."""

    outcome: Outcome
    id: str | None = None
    state: str | None = None
    kind: str | None = None  # of the only one that it can mean, where its form is for one kind
    value: Any = None
    is_resumption: bool | None = None  # whether its state alone says what it goes on with

    def __repr__(self) -> str:
        """Without the secret: it may stand in a log."""
        return f"AnswerClaim({self.outcome}, id={self.id})"


class ExtensionClaim(Struct, frozen=True, kw_only=True):
    """What one extension of an inbound message says."""

    mark: Mark | None = None
    trace: Trace | None = None
    budget: Spending | None = None  # that its sender is willing to spend
    answer: AnswerClaim | None = None
    payment: Secret | None = None  # that is to pay for the call
    skill: str | None = None  # that is asked for by name
    payload: dict[str, Any] | None = None  # which goes in
    shown: Any = None


class TaskFacts(Struct, frozen=True, kw_only=True):
    """What is known of a task that is told."""

    task: str  # its id
    run: str
    turn: str
    usage: Usage | None = None
    receipt: str | None = None  # ours, as it leaves
    statement: Mapping[str, Any] | None = None  # a receipt in the form of `signed_receipts`
    # Whom it was run for and through whom, ourselves last; only if its caller told such a chain.
    path: tuple[str, ...] = ()
    on_behalf_of: tuple[str, ...] = ()
    proof: str | None = None  # the digest of the signed document that the call came with


class OutboundFacts(Struct, frozen=True, kw_only=True):
    """What is known of a call that we make."""

    carnet: Carnet  # the document that the callee receives
    trace: Mapping[str, str] = {}  # the headers of the trace
    payer: str | None = None  # whose account pays, if the callee may know
    scopes: tuple[str, ...] = ()  # what the call may do
    proof: str | None = None  # the digest of the document that we sign
    record: str | None = None  # by what we find the call again
    above: str | None = None  # the digest of the call that it is made in


class AnswerClaims(Struct, frozen=True, kw_only=True):
    """What an answer of somebody we called tells in its metadata."""

    interrupts: tuple[Interrupt, ...] = ()
    usage: Usage | None = None
    claimed: dict[str, Any] = {}
    receipt: str | None = None
    form: str | None = None  # the name of the extension that the interrupts came by


Read = Callable[[Sequence[Metadata], int], ExtensionClaim | None]
Ask = Callable[[Sequence[Interrupt]], dict[str, Any]]
Tell = Callable[[TaskFacts], dict[str, Any]]
Send = Callable[[OutboundFacts], dict[str, Any]]
ReadAnswer = Callable[[Metadata, str], AnswerClaims | None]
Reply = Callable[[str, Resolution], dict[str, Any] | None]


class ExtensionRow(Struct, frozen=True, kw_only=True, eq=False):
    """One extension."""

    name: str
    uris: tuple[str, ...] = ()  # the first is the one that is declared
    aliases: tuple[str, ...] = ()  # that others call the first one by: read, never written
    keys: tuple[str, ...]  # of metadata; one that ends in "." or "/" begins several
    is_own: bool = False
    is_declared: bool = False  # on our cards
    is_in_parts: bool = False  # what it says of an answer stands in parts, and not in metadata
    description: str = ""  # there
    reads: str  # in words, for the page of all extensions
    writes: str
    believes: str
    secrets: tuple[tuple[str, ...], ...] = ()  # where a credential stands, from the key down
    read: Read | None = None
    ask: Ask | None = None
    task: Tell | None = None
    send: Send | None = None
    answer: ReadAnswer | None = None
    reply: Reply | None = None


# ------------------------------------------------------------------ strict readers of members


def payload(found: Sequence[Metadata], key: str) -> Any:
    """What stands at a key, in the message or in the request; both must say the same."""
    given = [each[key] for each in found if key in each]
    if len(given) > 1 and given[0] != given[1]:
        raise PayloadBroken("is told twice and differently")
    return given[0] if given else None


def members(value: object) -> dict[str, Any]:
    """The value as an object."""
    if not isinstance(value, dict):
        raise PayloadBroken("is not an object")
    return value


def items(value: object, most: int) -> list[Any]:
    """The value as a list that is not too long."""
    if not isinstance(value, list):
        raise PayloadBroken("is not a list")
    if len(value) > most:
        raise PayloadBroken(f"has more than {most} items")
    return value


def short(value: dict[str, Any], most_bytes: int) -> dict[str, Any]:
    """An object that is not too long to be looked at byte by byte."""
    if len(json.write(value)) > most_bytes:
        raise PayloadBroken(f"has more than {most_bytes} bytes")
    return value


def word(given: Mapping[str, Any], name: str, most: int = MOST_TEXT) -> str | None:
    """A member that is visible ASCII with spaces inside, if it is there."""
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= most:
        raise PayloadBroken(f"has a {name} that is not a text of 1 to {most} characters")
    if not (value.isascii() and value.isprintable()) or value != value.strip(" "):
        raise PayloadBroken(f"has a {name} with a character that is not visible ASCII")
    return value


def needed(given: Mapping[str, Any], name: str, most: int = MOST_TEXT) -> str:
    """The same where it must be there."""
    value = word(given, name, most)
    if value is None:
        raise PayloadBroken(f"has no {name}")
    return value


def count(given: Mapping[str, Any], name: str) -> int | None:
    """A member that counts, if it is there; a large one is the largest (R3)."""
    value = given.get(name)
    if value is None:
        return None
    # Metadata is a `google.protobuf.Struct`, whose numbers are doubles: 2.0 is how some write 2.
    if type(value) is float and math.isfinite(value) and value.is_integer():
        value = int(value)
    if type(value) is not int or value < 0:  # a bool is an int to isinstance
        raise PayloadBroken(f"has a {name} that is not a whole number from zero up")
    return min(value, MAX_COUNT)


def foreign_depth(given: Mapping[str, Any], name: str, key: str) -> int | None:
    """A depth in a foreign extension. One that is none is refused: it would lift the bound."""
    try:
        return count(given, name)
    except PayloadBroken as broken:
        refuse(key, str(broken))


def foreign_mark(stamp: str, depth: int | None, last_depth: int) -> Mark | None:
    """What a foreign depth means for our chain: at least that much. 0 says nothing."""
    if not depth:
        return None
    return Mark(stamp=stamp, depth=depth, last_depth=last_depth, is_usual=True)


def one(asked: Interrupt) -> tuple[Interrupt, ...]:
    """An interrupt as far as a store can hold it."""
    keepable = kept(asked)
    return () if keepable is None else (keepable,)


def refuse(key: str, reason: str) -> NoReturn:
    """Refuse a request for what stands at a key of its metadata."""
    raise MalformedCallerContext(f"metadata[{key}]", reason)


# ------------------------------------------------------------------ what is shown


def shown(value: object) -> Any:
    """As much of a claim as people are shown of it."""
    cut = _cut(value, MOST_LEVELS)
    return cut if len(json.write(cut)) <= MOST_SHOWN_BYTES else {"omitted": "too long"}


def _cut(value: object, levels: int) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict | list) and not levels:
        return "…"
    if isinstance(value, dict):
        first = islice(value.items(), MOST_ITEMS)
        return {printable(str(name)): _cut(each, levels - 1) for name, each in first}
    if isinstance(value, list):
        return [_cut(each, levels - 1) for each in value[:MOST_ITEMS]]
    return value


def printable(text: str, most: int = MOST_TEXT) -> str:
    """A text on one line, not too long."""
    part = text[:most]
    return "".join([sign if sign.isprintable() else " " for sign in part])
