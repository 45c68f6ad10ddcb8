"""Models of other kinds behind a loop, with the official client of theirs as the judge.

What stands in for the provider is read by that client first: our fake is true as far as it is.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic.types import TextBlock, ToolUseBlock

from carnet.assembly.agents.models import build_model
from carnet.config import load
from carnet.core.messages.events import (
    Done,
    Failed,
    Message,
    Text,
    ToolCall,
    ToolResult,
    joined_text,
)
from carnet.core.messages.parameters import Tool
from carnet.ports.engine.model import ModelAsk
from carnet.runtime.egress.client import EgressClient
from carnet.testing.clock import FakeIds
from carnet.testing.wait import until
from carnet.wire.dialects.engine_chat import MESSAGES
from tests.engine.process import (
    KEY,
    TOOLS,
    EngineProcess,
    Scene,
    asking,
    events_of,
    tool_call,
    user,
)
from tests.engine.scene import Written
from tests.engine.test_endpoint_failures import LEAKED, LEAKS
from tests.support.model import CLOSED, Answer, Model, streamed
from tests.support.organisation import Organisation, shared_with_others
from tests.wire.dialects.anthropic import scene as provider

CONFIG = """
[models.claude]
kind = "anthropic"
url = "{url}/v1"
model = "claude-x"
api_key = {{env = "MODEL_KEY"}}
retries = 0
max_output = 1000
window = 4000

[models.brief]
kind = "anthropic"
url = "{url}/v1"
retries = 0
max_output = 1000
window = 8000
overflow = "summary"

[models.chain]
kind = "anthropic"
url = "{url}/v1"
retries = 0
fallbacks = ["other"]

[models.other]
url = "{url}/openai"
retries = 0

