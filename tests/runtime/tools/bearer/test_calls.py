"""Agents that a loop elsewhere calls: what the gateway is sent, and what its answers mean."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from carnet.core.messages.events import Message
from carnet.core.people.identity import Secret
from carnet.errors import CarnetError, ProviderUnavailable, ToolUnusable
from carnet.ports.engine.calls import AgentAsk, CalleeWaits
from carnet.ports.engine.tools import ToolFailed
from carnet.ports.world.http_client import Outbound
from carnet.runtime.tools.bearer.calls import BearerCalls

ASK = AgentAsk(to="@clerk@globex.example", messages=(Message.user("Hi"),), call="ü 1", place=2)
DONE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}}]}


class Answer:
    """A whole answer."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self._body = body

    def header(self, name: str) -> str | None:
        raise AssertionError(name)

    async def read(self) -> bytes:
        return self._body

    async def next(self) -> bytes:
        raise AssertionError("it is read whole")

    def chunks(self) -> AsyncIterator[bytes]:
        raise AssertionError("it is read whole")


class Gateway:
    """Answers once."""

    def __init__(self, status: int, page: object) -> None:
        self._status = status
        self._page = page
        self.sent: list[Outbound] = []

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Answer]:
        self.sent.append(request)
        if isinstance(self._page, CarnetError):
            raise self._page
        body = self._page if isinstance(self._page, bytes) else json.dumps(self._page).encode()
        yield Answer(self._status, body)

    async def asked(self) -> str:
        return await BearerCalls(self, "http://127.0.0.1:8700", Secret("a.b.c")).ask_agent(ASK)


async def test_a_call_is_a_chat_completion_with_the_bearer_of_the_turn() -> None:
    gateway = Gateway(200, DONE)
    assert await gateway.asked() == "Yes."
    (sent,) = gateway.sent
    assert sent.url == "http://127.0.0.1:8700/v1/chat/completions"
    assert sent.secrets["authorization"].reveal() == "Bearer a.b.c"
    assert json.loads(sent.body) == {
        "model": "@clerk@globex.example",
        "messages": [{"role": "user", "content": "Hi"}],
        "metadata": {"tool_call_id": "ü 1"},
    }


async def test_a_callee_that_waits_makes_the_loop_wait() -> None:
    with pytest.raises(CalleeWaits):
        await Gateway(403, {"code": "approval_required", "message": "Wait."}).asked()


@pytest.mark.parametrize("status", [400, 403, 404, 429, 502, 503])
async def test_what_the_gateway_says_of_a_callee_is_for_the_model(status: int) -> None:
    with pytest.raises(ToolFailed, match="It could not"):
        await Gateway(status, {"code": "x", "message": "It could not."}).asked()


@pytest.mark.parametrize(
    ("status", "page"),
    [
        (401, {"code": "token_invalid", "message": "No."}),
        (421, {"code": "turn_elsewhere", "message": "Not here."}),
        (200, b"<html>"),
        (502, b""),
        (0, ProviderUnavailable("nobody there")),
    ],
)
async def test_where_nothing_can_be_called_the_answer_ends(status: int, page: Any) -> None:
    with pytest.raises(ToolUnusable):
        await Gateway(status, page).asked()


@pytest.mark.parametrize("page", [{}, {"choices": []}, {"choices": [{"message": None}]}])
async def test_a_page_without_an_answer_is_no_empty_answer(page: Any) -> None:
    with pytest.raises(CarnetError):
        await Gateway(200, page).asked()
