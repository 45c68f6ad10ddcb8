"""A request as it was read, and a call that was admitted.

Law 1. A `Claim` is believed by nobody; an Agent cannot be given one.
Law 2. From the wire, only `guards.admission.gate` turns a Claim into a `Call`; in process too: a
       child call never has more rights, depth or time than the call it is made in.
"""

from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import astuple, force_setattr, replace

from carnet.core.chain.allowance import Allowance
from carnet.core.chain.capabilities import Capabilities
from carnet.core.chain.carnet import Carnet, Mark, Trace
from carnet.core.chain.turn import Turn
from carnet.core.chain.turn_id import is_unscoped
from carnet.core.messages.events import End, Message
from carnet.core.messages.interrupt import Answered, Interrupt, StatedResolution
from carnet.core.messages.output import Output
from carnet.core.money.amount import MICROS
from carnet.core.people.delegation import Delegation, Freshness
from carnet.core.people.evidence import AllowRule, Carried
from carnet.core.people.grant import AccessToken
from carnet.core.people.identity import (
    CHAT,
    Account,
    Caller,
    Payer,
    Secret,
    Skill,
    StatedContext,
    Trust,
    owner_of,
)
from carnet.core.people.proof import Document, Proof, Spending

FORWARD_USER: Final = "forward-user"  # the person behind the run pays for the calls it makes
AGENT_OWNED: Final = "agent-owned"  # the agent itself does
ANY_AGENT: Final = "*"  # whose task is meant, where that is not said: no agent has that name
LIKELY_TOKENS_OUT: Final = 4096  # reserved for an answer whose length nobody bounded
WAITS: Final = "waits/"  # what the names of quotas begin with that count turns that wait

Free = Literal["all", "own"]  # nothing can cost; or it has no price itself, and may call others


class Thread(Struct, frozen=True, kw_only=True):
    """The conversation of a person that something is asked in."""

    conversation: str
    answer: str  # the id of the message that the answer becomes
    trigger: Literal["message", "webhook", "schedule"] = "message"
    # Of what her client tells of itself: what its operator lets pass to tools, and to models.
    client_context: dict[str, Any] = {}
    model_context: dict[str, Any] = {}


class Ask(Struct, frozen=True, kw_only=True):
    """What is asked: the same for every dialect.

    `body` holds the dialect's own object where the agent behind speaks the same dialect, so that
    fields we do not know reach it; it is forwarded re-encoded, never as raw bytes.
    """

    messages: tuple[Message, ...]
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    body: dict[str, Any] | None = None
    skill: str | None = None  # what is asked for by name; `payload` goes in
    payload: dict[str, Any] | None = None
    thread: Thread | None = None  # where a person asks it in one of her conversations
    context: str | None = None  # what its sender groups tasks by; then it is a task in any case
    form: dict[str, Any] | None = None  # how it was written, for the dialect that answers it
    capabilities: Capabilities | None = None  # of whoever reads the answer, where that was told
    share: Spending | None = None  # of the budget of whoever asks, for this call alone

    @property
    def text(self) -> str:
        """The last thing the user said."""
        for message in reversed(self.messages):
            if message.role == "user":
                return message.text
        return ""

    @property
    def spoken(self) -> Message:
        """The message that is it; an empty one if the user said nothing."""
        found = [message for message in self.messages if message.role == "user"]
        return found[-1] if found else Message("user", ())


class CallbackWish(Struct, frozen=True, kw_only=True):
    """Where a caller wants to be told what becomes of a task, and how we show there who we are."""

    url: str
    name: str | None = None  # by which the caller finds it again
    token: str | None = None  # that the receiver wants to see again
    authorization: Secret | None = None  # which the receiver asks for
    dialect: str | None = None  # in whose words it is told; None: in those of the call


class Claim(Struct, frozen=True, kw_only=True):
    """A request as a dialect and its stamps read it."""

    dialect: str
    agent: str  # as the caller wrote it: a name, a path such as bridge/x, or an address
    ask: Ask
    digest: bytes
    request: bytes  # what was asked, canonically, for the journal
    marks: tuple[Mark, ...] = ()
    authorization: Secret | None = None
    forwarded: Secret | None = None
    payment: Secret | None = None  # that is to pay for it, in the place of its caller
    trace: Trace | None = None
    proof: Proof | None = None  # the request was signed, whoever by
    is_task: bool = False  # it is to be accepted now and run later
    callback: str | None = None  # where the end of a task is to be told
    wish: CallbackWish | None = None  # the same, with what else is said of it
    continues: str | None = None  # the task that it goes on with
    resumes: Secret | None = None  # the state of what it answers, where that says which task it is
    delegation: str | None = None  # the token, as it was written
    correlation: str | None = None  # the caller's own name for its request
    key: str | None = None  # by which it tells repeats of its request, if it knows no turns
    context: StatedContext | None = None  # who claims to call, beside what is proved
    resolution: StatedResolution | None = None  # what its turn waits for
    budget: Spending | None = None  # the most that its sender says it is willing to spend
    wait: int | None = None  # seconds that its sender waits for the answer, as it says
    exactly_once: bool = False  # a repeat of it is refused, and not answered from the record
    carried: Carried | None = None  # what came with it about identities
    access: AccessToken | None = None  # of a configured issuer, in the place of a token of ours
    path: bytes = b""  # that it came by; empty where it was made in process


