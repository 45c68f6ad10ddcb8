"""The real `openai` package against a gateway, and a gateway as a provider of another."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionToolParam

from carnet.runtime.threads import MOST_AT_ONCE
from carnet.testing.wait import PATIENCE_SECONDS, until
from tests.support.federation import introduce, organisation
from tests.support.organisation import Organisation

PROVIDED = """
[agents.model]
kind = "openai"
url = "{url}/v1"
model = "words"
api_key = {{file = "var/model.key"}}
system = "Answer briefly."
price = "0.0001"
"""


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """A gateway whose agent `model` is served by another gateway, as by any provider."""
    folder = tmp_path_factory.mktemp("sdk")
    provider = organisation(folder / "provider", "provider.example")
    front = organisation(folder / "front", "front.example")
    front.configure(PROVIDED.format(url=provider.url))
    (front.folder / "var" / "model.key").write_text(provider.token)
    provider.start()
    front.start()
    yield front
    assert (front.stop(), provider.stop()) == (0, 0)


@pytest.fixture
def client(front: Organisation) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{front.url}/v1", api_key=front.token) as found:
        yield found


def test_the_client_gets_a_completion(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="echo", messages=[{"role": "user", "content": "hello"}]
    )
    assert answer.choices[0].message.content == "hello"
    assert answer.usage is not None
    assert answer.usage.model_extra is not None
    assert answer.usage.model_extra["currency"] == "credits"


def test_the_client_gets_a_stream_with_usage(client: openai.OpenAI) -> None:
    text, usage = "", None
    with client.chat.completions.create(
        model="words",
        messages=[{"role": "user", "content": "a b c"}],
        stream=True,
        stream_options={"include_usage": True},
    ) as chunks:
        for chunk in chunks:
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
            usage = chunk.usage or usage
    assert text == "a b c "
    assert usage is not None


def test_the_client_gets_usage_from_a_stream_that_did_not_ask_for_it(
    client: openai.OpenAI,
) -> None:
    with client.chat.completions.create(
        model="words", messages=[{"role": "user", "content": "a b c"}], stream=True
    ) as stream:
        chunks = list(stream)
    assert all(len(chunk.choices) == 1 for chunk in chunks)
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


def test_a_task_tells_the_usage_that_its_answer_would_have(front: Organisation) -> None:
    answered = front.chat("hi", "paid").json["usage"]
    assert answered["cost"] != "0"
    accepted = front.chat("hi", "paid", path="/tasks").json["taskId"]
    page = until(
        lambda: front.get(f"/tasks/{accepted}").json, lambda page: page["status"] == "done"
    )
    assert page["usage"] == answered
    assert front.json("tasks", "show", accepted)["usage"] == answered
    refused = front.chat("hi", "broken", path="/tasks").json["taskId"]
    page = until(
        lambda: front.get(f"/tasks/{refused}").json, lambda page: page["status"] == "failed"
    )
    assert page["usage"] == {**answered, "cost": "0", "run_cost": "0"}


def test_the_client_lists_the_agents(client: openai.OpenAI) -> None:
    assert "echo" in [model.id for model in client.models.list()]


def test_the_client_gets_one_agent_by_its_name(client: openai.OpenAI) -> None:
    assert client.models.retrieve("echo").id == "echo"
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("nobody")
    assert refused.value.code == "agent_not_found"


def test_the_client_repeats_a_request_by_its_key(client: openai.OpenAI) -> None:
    def ask(text: str) -> str:
        answer = client.chat.completions.create(
            model="paid",
            messages=[{"role": "user", "content": text}],
            extra_headers={"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"},
        )
        return answer.id

    assert ask("hello") == ask("hello")
    with pytest.raises(openai.UnprocessableEntityError):
        ask("something else")


def test_the_client_knows_what_its_requests_are_called(
    front: Organisation, client: openai.OpenAI
) -> None:
    asked = {"role": "user", "content": "hello"}
    answer = client.chat.completions.create(model="echo", messages=[asked])  # type: ignore[list-item]  # a plain dict
    assert answer._request_id is not None  # noqa: SLF001  its public name
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(model="nobody", messages=[asked])  # type: ignore[list-item]  # a plain dict
    assert refused.value.request_id not in {None, answer._request_id}  # noqa: SLF001  as above
    until(
        lambda: front.json("runs", "--correlation", str(answer._request_id))["runs"],  # noqa: SLF001
        lambda runs: len(runs) == 1,
    )


def test_the_client_does_not_repeat_what_is_refused_for_good(client: openai.OpenAI) -> None:
    with pytest.raises(openai.RateLimitError) as refused:
        client.chat.completions.create(
            model="echo",
            messages=[{"role": "user", "content": "hello"}],
            extra_headers={"x-tangle-forwarded-depth": "4"},
        )
    assert refused.value.code == "bridge_depth_exceeded"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(
            model="nobody", messages=[{"role": "user", "content": "hello"}]
        )
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="ck_wrong").models.list()


def test_a_provider_is_asked_like_a_model_and_priced_here(
    front: Organisation, client: openai.OpenAI
) -> None:
    run = "conv_provided"
    raw = client.chat.completions.with_raw_response.create(
        model="model",
        messages=[{"role": "user", "content": "one two"}],
        extra_headers={"x-tangle-runid": run, "x-tangle-forwarded-depth": "3"},
    )
    assert raw.headers["x-tangle-runid"] == run
    assert raw.parse().choices[0].message.content == "one two "
    (entry,) = front.json("ledger", "--run", run)["entries"]
    assert (entry["credit"], entry["amount"]) == ("agent:model", "0.0001")


def test_a_stream_passes_through_a_provider(client: openai.OpenAI) -> None:
    with client.chat.completions.create(
        model="model", messages=[{"role": "user", "content": "x y"}], stream=True
    ) as chunks:
        parts = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    assert [part for part in parts if part] == ["x ", "y "]


# ------------------------------------------------------------------ what an agent is given

GIVEN = """
import asyncio
import json
import threading
import time
from pathlib import Path

