"""Whole answers: what a stream of events would give, in one piece and without the price of one.

Every wrapper of an Agent costs a stream a few microseconds an event. A call without a stream goes
through `answer` instead, where the agent within has it: those that are elsewhere do.

Law. An `answer` gives the events of the stream, the last of them terminal, or raises what the
stream would. What the stream would have said before it raised is among the notes of the call.
"""

from collections.abc import Awaitable, Callable

from carnet.core.call import Call
from carnet.core.events import Event
from carnet.ports.agent import Agent

Answer = Callable[[Call], Awaitable[list[Event]]]


async def answered(answer: Answer | None, call: Call) -> list[Event]:
    """The answer of an agent that was found to have one."""
    if answer is None:
        raise TypeError("the agent answers in a stream only")
    return await answer(call)


def answer_of(agent: Agent) -> Answer | None:
    """How an agent answers in one piece, if it can."""
    answer: Answer | None = getattr(agent, "answer", None)
    return answer
