"""The operator's own policy: a function that is asked before a call, and before each tool.

    def judge(principal, context, action): ...

It is given as whom a call acts, who claims or was verified to have called, and what is to be done.
None or True: it has nothing against it. False, or a text that says why: it denies.

Law 1. It can only deny. Whatever it answers, nobody may do more than the guards let pass.
Law 2. It fails closed: an exception, an answer that is neither and one that is late deny.
Law 3. It cannot hold up the event loop: plain functions run in threads, coroutines in a loop of
       their own, whose thread is theirs alone.
Law 4. Who asks much waits for its own turns: one actor has `MOST_OF_ACTOR` of the places at once.
Law 5. Why it denies is for our log. The caller is told that it did.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

from msgspec import Struct

from carnet.core.call import Admitted
from carnet.core.people.identity import Context
from carnet.core.principal import Principal, principal_of
from carnet.errors import PolicyDenied
from carnet.runtime.threads import Threads

logger = logging.getLogger("carnet.policy")

MOST_AT_ONCE: Final = 16
MOST_OF_ACTOR: Final = 4
MOST_REASON: Final = 500  # characters of a reason, in our log

NO: Final = "it said no"

Kind = Literal["call", "tool"]


class Action(Struct, frozen=True, kw_only=True):
    """What is to be done."""

    kind: Kind
    agent: str  # that is called, or that would use the tool
    skill: str | None = None  # of the agent, where one is asked for by name
    tool: str | None = None
    depth: int = 0  # of the call
    run: str = ""
    dialect: str = ""  # it was asked in; empty for a call made in process


Judge = Callable[[Principal, Context, Action], object]


class PolicyAdapter:
    """Asks the policy: the port `carnet.ports.trust.policy.OperatorPolicy`."""

    def __init__(self, judge: Judge, *, seconds: float) -> None:
        """`judge` is the operator's function; after `seconds` it has denied."""
        self._judge = judge
        self._seconds = seconds
        self._threads = Threads(most=MOST_AT_ONCE)
        self._loop = _Loop()
        self._is_async = inspect.iscoroutinefunction(judge) or inspect.iscoroutinefunction(
            getattr(judge, "__call__", None)  # noqa: B004  an object that is called
        )
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._of_actor: dict[str, tuple[asyncio.Semaphore, int]] = {}

    async def ask_call(self, admitted: Admitted, /) -> None:
        """Ask before a call."""
        await self._ask(admitted, "call", None)

    async def ask_tool(self, admitted: Admitted, tool: str, /) -> None:
        """Ask before a tool is used."""
        await self._ask(admitted, "tool", tool)

    async def _ask(self, admitted: Admitted, kind: Kind, tool: str | None) -> None:
        principal, carnet = principal_of(admitted), admitted.carnet
        action = Action(
            kind=kind,
            agent=admitted.agent,
            skill=admitted.ask.skill,
            tool=tool,
            depth=carnet.depth,
            run=carnet.run,
            dialect=admitted.dialect,
        )
        reason = await self._reason(principal, action)
        if reason is not None:
            logger.warning(
                "the policy denies a %s",
                kind,
                extra={
                    "run": carnet.run,
                    "turn": carnet.turn,
                    "agent": admitted.agent,
                    "actor": principal.actor,
                    "tool": tool,
                    "detail": f"{reason}; {principal.safe()}",
                },
            )
            raise PolicyDenied(reason, action=kind)

    async def _reason(self, principal: Principal, action: Action) -> str | None:
        """Why it denies; None where it does not."""
        try:
            async with asyncio.timeout(self._seconds), self._place(principal.actor):
                answer = await self._answer(principal, action)
        except TimeoutError:
            return f"it did not answer within {self._seconds:g} seconds"
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # the last two are of its own
            logger.exception("the policy raised %s", type(error).__name__)
            return f"it raised {type(error).__name__}"
        return _denial(answer)

    async def _answer(self, principal: Principal, action: Action) -> object:
        asked = (principal, principal.context, action)
        if self._is_async:
            return await self._loop.run(self._judge, *asked)
        answer = await self._threads.run(self._judge, *asked)
        if inspect.isawaitable(answer):
            return await self._loop.run(_awaiting, answer)
        return answer

    @asynccontextmanager
    async def _place(self, actor: str) -> AsyncIterator[None]:
        """A place among those that are asked for at once, of which one actor has a few."""
        own, waiting = self._of_actor.get(actor) or (asyncio.Semaphore(MOST_OF_ACTOR), 0)
        self._of_actor[actor] = (own, waiting + 1)
        try:
            async with own, self._places:
                yield
        finally:
            own, waiting = self._of_actor[actor]
            if waiting > 1:
                self._of_actor[actor] = (own, waiting - 1)
            else:
                del self._of_actor[actor]

    def close(self) -> None:
        """Let its loop go."""
        self._loop.close()


def _denial(answer: object) -> str | None:
    """Why an answer denies; None where it does not."""
    if answer is None or answer is True:
        return None
    if isinstance(answer, str):
        return answer[:MOST_REASON] or NO
    return NO if answer is False else f"it answered with a {type(answer).__name__}"


async def _awaiting(awaitable: Awaitable[object]) -> object:
    return await awaitable


class _Loop:
    """An event loop in a thread of its own, begun when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, function: Callable[..., Any], /, *args: object) -> object:
        """Call a coroutine function there, and wait for what it gives."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            target = self._loop.run_forever
            threading.Thread(target=target, name="carnet-policy", daemon=True).start()

        async def call() -> object:
            return await function(*args)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))

    def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None
