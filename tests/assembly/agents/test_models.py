"""From `[models]` to what is asked: where, by which name, with which key, and who comes after."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from carnet.assembly.agents.models import LazyModels, build_model
from carnet.config import load
from carnet.core.messages.events import Done, Message, Text, ToolCall
from carnet.core.messages.parameters import Tool
from carnet.engine.schema.form import form_of
from carnet.errors import ModelKeyRefused
from carnet.ports.engine.model import LanguageModel, ModelAsk
from carnet.runtime.egress.client import EgressClient
from carnet.testing.clock import FakeIds
from tests.engine.scene import Written
from tests.support.model import CLOSED, Model, streamed

ASK = ModelAsk(messages=(Message.user("Hi"),), correlation="req_1")
CONFIG = """
[models.first]
url = "{first}/v1/"
model = "their-name"
retries = 0
fallbacks = ["second"]

[models.second]
url = "{second}/api"
api_key = {{file = "second.key"}}
retries = 0
"""


@asynccontextmanager
async def built(folder: Path, first: Model, second: Model) -> AsyncIterator[LanguageModel]:
    (folder / "carnet.toml").write_text(CONFIG.format(first=first.url, second=second.url))
    (folder / "second.key").write_text("sk-second-12345678")
    settings, http = load(folder / "carnet.toml", {}), EgressClient()
    try:
        yield build_model(settings, "first", http, FakeIds())
    finally:
        await http.close()


async def test_the_second_is_asked_by_its_own_name_and_key_where_the_first_is_gone(
    tmp_path: Path,
) -> None:
    written = Written()
    with Model().serving() as first, Model().serving() as second:
        first.reply, second.reply = lambda _: CLOSED, lambda _: streamed("Hello")
        async with built(tmp_path, first, second) as model:
            assert await model(ASK, written) == Done("stop")
    (left,), (asked,) = first.asked, second.asked
    assert (left.path, left.body["model"]) == ("/v1/chat/completions", "their-name")
    assert left.headers["authorization"] is None
    assert (asked.path, asked.body["model"]) == ("/api/chat/completions", "second")
    assert asked.headers["authorization"] == "Bearer sk-second-12345678"
    assert json.loads(json.dumps(asked.body["messages"])) == [{"role": "user", "content": "Hi"}]
    assert written.events == [Text("Hello")]


async def test_one_without_tool_calling_is_offered_tools_by_the_form_of_its_answer(
    tmp_path: Path,
) -> None:
    written, read = Written(), Tool("read_page", "Reads a page.")
    with Model().serving() as model:
        model.reply = lambda _: streamed('{"tool":"read_page",', '"arguments":{}}')
        small = f'[models.small]\nurl = "{model.url}"\ntool_calls = "schema"\n'
        (tmp_path / "carnet.toml").write_text(small)
        settings, http = load(tmp_path / "carnet.toml", {}), EgressClient()
        try:
            asked = build_model(settings, "small", http, FakeIds())
            assert await asked(replace(ASK, tools=(read,)), written) == Done("tool_calls")
        finally:
            await http.close()
    body = model.asked[0].body
    assert "tools" not in body
    assert body["response_format"]["json_schema"]["schema"] == form_of((read,))
    assert written.events == [ToolCall("", "read_page", "{}")]


async def test_agents_need_the_keys_of_the_models_that_they_ask_and_of_no_others(
    tmp_path: Path,
) -> None:
    text = CONFIG.format(first="http://127.0.0.1:1", second="http://127.0.0.1:1")
    (tmp_path / "carnet.toml").write_text(text.replace('fallbacks = ["second"]', ""))
    http = EgressClient()
    models = LazyModels(load(tmp_path / "carnet.toml", {}), http, FakeIds())
    try:
        assert ([*models], len(models), "third" in models) == (["first", "second"], 2, False)
        assert models["first"] is models["first"]
        with pytest.raises(ModelKeyRefused) as found:
            models["second"]
        with pytest.raises(KeyError):
            models["third"]
    finally:
        await http.close()
    assert "second.key" in str(found.value.detail)
    assert "second" not in found.value.safe_text