import carnet


def seen(visit):
    asked = visit.parameters
    return json.dumps({
        "on the loop": threading.current_thread() is threading.main_thread(),
        "said": [[message.role, message.text] for message in visit.messages],
        "images": [image.url for image in visit.images],
        "files": [[file.name, file.content] for file in visit.files],
        "tools": [[tool.name, tool.description, tool.parameters] for tool in visit.tools],
        "asked": {name: asked[name] for name in asked if name != "tools"},
    })


def calls(visit):
    for tool in visit.tools:
        yield carnet.ToolCall("call_" + tool.name, tool.name, json.dumps({"city": visit.text}))


WEATHER = carnet.Tool("weather", "How it is outside.", {"type": "object"})
HISTORY = [carnet.Message.user("before"), carnet.Message.assistant("yes?")]


async def asks(visit):
    peer = visit.peer("@seen@answering.example")
    said = carnet.Message.user(visit.text, carnet.Link("https://x.example/a.png", None, "image/*"))
    yield await peer.ask(
        [*HISTORY, said], system="Be brief.", tools=[WEATHER], temperature=0.5, seed=None
    )


async def passes(visit):
    async for event in visit.peer("@seen@answering.example")(visit.messages, **visit.parameters):
        yield event


async def dicts(visit):
    said = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}
    content = [{"type": "text", "text": visit.text}, said]
    yield await visit.peer("@seen@answering.example").ask(
        [{"role": "system", "content": "x"}, {"role": "user", "content": content}],
        response_format={"type": "json_object"}, extra_body={"top_a": 0.1},
    )


async def mistaken(visit):
    return await visit.peer("seen").ask("hi", temprature=1)


HERE = Path(__file__).parent


def stuck(visit):
    (HERE / f"stuck-{visit.carnet.turn}").touch()
    while not (HERE / "go").exists() and not visit.cancelled:
        time.sleep(0.02)
    return "free"


async def many(visit):
    asked = [visit.peer("stuck").ask("hi") for _ in range(int(visit.text))]
    return " ".join(await asyncio.gather(*asked))
