"""A model that a loop asks: what leaves, what comes back, and what is asked again."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.messages.events import ECHO, Done, Extension, Message, Text, ToolCall, Usage
from carnet.core.messages.parameters import Tool
from carnet.core.people.identity import Secret
from carnet.errors import CarnetError
from carnet.ports.engine.model import ModelAsk
from carnet.ports.world.http_client import Bounds
from carnet.runtime.agents.chat_model import ChatModel
from carnet.runtime.agents.remote import RemoteEndpoint
from carnet.runtime.egress.client import EgressClient
from carnet.wire.dialects import anthropic
from carnet.wire.dialects.openai import MODEL
from tests.engine.scene import Written, call
from tests.runtime.agents.elsewhere import ANSWER, streamed
from tests.runtime.peer import Line, Peer, Script, answering, reply, stream_head
from tests.runtime.scene import END, FINISH, delta
from tests.support.model import Model
from tests.wire.dialects.anthropic import scene as provider

KEY = "sk-model-123456"
ASK = ModelAsk(messages=(Message.user("Hi"),), correlation="req_1")
ANSWERED = streamed(
    delta("Hel"),
    delta("lo"),
    FINISH,
    b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n',
    END,
)


class Asked:
    """A model, the server it leads to, and what was passed on."""

    def __init__(self, model: ChatModel, peer: Peer) -> None:
        self.model = model
        self.peer = peer
        self.written = Written()
        self.slept: list[float] = []

    async def __call__(self, ask: ModelAsk = ASK) -> Done:
        return await self.model(ask, self.written)

    async def failed(self) -> CarnetError:
        with pytest.raises(CarnetError) as found:
            await self()
        return found.value


@asynccontextmanager
async def asked(script: Script, *, retries: int = 2, **bounds: Any) -> AsyncIterator[Asked]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with Peer(script) as peer:
        http = EgressClient()
        endpoint = RemoteEndpoint(
            url=peer.url, model="gpt-x", token=Secret(KEY), bounds=Bounds(**bounds)
        )
        model = ChatModel(
            http, replace(endpoint, codec=MODEL), retries=retries, fraction=lambda: 0.0, sleep=sleep
        )
        found = Asked(model, peer)
        found.slept = slept
        try:
            yield found
        finally:
            await http.close()


async def test_a_model_is_asked_for_a_stream_with_all_that_was_said_and_its_tools() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    messages = (
        Message.system("Be brief."),
        Message.user("Hi"),
        Message("assistant", ("",), tool_calls=(call("c1", "read", '{"path":"/a"}'),)),
        Message("tool", ("text",), tool_call_id="c1"),
    )
    async with asked(answering(ANSWERED)) as model:
        await model(ModelAsk(messages=messages, tools=(Tool("read", "Reads.", schema),)))
        (request,) = model.peer.requests
    body = json.loads(request.body)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert (body["model"], body["stream"]) == ("gpt-x", True)
    assert body["stream_options"] == {"include_usage": True}
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "read", "description": "Reads.", "parameters": schema},
        }
    ]
    assert body["messages"][2]["tool_calls"][0]["function"] == {
        "name": "read",
        "arguments": '{"path":"/a"}',
    }
    assert body["messages"][3] == {"role": "tool", "content": "text", "tool_call_id": "c1"}


async def test_how_it_is_to_answer_goes_along_and_a_schema_is_the_form_of_its_answer() -> None:
    schema = {"type": "object", "properties": {"tool": {"enum": ["read"]}}, "required": ["tool"]}
    parameters = {"temperature": 0.2, "tool_choice": "none", "parallel_tool_calls": False}
    async with asked(answering(ANSWERED)) as model:
        await model(replace(ASK, schema=schema, parameters=parameters))
        (request,) = model.peer.requests
    body = json.loads(request.body)
    assert {name: body[name] for name in parameters} == parameters
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema},
    }


async def test_what_it_says_is_passed_on_and_what_it_used_is_told() -> None:
    async with asked(answering(ANSWERED)) as model:
        assert await model() == Done("stop")
    assert model.written.events == [Text("Hel"), Text("lo")]
    assert model.written.used == [Usage(3, 2)]
    assert b'"tools"' not in model.peer.requests[0].body


async def test_tool_calls_come_when_they_are_whole() -> None:
    parts: list[dict[str, Any]] = [
        {"index": 0, "id": "c1", "function": {"name": "read", "arguments": '{"pa'}},
        {"index": 0, "function": {"arguments": 'th":"/a"}'}},
    ]
    frames = [
        b"data: "
        + json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]}).encode()
        + b"\n\n"
        for part in parts
    ]
    last = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
    async with asked(answering(streamed(*frames, last, END))) as model:
        assert await model() == Done("tool_calls")
    assert model.written.events == [ToolCall("c1", "read", '{"path":"/a"}')]


async def test_one_that_answers_whole_is_taken_at_its_word() -> None:
    async with asked(answering(ANSWER)) as model:
        assert await model() == Done("stop")
    assert model.written.events == [Text("well")]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_it_is_asked_again_while_nothing_was_seen(status: int) -> None:
    async with asked(answering(reply(b"{}", status=status), ANSWERED)) as model:
        assert await model() == Done("stop")
    assert len(model.peer.requests) == 2
    assert model.slept == [0.25]


async def test_it_is_asked_as_often_as_is_allowed_and_no_sooner_than_it_wants() -> None:
    busy = reply(
        b"{}", status=503, headers={"content-type": "application/json", "retry-after": "7"}
    )
    async with asked(answering(busy)) as model:
        failure = await model.failed()
    # Not told as the refusal of another organisation's gateway.
    assert failure.code == "provider_unavailable"
    assert model.slept == [7, 7]


async def test_what_was_seen_is_not_asked_for_again() -> None:
    async def broken(line: Line) -> None:
        await line.request()
        await line.say(stream_head() + b"%x\r\n%b\r\n" % (len(delta("Hel")), delta("Hel")))
        line.reset()

    async with asked(broken) as model:
        await model.failed()
    assert model.written.events == [Text("Hel")]
    assert len(model.peer.requests) == 1


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (400, "maximum context length is 8192 tokens", "context_length_exceeded"),
        (400, "unknown parameter", "model_refused"),
        (401, "Incorrect API key provided: sk-model-123456", "model_key_refused"),
        (404, "no such model", "model_not_found"),
    ],
)
async def test_a_refusal_keeps_its_meaning_and_says_no_key(
    status: int, words: str, code: str
) -> None:
    error = {"error": {"message": words, "code": None}}
    async with asked(answering(reply(json.dumps(error).encode(), status=status))) as model:
        failure = await model.failed()
    assert failure.code == code
    assert KEY not in str(failure) + str(failure.words) + failure.safe_text
    assert len(model.peer.requests) == 1


async def test_without_retries_it_is_asked_once() -> None:
    async with asked(answering(reply(b"{}", status=503)), retries=0) as model:
        await model.failed()
    assert len(model.peer.requests) == 1


async def test_one_that_hangs_is_given_up_within_its_bounds() -> None:
    async def silent(line: Line) -> None:
        await line.request()
        await line.until_gone()

    async with asked(silent, retries=0, first_byte_seconds=0.1) as model:
        assert (await model.failed()).code == "provider_timeout"


async def test_what_a_model_wants_back_it_is_given_and_no_other_one_is() -> None:
    use = provider.tool_use("read", "{}", id="c1", index=1)
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
    with Model().serving() as server:
        server.reply = lambda _: provider.streamed(provider.thinking("Hm."), use, reason="tool_use")
        http, written = EgressClient(), Written()
        one, other = [
            ChatModel(
                http,
                RemoteEndpoint(url=server.url, model=name, codec=anthropic.MODEL),
                retries=0,
                fraction=lambda: 0.0,
            )
            for name in ("one", "other")
        ]
        try:
            await one(ASK, written)
            (kept,) = [event for event in written.events if isinstance(event, Extension)]
            tools = (ToolCall("c1", "read", "{}"),)
            answer = Message("assistant", ("",), tool_calls=tools, metadata={ECHO: kept.payload})
            again = replace(ASK, messages=(*ASK.messages, answer))
            await one(again, written)
            await other(again, written)
            forged = replace(answer, metadata={ECHO: [thought]})
            await one(replace(ASK, messages=(*ASK.messages, forged)), written)
        finally:
            await http.close()
    called = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
    answers = [asked.body["messages"][1]["content"] for asked in server.asked[1:]]
    assert answers == [[thought, called], [called], [called]]


@pytest.mark.parametrize(
    ("parameters", "left", "expected"),
    [
        ({}, 700, {"max_tokens": 700}),
        ({"max_tokens": 50}, 700, {"max_tokens": 50}),
        ({"max_completion_tokens": 900}, 700, {"max_completion_tokens": 700}),
        ({"max_tokens": None}, 700, {"max_tokens": 700}),
        ({"max_tokens": 900}, None, {"max_tokens": 900}),
        ({}, None, {}),
    ],
)
async def test_it_is_told_to_say_no_more_than_who_pays_has_left(
    parameters: dict[str, Any], left: int | None, expected: dict[str, int]
) -> None:
    async with asked(answering(ANSWERED)) as model:
        await model(replace(ASK, parameters=parameters, most_tokens=left))
        (request,) = model.peer.requests
    body = json.loads(request.body)
    lengths = {name: body[name] for name in body if name.endswith("_tokens")}
    assert lengths == expected
