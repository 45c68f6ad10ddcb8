"""Every example answers through a real gateway."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.http import Reply
from tests.support.organisation import Organisation
from tests.support.signing.signed import (
    MESSAGE,
    STREAM,
    Line,
    Sender,
    frames,
    message,
    refusal,
    result,
)

EXAMPLES = Path(__file__).parents[2] / "examples"

AGENTS = {
    "countdown": "streaming:countdown",
    "researcher": "delegating:researcher",
    "critic": "delegating:critic",
    "recursive": "careful:recursive",
    "clerk": "skills:clerk",
    "porter": "skills:porter",
    "guide": "tools:guide",
}
BOB = Sender("agent://bob")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    served = Organisation(tmp_path_factory.mktemp("examples"), "examples.example")
    for path in EXAMPLES.glob("*.py"):
        shutil.copy(path, served.folder)
    served.configure(
        "\n".join(
            f'[agents.{name}]\nkind = "python"\ntarget = "{target}"\n'
            + "reentry = true\n" * (name == "recursive")
            for name, target in AGENTS.items()
        )
    )
    served.carnet("peers", "add", BOB.identity, "--key", BOB.public)
    served.start()
    yield served
    assert served.stop() == 0


def test_what_a_generator_yields_is_streamed(gateway: Organisation) -> None:
    assert gateway.chat("3", "countdown").text == "3 2 1 go"
    streamed = gateway.chat("3", "countdown", stream=True).body
    assert streamed.count(b'"content"') >= 4


def test_an_agent_passes_on_what_another_says(gateway: Organisation) -> None:
    text = gateway.chat("the moon is cheese", "researcher").text
    assert text.endswith("Critic: I doubt it (Is this true? the moon is cheese)")


def test_a_recursive_agent_ends_where_the_chain_does(gateway: Organisation) -> None:
    text = gateway.chat("go", "recursive").text
    assert text.startswith("depth 0, below: depth 1")
    assert "the limit here is 4" in text


Asking = Callable[..., Reply]


@pytest.fixture
def clerk(gateway: Organisation) -> Iterator[Asking]:
    """Bob's signed calls to the clerk."""
    with Line(gateway.port) as line:

        def ask(skill: str, path: str = MESSAGE, auth: Any = None, **payload: Any) -> Reply:
            more = {} if auth is None else {"auth": auth}
            to, target = "agent://clerk.examples.example", f"/agents/clerk{path}"
            return line.send(message(BOB, to, target=target, skill=skill, payload=payload, **more))

        yield ask


def test_a_skill_is_given_what_its_types_say(clerk: Asking) -> None:
    assert result(clerk("book", day="2026-12-24")) == {"number": 12, "day": "2026-12-24"}
    assert result(clerk("count", words="to be or not")) == {"result": 4}


def test_what_does_not_fit_a_skill_is_refused_by_its_field(clerk: Asking) -> None:
    refused = clerk("book", day="2026-12-24", seats="many")
    assert refusal(refused) == (400, "SCHEMA_INVALID")
    assert refused.json["error"]["message"] == "Field 'seats' must be of type integer"
    assert refusal(clerk("boök")) == (404, "SKILL_NOT_FOUND")


def test_a_skill_streams_its_chunks_and_then_its_result(clerk: Asking) -> None:
    *chunks, last = frames(clerk("recite", STREAM, lines=["one", "two"]).body)
    assert [chunk["chunk"] for chunk in chunks] == ["one", "two"]
    assert last["result"] == {"number": 2, "day": "2026-11-15"}


def test_a_skill_for_authenticated_callers_learns_who_they_are(
    clerk: Asking, gateway: Organisation
) -> None:
    assert refusal(clerk("whoami"))[1] == "AUTH_FAILED"
    token = gateway.new_token("ann")
    reply = clerk("whoami", auth={"scheme": "bearer", "token": token})
    assert result(reply) == {"caller": f"sender:{BOB.identity}", "principal": "token:ann"}
    assert token.encode() not in reply.body


def test_an_agent_asks_another_for_a_skill_and_is_held_to_its_schema(
    gateway: Organisation,
) -> None:
    assert gateway.chat("2026-12-24", "porter").text == "Table 12 on 2026-12-24"
    refused = gateway.chat("tomorrow", "porter")
    assert refused.json["error"]["code"] == "schema_invalid"
    assert refused.json["error"]["message"] == "Field 'day' is not of format date"


def test_an_agent_that_has_skills_alone_cannot_be_talked_to(gateway: Organisation) -> None:
    refused = gateway.chat("hi", "clerk")
    assert refused.status == 404
    assert refused.json["error"]["code"] == "skill_not_found"
    assert refused.json["error"]["suggestion"] == "book"


def test_a_plain_function_reads_what_was_sent_and_has_a_tool_called(gateway: Organisation) -> None:
    assert gateway.chat("hi", "guide", temperature=0.5).text == "0 images, 0.5: hi"
    tools = [{"type": "function", "function": {"name": "clock"}}]
    (choice,) = gateway.chat("hi", "guide", tools=tools).json["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], call["function"]["name"]) == ("tool_calls", "clock")
    result = {"role": "tool", "tool_call_id": call["id"], "content": "noon"}
    messages = [{"role": "user", "content": "hi"}, choice["message"], result]
    assert gateway.chat("hi", "guide", tools=tools, messages=messages).text == "It is noon."


def test_every_example_is_listed_and_run() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    run = {target.partition(":")[0] for target in AGENTS.values()}
    for path in EXAMPLES.glob("*.py"):
        assert path.name in listed
        assert path.stem in run
