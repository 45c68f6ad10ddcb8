"""The outbound half of a dialect: how the agents of a peer are called in it.

Most dialects are one request and its answer, and a `Codec` says all of them: it writes the one and
reads the other. What goes with it (stamps, a token or a signature, receipts, what it may cost) is
the same for all, and the runtime's. A dialect that needs more than one request for a call says
which way of the runtime it takes instead.

Law 1. A codec is pure: the same question is the same bytes, and the same bytes the same events.
Law 2. Of what the other side wrote, an error tells no text of its own.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from carnet.core.call import Agent, Ask
from carnet.core.messages.events import Event, Usage
from carnet.core.messages.interrupt import Interrupt
from carnet.errors import CarnetError


class Refusal(Struct, frozen=True, kw_only=True):
    """An answer that is none."""

    error: CarnetError
    interrupts: tuple[Interrupt, ...] = ()  # what it asks for: then it is no failure
    usage: Usage | None = None  # what was charged all the same


class StreamReader(Protocol):
    """Reads one stream in a dialect."""

    @property
    def fault(self) -> str:
        """Why it was not what it should be; empty if it was."""

    @property
    def words(self) -> str | None:
        """What a provider said of its failure, for the operator alone."""

    def feed(self, data: bytes, /) -> Iterable[Event]:
        """The events that these bytes complete."""

    def close(self) -> Iterable[Event]:
        """What is left to say when no more bytes come."""


class Write(Protocol):
    """Writes a request."""

    def __call__(self, ask: Ask, *, model: str, stream: bool, with_skill: bool) -> bytes:
        """The body to send to the agent that is called `model` there.

        With `with_skill` a skill is asked for by name: SkillNotFound where there is no word for it.
        """


class Read(Protocol):
    """Reads a whole answer."""

    def __call__(self, body: bytes, /, *, currency: str) -> Iterable[Event]:
        """Its events, the last of them `Done`; ProviderError if it is none."""


class Follow(Protocol):
    """Makes what reads a stream."""

    def __call__(self, *, currency: str, on_comment: Callable[[str], None] | None) -> StreamReader:
        """A reader; a comment beside the events is given to `on_comment`."""


class ReadRefusal(Protocol):
    """Reads an answer that is none."""

    def __call__(
        self, status: int, body: bytes, *, currency: str, retry_after: str | None, date: str | None
    ) -> Refusal:
        """What its status, its body and two of its headers stand for."""


class Codec(Struct, frozen=True, kw_only=True, eq=False):
    """The requests of one dialect and their answers, as they leave and as they come."""

    dialect: str  # by which the record of a call names it
    path: Callable[[str], str]  # of an agent by its name there, empty for the default one
    write: Write
    read: Read
    refusal: ReadRefusal
    result: Callable[[Sequence[Event]], dict[str, Any]]  # what a receipt is about
    follow: Follow | None = None  # None: its answers come whole


class Ways(Protocol):
    """The ways that the runtime has to one agent of a peer."""

    def by_request(self, codec: Codec, /) -> Agent:
        """One request for a call, known by our token or else by our signature."""

    def by_envelope(self) -> Agent:
        """Signed envelopes to whoever the card of the agent names; tasks are waited for."""

    def by_card(self) -> Agent:
        """Messages to the interface that the card of the agent names; tasks are followed."""

    def by_run(self) -> Agent:
        """One request for a run that is run once, and one for each decision that it waits for."""


class Spoken(Struct, frozen=True, kw_only=True, eq=False):
    """How a dialect is spoken to the agents of a peer."""

    name: str  # by which a peer is listed
    reach: Callable[[Ways], Agent]
