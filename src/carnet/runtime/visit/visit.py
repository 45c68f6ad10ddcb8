"""What a user's function is given: the admitted call, and the calls it may make.

Law 1. Every call out inherits run, depth, payer and deadline; none can widen them.
Law 2. The ordinal of a call out is fixed when it is made, so that a turn which runs again makes the
       same calls under the same ids.
Law 3. A call that is refused before it leaves is noted in this turn: the trace shows where.
Law 4. When the agent has ended, it makes no more calls: nothing is billed to a turn that is over.
Law 5. A step is done once, however often the turn runs; see `runtime.visit.steps`.
Law 6. What a callee waits for, this turn waits for; see `runtime.visit.interrupts`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.chain.capabilities import UNTOLD, Capabilities
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.chain import Chain
from carnet.core.messages.events import (
    RESULT,
    DataPart,
    Done,
    Event,
    Extension,
    Failed,
    File,
    Link,
    Message,
    Part,
    Usage,
    Waiting,
)
from carnet.core.messages.output import Output
from carnet.core.messages.parameters import Parameters, Tool, read_parameters
from carnet.core.people.address import check_name
from carnet.core.people.delegation import Delegation
from carnet.errors import BudgetExceeded, Cancelled, PeerRefused, Refused
from carnet.ports.calls.admission import Dispatch
from carnet.ports.calls.agent import AGENT_OWNED, FORWARD_USER
from carnet.runtime.chain.turn_chain import ThreadedOutput, TurnChain
from carnet.runtime.stream import closing
from carnet.runtime.visit.callee import Callee
from carnet.runtime.visit.children import ChildCall
from carnet.runtime.visit.dialogue import ConversingVisit
from carnet.runtime.visit.fan_out.shares import Share, share_of, warn
from carnet.runtime.visit.interrupts import TurnQuestions
from carnet.runtime.visit.means import NO_MEANS, ReceivedVisit, VisitMeans
from carnet.runtime.visit.model import VisitModel, model_named
from carnet.runtime.visit.steps import KeptSteps
from carnet.wire.stamps.mentionable import cue_of

PER_CALL = "per-call"
MOST_NOTE: Final = 200  # characters


class Visit(ReceivedVisit, ConversingVisit):
    """One call as the agent that answers it sees it."""

    def __init__(
        self,
        call: Call,
        out: Output,
        dispatch: Dispatch,
        *,
        last_depth: int,
        auth_source: str = FORWARD_USER,
        means: VisitMeans = NO_MEANS,
    ) -> None:
        """`out` takes what is noted of the calls that are made for it.

        `last_depth` bounds a call whose chain carries no limit of its own. `means` are those of
        whoever answers.
        """
        self._call = call
        self._out = out
        self._dispatch = dispatch
        self._last_depth = last_depth
        self._auth_source = auth_source
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._means = means
        self._kept: KeptSteps | None = None
        self._interrupts: TurnQuestions | None = None
        self.has_asked = False  # for something that nobody has given yet
        self._calling = 0  # calls to others that have not ended
        # What callees are told of who reads their answers; None: that this agent does.
        self.stated: Capabilities | None = None
        self._quiet: asyncio.Event | None = None  # set when one of them ends

    @property
    def carnet(self) -> Carnet:
        """Its travel document."""
        return self._call.carnet

    @property
    def text(self) -> str:
        """The last thing the user said."""
        return self._call.ask.text

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation."""
        return self._call.ask.messages

    @property
    def images(self) -> tuple[Link, ...]:
        """The images beside the last thing the user said; those before are in `messages`."""
        return self._call.ask.spoken.images

    @property
    def files(self) -> tuple[File, ...]:
        """The files beside it."""
        return self._call.ask.spoken.files

    @property
    def parts(self) -> tuple[Part, ...]:
        """All of what was said last, or what was given to the skill that was asked for."""
        ask = self._call.ask
        if ask.skill is not None and ask.payload is not None and not ask.messages:
            return (DataPart(ask.payload),)
        return ask.spoken.parts

    @property
    def chain(self) -> Chain:
        """Where it stands in its chain: `hop`, `cap`, `hops_left`, `is_final`."""
        return Chain(hop=self.carnet.depth, cap=self.carnet.bound(self._last_depth))

    @property
    def cue(self) -> str | None:
        """What a model is to be told of that chain; None where no agent has called."""
        return cue_of(self.carnet, self._last_depth)

    @property
    def capabilities(self) -> Capabilities:
        """What whoever reads the answer can do: `capabilities.mention_relay`, "inline" or "none".

        Where it is "inline", to write `@c@domain` brings another agent in.
        """
        return self._call.ask.capabilities or UNTOLD

    @property
    def received_via(self) -> str:
        """The dialect that it came in, or "in_process". Whether it is chained `chain` tells."""
        dialect = self._call.dialect
        return "a2a" if dialect == "a2a_http" else dialect or "in_process"

    @property
    def parameters(self) -> Parameters:
        """How the caller wants to be answered: `temperature`, `max_tokens`, `tools` and so on.

        They can be passed on: `visit.peer("writer")(visit.messages, **visit.parameters)`. One that
        has not its type is refused as InvalidRequest, which is for the caller.
        """
        return read_parameters(self._call.ask.body or {})

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the caller offers; answer with a `ToolCall` to have one called."""
        offered = self.parameters.get("tools", ())
        return tuple([tool if isinstance(tool, Tool) else Tool.of(tool) for tool in offered])

    @property
    def skill(self) -> str | None:
        """The name of the skill that was asked for; None where somebody just talks."""
        return self._call.ask.skill

    @property
    def payload(self) -> dict[str, Any]:
        """What was given to the skill, as it came."""
        return self._call.ask.payload or {}

    @property
    def streams(self) -> bool:
        """Whether the caller reads as we speak."""
        return self._call.ask.stream

    @property
    def task(self) -> str | None:
        """The id of the task that this is; None where somebody waits for the answer."""
        return self._call.task

    @property
    def delegation(self) -> Delegation | None:
        """The authority that the caller has shown, verified, if it has shown one."""
        return self._call.delegation

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants the answer any more: for plain functions, which nothing stops."""
        return self._is_over

    @property
    def is_final(self) -> bool:
        """Whether this hop may answer but not call on."""
        return self.carnet.is_final(self._last_depth)

    def peer(
        self,
        address: str,
        *,
        auth: str | None = None,
        fallback: str | None = None,
        budget: Share | None = None,
    ) -> Callee:
        """Another agent: `@name@domain`, or the name of one here.

        `auth` chooses who pays, "forward-user" or "agent-owned", for an agent whose `auth_source`
        is "per-call"; for any other its configuration has decided. `budget` is what each call may
        spend of ours: "0.10", or "money=0.10,calls=3"; else what is left. At the final hop, where
        nobody may be called, `fallback` is what it is taken to have answered.
        """
        return Callee(self, check_name(address), self._payer_of(auth), fallback, share_of(budget))

    def model(self, name: str | None = None) -> VisitModel:
        """A model of `[models]`: `await visit.model("writer").ask("...")`; left out, the only one.

        What it uses is counted in this turn.
        """
        named = model_named(name, self._means.models)
        return VisitModel(self, named, self._call.correlation or self.carnet.run)

    def check(self) -> None:
        """Raise Cancelled if nothing may be done for this turn any more."""
        if self._is_over:
            raise Cancelled("the agent has ended")
        self._dispatch.check(self._call)

    def _payer_of(self, auth: str | None) -> str:
        if auth not in {None, FORWARD_USER, AGENT_OWNED}:
            raise ValueError(f"auth is 'forward-user' or 'agent-owned', not {auth!r}")
        if self._auth_source == PER_CALL:
            return auth or FORWARD_USER
        if auth is not None and auth != self._auth_source:
            raise ValueError("set auth_source = 'per-call' for this agent to choose at each call")
        return self._auth_source

    def dispatch(self, address: str, ask: Ask, auth: str) -> AsyncIterator[Event]:
        """Call another agent as the next child of this turn; gives its events as they come."""
        if self.stated is not None:
            ask = replace(ask, capabilities=self.stated)
        return self._listen(self._next(address), ask, auth)

    async def answer(self, address: str, ask: Ask, auth: str) -> list[Event]:
        """The same, when all of its events are there."""
        child = self._next(address)
        self._calling += 1
        try:
            events = await self._whole(child, ask, auth)
            noted: list[Event] = []
            return [each for each in events if await self._is_for_agent(child, each, auth, noted)]
        except PeerRefused as refused:
            self._ask_for_short(child, ask, auth, refused)
            raise
        finally:
            self._calling -= 1
            if self._quiet is not None:
                self._quiet.set()

    async def _whole(self, child: ChildCall, ask: Ask, auth: str) -> Sequence[Event]:
        try:
            return await self._dispatch.whole(
                self._call, child.to, ask, index=child.ordinal, auth=auth
            )
        except Refused as refused:
            self._refused(child, refused)
            raise

    def _refused(self, child: ChildCall, refused: Refused) -> None:
        """Note what was refused before it left; ask first for more of what it is short of."""
        if isinstance(refused, BudgetExceeded):
            self.ask_more(child.ordinal, refused)
        self._out.called(child.refusal(refused))

    def _next(self, address: str) -> ChildCall:
        if self._is_over:
            raise Cancelled("the agent has ended")
        return self._children.take(address)

    async def _listen(self, child: ChildCall, ask: Ask, auth: str) -> AsyncIterator[Event]:
        has_begun = False
        noted: list[Event] = []
        called = self._dispatch(self._call, child.to, ask, index=child.ordinal, auth=auth)
        self._calling += 1
        try:
            async with closing(called) as events:
                async for event in events:
                    has_begun = True
                    if await self._is_for_agent(child, event, auth, noted):
                        yield event
                    elif isinstance(event, Done):
                        return
        except PeerRefused as refused:
            self._ask_for_short(child, ask, auth, refused)
            raise
        except Refused as refused:
            if not has_begun:  # else the child ran, and its own record says what it met
                self._refused(child, refused)
            raise
        finally:
            self._calling -= 1
            if self._quiet is not None:
                self._quiet.set()

    def _ask_for_short(self, child: ChildCall, ask: Ask, auth: str, refused: PeerRefused) -> None:
        """Ask who pays, where a callee abroad has ended because it used up what we gave it."""
        allowance, part = self._call.allowance, refused.facts.get("peer_part")
        if allowance is None or part is None:
            return
        most = 0 if auth == AGENT_OWNED else self._dispatch.most_cost(child.to, ask)
        if allowance.is_used_up(str(part), most):
            self.ask_more(child.ordinal, allowance.short_of(str(part)))

    async def _is_for_agent(
        self, child: ChildCall, event: Event, auth: str, noted: list[Event]
    ) -> bool:
        """Whether an event of a child is for the agent; what else it says is noted, or raised."""
        if isinstance(event, Failed):
            raise event.error()
        if isinstance(event, Waiting):
            self.has_asked = True
            raise self._asking.pass_on(event, child.to)
        if isinstance(event, Usage):
            # What the agent pays from its own account is no cost of who pays for this turn.
            await self._out.write(child.cost(event, noted, is_ours=auth != AGENT_OWNED))
            await warn(self._call.allowance, self._out)
            return False
        if isinstance(event, Extension) and event.name != RESULT:
            noted.append(event)  # it is in the child's own record
            return False
        return not isinstance(event, Done)

    def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, **more: Any
    ) -> Awaitable[Any]:
        """Call a function once, however often this turn runs: `await visit.step("pay", pay, 3)`.

        What it gives is kept, and given again when the turn runs again. It is JSON: a tuple comes
        back as a list. A plain function is called in a thread.
        """
        self.check()
        place = self._doing.take_place(name)
        return self._doing.do(place, name, function, args, more)

    def idempotency_key(self, name: str) -> str:
        """A text for the step that runs, or for the next one: the same whenever the turn runs."""
        return self._doing.key(name)

    @property
    def _doing(self) -> KeptSteps:
        if self._kept is None:
            self._kept = KeptSteps(self._call.record, self._means.steps, self._means.threads)
        return self._kept

    def progress(self, fraction: float, note: str | None = None) -> None:
        """Say how far a task is, from 0 to 1; whoever polls it is shown the last that was said."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress is from 0 to 1, not {fraction!r}")
        writer = self._means.progress
        if self._call.task is None or writer is None or self._is_over:
            return
        text = None if note is None else str(note).replace("\x00", "")[:MOST_NOTE]
        writer.tell(self._call.record, int(fraction * 1000), text)

    def call_chain(self) -> TurnChain:
        """What goes on with this turn that its code calls by itself, as with `carnet.connect`."""
        return self._chain

    @cached_property
    def _chain(self) -> TurnChain:
        return TurnChain(
            *(self, self._children, self._dispatch),
            ThreadedOutput(self._out, self._loop),
            last_depth=self._last_depth,
            auth_source=self._auth_source,
        )

    def close(self) -> None:
        """Make no more calls: the agent has ended."""
        self._is_over = True
