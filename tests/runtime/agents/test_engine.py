"""An agent that a loop answers: what the loop is given, and what the caller is told of its end."""

import asyncio
import threading
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.messages.events import (
    CHILD,
    Done,
    Event,
    Extension,
    Failed,
    Link,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Answered, Interrupt
from carnet.core.people.identity import Actor, Caller, Ceiling
from carnet.engine.loop import AgentLoop
from carnet.engine.tools.turn import NO_HOP
from carnet.errors import (
    AgentFailed,
    Cancelled,
    CarnetError,
    ContextTooLong,
    InvalidRequest,
    ModelKeyRefused,
    ProviderTimeout,
    StorageUnavailable,
    ToolUnusable,
)
from carnet.ports.calls.admission import ClientLeave
from carnet.ports.engine.calls import AgentAsk
from carnet.ports.engine.loop import LoopTurn
from carnet.ports.engine.tools import LoopTool, ToolUse
from carnet.runtime.agents import engine
from carnet.runtime.agents.engine import EngineAgent, actor_of
from carnet.runtime.tools.agent import AgentTool
from carnet.runtime.visit.loop_visit import CallsOut, LoopVisit
from carnet.testing.model import ScriptedModel
from carnet.wire.dialects.engine_chat.request import EngineRequest, read_request
from carnet.wire.dialects.openai.members import Passing
from tests.engine.scene import NO, USED, YES, call, tool
from tests.runtime.scene import Paper, collect, fail, make_call

SOME = Passing(frozenset())
OWN = Passing(frozenset(), system=False)


class Others:
    """Agents that can be called: what each says, or asks for until somebody has answered."""

    def __init__(self, *ends: Done | Waiting | Failed) -> None:
        self.ends = list(ends)
        self.asked: list[tuple[str, str, int]] = []

    async def whole(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> list[Event]:
        del parent
        assert auth == "forward-user"
        self.asked.append((name, ask.text, index))
        end = self.ends.pop(0) if self.ends else Done()
        return [Text(f"{name} says {ask.text}"), Usage(1, 1, 30), end]

    def check(self, call: Call) -> None:
        """Nothing has ended."""

    def most_cost(self, *_: Any) -> int:
        """All is free."""
        return 0

    def let_out(self, *_: Any, **__: Any) -> ClientLeave:
        return ClientLeave()

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a loop waits for whole answers")


def calls_of(others: Others) -> CallsOut:
    return CallsOut(dispatch=others, last_depth=3)


def agent(
    model: ScriptedModel, *tools: Any, system: str | None = None, others: Others | None = None
) -> EngineAgent:
    passing = SOME if system is None else OWN
    return EngineAgent(
        AgentLoop(model, tools),
        calls_of(others or Others()),
        system=system,
        passing=passing,
        steps=None,
    )


def direct(**carnet: Any) -> Call:
    """A call that no other agent makes."""
    return make_call(**{"depth": 0, **carnet})


def asked(*messages: Message, **fields: Any) -> Call:
    made = direct()
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
    events = await collect(agent(model, tool()), direct())
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
    made = direct()
    ask = Ask(messages=(), skill="chat", payload=payload)
    await collect(agent(model), replace(made, ask=ask))
    assert model.asked[0].messages == (Message.user(text),)


async def test_a_long_request_is_read_beside_the_event_loop(monkeypatch: Any) -> None:
    threads: list[bool] = []

    def read(body: bytes) -> EngineRequest:
        threads.append(threading.current_thread() is threading.main_thread())
        return read_request(body)

    monkeypatch.setattr(engine, "read_request", read)
    for text in ("Hi", "x" * (engine.LARGE_CHARACTERS + 1)):
        given = asked(Message.user(text)), asked(), asked()
        for made, ask in zip(given, (None, {"text": text}, {"text": [text]}), strict=True):
            model = ScriptedModel(["So."])
            named = made if ask is None else replace(made, ask=Ask(messages=(), payload=ask))
            await collect(agent(model), named)
            assert text in model.asked[0].messages[-1].text
    assert threads == [True, True, False, False, False, False]


async def test_what_the_contract_cannot_carry_the_loop_is_not_given() -> None:
    error, _ = await fail(agent(ScriptedModel()), asked(Message.user(Link("https://x.example/a"))))
    assert isinstance(error, InvalidRequest)


async def test_the_request_has_the_name_that_its_caller_gave() -> None:
    model = ScriptedModel(["a"], ["b"])
    await collect(agent(model), replace(direct(), correlation="req_7"))
    await collect(agent(model), direct())
    assert [ask.correlation for ask in model.asked] == ["req_7", direct().carnet.run]


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
    failing = EngineAgent(Raising(error), calls_of(Others()), system=None, passing=SOME, steps=None)
    found, _ = await fail(failing, direct())
    assert (found.code, found.words) == (code, "401 what the provider said")


async def test_an_approval_has_a_name_of_its_turn_and_its_answer_is_found_by_it() -> None:
    used: list[object] = []

    async def send(use: ToolUse) -> str:
        used.append(use.arguments)
        return "sent"

    tools = (tool("send", send, approval="always"),)
    script = [call("c1", "send", '{"to":"x"}')]
    made = direct()
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


# ------------------------------------------------------------------ other agents

_ASKED = AgentTool("@critic@globex.example")
CRITIC = LoopTool(definition=_ASKED.definition, use=_ASKED, calls_agent=True)
ASKS_CRITIC = [call("c1", "critic", '{"message":"Is it so?"}')]


async def test_another_agent_is_a_tool_and_its_words_are_marked_as_its_own() -> None:
    others, model = Others(), ScriptedModel(ASKS_CRITIC, ["So."])
    events = await collect(agent(model, CRITIC, others=others), direct())
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert result == ToolResult(
        "c1",
        "ok",
        '{"from":"@critic@globex.example","answer":"@critic@globex.example says Is it so?"}',
    )
    assert others.asked == [("@critic@globex.example", "Is it so?", 0)]
    # What it has cost is noted in this turn.
    (noted,) = [event for event in events if isinstance(event, Extension)]
    assert (noted.name, noted.payload["cost"]) == (CHILD, 30)


async def test_calls_of_one_answer_have_the_places_of_their_tool_calls() -> None:
    others = Others()
    script = [
        call("a", "look"),
        call("b", "critic", '{"message":"1"}', 1),
        call("c", "critic", '{"message":"2"}', 2),
    ]
    await collect(agent(ScriptedModel(script, ["So."]), tool(), CRITIC, others=others), direct())
    assert sorted(others.asked) == [
        ("@critic@globex.example", "1", 1),
        ("@critic@globex.example", "2", 2),
    ]


async def test_what_a_callee_asks_for_the_turn_asks_for_and_siblings_end_first() -> None:
    question = Interrupt(kind="payment", message="Pay?", id="int_1", state="s3cret", amount=5)
    asking = Waiting((question,))
    others, used = Others(asking), list[str]()

    async def look(use: ToolUse) -> str:
        for _ in range(9):
            await asyncio.sleep(0)
        used.append(use.call)
        return "seen"

    script = [*ASKS_CRITIC, call("c2", "look", index=1), call("c3", "send", index=2)]
    tools = (CRITIC, tool("look", look), tool("send", approval="always"))
    model = ScriptedModel(script)
    end = (await collect(agent(model, *tools, others=others), direct()))[-1]
    assert isinstance(end, Waiting)
    approval, passed = end.interrupts
    assert (approval.kind, approval.more) == ("approval", {"tool": "send", "arguments": {}})
    assert passed == replace(
        question, origin="@critic@globex.example", via=("@critic@globex.example",)
    )
    assert used == ["c2"]


async def test_a_callee_that_fails_is_told_to_the_model() -> None:
    others = Others(Failed.of(AgentFailed("boom")))
    model = ScriptedModel(ASKS_CRITIC, ["Then not."])
    events = await collect(agent(model, CRITIC, others=others), direct())
    assert events[-1] == Done("stop")
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert (result.status, result.output) == ("error", AgentFailed().safe_text)


FINAL = (
    "You are responding as the FINAL hop (3 of 3). "
    "Synthesize a conclusion \N{EM DASH} do not invite another agent."
)


@pytest.mark.parametrize(
    ("depth", "cue"),
    [
        (1, "You are responding as hop 1 of a chain capped at 3 hops. [2 hops remaining.]"),
        (2, "You are responding as hop 2 of a chain capped at 3 hops. [1 hop remaining.]"),
        (3, FINAL),
    ],
)
async def test_who_is_called_by_agents_is_told_its_hop(depth: int, cue: str) -> None:
    for system, text in ((None, cue), ("Be brief.", f"Be brief.\n\n{cue}")):
        model = ScriptedModel(["Yes."])
        await collect(agent(model, system=system), direct(depth=depth))
        assert model.asked[0].messages[0] == Message.system(text)


async def test_at_the_last_hop_nobody_is_called_whatever_the_model_says() -> None:
    others, model = Others(), ScriptedModel(ASKS_CRITIC, ["So."])
    events = await collect(agent(model, tool(), CRITIC, others=others), direct(depth=3))
    assert [offered.name for offered in model.asked[0].tools] == ["look"]
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert (result.status, result.output) == ("denied", NO_HOP)
    assert others.asked == []


async def test_a_turn_that_has_ended_calls_nobody() -> None:
    others = Others()
    visit = LoopVisit(direct(), Paper(), calls_of(others))
    visit.close()
    asked = AgentAsk(to="@critic@globex.example", messages=(Message.user("Hi"),), call="c1")
    with pytest.raises(Cancelled):
        await visit.ask_agent(asked)
    assert others.asked == []


async def test_where_places_are_not_counted_a_question_is_asked_once() -> None:
    others = Others()
    visit = LoopVisit(direct(), Paper(), calls_of(others))
    one, other = (
        AgentAsk(to="@critic@globex.example", messages=(Message.user(text),), call="c1")
        for text in ("Hi", "Ho")
    )
    texts = [await visit.ask_agent(ask) for ask in (one, other, one)]
    assert texts[0] == texts[2]
    (_, _, first), (_, _, second) = others.asked
    assert first != second
    assert 1_000_000 <= first < 1_000_000_000
    again = Others()
    await LoopVisit(direct(), Paper(), calls_of(again)).ask_agent(one)
    assert again.asked == others.asked[:1]
