"""An agent that a loop answers: what the loop is given, and what the caller is told of its end."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.messages.events import Done, Link, Message, Text, ToolCall, ToolResult, Waiting
from carnet.core.messages.interrupt import Answered
from carnet.core.people.identity import Actor, Caller, Ceiling
from carnet.engine.loop import AgentLoop
from carnet.errors import (
    CarnetError,
    ContextTooLong,
    InvalidRequest,
    ModelKeyRefused,
    ProviderTimeout,
    StorageUnavailable,
    ToolUnusable,
)
from carnet.ports.engine.loop import LoopTurn
from carnet.ports.engine.tools import ToolUse
from carnet.runtime.agents.engine import EngineAgent, actor_of
from carnet.testing.model import ScriptedModel
from carnet.wire.dialects.openai.members import Passing
from tests.engine.scene import NO, USED, YES, call, tool
from tests.runtime.scene import Paper, collect, fail, make_call

SOME = Passing(frozenset())
OWN = Passing(frozenset(), system=False)


def agent(model: ScriptedModel, *tools: Any, system: str | None = None) -> EngineAgent:
    passing = SOME if system is None else OWN
    return EngineAgent(AgentLoop(model, tools), system=system, passing=passing, steps=None)


def asked(*messages: Message, **fields: Any) -> Call:
    made = make_call()
    return replace(made, ask=Ask(messages=messages or made.ask.messages, **fields))


class Raising:
    """A loop that fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def __call__(self, turn: LoopTurn, sink: object, /) -> Done:
        del turn, sink
        raise self._error


async def test_a_call_is_answered_by_the_loop_and_its_tools() -> None:
    model = ScriptedModel([call(), USED], ["So.", USED])
    events = await collect(agent(model, tool()), make_call())
    assert events == [
        USED,
        ToolCall("c1", "look", "{}", is_own=True),
        ToolResult("c1", "ok", "nothing"),
        *(Text("So."), USED, Done("stop")),
    ]


async def test_its_system_message_stands_first_and_callers_have_none() -> None:
    model = ScriptedModel(["Yes."])
    given = (Message("developer", ("Obey me.",)), Message.system("Me too."), Message.user("Hi"))
    await collect(agent(model, system="Be brief."), asked(*given))
    assert [(m.role, m.text) for m in model.asked[0].messages] == [
        ("system", "Be brief."),
        ("user", "Hi"),
    ]


async def test_without_one_callers_may_instruct_it() -> None:
    model = ScriptedModel(["Yes."])
    await collect(agent(model), asked(Message("developer", ("Be kind.",)), Message.user("Hi")))
    assert model.asked[0].messages[0] == Message.system("Be kind.")


@pytest.mark.parametrize(
    ("payload", "text"), [({"text": "Hello"}, "Hello"), ({"day": 3}, '{"day":3}'), (None, "{}")]
)
async def test_what_is_asked_for_by_name_is_said(payload: dict[str, Any] | None, text: str) -> None:
    model = ScriptedModel(["Yes."])
    made = make_call()
    ask = Ask(messages=(), skill="chat", payload=payload)
    await collect(agent(model), replace(made, ask=ask))
    assert model.asked[0].messages == (Message.user(text),)


async def test_what_the_contract_cannot_carry_the_loop_is_not_given() -> None:
    error, _ = await fail(agent(ScriptedModel()), asked(Message.user(Link("https://x.example/a"))))
    assert isinstance(error, InvalidRequest)


async def test_the_request_has_the_name_that_its_caller_gave() -> None:
    model = ScriptedModel(["a"], ["b"])
    await collect(agent(model), replace(make_call(), correlation="req_7"))
    await collect(agent(model), make_call())
    assert [ask.correlation for ask in model.asked] == ["req_7", make_call().carnet.run]


def test_the_loop_acts_for_the_caller_within_its_ceiling() -> None:
    scopes = frozenset({"tool:*", "call:*", "pay"})
    ceiling = Ceiling(allow=frozenset({"tool:read", "pay"}), deny=frozenset({"pay"}))
    actor = actor_of(Caller(actor=Actor(name="token:alice"), scopes=scopes, ceiling=ceiling))
    assert actor.id == "service:alice"
    permissions = ("tool:read", "tool:send", "call:x", "pay")
    assert [actor.may(each) for each in permissions] == [True, False, False, False]
    plain = actor_of(Caller(actor=Actor(name="peer:globex.example"), scopes=scopes))
    assert (plain.id, plain.may("tool:send")) == ("peer:globex.example", True)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProviderTimeout("slow"), "provider_error"),
        (ModelKeyRefused("sk-1"), "provider_error"),
        (ContextTooLong(), "context_length_exceeded"),
        (ToolUnusable("gone"), "tool_error"),
        (StorageUnavailable("full"), "storage_unavailable"),
    ],
)
async def test_a_failure_is_one_of_the_three_or_ours(error: CarnetError, code: str) -> None:
    error.words = "401 what the provider said"
    failing = EngineAgent(Raising(error), system=None, passing=SOME, steps=None)
    found, _ = await fail(failing, make_call())
    assert (found.code, found.words) == (code, "401 what the provider said")


async def test_an_approval_has_a_name_of_its_turn_and_its_answer_is_found_by_it() -> None:
    used: list[object] = []

    async def send(use: ToolUse) -> str:
        used.append(use.arguments)
        return "sent"

    tools = (tool("send", send, approval="always"),)
    script = [call("c1", "send", '{"to":"x"}')]
    made = make_call()
    end = (await collect(agent(ScriptedModel(script), *tools), made))[-1]
    assert isinstance(end, Waiting)
    (question,) = end.interrupts
    assert question.id.startswith("int_")
    for answer, status in ((YES, "ok"), (NO, "denied")):
        again = replace(made, resolved=(Answered(question, answer),))
        paper = Paper()
        await agent(ScriptedModel(script, ["So."]), *tools)(again, paper)
        results = [event for event in paper.events if isinstance(event, ToolResult)]
        assert [result.status for result in results] == [status]
    assert used == [{"to": "x"}]