class Agent(Protocol):
    """Answers a call: writes what it says, and returns how it ended."""

    async def __call__(self, call: "Call", out: Output, /) -> End:
        """Answer, or raise; whatever retries or times an Agent is an Agent."""


class Price(Struct, frozen=True, kw_only=True):
    """What an agent costs: per call, and per million tokens in and out."""

    per_call: int = 0
    per_million_in: int = 0
    per_million_out: int = 0

    @property
    def is_free(self) -> bool:
        """Whether nobody needs credit to call."""
        return not (self.per_call or self.per_million_in or self.per_million_out)

    @property
    def counts_tokens(self) -> bool:
        """Whether the price depends on how much was read and written."""
        return bool(self.per_million_in or self.per_million_out)

    def of(self, tokens_in: int, tokens_out: int) -> int:
        """The price of one served call. A part of a micro-unit counts as a whole one."""
        tokens = tokens_in * self.per_million_in + tokens_out * self.per_million_out
        return self.per_call + -(-tokens // MICROS)


_FREE: Final = Price()


class Offer(Protocol):
    """What an agent of another organisation asks for a call, by its own signed page."""

    def is_free(self) -> bool:
        """Whether it is known that no call to it can cost; nobody is asked."""

    async def find(self, payer: str, /) -> Free | None:
        """Whether it is free, asked for a payer if need be; None where it is not, or unknown."""


class Target(Struct, frozen=True, kw_only=True, eq=False):
    """Where a name leads: a local agent, or an agent of another organisation."""

    name: str  # the stored name: "echo", or "@critic@globex.example"
    speaker: str  # the local name of the called agent
    agent: Agent
    credit: str  # the ledger account that is credited: "agent:echo", "peer:globex.example"
    is_remote: bool = False  # calls to it get the carnet of the next hop
    chain: str = "tangle"  # the stamp whose limit a chain has that begins with a call to it
    last_depth: int | None = None  # lower than the gateway's, for this agent alone
    chain_depth: int | None = None  # its budget of that name: the first depth that is refused
    asks: bool = False  # for more, where a budget that a call brings is used up and says nothing
    price: Price = _FREE
    most_cost: int = 0  # the most another organisation may charge for one call
    takes_budget: bool = False  # and it is told, with the call, if that is less this time
    offer: Offer | None = None  # what it asks for, where its side can tell
    auth_source: str = FORWARD_USER  # who pays for the calls it makes; or agent-owned, per-call
    takes_credential: bool = False  # listed: a forwarded credential may leave to it
    needs_credential: bool = False  # it is asked with the payer's own, and never without (R30)
    on_disconnect: str = "cancel"  # cancel | finish
    seconds: float | None = None  # how long one call may take, retries and waiting included
    default: bool = False
    kind: str = "python"
    needs: str = ""  # the permission a caller must hold
    skills: tuple[Skill, ...] = (CHAT,)  # what it can be asked for by name
    trust: Trust = "authenticated"  # which signed callers may call it, where a skill does not say
    require_auth: bool = False  # a signature alone is not enough, whoever's it is
    delegation_freshness: Freshness = "pay"  # what must be known not to have ended (R59)
    reentry: bool = False  # may be called again within its own chain
    allow: tuple[AllowRule, ...] | None = None  # who may call it; None: whoever has the right to
    version: str = "1.0.0"  # its own, as its card shows it; never that of this program
    description: str = ""  # for its card; by default its name and domain
    converts: Callable[[str, dict[str, Any]], None] | None = None  # refuses what does not
    injection_scan: bool = True  # payloads for it are searched for phrases that take over models
    at_once: int | None = None  # calls that it answers at once; None is as many as come
    tokens_per_day: int | None = None  # that one signed sender may use; None is unbounded
    removes: Callable[[Ask], tuple[str, ...]] | None = None  # names what of a request is left out
    # Tells whoever was called that nobody will answer what it asks for any more.
    abandon: Callable[[Sequence[Interrupt]], Awaitable[None]] | None = None
    # The card of the agent behind it, once it was read: where, and as it came.
    origin: Callable[[], tuple[str, bytes] | None] | None = None
    may_cost: bool = False  # whether somebody may have to pay for a call: nobody gives it

    def __post_init__(self) -> None:
        """See whether it may cost, once for all calls."""
        may_cost = not self.price.is_free or (self.is_remote and self.most_cost > 0)
        force_setattr(self, "may_cost", may_cost)

    def as_free(self) -> "Target":
        """The same where the other organisation may charge nothing for a call."""
        return replace(self, most_cost=0, offer=None)


def quote(target: Target, ask: Ask, request_bytes: int) -> int:
    """The most a call may cost: what is reserved before it runs."""
    tokens_out = ask.max_tokens or LIKELY_TOKENS_OUT
    # A token is at least a byte. What was used is debited, whatever was reserved (R57).
    return target.price.of(request_bytes, tokens_out) + target.most_cost


class Admitted(Struct, frozen=True):
    """What the guards have proved of a claim: all of a call but its record.

    It is written once, when a call is admitted. The claim of its turn holds it, the call is it, and
    what must run later is sealed with it.
    """

    agent: str  # the stored name or address
    ask: Ask
    carnet: Carnet
    caller: Caller
    payer: Payer
    dialect: str = ""  # it was asked in; empty for a call made in process
    correlation: str | None = None  # the caller's own name for its request
    onward: Carnet | None = None  # what the callee receives, where this call goes to a peer
    document: Document | None = None  # verified; who came with one is given a receipt
    set_aside: int = 0  # of the allowance, for this call
    credential: Secret | None = None  # to forward toward listed peers; never recorded
    reserve: int = 0  # micro-units the claim holds until the finish
    delegation: Delegation | None = None  # verified; what is called for it is narrowed by it
    callback: str | None = None  # where the end of a task is told
    quota: str | None = None  # that counts the tokens it uses
    # The quota that counts the unfinished tasks of its sender, and the name it is sealed under.
    task_quota: str | None = field(default=None, name="task_purse")
    granted: tuple[int, int] = (0, 0)  # calls and tokens that were set aside of budgets for it


class Call(Admitted, frozen=True, kw_only=True):
    """An admitted call, whom it is for, and the record it was given."""

    target: Target
    record: Turn
    known: bool = False  # the record existed: replay or attach, do not run
    is_child: bool = False  # made in process, by an agent that answers another call
    allowance: Allowance | None = None  # what is left of its budget, for what is called for it
    task: str | None = None  # the id of the task that it is
    at_once: bool = False  # a task that nobody queued: it runs for whoever asked, who may leave
    resolved: tuple[Answered, ...] = ()  # what its turn has waited for, and was answered

    @property
    def is_queued(self) -> bool:
        """Whether it was accepted to be run later: then a worker runs it, and again if need be."""
        return self.task is not None and not self.at_once

    @property
    def admitted(self) -> Admitted:
        """What the guards have proved of it."""
        return Admitted(*astuple(self)[: len(Admitted.__struct_fields__)])

    def owner_of(self, asked: Interrupt) -> str | None:
        """Who is to answer what it asks for: its caller, where it began here; of money its payer.

        They differ where the credential of a payer was forwarded (R45).
        """
        return None if self.is_child else self.person_asked(asked)

    def person_asked(self, asked: Interrupt) -> str | None:
        """The same also of a call that was made in process: who began what it is made in."""
        caller, payer = self.caller, self.payer
        if asked.is_of_money and payer.payment is not None:  # its issuer, who is not here
            return f"payment:{payer.payment}"
        actor = caller.origin or caller.actor
        if actor.how != "token" or actor.domain is not None:
            return None
        is_payers = asked.is_of_money and payer.by_forwarding and payer.own_issue
        return payer.owner if is_payers else owner_of(caller.person, actor.name)

    @property
    def place(self) -> str | None:
        """The quota of its caller that counts it while it waits; a child waits in its parent's.

        All tokens of a person are counted together, and so are the names that a peer gives itself.
        The users of an issuer of access tokens are not: none of them speaks for another.
        """
        if self.is_child:
            return None
        actor, standing = self.caller.actor, self.caller.standing
        if standing is not None:
            return WAITS + (standing.peer or standing.sender)
        is_user = actor.domain is None or actor.how == "a2a-oauth"
        return WAITS + (self.caller.owner if is_user else actor.domain or "")


def call_of(admitted: Admitted, target: Target, record: Turn, **more: Any) -> Call:  # noqa: ANN401, RUF100
    """The call of what was admitted, with its record; `more` are fields of the call alone."""
    return Call(*astuple(admitted), target=target, record=record, **more)


def turn_key(*, payer: Account, actor: str, agent: str, carnet: Carnet, digest: bytes) -> bytes:
    """Sixteen bytes that are equal only for the same logical call."""
    above = carnet.parent_turn or ""
    text = f"{payer.issuer}\0{payer.id}\0{actor}\0{agent}\0{carnet.run}\0{above}\0{carnet.turn}"
    if above and is_unscoped(carnet.run, carnet.turn):
        # R6: nested ids of other implementations collide; the request tells them apart.
        text += f"\0{digest.hex()}"
    return blake2b(bytes(text, "utf-8"), digest_size=16).digest()
