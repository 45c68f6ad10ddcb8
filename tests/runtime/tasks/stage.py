"""A gate, a journal and a worker of tasks over a real store, in one process."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.chain.carnet import DepthLimits, Mark
from carnet.core.people.address import Identities
from carnet.guards.admission.gate import Gate
from carnet.guards.admission.order import GateParts, Signed
from carnet.guards.limits import Concurrency
from carnet.guards.target.injection import Injection
from carnet.ports.calls.agent import Target
from carnet.ports.calls.tasks import StoredTask
from carnet.runtime.agents.python import Native
from carnet.runtime.skills.schemas import CompiledSchemas
from carnet.runtime.system import SystemIds
from carnet.runtime.tasks.progress import ProgressWriter
from carnet.runtime.tasks.worker import TaskWorker
from carnet.runtime.turns.runner import TurnRunner
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.means import VisitMeans
from carnet.runtime.visit.visit import Visit
from carnet.stores.open import Store
from carnet.telemetry import Metrics
from carnet.testing.clock import FakeClock
from carnet.testing.keys import MemoryRing
from carnet.testing.wait import until_so
from tests.guards.scene import DOMAIN, Directory, claim, known_peers, known_tokens, target
from tests.runtime.stage import nothing_new
from tests.stores.support.scenes import Place

Function = Callable[[Visit], Any]


class TaskStage:
    """Everything between a claim for a task and its record."""

    def __init__(
        self,
        store: Store,
        *,
        most: int = 8,
        per_agent: int = 8,
        per_sender: int = 1000,
        prices: dict[str, int] | None = None,
        seconds: float | None = None,
        at_once: int | None = None,
        more: Sequence[Target] = (),
        **functions: Function,
    ) -> None:
        self.store = store
        self.clock, ids = FakeClock(), SystemIds()
        self.progress_writer = ProgressWriter(store.tasks, rest_seconds=0.05)
        dispatching = Dispatching()
        self.router = Directory(
            *[
                replace(
                    self._target(name, function, dispatching, prices or {}, seconds),
                    at_once=at_once,
                )
                for name, function in functions.items()
            ],
            *more,
        )
        self.journal = TurnRunner(
            turns=store.turns,
            clock=self.clock,
            ids=ids,
            currency="credits",
            worker=store.worker,
            tasks=store.tasks,
        )
        self.concurrency = Concurrency(per_caller=100, in_all=100)
        self.gate = Gate(
            GateParts(
                router=self.router,
                tokens=known_tokens(),
                peers=known_peers(),
                clock=self.clock,
                ids=ids,
                domain=DOMAIN,
                depths=DepthLimits(),
            ),
            turns=store.turns,
            concurrency=self.concurrency,
            most_run_calls=100,
            look_again=nothing_new,
            by_proof=Signed(
                keys=MemoryRing(),
                identities=Identities(functions, domain=DOMAIN, default=None),
                schemas=CompiledSchemas(),
                scan=Injection(),
                currency="credits",
                sender_calls=1000,
                agent_calls=1000,
                tasks=store.tasks,
                tasks_per_sender=per_sender,
            ),
        )
        dispatching.connect(self.gate, self.journal)
        self.metrics = Metrics()
        self.worker = self._worker(most, per_agent)

    def _worker(self, most: int, per_agent: int) -> TaskWorker:
        worker = TaskWorker(
            tasks=self.store.tasks,
            journal=self.journal,
            router=self.router,
            clock=self.clock,
            most=most,
            per_agent=per_agent,
            on_start=self.progress_writer.begin,
            is_busy=lambda: self.concurrency.total > 0,
        )
        worker.connect(metrics=self.metrics, on_end=lambda: None)
        return worker

    def _target(
        self,
        name: str,
        function: Function,
        dispatching: Dispatching,
        prices: dict[str, int],
        seconds: float | None,
    ) -> Target:
        agent = Native(
            function,
            dispatching,
            last_depth=3,
            means=VisitMeans(steps=self.store.steps, progress=self.progress_writer),
        )
        return target(name, price=prices.get(name, 0), agent=agent, seconds=seconds)

    async def accept(self, name: str, text: str = "hi", *, turn: str = "") -> Call:
        """Have a task accepted; with a turn it can be repeated."""
        marks: tuple[Mark, ...] = ()
        if turn:
            marks = (Mark(stamp="tangle", depth=1, last_depth=3, run="conv_1", turn=turn),)
        asked = replace(claim(name, text=text, marks=marks), is_task=True)
        call = await self.gate.admit(asked)
        self.worker.wake()
        return call

    async def find(self, call: Call) -> StoredTask:
        found = await self.store.tasks.find(call.task or "")
        assert found is not None
        return found

    async def ended(self, call: Call) -> StoredTask:
        """The task when it has ended."""
        return await self.seen(call, lambda task: task.state in {"done", "failed"})

    async def seen(self, call: Call, holds: Callable[[StoredTask], bool]) -> StoredTask:
        return await until_so(lambda: self.find(call), holds)

    async def close(self) -> None:
        await self.worker.stop()
        await self.journal.drain(0)
        await self.worker.close()


async def open_place(folder: Path) -> tuple[Place, Store]:
    """A SQLite store in a folder."""
    place = Place(folder)
    return place, await place.start()
