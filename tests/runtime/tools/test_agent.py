"""Another agent as a tool: what it is called, what it is told, and what comes of it."""

from typing import Any

import pytest

from carnet.core.messages.events import Message
from carnet.errors import AddressInvalid, AgentFailed, Internal, PeerUnreachable, ToolUnusable
from carnet.ports.engine.calls import AgentAsk, CalleeWaits
from carnet.ports.engine.tools import ToolFailed, ToolUse
from carnet.runtime.tools.agent import AgentTool
from tests.engine.scene import ALICE

CLERK = "@clerk@globex.example"


class Calls:
    """Gives one answer, or raises it."""

    waits: tuple[str, ...] = ()

    def __init__(self, answer: str | Exception = "Yes.") -> None:
        self._answer = answer
        self.made: list[AgentAsk] = []

    async def ask_agent(self, ask: AgentAsk, /) -> str:
        self.made.append(ask)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def use(calls: Calls | None, **arguments: Any) -> ToolUse:
    return ToolUse(
        arguments=arguments, call="c1", actor=ALICE, correlation="req_1", place=4, calls=calls
    )


async def test_what_the_model_says_is_said_to_the_agent_and_its_answer_has_its_address() -> None:
    calls = Calls()
    assert await AgentTool(CLERK)(use(calls, message="Is it so?")) == {
        "from": CLERK,
        "answer": "Yes.",
    }
    assert calls.made == [
        AgentAsk(to=CLERK, messages=(Message.user("Is it so?"),), call="c1", place=4)
    ]


def test_it_is_called_as_the_agent_is_unless_it_is_named() -> None:
    plain = AgentTool("@my.clerk@globex.example").definition
    assert (plain.name, "@my.clerk@globex.example" in plain.description) == ("my_clerk", True)
    named = AgentTool(CLERK, "Knows the files.", "files").definition
    assert (named.name, named.description) == ("files", "Knows the files.")
    with pytest.raises(AddressInvalid):
        AgentTool("clerk")


@pytest.mark.parametrize("arguments", [{}, {"message": ""}, {"message": 3}, {"text": "x"}])
async def test_without_a_message_nobody_is_asked(arguments: dict[str, Any]) -> None:
    calls = Calls()
    with pytest.raises(ToolFailed):
        await AgentTool(CLERK)(use(calls, **arguments))
    assert calls.made == []


@pytest.mark.parametrize("error", [AgentFailed("boom"), ToolUnusable("gone")])
async def test_an_agent_that_is_broken_is_told_in_our_words(error: Any) -> None:
    with pytest.raises(ToolFailed) as failed:
        await AgentTool(CLERK)(use(Calls(error), message="Hi"))
    assert str(failed.value) == error.safe_text


@pytest.mark.parametrize("error", [CalleeWaits(), PeerUnreachable("no way")])
async def test_what_else_it_meets_is_for_the_loop(error: Exception) -> None:
    with pytest.raises(type(error)):
        await AgentTool(CLERK)(use(Calls(error), message="Hi"))
    with pytest.raises(Internal):
        await AgentTool(CLERK)(use(None, message="Hi"))
