"""A recorded run, run again offline: our own code against its record.

Law 1. The code of the agents here runs again, each turn against the recorded answers of whom it
       called, its recorded steps and what it was answered. Models and agents elsewhere are never
       asked: what they said is what is recorded.
Law 2. Nothing leaves: our own way out sends nothing, and the process may not connect.
Law 3. With somebody swapped, that one alone is asked, anew, and those above it run on from what it
       says now. All others say what they said.
Law 4. Nothing is written: neither a turn nor a step nor an entry of the ledger.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.assembly.agents.kinds import KINDS, Kind, Parts
from carnet.assembly.agents.models import LazyModels
from carnet.assembly.agents.peers import build_elsewhere
from carnet.assembly.stamps import known_stamps
from carnet.config import Settings
from carnet.core.call import Admitted, Agent, Ask, Call, Target, call_of
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import IN_PROCESS
from carnet.core.messages.events import Event, Failed
from carnet.core.people.identity import EVERYTHING, Actor, Caller, Payer
from carnet.errors import Cancelled, CarnetError, Internal, OutcomeUnknown, ProviderTimeout
from carnet.runtime.agents.http_engine import OpenStreams
from carnet.runtime.peers.keyring import Ring
from carnet.runtime.replay.comparison import TurnVerdict, Verdict, compare
from carnet.runtime.replay.offline import OfflineHttp, offline
from carnet.runtime.replay.order import HELD_SECONDS, under_way
from carnet.runtime.replay.record import RecordedRun, RecordedTurn, is_cut
from carnet.runtime.replay.substitutes import (
    RecordedDispatch,
    RecordedSteps,
    ReplayOutput,
    SilentProgress,
)
from carnet.runtime.skills.schemas import CompiledSchemas
from carnet.runtime.system import SystemClock, SystemIds
from carnet.runtime.turns.execution import as_before
from carnet.stores.open import Store
from carnet.wire.dialects import DIALECTS
from carnet.wire.dialects.dialect import Dialect

MODEL: Final = "openai"  # the kind of agents that are a model: its answers are the record itself
ENDED: Final = frozenset({"done", "failed", "waiting"})
Live = Callable[[Call, Ask], Awaitable[Sequence[Event]]]  # asks somebody anew


class SwappedAgent(Struct, frozen=True, eq=False):
    """Who is asked anew, in the place of whom."""

    name: str
    ask: Live


class RunReplay:
    """Runs the turns of one run again."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        run: RecordedRun,
        *,
        swapped: SwappedAgent | None = None,
        kinds: Mapping[str, Kind] = KINDS,
        dialects: Sequence[Dialect] = DIALECTS,
    ) -> None:
        """`store` is read for who we are alone; the run has all that is replayed."""
        self._settings = settings
        self._run = run
        self._swapped = swapped
        self._above = frozenset() if swapped is None else run.above(swapped.name)
        self._kinds = kinds
        self._dialects = dialects
        self._http = OfflineHttp()
        self._agents: dict[str, Agent] = {}
        self._verdicts: dict[int, TurnVerdict] = {}  # by the number of the turn
        self._tried: list[str] = []
        answer = None if swapped is None else self._answer
        last_depth = known_stamps(settings).limits.default
        self._dispatch = RecordedDispatch(run, last_depth=last_depth, answer=answer)
        self._parts = self._offline_parts(store, last_depth)

    def _offline_parts(self, store: Store, last_depth: int) -> Parts:
        settings, clock, ids = self._settings, SystemClock(), SystemIds()
        own = (settings.gateway.domain, store.keys)
        ring = Ring(pinned=store.pinned, peers=store.peers, http=self._http, clock=clock, own=own)
        return Parts(
            settings=settings,
            elsewhere=build_elsewhere(settings, store, self._http, ring, clock, ids),
            dispatch=self._dispatch,
            last_depth=last_depth,
            schemas=CompiledSchemas(),
            steps=RecordedSteps(self._run, self._dispatch.notes, driven=self._above),
            progress=SilentProgress(),
            people=store.people,
            models=LazyModels(settings, self._http, ids),
            streams=OpenStreams(),
        )

    async def verdicts(self, *, to_the_end: bool = False) -> list[TurnVerdict]:
        """What became of every turn that ran again, and of those that did not.

        `to_the_end`: the process ends with it, and calls nobody until then.
        """
        with offline(to_the_end=to_the_end) as tried:
            self._tried = tried
            self._build()
            tried.clear()
            for recorded in self._run.turns if self._swapped is None else self._run.roots():
                if self._swapped is None or recorded.turn.n in self._above:
                    await self._again(recorded)
        return [self._verdicts[n] for n in sorted(self._verdicts)]

    async def close(self) -> None:
        """Let go of what was built."""
        await self._parts.servers.close()
        await self._parts.elsewhere.close()

    def _build(self) -> None:
        """Build the agents of the run whose code is here; what they import leaves as little."""
        for name in sorted({each.turn.agent for each in self._run.turns}):
            section = self._settings.agents.get(name)
            if section is None or section.kind == MODEL or self._kinds[section.kind].is_remote:
                continue
            built = self._kinds[section.kind].build(self._parts, name, section)
            self._agents[name] = built.agent

    async def _again(self, recorded: RecordedTurn, ask: Ask | None = None) -> Sequence[Event]:
        """Run a turn again; what it says now. `ask` is what it is asked now, if that is new."""
        why = self._unable(recorded)
        if why is not None:
            self._verdicts[recorded.turn.n] = why
            return recorded.answer()
        try:
            call = self._call(recorded, ask)
        except CarnetError as error:
            why = _verdict(recorded, "unrecorded", f"what was asked: {error}")
            self._verdicts[recorded.turn.n] = why
            return recorded.answer()
        if self._swapped is not None and recorded.turn.agent == self._swapped.name:
            events = await self._swapped.ask(call, call.ask)
            verdict = replace(compare(recorded.turn, recorded.events, events), reason="asked anew")
        else:
            events, verdict = await self._run_again(recorded, call)
        self._verdicts[recorded.turn.n] = verdict
        return events

    async def _run_again(
        self, recorded: RecordedTurn, call: Call
    ) -> tuple[Sequence[Event], TurnVerdict]:
        """What our own code says now, and what that comes to.

        Answers that came while others were awaited may have been taken one by one or together,
        which no record says: it is the same if it is in one of these ways.
        """
        order = self._dispatch.begin(call)
        events = await self._events(call)
        verdict = self._judged(recorded, events)
        if verdict.verdict == "different" and order.is_mixed and self._swapped is None:
            self._dispatch.begin(call, is_apart=False)
            together = await self._events(call)
            second = self._judged(recorded, together)
            if second.verdict == "equal":
                return together, second
        return events, verdict

    def _unable(self, recorded: RecordedTurn) -> TurnVerdict | None:
        """Why a turn is not run again."""
        turn = recorded.turn
        is_swapped = self._swapped is not None and turn.agent == self._swapped.name
        if turn.agent not in self._agents and not is_swapped:
            return _verdict(recorded, "given", "its code is not here")
        above = self._run.parent(turn)
        if turn.code == Cancelled.code and above is not None and not is_cut(above.turn):
            return _verdict(recorded, "given", "its caller has cancelled it")
        if turn.state not in ENDED:
            return _verdict(recorded, "cut", f"it is {turn.state}")
        if recorded.asked is None:
            return _verdict(recorded, "unrecorded", "what was asked is no longer kept")
        return None

    def _call(self, recorded: RecordedTurn, ask: Ask | None) -> Call:
        turn, agent = recorded.turn, self._agents.get(recorded.turn.agent, _nobody)
        carnet = Carnet(
            run=turn.run,
            turn=turn.turn,
            depth=turn.depth,
            last_depth=turn.last_depth,
            bound_by=turn.bound_by,
            parent_turn=turn.parent_turn,
            speaker=turn.speaker,
        )
        is_child = turn.actor.startswith(IN_PROCESS)
        actor = Actor(name=turn.actor, how="in_process" if is_child else "token")
        admitted = Admitted(
            agent=turn.agent,
            ask=recorded.ask(self._dialects) if ask is None else ask,
            carnet=carnet,
            caller=Caller(actor=actor, scopes=frozenset({EVERYTHING})),
            payer=Payer(account=turn.payer, quota=turn.actor),
            dialect=turn.dialect or "",
            correlation=turn.correlation,
        )
        target = Target(
            name=turn.agent,
            speaker=turn.speaker or turn.agent,
            agent=agent,
            credit=f"agent:{turn.agent}",
        )
        call = call_of(admitted, target, turn, is_child=is_child, resolved=recorded.answers)
        made = [each.turn.turn for each in self._run.children(turn)]
        return as_before(call, [*made, *[each.child_turn for each in recorded.outbound]])

    async def _events(self, call: Call) -> list[Event]:
        out = ReplayOutput()
        seconds = self._settings.agents[call.agent].timeout
        if is_cut(call.record):  # nobody waits longer for it than was waited then
            seconds = min(seconds, under_way(call.record) + HELD_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                end = await call.target.agent(call, out)
        except TimeoutError:
            end = Failed.of(ProviderTimeout(f"it took longer than {seconds:g} s"))
        except CarnetError as error:
            end = Failed.of(error)
        except Exception as error:  # noqa: BLE001  as a gateway ends such a turn
            end = Failed.of(Internal(str(error)))
        return [*out.events, end]

    def _judged(self, recorded: RecordedTurn, events: Sequence[Event]) -> TurnVerdict:
        turn = recorded.turn
        notes = self._dispatch.notes(turn)
        tried = [*self._http.tried, *self._tried]
        self._http.tried.clear()
        self._tried.clear()
        if notes.missing or tried:
            what = "; ".join([*notes.missing, *[f"it would have left: {each}" for each in tried]])
            return _verdict(recorded, "unrecorded", what)
        found = compare(turn, recorded.events, events)
        if found.verdict == "different" and is_cut(turn):
            return _verdict(recorded, "cut", f"it ended as {turn.code}")
        if notes.otherwise:
            reason = "; ".join(notes.otherwise)
            return replace(found, verdict="different", reason=reason)
        return found

    async def _answer(
        self, parent: Call, name: str, ask: Ask, index: int, found: RecordedTurn | None
    ) -> Sequence[Event] | None:
        """What a child says that is swapped, or has called who is; None: what is recorded."""
        if found is None or found.turn.n not in self._above:
            return None
        del parent, name, index
        return await self._again(found, ask)


def _verdict(recorded: RecordedTurn, verdict: Verdict, reason: str) -> TurnVerdict:
    turn = recorded.turn
    return TurnVerdict(turn=turn.turn, agent=turn.agent, verdict=verdict, reason=reason)


async def _nobody(_: Call, __: object, /) -> Failed:
    return Failed.of(OutcomeUnknown())