[engine]
listen = "http://127.0.0.1:0"
model = "{model}"
tools = ["tools:read_page"]
"""
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ASK = ModelAsk(
    messages=(
        Message.system("Be brief."),
        Message.user("Read it."),
        Message("assistant", ("",), tool_calls=(ToolCall("t1", "read_page", '{"name":"a"}'),)),
        Message("tool", ("100",), tool_call_id="t1"),
        Message.user("And?"),
    ),
    tools=(Tool("read_page", "Reads a page.", SCHEMA),),
    parameters={"tool_choice": "required", "stop": ["END"]},
)
USE = provider.tool_use("read_page", '{"name":', '"finances"}')


def client_of(model: Model) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=model.url, api_key=KEY, max_retries=0)


async def test_what_a_model_is_asked_is_what_the_official_client_would_send(
    tmp_path: Path,
) -> None:
    with Model().serving() as model:
        model.reply = lambda _: provider.streamed(provider.text("Hello"))
        text = (
            CONFIG.format(url=model.url, model="claude")
            .replace("{env", "{file")
            .replace("MODEL_KEY", "model.key")
        )
        (tmp_path / "carnet.toml").write_text(text)
        (tmp_path / "model.key").write_text(KEY)
        http, written = EgressClient(), Written()
        try:
            settings = load(tmp_path / "carnet.toml", {})
            asked = build_model(settings, "claude", http, FakeIds())
            assert await asked(ASK, written) == Done("stop")
        finally:
            await http.close()
        (ours,) = model.asked
        assert written.events == [Text("Hello")]
        body = {name: value for name, value in ours.body.items() if name != "stream"}
        with client_of(model) as client, client.messages.create(**body, stream=True) as stream:
            kinds = [event.type for event in stream]
        theirs = model.asked[-1]
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    assert ours.body == theirs.body
    assert (ours.path, ours.body["max_tokens"]) == (theirs.path, 1000)
    for name in ("anthropic-version", "content-type"):
        assert ours.headers[name] == theirs.headers[name], name
    # The client writes the key as a bearer; the header of its own is documented, and known to all.
    assert (ours.headers["x-api-key"], ours.headers["authorization"]) == (KEY, None)


ASKED: dict[str, Any] = {
    "model": "claude-x",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "Hi"}],
}


def test_what_stands_in_for_the_provider_is_read_by_its_official_client() -> None:
    blocks = (provider.text("I look", "."), provider.tool_use("a", '{"b":', "1}", index=1))
    with Model().serving() as model, client_of(model) as client:
        model.reply = lambda _: provider.streamed(*blocks, reason="tool_use")
        with client.messages.stream(**ASKED) as stream:
            message = stream.get_final_message()
        model.reply = lambda _: provider.answered({"type": "text", "text": "Well."})
        whole = client.messages.create(**ASKED)
    text, use = message.content
    assert isinstance(text, TextBlock)
    assert isinstance(use, ToolUseBlock)
    assert (text.text, use.name, use.input) == ("I look.", "a", {"b": 1})
    assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 15)
    assert whole.content[0].type == "text"


@pytest.mark.parametrize(
    ("status", "kind", "raised"),
    [
        (429, "rate_limit_error", anthropic.RateLimitError),
        (401, "authentication_error", anthropic.AuthenticationError),
        (529, "overloaded_error", anthropic.InternalServerError),
    ],
)
def test_a_refusal_of_what_stands_in_is_one_to_the_official_client(
    status: int, kind: str, raised: type[anthropic.APIStatusError]
) -> None:
    with Model().serving() as model, client_of(model) as client:
        model.reply = lambda _: provider.refused(status, kind)
        with pytest.raises(raised):
            client.messages.create(**ASKED)


# ------------------------------------------------------------------ behind a real engine


@pytest.fixture(scope="module", params=["claude"])
def made(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    with Model().serving() as model, shared_with_others():
        home = Organisation(tmp_path_factory.mktemp("models") / "acme", "acme.example")
        home.configure(CONFIG.format(url=model.url, model=request.param))
        (home.folder / "tools.py").write_text(TOOLS)
        engine = EngineProcess(home)
        engine.start(env={"MODEL_KEY": KEY})
        yield Scene(engine, model, home)
        assert engine.stop() == 0
        engine.close()
        home.close()


def test_a_loop_uses_tools_and_answers_over_anthropics_messages(made: Scene) -> None:
    made.replies(
        provider.streamed(
            provider.text("I look."), USE.replace(b'"index": 0', b'"index": 1'), reason="tool_use"
        ),
        provider.streamed(provider.text("It is ", "100.")),
    )
    events = made.engine.ask()
    assert [event for event in events if isinstance(event, Text)] == [
        *(Text("I look."), Text("It is "), Text("100."))
    ]
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert result == ToolResult("toolu_1", "ok", "Budget goal: 100")
    assert events[-1] == Done("stop")
    again = made.model.asked[-1].body["messages"]
    assert again[-1]["content"][0]["tool_use_id"] == again[-2]["content"][1]["id"] == "toolu_1"


def test_what_a_model_thought_goes_back_to_it_with_the_results_of_tools_and_is_not_shown(
    made: Scene,
) -> None:
    use = USE.replace(b'"index": 0', b'"index": 1')
    made.replies(
        provider.streamed(provider.thinking("Where is it?"), use, reason="tool_use"),
        provider.streamed(provider.text("It is 100.")),
    )
    reply = made.engine.post(asking())
    assert b"It is 100." in reply.body
    assert b"Where is it?" not in reply.body
    answer = made.model.asked[-1].body["messages"][1]["content"]
    assert answer == [
        {"type": "thinking", "thinking": "Where is it?", "signature": "EqQB"},
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "read_page",
            "input": {"name": "finances"},
        },
    ]


def test_what_no_longer_fits_is_left_out_and_the_end_says_so(made: Scene) -> None:
    made.replies(provider.streamed(provider.text("Well.")))
    old = [user("old " * 3000), {"role": "assistant", "content": "Yes."}]
    reply = made.engine.post(asking(*old, user("And now?")))
    assert b'"managed":true,"left_out":2}' in reply.body
    (asked,) = made.model.asked
    assert [turn["content"][0]["text"] for turn in asked.body["messages"]] == ["And now?"]
    assert b"context_window" not in made.engine.post(asking(user("And now?"))).body


def looked(id: str) -> list[dict[str, Any]]:
    """A call of the assistant, and its result."""
    call = {"id": id, "name": "read_page", "arguments": {"name": "finances"}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "100", "tool_call_id": id},
    ]


def test_after_something_was_left_out_every_result_stands_behind_its_call(made: Scene) -> None:
    made.replies(provider.streamed(provider.text("Well.")))
    old, last = [user("old " * 3000), *looked("a")], [user("And now?"), *looked("b")]
    made.engine.post(asking(*old, *last))
    (asked,) = made.model.asked
    blocks = [part for turn in asked.body["messages"] for part in turn["content"]]
    assert [(part["type"], part.get("id") or part.get("tool_use_id")) for part in blocks] == [
        *(("text", None), ("tool_use", "b"), ("tool_result", "b")),
    ]


def failures() -> Iterator[Answer]:
    """What such a provider may do wrong, with some text that nobody is to see."""
    statuses = (*(400, 401, 402, 403, 404, 405, 413, 422, 429), *(500, 502, 503, 504, 529))
    kinds = ("invalid_request_error", "api_error", "overloaded_error", "new_error")
    for number, status in enumerate(statuses):
        words = LEAKS[number % len(LEAKS)]
        yield provider.refused(status, kinds[number % len(kinds)], words)
        yield Answer(status, f"<html>{words}</html>".encode(), media_type="text/html")
    begun = provider.begin() + provider.text("So far")
    for kind in (*kinds, "rate_limit_error", "authentication_error"):
        error = json.dumps(provider.error(kind, LEAKS[1])).encode()
        for before in (b"", provider.begin(), begun):
            yield _stream(before + b"event: error\ndata: " + error + b"\n\n")
    for bad in (b"", b"data: ", b"data: not json\n\n", b"data: \xff\n\n", b": only a comment\n\n"):
        yield _stream(bad)
        yield _stream(begun + bad)
    yield from (Answer(body=body) for body in (b"", b"[]", b"{", b"\xff", b'{"type":"message"}'))
    yield CLOSED
    yield _stream(begun + b"data: " + b"x" * 300_000 + b"\n\n")
    yield _stream(begun + provider.STOP)


def _stream(data: bytes) -> Answer:
    return Answer(body=data, media_type=provider.SSE)


FAILURES = list(failures())


def test_of_sixty_failures_of_such_a_provider_nobody_sees_more_than_a_code(made: Scene) -> None:
    assert len(FAILURES) >= 60
    for number, answer in enumerate(FAILURES):
        made.replies(answer)
        reply = made.engine.post(asking())
        events = events_of(reply)
        end = events[-1]
        assert isinstance(end, Failed), (number, events)
        assert end.code in {"provider_error", "context_length_exceeded"}, (number, end)
        assert [event for event in events[:-1] if event != Text("So far")] == [], number
        assert [leak for leak in LEAKED if leak in reply.body] == [], number
        sentences = [f'"message":"{each}"'.encode() for each in MESSAGES.values()]
        assert any(sentence in reply.body for sentence in sentences), number


@pytest.mark.parametrize("made", ["chain"], indirect=True)
def test_where_one_provider_is_overloaded_another_answers_over_chat_completions(
    made: Scene,
) -> None:
    overloaded = provider.refused(529, "overloaded_error", LEAKS[0])
    made.model.asked.clear()
    made.model.reply = lambda asked: (
        streamed("From ", "the other.") if "/openai" in asked.path else overloaded
    )
    events = made.engine.ask()
    assert (joined_text(events), events[-1]) == ("From the other.", Done("stop"))
    assert [asked.path for asked in made.model.asked] == [
        *("/v1/messages", "/openai/chat/completions")
    ]
    log = until(made.engine.log.read_text, lambda text: "model failed, another one" in text)
    assert KEY not in log


@pytest.mark.parametrize("made", ["brief"], indirect=True)
def test_what_no_longer_fits_is_summed_up_by_the_model_where_the_configuration_says_so(
    made: Scene,
) -> None:
    made.replies(
        provider.streamed(provider.text("It is about trains.")),
        provider.streamed(provider.text("Well.")),
    )
    old = [user("old " * 3000), {"role": "assistant", "content": "Yes."}]
    events = events_of(made.engine.post(asking(*old, user("new " * 5000))))
    assert joined_text(events) == "Well."
    summing, asked = made.model.asked
    assert "user: old old" in summing.body["messages"][0]["content"][0]["text"]
    texts = [part["text"] for turn in asked.body["messages"] for part in turn["content"]]
    assert [text[:9] for text in texts] == ["[what was", "new new n"]
    assert "It is about trains." in texts[0]


# ------------------------------------------------------------------ agents of a gateway

AGENTS = """
[models.one]
url = "{url}/one"
window = 1000

