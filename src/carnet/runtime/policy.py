"""The operator's own policy: a function that is asked before a call, and before each tool.

    def judge(principal, context, action): ...

It is given as whom a call acts, who claims or was verified to have called, and what is to be done.
None or True: it has nothing against it. False, or a text that says why: it denies.

Law 1. It can only deny. Whatever it answers, nobody may do more than the guards let pass.
Law 2. It fails closed: an exception, an answer that is neither and one that is late deny.
Law 3. It holds up neither the event loop nor other callers; see `operator_function`.
Law 4. Why it denies is for our log. The caller is told that it did.
"""

import logging
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from carnet.core.call import Admitted
from carnet.core.people.identity import Context
from carnet.core.principal import Principal, principal_of
from carnet.errors import PolicyDenied
from carnet.runtime.operator_function import OperatorFunction

logger = logging.getLogger("carnet.policy")

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
        self._seconds = seconds
        self._function = OperatorFunction(judge, seconds=seconds)

    async def ask_call(self, admitted: Admitted, /) -> None:
        """Ask before a call."""
        await self._ask(admitted, "call", None)

    async def ask_tool(self, admitted: Admitted, tool: str, /) -> None:
        """Ask before a tool is used."""
        await self._ask(admitted, "tool", tool)

    async def ask_own_tool(self, principal: Principal, tool: str, /) -> None:
        """Ask before a tool is used for who has asked a loop directly, past the gateway."""
        await self._judged(
            principal, Action(kind="tool", agent=principal.effective_agent, tool=tool)
        )

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
        await self._judged(principal, action, carnet.turn)

    async def _judged(self, principal: Principal, action: Action, turn: str | None = None) -> None:
        reason = await self._reason(principal, action)
        if reason is not None:
            logger.warning(
                "the policy denies a %s",
                action.kind,
                extra={
                    "run": action.run or None,
                    "turn": turn,
                    "agent": action.agent,
                    "actor": principal.actor,
                    "tool": action.tool,
                    "detail": f"{reason}; {principal.safe()}",
                },
            )
            raise PolicyDenied(reason, action=action.kind)

    async def _reason(self, principal: Principal, action: Action) -> str | None:
        """Why it denies; None where it does not."""
        try:
            asked = (principal, principal.context, action)
            answer = await self._function.ask(principal.actor, *asked)
        except TimeoutError:
            return f"it did not answer within {self._seconds:g} seconds"
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # the last two are of its own
            logger.exception("the policy raised %s", type(error).__name__)
            return f"it raised {type(error).__name__}"
        return _denial(answer)

    def close(self) -> None:
        """Let its loop go."""
        self._function.close()


def _denial(answer: object) -> str | None:
    """Why an answer denies; None where it does not."""
    if answer is None or answer is True:
        return None
    if isinstance(answer, str):
        return answer[:MOST_REASON] or NO
    return NO if answer is False else f"it answered with a {type(answer).__name__}"
