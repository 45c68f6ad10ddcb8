"""One vocabulary for every stream.

Here is also the message of a conversation, in parts.

Law 1. What an agent says has exactly one end, `Done`, `Failed` or `Waiting`, and nothing after it.
Law 2. `read_events(write_events(x)) == x`: what is journaled is what was said.
Law 3. A part that is plain text is a `str`: nearly every message has one such part and no other.
Law 4. `text` is what a reader of text sees: the text parts, a line each.
Law 5. What a dialect cannot say of a message stays in its own body; nothing is guessed.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal, TypeGuard

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from carnet.core.chain.turn import TurnState
from carnet.core.messages.interrupt import Interrupt, Resolution, check_together
from carnet.errors import (
    BY_CODE,
    AnswerAwaited,
    ApprovalRequired,
    CarnetError,
    ConsentRequired,
    Fact,
    InputRequired,
    Internal,
    PaymentWanted,
    RecoveryRequired,
    SignInRequired,
    WaitRequired,
)


class Text(Struct, frozen=True, tag="text", array_like=True):
    """A piece of the answer."""

    text: str


class ToolCall(Struct, frozen=True, tag="tool_call", array_like=True):
    """The agent wants a tool. `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str
    index: int = 0
    is_own: bool = False  # the agent has it run itself: it is shown, and nobody else is to
    label: str = ""  # what it does, in words for people
    preview: str = ""  # and what would come of it, for whoever approves it


class ToolResult(Struct, frozen=True, tag="tool_result", array_like=True):
    """What the tool gave."""

    id: str
    status: Literal["ok", "error", "denied"]
    output: Any = None


class Data(Struct, frozen=True, tag="data", array_like=True):
    """Structured output."""

    value: Any


class Interrupted(Struct, frozen=True, tag="interrupt", array_like=True):
    """The agent needs something before it goes on."""

    interrupt: Interrupt


class Resolved(Struct, frozen=True, tag="resolved", array_like=True):
    """What was needed has been answered."""

    interrupt_id: str
    resolution: Resolution


class Usage(Struct, frozen=True, tag="usage", array_like=True):
    """What the call used. Amounts are micro-units; None where nobody said."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    run_cost: int | None = None
    currency: str | None = None


class Done(Struct, frozen=True, tag="done", array_like=True):
    """The answer is complete."""

    reason: str = "stop"


class Failed(Struct, frozen=True, tag="failed", array_like=True):
    """The answer ended in an error of our closed enum."""

    code: str
    facts: dict[str, int | str | None] = {}

    @property
    def retryable(self) -> bool:
        """Whether the same turn may run again."""
        return BY_CODE.get(self.code, Internal).retryable

    def error(self) -> CarnetError:
        """The error this event stands for."""
        kind = BY_CODE.get(self.code)
        if kind is None:  # written by a newer version
            return Internal(f"recorded as {self.code}")
        error = kind.__new__(kind)
        CarnetError.__init__(error, **self.facts)
        return error

    @classmethod
    def of(cls, error: CarnetError) -> "Failed":
        """The event that stands for an error; its raw detail stays behind."""
        facts: dict[str, Fact] = dict(error.facts)
        return cls(error.code, facts)


_REQUIRED: Final[dict[str, type[AnswerAwaited]]] = {
    "approval": ApprovalRequired,
    "payment": PaymentWanted,
    "consent": ConsentRequired,
    "sign_in": SignInRequired,
    "rate_limited": WaitRequired,
    "unavailable": RecoveryRequired,
}


class Waiting(Struct, frozen=True, tag="waiting", array_like=True):
    """The answer goes on when what these ask for is there."""

    interrupts: tuple[Interrupt, ...]

    def __post_init__(self) -> None:
        """Refuse to wait for nothing, or for what could not be answered one by one."""
        if not self.interrupts:
            raise ValueError("an agent that waits says what for")
        check_together(self.interrupts)

    def error(self) -> CarnetError:
        """What whoever cannot answer it is told: it is no success, and nothing is done yet."""
        asked = self.interrupts[0]
        kind: type[AnswerAwaited] = _REQUIRED.get(asked.kind, InputRequired)
        error = kind(kind=asked.kind if asked.is_known else "input")
        if asked.retry_after is not None:
            error.facts["retry_after"] = asked.retry_after
        error.interrupts = self.interrupts
        return error


class Extension(Struct, frozen=True, tag="extension", array_like=True):
    """Something only some dialects know. Those that do not leave it out."""

    name: str
    payload: Any


End = Done | Failed | Waiting

Event = (
    Text
    | ToolCall
    | ToolResult
    | Data
    | Interrupted
    | Resolved
    | Usage
    | Extension
    | Done
    | Failed
    | Waiting
)

STATES: Final[dict[type, TurnState]] = {Done: "done", Failed: "failed", Waiting: "waiting"}

CHILD = "carnet.child"  # an Extension that says what a call made in process has cost
AGAIN = "again"  # in it: the answer was read from the record of a call that was made before
RECORDED = "carnet.recorded"  # an Extension before an answer: it is read from a record
BUDGET = "carnet.budget"  # an Extension: most of the budget of the call is used
UNKNOWN_COST = "carnet.unknown_cost"  # an Extension: somebody charged and did not say how much
RESULT = "carnet.result"  # an Extension: what a skill gave as its result, a JSON object
RECEIPT = "carnet.receipt"  # an Extension: what we signed about the answer, as it leaves
STATEMENT = "carnet.statement"  # an Extension: the same in a form of others, for who asked for it
RELAYED = "carnet.relayed"  # an Extension: what follows is said by somebody who was mentioned
SPOKEN_BY = "carnet.spoken_by"  # an Extension: who says what follows, out of which call; or None
COUNTED = "carnet.counted"  # an Extension: what a loop has counted of its named budgets
CONTEXT_WINDOW = "carnet.context_window"  # an Extension: how much a model can still read
ECHO = "carnet.echo"  # an Extension: an answer as the provider of its model wants it back
FILE = "carnet.file"  # an Extension: bytes, or a link to them, that belong to the answer
MESSAGE = (
    "carnet.message"  # an Extension: the answer is a word in passing, and no work that is kept
)
OUTBOUND_CALL = "carnet.leg"  # an Extension: a call to another organisation


def journaled(end: End) -> End:
    """An end as the journal holds it: the secrets of interrupts stay out of it."""
    if not isinstance(end, Waiting):
        return end
    return Waiting(tuple(replace(asked, state="") for asked in end.interrupts))


def state_of(end: End) -> TurnState:
    """The state of a turn that ends so; TypeError for what is no end."""
    state = STATES.get(type(end))
    if state is None:
        raise TypeError(f"an agent ends with Done, Failed or Waiting, not with {end!r}")
    return state


def is_terminal(event: Event) -> TypeGuard[End]:
    """Whether nothing may follow."""
    return type(event) in STATES


def joined_text(events: Sequence[Event]) -> str:
    """The whole text of an answer."""
    return "".join([event.text for event in events if type(event) is Text])


PIECE_BYTES: Final = 256 * 1024  # of the journal, that is written or read at a time

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[Event])
_scan: Final = json.JSONDecoder().raw_decode


# The journal's form of one event; raises for what cannot be encoded. A call less than a function.
write_event: Final[Callable[[Event], bytes]] = _encoder.encode


def join_events(encoded: Sequence[bytes]) -> bytes:
    """The journal's form of a batch, from that of its events."""
    return b"[" + b",".join(encoded) + b"]"


def write_events(events: Sequence[Event]) -> bytes:
    """The journal's form of a batch."""
    return _encoder.encode(events)


def read_events(data: bytes) -> list[Event]:
    """A batch from the journal."""
    return _decoder.decode(data)


def read_in_pieces(data: bytes) -> Iterator[list[Event]]:
    """A batch from the journal, some events at a time: a long one is not made at once."""
    if len(data) <= PIECE_BYTES:
        yield read_events(data)
        return
    text = data.decode()
    found: list[object] = []
    begun = at = 1  # after the bracket; after each event stands a comma, or the last bracket
    while at < len(text):
        event, at = _scan(text, at)
        found.append(event)
        at += 1
        if at - begun > PIECE_BYTES // 4:
            yield msgspec.convert(found, list[Event])
            found, begun = [], at
    yield msgspec.convert(found, list[Event])


Role = Literal["system", "developer", "user", "assistant", "tool"]


class DataPart(Struct, frozen=True, tag="data"):
    """A value, such as a form that was filled in."""

    value: Any
    media_type: str | None = None


class File(Struct, frozen=True, tag="file"):
    """Bytes that travel with the message, in base64."""

    content: str
    name: str | None = None
    media_type: str | None = None


class Link(Struct, frozen=True, tag="link"):
    """Where to find what is meant. Nobody follows it unasked."""

    url: str
    name: str | None = None
    media_type: str | None = None


Part = str | DataPart | File | Link


class Message(Struct, frozen=True):
    """One message that is sent to an agent."""

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None
    id: str | None = None  # the sender's own
    tool_calls: tuple[ToolCall, ...] = ()  # that the assistant asked for
    tool_call_id: str | None = None  # the call whose result a tool's message holds
    metadata: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """Its text parts, a line each."""
        match self.parts:
            case (str() as only,):
                return only
        return "\n".join([part for part in self.parts if isinstance(part, str)])

    @classmethod
    def system(cls, text: str) -> "Message":
        """What whoever is called is instructed with."""
        return cls("system", (text,))

    @classmethod
    def user(cls, *parts: Part) -> "Message":
        """What is said: text, and files or links beside it."""
        return cls("user", parts)

    @classmethod
    def assistant(cls, text: str) -> "Message":
        """What was answered before."""
        return cls("assistant", (text,))

    @property
    def images(self) -> tuple[Link, ...]:
        """Its images, each with its `url`: an address, or `data:` with the image itself."""
        links = [part for part in self.parts if isinstance(part, Link)]
        return tuple([link for link in links if (link.media_type or "").startswith("image/")])

    @property
    def files(self) -> tuple[File, ...]:
        """What travels with it: documents and sound, each with its `content` in base64."""
        return tuple([part for part in self.parts if isinstance(part, File)])

    @property
    def is_plain(self) -> bool:
        """Whether it holds text and nothing else."""
        return not (self.tool_calls or self.tool_call_id) and all(
            isinstance(part, str) for part in self.parts
        )


def file_event(part: File | Link) -> Extension:
    """What says in an answer that a file, or a link to one, belongs to it."""
    content = {"raw": part.content} if isinstance(part, File) else {"url": part.url}
    more = {"filename": part.name, "mediaType": part.media_type}
    return Extension(FILE, content | {name: value for name, value in more.items() if value})