"""
NAMES = ("seen", "calls", "asks", "passes", "dicts", "mistaken", "stuck", "many")
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "How it is outside.",
        "parameters": {"type": "object"},
    },
}


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """A gateway whose agents ask those of another."""
    folder = tmp_path_factory.mktemp("given")
    asking = organisation(folder / "asking", "asking.example")
    answering = organisation(folder / "answering", "answering.example")
    introduce(asking, answering)
    for gateway in (asking, answering):
        sections = [
            f'[agents.{name}]\nkind = "python"\ntarget = "given:{name}"\n' for name in NAMES
        ]
        gateway.configure("\n" + "\n".join(sections))
        (gateway.folder / "given.py").write_text(GIVEN)
        gateway.start()
    yield asking
    assert (asking.stop(), answering.stop()) == (0, 0)


@pytest.fixture
def given(asking: Organisation) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{asking.url}/v1", api_key=asking.token) as found:
        yield found


def content_of(answer: ChatCompletion) -> Any:
    return json.loads(answer.choices[0].message.content or "")


def test_a_python_agent_is_given_what_the_caller_sent(given: openai.OpenAI) -> None:
    answer = given.chat.completions.create(
        model="seen",
        messages=[
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "what is this?"},
                    {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
                    {"type": "file", "file": {"file_data": "AAAA", "filename": "a.pdf"}},
                ],
            },
        ],
        tools=[WEATHER],
        temperature=0.5,
        max_tokens=7,
        response_format={"type": "json_object"},
        extra_body={"top_a": 0.1},
    )
    assert content_of(answer) == {
        "on the loop": False,
        "said": [["system", "Be brief."], ["user", "what is this?"]],
        "images": ["https://x.example/a.png"],
        "files": [["a.pdf", "AAAA"]],
        "tools": [["weather", "How it is outside.", {"type": "object"}]],
        "asked": {
            "temperature": 0.5,
            "max_tokens": 7,
            "response_format": {"type": "json_object"},
            "extra_body": {"top_a": 0.1},
        },
    }


def test_a_parameter_that_an_agent_reads_and_is_not_one_is_the_callers_mistake(
    given: openai.OpenAI,
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        given.chat.completions.create(
            model="seen",
            messages=[{"role": "user", "content": "hi"}],
            extra_body={"temperature": "hot"},
        )
    assert "'temperature' must be a number" in refused.value.message


def test_a_python_agent_has_a_tool_called_that_it_was_offered(given: openai.OpenAI) -> None:
    answer = given.chat.completions.create(
        model="calls",
        messages=[{"role": "user", "content": "Rome"}],
        tools=[WEATHER, {**WEATHER, "function": {"name": "news"}}],
    )
    (choice,) = answer.choices
    assert choice.finish_reason == "tool_calls"
    calls = choice.message.tool_calls or []
    assert [(call.id, call.type) for call in calls] == [
        ("call_weather", "function"),
        ("call_news", "function"),
    ]
    with given.chat.completions.create(
        model="calls",
        messages=[{"role": "user", "content": "Rome"}],
        tools=[WEATHER],
        stream=True,
    ) as stream:
        chunks = [choice for chunk in stream for choice in chunk.choices]
    assert chunks[-1].finish_reason == "tool_calls"
    assert any(chunk.delta.tool_calls for chunk in chunks)


def test_what_an_agent_asks_with_arrives_at_its_peer(given: openai.OpenAI) -> None:
    answer = given.chat.completions.create(
        model="asks", messages=[{"role": "user", "content": "this?"}]
    )
    assert content_of(answer) == {
        "on the loop": False,
        "said": [
            ["system", "Be brief."],
            ["user", "before"],
            ["assistant", "yes?"],
            ["user", "this?"],
        ],
        "images": ["https://x.example/a.png"],
        "files": [],
        "tools": [["weather", "How it is outside.", {"type": "object"}]],
        "asked": {"temperature": 0.5},
    }


def test_an_agent_passes_on_what_it_was_asked_with(given: openai.OpenAI) -> None:
    answer = given.chat.completions.create(
        model="passes",
        messages=[{"role": "user", "content": "hi"}],
        tools=[WEATHER],
        temperature=0.25,
        extra_body={"top_a": 0.1},
    )
    found = content_of(answer)
    assert found["asked"] == {"temperature": 0.25, "extra_body": {"top_a": 0.1}}
    assert found["tools"] == [["weather", "How it is outside.", {"type": "object"}]]


def test_an_agent_asks_with_the_objects_of_the_interface(given: openai.OpenAI) -> None:
    answer = given.chat.completions.create(
        model="dicts", messages=[{"role": "user", "content": "hi"}]
    )
    found = content_of(answer)
    assert found["said"] == [["system", "x"], ["user", "hi"]]
    assert found["images"] == ["data:image/png;base64,AA"]
    asked = {"response_format": {"type": "json_object"}, "extra_body": {"top_a": 0.1}}
    assert found["asked"] == asked


def test_an_agent_that_misspells_a_parameter_fails_and_the_log_says_what_is_meant(
    asking: Organisation, given: openai.OpenAI
) -> None:
    with pytest.raises(openai.APIStatusError) as failed:
        given.with_options(max_retries=0).chat.completions.create(
            model="mistaken", messages=[{"role": "user", "content": "hi"}]
        )
    assert failed.value.code == "agent_failed"
    until(lambda: "did you mean 'temperature'?" in asking.log.read_text())


def test_an_agent_whose_functions_do_not_come_back_keeps_no_other_waiting(
    asking: Organisation, given: openai.OpenAI
) -> None:
    answers: list[str] = []

    def ask() -> None:
        answers.append(asking.chat(str(MOST_AT_ONCE + 1), "many").text)

    waiting = threading.Thread(target=ask)
    waiting.start()
    until(lambda: len(list(asking.folder.glob("stuck-*"))), lambda found: found == MOST_AT_ONCE)
    answer = given.chat.completions.create(
        model="seen", messages=[{"role": "user", "content": "hi"}]
    )
    assert content_of(answer)["said"] == [["user", "hi"]]
    assert answers == []
    (asking.folder / "go").touch()
    waiting.join(PATIENCE_SECONDS)
    assert answers == [" ".join(["free"] * (MOST_AT_ONCE + 1))]
