"""The conversations of people with their agents, as they are kept.

A conversation is a tree of messages: who edits one begins a branch, and an answer that is given
anew stands beside the former. What is shown is the branch that ends at its head. (A *dialogue*,
which several agents hold among themselves, is another matter.)

Law 1. Every look-up is by the owner and the id: what is not hers does not exist for her.
Law 2. What a person says is durable, with a place for the answer, before anything runs (R48).
Law 3. What a client sends again under its own id is the same message, and has the same answer; with
       other content it is refused (R47).
Law 4. One answer is given in a conversation at a time. Who died while giving it holds nobody up.
Law 5. An answer belongs to a turn. Whoever sees that the turn has ended writes it down; to write it
       down twice changes nothing.
Law 6. Of a conversation that was deleted no word is left (R27). That it was is known for a while.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Event, joined_text, read_events
from carnet.ports.world.outbox import Delivery

AnswerState = Literal["unanswered", "partial", "whole", "failed"]
Trigger = Literal["message", "webhook", "schedule"]
Role = Literal["user", "assistant"]

MOST_SEARCHED: Final = 8  # words of one search


class KeptMessage(Struct, frozen=True, kw_only=True):
    """One message: of the person, or an answer to her.

    The state of what she said is that of its newest answer.
    """

    n: int
    id: str
    conversation: int
    parent: int | None  # the message before it in its branch
    role: Role
    author: str | None  # of an answer: the agent
    parts: bytes  # events, in the journal's form
    metadata: bytes | None  # of what she said, as JSON
    state: AnswerState
    run: str | None  # of an answer: where it is recorded
    turn: str | None
    waits: bool  # its turn waits for somebody's answer
    code: str | None  # why it is not whole
    client_id: str | None
    tokens_in: int | None
    tokens_out: int | None
    cost: int | None  # micro-units
    created: int
    ended: int | None

    def events(self) -> list[Event]:
        """What was said."""
        return read_events(self.parts) if self.parts else []

    @property
    def text(self) -> str:
        """The words of it."""
        return joined_text(self.events())


class KeptConversation(Struct, frozen=True, kw_only=True):
    """One conversation, without its messages."""

    n: int
    id: str
    owner: str
    agent: str  # that was asked last
    title: str | None
    trigger: Trigger
    created: int
    updated: int
    head: int | None
    answering: str | None  # the id of the answer that is being given
    unread: int  # answers that nobody has seen
    archived: int | None
    size: int  # messages
    tokens_in: int
    tokens_out: int
    cost: int


class ConversationFilter(Struct, frozen=True, kw_only=True):
    """What conversations must be like to be listed; None is anything."""

    words: tuple[str, ...] = ()  # all of them stand in its title or in what was said
    agent: str | None = None
    trigger: str | None = None
    since: int | None = None  # something was said then or later
    until: int | None = None  # and then or before
    unread: bool = False
    archived: bool = False


class NewMessage(Struct, frozen=True, kw_only=True):
    """What a person, or something that runs for her, says."""

    owner: str
    conversation: str | None  # None: a new one begins
    new_conversation: str  # its id then
    id: str
    answer: str  # the id of the answer to it
    agent: str
    content: str
    title: str  # of a new conversation
    metadata: bytes | None = None
    client_id: str | None = None
    digest: bytes  # of all that the client has sent
    edits: str | None = None  # the id of a message of hers that this one stands in the place of
    run: str
    turn: str
    trigger: Trigger = "message"
    now: int


class NewAnswer(Struct, frozen=True, kw_only=True):
    """Another answer to what was said before; with the id of one that is there, that one anew."""

    owner: str
    conversation: str
    to: str  # the id of what was said
    id: str
    agent: str
    run: str
    turn: str
    now: int


class BegunAnswer(Struct, frozen=True):
    """What was said, and the place of its answer."""

    conversation: KeptConversation
    question: KeptMessage
    answer: KeptMessage
    is_new: bool  # else it was there before, and nothing was written


class RelayedAnswer(Struct, frozen=True, kw_only=True):
    """What somebody has said who was mentioned in an answer."""

    author: str
    parts: bytes
    code: str | None = None  # why it has said nothing


class Settled(Struct, frozen=True, kw_only=True):
    """How an answer has ended, for now."""

    state: AnswerState
    parts: bytes
    text: str = ""  # the words that it is to be found by
    waits: bool = False
    code: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    is_seen: bool = False  # somebody has read it to its end
    relayed: tuple[RelayedAnswer, ...] = ()  # each a message of its own, after it
    now: int


class AnswerPlace(Struct, frozen=True):
    """Where an answer is given."""

    conversation: str
    is_triggered: bool  # what it answers is what a hook or a schedule began the conversation with


class AnswerEnd(Struct, frozen=True, kw_only=True):
    """How an answer stands that nobody was reading: it has ended, failed, or waits for somebody."""

    person: int
    conversation: str
    message: str  # the id of the answer
    agent: str
    state: Literal["done", "failed", "waiting"]
    code: str | None  # why it is not done
    mark: str  # the same for the same end, and for no other


AnswerNotices = Callable[[AnswerEnd], Sequence[Delivery]]  # what tells its owner


class Page(Struct, frozen=True):
    """Some conversations, and where the next ones begin; there may be fewer than were asked for."""

    found: Sequence[KeptConversation]
    following: str | None


class OpenAnswer(Struct, frozen=True):
    """An answer that has not ended, or waits, and whose it is."""

    n: int  # of the conversation where it is being given, else of the answer
    owner: str
    conversation: str
    since: int  # when something happened last
    is_given: bool  # now; else it waits
    answer: KeptMessage


class Deletion(Protocol):
    """Deletes conversations of one store."""

    async def turns(self, conversation: KeptConversation) -> Sequence[tuple[int, str]]:
        """The turns of a conversation by their numbers, and how each stands."""

    async def delete(self, conversation: KeptConversation, now: int) -> bool:
        """Leave nothing of a conversation but that it was there; False while it is answered."""


class Conversations(Protocol):
    """The conversations of one store."""

    @property
    def deletion(self) -> Deletion:
        """What deletes them."""

    async def begin(self, new: NewMessage) -> BegunAnswer:
        """Keep what was said and a place for the answer, which is being given from now on.

        What was sent before under the same id of the client is given as it is.
        """

    async def begin_answer(self, new: NewAnswer) -> BegunAnswer:
        """Keep a place for another answer, which is being given from now on."""

    async def settle(
        self, owner: str, answer: str, settled: Settled, notices: Sequence[Delivery] = ()
    ) -> None:
        """Write an answer down, and who is told; it is not being given any more."""

    async def place_of(self, owner: str, answer: KeptMessage) -> AnswerPlace | None:
        """Where an answer of hers is given that has not been written down; None for another."""

    async def release(self, owner: str, answer: str, code: str | None) -> None:
        """Note that an answer is not being given: nothing of it was said."""

    async def find(self, owner: str, conversation: str) -> KeptConversation | None:
        """One of hers. Raises Deleted for one that she has deleted."""

    async def list(
        self, owner: str, matching: ConversationFilter, *, limit: int, before: str | None
    ) -> Page:
        """Hers, the one in which something happened last first.

        Those that hold words come the one that was begun last first.
        """

    async def message(self, conversation: KeptConversation, message: str) -> KeptMessage | None:
        """One message of a conversation."""

    async def branch(
        self, conversation: KeptConversation, *, last: int | None, limit: int
    ) -> Sequence[KeptMessage]:
        """The messages that lead to one (its number), that one first; by default to the head.

        Long ones are fewer than were asked for: what is before the last one is its parent's.
        """

    async def beside(
        self, conversation: KeptConversation, parents: Sequence[int | None]
    ) -> Sequence[tuple[int | None, str]]:
        """What follows some messages, in any branch: the number of each, and the id after it."""

    async def turn_of(self, owner: str, answer: KeptMessage) -> Turn | None:
        """The turn that an answer is given in, if it has begun."""

    async def change(
        self,
        conversation: KeptConversation,
        *,
        title: str | None = None,
        archived: bool | None = None,
        unread: bool | None = None,
        head: int | None = None,
        now: int,
    ) -> KeptConversation:
        """Rename it, put it away, mark it, or show another branch."""

    async def given_up(
        self, *, after: int, limit: int, begun: int, ended: int
    ) -> Sequence[OpenAnswer]:
        """Answers that should be being given, of everybody, and are not, by their numbers.

        They were begun then or before, and have no turn, or one that has ended then or before.
        """

    async def gone_on(
        self, *, after: int, limit: int, most: int
    ) -> tuple[Sequence[OpenAnswer], int]:
        """Of the next `most` answers that wait those whose turns have ended; and where to go on.

        That is 0 after the last one: at the first again.
        """
