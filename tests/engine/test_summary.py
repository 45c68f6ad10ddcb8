"""A summary of what a model can no longer read: made once, counted, and shown as data."""

import logging

import pytest

from carnet.core.messages.events import Done, Extension, Message, Text, Usage
from carnet.engine.loop import AgentLoop
from carnet.engine.summary import MARK, MOST_SUMMARY
from carnet.engine.window import WindowedModel
from carnet.errors import ProviderUnavailable
from carnet.ports.engine.loop import LoopTurn
from carnet.testing.model import ScriptedModel
from carnet.wire.dialects.engine_chat.request import EngineRequest
from tests.engine.scene import ALICE, USED, Written, call, tool

OLD = (Message.user("My budget is 100. " + "." * 5000), Message.assistant("Noted."))
WINDOW = 4000


async def answered(model: ScriptedModel, *messages: Message) -> Written:
    written = Written()
    asked = WindowedModel(model, name="small", window=WINDOW, sums_up=True)
    request = EngineRequest(messages=messages, correlation="req_1")
    loop = AgentLoop(asked, [tool()])
    assert await loop(LoopTurn(request=request, actor=ALICE), written) == Done("stop")
    return written


async def test_what_is_left_out_is_summed_up_and_shown_as_data() -> None:
    model = ScriptedModel(["The budget is 100.", USED], ["It is 100.", USED])
    system, now = Message.system("Be brief."), Message.user("What is it? " + "." * 8000)
    written = await answered(model, system, *OLD, now)
    texts = [event.text for event in written.events if isinstance(event, Text)]
    assert texts == ["It is 100."]  # nobody is shown the summary as an answer
    assert written.used == [USED, USED]  # and it is paid for
    summing, asked = model.asked
    assert summing.tools == ()
    assert "user: My budget is 100." in summing.messages[1].text
    assert "assistant: Noted." in summing.messages[1].text
    assert asked.messages == (system, Message.user(f"{MARK}The budget is 100."), now)


async def test_in_one_turn_what_was_summed_up_is_only_added_to() -> None:
    long = "x" * 5000
    rounds = [[call(f"c{n}", "look", f'{{"n":{n},"a":"{long}"}}')] for n in range(3)]
    model = ScriptedModel(
        ["First."], rounds[0], rounds[1], ["Second."], rounds[2], ["Third."], ["So."]
    )
    await answered(model, *OLD, Message.user("Look. " + "." * 8000))
    summaries = [ask for ask in model.asked if ask.tools == ()]
    assert [MARK in ask.messages[1].text for ask in summaries] == [False, True, True]
    assert "First." in summaries[1].messages[1].text
    assert "budget" not in summaries[1].messages[1].text
    assert "uses look with" in summaries[1].messages[1].text


async def test_what_is_longer_than_the_model_can_read_is_summed_up_in_pieces() -> None:
    old = tuple([Message.user(str(n) * 9000) for n in range(3)])
    model = ScriptedModel(*[[f"Part {n}."] for n in range(5)], ["y" * (2 * MOST_SUMMARY)], ["So."])
    await answered(model, *old, Message.user("Now?"))
    *summaries, asked = model.asked
    assert len(summaries) == 6
    assert all(len(ask.messages[1].text) < 4 * WINDOW for ask in summaries)
    assert asked.messages[0].text == MARK + "y" * MOST_SUMMARY


async def test_without_a_summary_what_is_left_out_is_just_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="carnet.engine")
    model = ScriptedModel([Usage(7, 0), ProviderUnavailable("down")], ["So."])
    now = Message.user("Now? " + "." * 8000)
    written = await answered(model, *OLD, now)
    assert model.asked[-1].messages == (now,)
    assert written.used == [Usage(7, 0)]
    assert [type(event) for event in written.events] == [Extension, Text]
    (noted,) = [each for each in caplog.records if each.getMessage() == "no summary was made"]
    assert vars(noted)["correlation_id"] == "req_1"
