"""A dialect: how requests are written in one protocol, as one object.

It reads what came as a `Claim`, or as a `Question` about what exists, and it writes answers,
refusals and tasks in its own words. It is pure: it sees a request and values of core. What is done
about it, the gateway does for all dialects alike. How peers are called in it is its other half
(`wire.dialects.outbound`).

Law 1. A dialect is known by its name alone: a call keeps the name, so that a task is told, polled
       and called back in the words that it was asked for in.
Law 2. What it writes is a function of what it is given: the same call and the same events are the
       same bytes.
Law 3. A refusal is written in the words of the dialect that the path belongs to: it may come before
       anything else was read.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from carnet.core.call import Ask, Call, CallbackWish, Claim, Price, Target
from carnet.core.chain.turn import Turn, TurnState
from carnet.core.messages.events import Event, Failed, Usage, Waiting
from carnet.core.messages.interrupt import Interrupt, InterruptRecord
from carnet.core.money.amount import format_amount
from carnet.core.people.identity import Skill, Trust
from carnet.core.people.proof import Asking, Proof
from carnet.errors import CarnetError
from carnet.wire.crypto.components import Request
from carnet.wire.dialects.outbound import Spoken
from carnet.wire.dialects.route import Route
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import Stamped, Stamps

Fields = list[tuple[bytes, bytes]]
Kind = Literal["call", "task", "question", "any"]  # any: its body says which


class Reply(NamedTuple):
    """An answer as it goes over the wire."""

    status: int
    headers: Fields
    body: bytes


class Way(Route, frozen=True, kw_only=True, eq=False):
    """A route of a dialect."""

    name: str  # by which `read` knows it
    kind: Kind = "question"  # what comes this way
    below_agents: bool = True  # it is also served below /agents/{name}


class GatewayFacts(Struct, frozen=True, kw_only=True):
    """What a dialect may say about the gateway."""

    domain: str
    currency: str  # of the ledger
    started: int = 0  # seconds since the epoch


class Arrival:
    """A request as a dialect sees it."""

    __slots__ = (
        *("_head", "_request", "_stamped", "agent", "body", "by_host", "correlation", "headers"),
        *("in_stream", "is_proxied", "must_prove", "names", "path", "recipient", "request_id"),
        *("run", "stamps", "way"),
    )

    def __init__(
        self,
        way: Way,
        headers: Headers,
        *,
        head: Callable[[], Request],
        stamps: Stamps,
        agent: str | None = None,
        names: Mapping[str, str] | None = None,
        by_host: Callable[[], str] = str,
        must_prove: bool = True,
    ) -> None:
        """A request whose body is not read yet.

        Args:
            way: How it came.
            headers: Its fields.
            head: Gives the whole of its head, for those who look further.
            stamps: Those that are known.
            agent: The agent that the path names, if it does.
            names: What else the path names.
            by_host: Gives the agent that the host names; empty for the default one.
            must_prove: Whether a question has to be signed.
        """
        self.way = way
        self.headers = headers
        self._head = head
        self._request: Request | None = None
        self.stamps = stamps
        self.agent = agent
        self.names = names or {}
        self.by_host = by_host
        self.must_prove = must_prove
        self.body, self.path, self.is_proxied = b"", b"", False
        self.run: str | None = None  # which a refusal tells
        self.request_id: str | int | None = None  # by which its dialect tells answers apart
        self.in_stream = False  # a refusal is told in a stream, as the answer would be
        self.correlation: str | None = None  # what the answer calls the request
        self.recipient: Callable[[], str | None] = lambda: None  # identity, at a host of ours
        self._stamped: Stamped | None = None

    @property
    def request(self) -> Request:
        """Its head, as far as a signature can see it."""
        if self._request is None:
            self._request = self._head()
        return self._request

    def stamped(self) -> Stamped:
        """What its stamps say; read once."""
        if self._stamped is None:
            stamped = self.stamps.read(self.headers)
            if stamped.context is not None and self.is_proxied:
                stamped = self.stamps.certified(stamped, self.headers)
            self._stamped = stamped
        return self._stamped


About = Literal[
    "task",
    "tasks",
    "cancel",
    "agent",
    "agents",
    # Of a caller's own tasks alone, and of one agent:
    "changed",
    "subscribe",
    "callbacks",
    "callback",
    "add_callback",
    "remove_callback",
    "extended_card",
]


class Question(Struct, frozen=True, kw_only=True):
    """A request that asks about what exists."""

    about: About
    task: str = ""
    agent: str | None = None  # whose it must be; None where that is not asked
    asking: Asking | None = None  # who asks, where that must be proved
    # Of a list:
    limit: int = 50
    before: int | None = None
    state: str | None = None  # in the words of the port of tasks
    of_agent: str | None = None


class TaskQuestion(Question, frozen=True, kw_only=True):
    """A question of a caller about its own tasks, as dialects ask it that know contexts."""

    context: str | None = None
    page: tuple[int, int] | None = None  # when the last task of the page before changed, and which
    states: tuple[TurnState, ...] = ()
    codes: tuple[str, ...] | None = None
    other_codes: tuple[str, ...] = ()
    since: int | None = None  # changed at that time or later: microseconds since the epoch
    name: str | None = None  # of a callback
    wish: CallbackWish | None = None
    form: dict[str, Any] = {}  # how it was written, for the dialect that answers it
    or_nothing: bool = False  # a task that is not there is `Removed`, and no refusal


class TaskView(Struct, frozen=True, kw_only=True):
    """A task as a dialect shows it."""

    id: str
    turn: Turn
    sender: str
    skill: str | None = None
    callback: str | None = None
    progress: int | None = None  # thousandths
    note: str | None = None
    cancelled: int | None = None  # when somebody asked for its end
    events: Sequence[Event] = ()  # of one that has ended
    currency: str  # of what it has cost
    interrupts: tuple[Interrupt, ...] = ()  # of one that waits, as its asker may see them
    receipt: str | None = None  # that is owed to whoever asks
    is_cancel: bool = False  # shown to whoever asked for its end just now
    context: str | None = None
    updated: int | None = None  # when its state changed last
    request: bytes = b""  # what was asked, where that is shown
    answered: tuple[InterruptRecord, ...] = ()  # and what it has asked for, and was answered


class AgentKey(Struct, frozen=True):
    """A public key with its name; one that is not active must not be believed."""

    kid: str
    public: bytes
    active: bool = True


class Terms(Struct, frozen=True, kw_only=True):
    """What callers may know before they call: what it costs, and what bounds a call (R31)."""

    currency: str
    price: Price
    most_cost: int | None = None  # of a call without its children; None: it depends on the call
    max_depth: int  # the first depth that is refused
    calls_per_minute: int  # of one signed sender
    body_bytes: int
    signature_forms: tuple[str, ...] = ("carnet", "samvad")

    def page(self) -> dict[str, Any]:
        """As cards and `carnet.json` show it."""
        return {
            "currency": self.currency,
            "price": format_amount(self.price.per_call),
            "price_in": format_amount(self.price.per_million_in),
            "price_out": format_amount(self.price.per_million_out),
            "most_cost": None if self.most_cost is None else format_amount(self.most_cost),
            "max_depth": self.max_depth,
            "calls_per_minute": self.calls_per_minute,
            "body_bytes": self.body_bytes,
            "signature_forms": list(self.signature_forms),
        }


def most_cost(target: Target) -> int | None:
    """The most that one call to an agent may cost, where that is known before it."""
    if target.price.counts_tokens or target.kind == "python":  # which may call others
        return None
    return target.price.per_call + (target.most_cost if target.is_remote else 0)


class AgentView(Struct, frozen=True, kw_only=True):
    """An agent as a dialect shows it."""

    id: str
    name: str
    version: str
    description: str
    url: str
    skills: tuple[Skill, ...]
    keys: tuple[AgentKey, ...]
    trust: Trust = "public"  # of skills that do not say
    require_auth: bool = False  # every caller must bring a token
    requests_per_minute: int
    requests_per_sender: int
    tokens_per_sender_per_day: int | None = None
    uptime: int = 0  # seconds
    active: int = 0  # calls that are being answered
    queued: int = 0  # tasks that wait
    terms: Terms | None = None


class TaskList(Struct, frozen=True, kw_only=True):
    """Some tasks."""

    tasks: tuple[TaskView, ...]
    following: int | None = None  # where the next ones begin


class AgentList(Struct, frozen=True, kw_only=True):
    """The agents that a caller may call."""

    names: tuple[str, ...]
    gateway: GatewayFacts


class TaskPage(Struct, frozen=True, kw_only=True):
    """Some tasks of one caller, those that changed last first."""

    tasks: tuple[TaskView, ...]
    size: int  # that a page has at the most
    total: int
    following: tuple[int, int] | None = None  # where the next page begins, as `TaskQuestion.page`


class CallbackView(Struct, frozen=True, kw_only=True):
    """Where a task is told of; the secret that is shown there is not shown here."""

    task: str
    name: str
    url: str
    token: str | None = None
    scheme: str | None = None


class CallbackList(Struct, frozen=True, kw_only=True):
    """Those of one page."""

    callbacks: tuple[CallbackView, ...] = ()
    after: int | None = None  # the place of the last one, if there are more


class Removed(Struct, frozen=True):
    """What was asked to be taken away is no more."""


class CardView(Struct, frozen=True):
    """A signed card, in the words of its protocol."""

    members: dict[str, Any]


QuestionResult = (
    TaskView | TaskList | TaskPage | AgentView | AgentList | CardView
    | CallbackView | CallbackList | Removed
)  # fmt: skip


class AnswerWriter(Protocol):
    """Writes the answer to one call."""

    def headers(self, *, stream: bool) -> Fields:
        """The fields of an answer that is no error."""

    def whole(self, events: Sequence[Event], /) -> bytes:
        """A whole answer."""

    def write(self, events: Sequence[Event], /) -> bytes:
        """The frames of a batch of events; empty if there is nothing to see yet."""

    def refusal(self, failed: Failed, usage: Usage | None, /) -> Reply:
        """The answer of an admitted call that failed, and what it has cost all the same."""

    def waiting(self, waiting: Waiting, usage: Usage | None, partial: str, /) -> Reply:
        """The answer of a call that waits: what for, its cost, and what it answered so far."""


class AnswerForm(Protocol):
    """How the answers to calls are written."""

    @property
    def begins_at_once(self) -> bool:
        """Whether a stream begins before its first event, so that every error is told in it."""

    def writer(self, call: Call, gateway: GatewayFacts, /) -> AnswerWriter:
        """What writes the answer to a call."""


class Dialect(AnswerForm, Protocol):
    """One protocol."""

    @property
    def name(self) -> str:
        """By which calls keep it."""

    @property
    def ways(self) -> tuple[Way, ...]:
        """Its routes."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Paths below which everything is refused in its words, whether there is a route or not."""

    @property
    def schemas(self) -> Mapping[str, Any]:
        """What its routes name, for the description of the API."""

    @property
    def is_signed(self) -> bool:
        """Whether its calls bring a signature of their own, which is judged before the stamps."""

    @property
    def has_long_bodies(self) -> bool:
        """Whether a request holds a whole conversation, and may be as long as one."""

    @property
    def spoken(self) -> Spoken | None:
        """How peers are called in it; None for one that is only answered."""

    def proof(self, arrival: Arrival, /) -> Proof | None:
        """What a request proves before its body is parsed; a body that has come fits its digest."""

    def read(self, arrival: Arrival, /) -> Claim | Question:
        """What is asked."""

    def asked(self, request: bytes, /) -> Ask:
        """What a call asked whose request is recorded; InvalidRequest if that cannot be read."""

    def refusal(self, error: CarnetError, /) -> Reply:
        """The answer to a request that never became a call."""

    def result(self, events: Sequence[Event], /) -> dict[str, Any]:
        """What an answer tells, whole or streamed: for the digest of a receipt."""

    def accepted(self, call: Call, /) -> Reply:
        """What is said of a task that was taken on."""

    def tell(self, way: str, result: QuestionResult, question: Question, /) -> Reply:
        """Write the result of a question; RouteNotFound if this way has no form for it."""
