"""What the page about agents in Python shows works as it stands."""

from collections.abc import Iterator

import pytest

from carnet.runtime.threads import MOST_AHEAD, MOST_AT_ONCE
from tests.docs.test_quickstart import ROOT, blocks_of
from tests.support.model import Model, answered
from tests.support.organisation import Organisation

PAGE = ROOT / "docs" / "python.md"
WRITER = """

def writer(visit):
    tools = [tool.name for tool in visit.tools]
    return f"{visit.messages[0].role} {visit.text} {visit.parameters.get('temperature')} {tools}"
"""
NAMES = ("countdown", "weather", "editor", "writer", "essayist")


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model().serving() as model:
        yield model


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Organisation]:
    served = Organisation(tmp_path_factory.mktemp("page"), "page.example")
    shown = [block.text for block in blocks_of(PAGE) if block.language == "python"]
    (served.folder / "shown.py").write_text("\n".join(shown) + WRITER)
    for name in NAMES:
        served.configure(f'\n[agents.{name}]\nkind = "python"\ntarget = "shown:{name}"\n')
    served.configure(f'\n[models.writer]\nurl = "{model.url}/v1"\n')
    served.start()
    yield served
    assert served.stop() == 0


def test_its_plain_generator_counts(gateway: Organisation) -> None:
    assert gateway.chat("3", "countdown").text == "3 2 1 "


def test_its_agent_reads_what_the_caller_sent(gateway: Organisation) -> None:
    assert gateway.chat("Rome", "weather", max_tokens=4).text == "I am"
    tools = [{"type": "function", "function": {"name": "weather"}}]
    (choice,) = gateway.chat("Rome", "weather", tools=tools).json["choices"]
    assert choice["finish_reason"] == "tool_calls"
    result = {"role": "tool", "tool_call_id": "call_1", "content": "warm"}
    messages = [{"role": "user", "content": "Rome"}, choice["message"], result]
    assert gateway.chat("", "weather", messages=messages).text == "It is warm."
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    messages = [{"role": "user", "content": [image, image]}]
    assert gateway.chat("", "weather", messages=messages).text == "I see 2 pictures."


def test_its_agent_asks_another_with_all_that_it_shows(gateway: Organisation) -> None:
    text = gateway.chat("hi", "editor", temperature=0.5).text
    assert text == "user system Yes. 0.2 ['look_up'] 0.5 []"


def test_its_agent_asks_a_model_and_what_that_used_is_counted(
    gateway: Organisation, model: Model
) -> None:
    model.reply = lambda asked: (
        answered("1. Bees", prompt_tokens=9, completion_tokens=4)
        if asked.body["messages"][0]["role"] == "system"
        else answered("An essay.", prompt_tokens=20, completion_tokens=6)
    )
    reply = gateway.chat("bees", "essayist")
    assert reply.text == "An essay."
    first, second = model.asked
    assert [message["content"] for message in first.body["messages"]] == [
        *("Three points.", "Outline: bees")
    ]
    assert first.body["max_tokens"] == 200
    assert [message["content"] for message in second.body["messages"]] == ["bees", "1. Bees"]
    usage = reply.json["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (29, 10)


def test_its_numbers_are_those_of_the_program() -> None:
    text = PAGE.read_text()
    assert f"{MOST_AT_ONCE} threads of its own" in text
    assert f"at most {MOST_AHEAD} values ahead" in text
