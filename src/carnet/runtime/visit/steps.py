"""The steps of one visit: each is done once, however often its turn runs.

Law 1. The place of a step is fixed when it is asked for. A step that is kept at its place is not
       done again: its result is given. Another name there means that the agent has changed.
Law 2. What a step gives is JSON, and is the same whether it was done now or before.
Law 3. A step whose record could not be made is done again, under the same idempotency key. What it
       did elsewhere must be recognised there by that key.
Law 4. Who has lost its turn begins no step of it any more.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import msgspec

from carnet.core.chain.turn import Turn
from carnet.errors import (
    AgentFailed,
    DefinitionChanged,
    OutcomeUnknown,
    Overloaded,
    StorageUnavailable,
)
from carnet.faults import point
from carnet.ports.calls.steps import Step, Steps
from carnet.ports.calls.turns import Fenced
from carnet.runtime.threads import Threads

logger = logging.getLogger("carnet.agent")

MOST_NAME: Final = 200
MOST_BYTES: Final = 1024 * 1024  # of one result
WAITS_SECONDS: Final = (0.1, 0.3, 1.0, 2.0)  # less than a turn that is stopped may take


class KeptSteps:
    """What one turn does, in order."""

    def __init__(
        self, record: Turn, steps: Steps | None, threads: Threads | None, *, first: int = 0
    ) -> None:
        """`steps` keeps them, where there is a store; plain functions run in `threads`.

        `first` is the place of the first of them, where several who speak in a turn take steps.
        """
        self._record = record
        self._steps = steps
        self._threads = threads or Threads()
        self._next = first
        self._loading: asyncio.Task[dict[int, Step]] | None = None

    def take_place(self, name: str) -> int:
        """The place of the next step."""
        if not 1 <= len(name) <= MOST_NAME or not name.isprintable():
            raise ValueError(f"a step has a name of 1 to {MOST_NAME} characters that can be read")
        if self._current() is not None:
            raise RuntimeError(f"step {name!r} is made within another: make it after that one")
        place, self._next = self._next, self._next + 1
        return place

    def key(self, name: str) -> str:
        """The idempotency key of the step that runs, or of the next one."""
        current, record = self._current(), self._record
        place = self._next if current is None else current
        whose = (record.agent, record.actor, str(record.payer))
        parts = (*whose, record.run, record.turn, str(record.n), str(place), name)
        return f"step_{blake2b(chr(0).join(parts).encode(), digest_size=16).hexdigest()}"

    def _current(self) -> int | None:
        doing = _doing.get()
        return doing[1] if doing is not None and doing[0] is self else None

    async def do(
        self,
        place: int,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        more: Mapping[str, Any],
    ) -> Any:
        """The result of a step, done now or before."""
        found = (await self._known()).get(place)
        if found is not None:
            if found.name != name:
                raise self._changed(found, name)
            return msgspec.json.decode(found.result)
        await self._check()
        point("step.begin")
        result = _written(name, await self._called(place, function, args, more))
        point("step.done")
        await self._kept(Step(place, name, result))
        point("step.kept")
        return msgspec.json.decode(result)

    async def find(self, place: int) -> Any:
        """What is kept at a place; None where that is nothing."""
        found = (await self._known()).get(place)
        return None if found is None else msgspec.json.decode(found.result)

    def _changed(self, kept: Step, name: str) -> DefinitionChanged:
        """The end of a turn whose agent is another one by now; the log says what has changed."""
        record, step = self._record, kept.place + 1
        logger.error(
            "step %d of the agent was %r and is %r now",
            *(step, kept.name, name),
            extra={"run": record.run, "turn": record.turn, "agent": record.agent},
        )
        return DefinitionChanged(f"it was {kept.name!r} and is {name!r} now", step=step)

    async def _known(self) -> dict[int, Step]:
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load())
        return await asyncio.shield(self._loading)

    async def _load(self) -> dict[int, Step]:
        if self._steps is None:
            return {}
        return {step.place: step for step in await self._steps.of(self._record)}

    async def _called(
        self,
        place: int,
        function: Callable[..., Any],
        args: Sequence[Any],
        more: Mapping[str, Any],
    ) -> Any:
        token = _doing.set((self, place))
        try:
            if inspect.iscoroutinefunction(function):
                return await function(*args, **more)
            value = await self._threads.run(function, *args, **more)
            return await value if inspect.isawaitable(value) else value
        finally:
            _doing.reset(token)

    async def _kept(self, step: Step) -> None:
        """Keep what was done; who is told to stop meanwhile stops when that is written.

        Once the turn is let go nothing of it can be kept any more, and it would be done again.
        """
        keeping = asyncio.ensure_future(self._keep(step))
        try:
            await asyncio.shield(keeping)
        except asyncio.CancelledError:
            await asyncio.wait([keeping])
            raise

    async def _check(self) -> None:
        """Do nothing for a turn that another process runs by now: this one stood still too long."""
        if self._steps is not None:
            await patiently(partial(self._steps.check, self._record))

    async def _keep(self, step: Step) -> None:
        if self._steps is not None:
            await patiently(partial(self._steps.keep, self._record, step))


_doing: ContextVar[tuple[KeptSteps, int] | None] = ContextVar("carnet_step", default=None)


async def patiently(act: Callable[[], Awaitable[None]]) -> None:
    """Ask the store again when it could not answer: what was done is not forgotten for that."""
    for seconds in (*WAITS_SECONDS, None):
        try:
            await act()
        except Fenced as fenced:
            raise OutcomeUnknown(str(fenced)) from None
        except (StorageUnavailable, Overloaded, OutcomeUnknown):
            if seconds is None:
                raise
            await asyncio.sleep(seconds)
        else:
            return


def _written(name: str, value: Any) -> bytes:
    try:
        result = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise AgentFailed(f"step {name!r} gave what is not JSON: {error}") from None
    if len(result) > MOST_BYTES:
        raise AgentFailed(f"step {name!r} gave more than {MOST_BYTES} bytes")
    return result