[models.two]
url = "{url}/two"
kind = "anthropic"

[engine]
model = "one"
max_iterations = 3
tools = ["tools:read_page"]

[agents.first]
kind = "engine"
system_file = "prompt.md"

[agents.second]
kind = "engine"
model = "two"
max_iterations = 1
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Organisation, Model]]:
    with Model().serving() as model, shared_with_others():
        home = Organisation(tmp_path_factory.mktemp("agents"), "acme.example")
        home.configure(AGENTS.format(url=model.url))
        (home.folder / "tools.py").write_text(TOOLS)
        (home.folder / "prompt.md").write_text("You keep the notebook.\n")
        home.start()
        yield home, model
        assert home.stop() == 0


def test_every_agent_has_its_own_model_system_message_and_bounds(
    gateway: tuple[Organisation, Model],
) -> None:
    home, model = gateway
    token = home.new_token("asker", "--scope", "call:*", "--scope", "tool:*")
    model.reply = lambda asked: (
        provider.streamed(USE, reason="tool_use")
        if asked.path == "/two/messages"
        else tool_call("read_page", '{"name":"finances"}')
    )
    model.asked.clear()
    for agent in ("first", "second"):
        assert home.chat("Hi", agent, token=token).status == 200
    paths = [asked.path for asked in model.asked]
    assert paths == [*["/one/chat/completions"] * 3, "/two/messages"]
    system = model.asked[0].body["messages"][0]
    assert system == {"role": "system", "content": "You keep the notebook."}
    assert model.asked[-1].body["model"] == "two"


def test_that_a_window_fills_is_in_the_record_of_the_run(
    gateway: tuple[Organisation, Model],
) -> None:
    home, model = gateway
    model.reply = lambda _: streamed("Well.")
    token = home.new_token("reader", "--scope", "call:*", "--scope", "run:read")
    ids = [("x-tangle-runid", "run-window"), ("x-tangle-turnid", "t1")]
    assert home.chat("long " * 700, "first", token=token, headers=ids).text == "Well."
    events = home.get("/runs/run-window/events", token=token).body
    assert b"carnet.context_window" in events
