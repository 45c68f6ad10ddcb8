"""A gate and a journal over a few agents, in one process."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from carnet.core.call import Call, Claim
from carnet.core.chain.carnet import DepthLimits, Mark
from carnet.core.messages.events import Event, Failed, Usage
from carnet.errors import CarnetError
from carnet.guards.admission.gate import Gate
from carnet.guards.admission.order import GateParts
from carnet.guards.limits import Concurrency
from carnet.ports.calls.agent import Target
from carnet.ports.calls.turns import Turns
from carnet.runtime.agents.python import Native
from carnet.runtime.turns.runner import TurnRunner
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.visit import Visit
from carnet.testing.clock import FakeClock, FakeIds
from carnet.testing.turns import MemoryTurns
from tests.guards.scene import DOMAIN, Directory, claim, known_peers, known_tokens


async def nothing_new() -> bool:
    return False


def gate_and_journal(
    turns: Turns, *agents: Target, depths: DepthLimits | None = None, most: int = 100
) -> tuple[Gate, TurnRunner]:
    """Both over these agents and turns; `most` bounds every kind of calls."""
    clock, ids = FakeClock(), FakeIds()
    gate = Gate(
        GateParts(
            router=Directory(*agents),
            tokens=known_tokens(),
            peers=known_peers(),
            clock=clock,
            ids=ids,
            domain=DOMAIN,
            depths=depths or DepthLimits(),
        ),
        turns=turns,
        concurrency=Concurrency(per_caller=most, in_all=most),
        most_run_calls=most,
        look_again=nothing_new,
    )
    return gate, TurnRunner(turns=turns, clock=clock, ids=ids, currency="credits", worker="w")


class Stage:
    """Everything between a claim and the events that answer it."""

    def __init__(self, *agents: Target) -> None:
        self.turns = MemoryTurns(keeps_limits=False)
        self.gate, self.journal = gate_and_journal(self.turns, *agents)

    async def ask(self, name: str, text: str = "hi", **more: Any) -> list[Event]:
        """Admit a call and read it to its end; a refusal is told as a failure."""
        try:
            call = await self.gate.admit(claim(name, text=text, **more))
        except CarnetError as refused:
            return [Usage(), Failed.of(refused)]
        return await self.read(call)

    async def read(self, call: Call) -> list[Event]:
        return [event async for batch in self.journal.batches(call) for event in batch]


def native(
    function: Callable[[Visit], Any],
    dispatch: Dispatching | None = None,
    *,
    auth_source: str = "forward-user",
) -> Native:
    return Native(function, dispatch or Dispatching(), last_depth=3, auth_source=auth_source)


def streamed(name: str) -> Claim:
    plain = claim(name)
    return replace(plain, ask=replace(plain.ask, stream=True))


def in_run(depth: int = 1) -> tuple[Mark, ...]:
    """The marks of a turn that can be repeated."""
    return (Mark(stamp="tangle", depth=depth, last_depth=3, run="conv_1", turn="conv_1.t0.x"),)
