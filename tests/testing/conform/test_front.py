"""The kit for other people's fronts: one request is waited for, and judged."""

import asyncio
import json
from typing import Any

import pytest

from carnet.core.people.identity import Secret
from carnet.errors import UsageInvalid
from carnet.ports.world.http_client import Outbound
from carnet.runtime.egress.client import EgressClient
from carnet.testing.conform import Verdict
from carnet.testing.conform.front import judge_front

GOOD = {
    "messages": [{"role": "user", "content": "Hi"}],
    "metadata": {"correlation_id": "req_1"},
}


async def asked(body: Any = None, path: str = "/engine/chat", **headers: str) -> list[Verdict]:
    """What the kit says of a front that asks so."""
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    judging = asyncio.create_task(
        judge_front("http://127.0.0.1:0", seconds=60, on_listening=listening.set_result)
    )
    given = {"authorization": "Bearer tok-123", "content-type": "application/json"}
    fields = {name.replace("_", "-"): value for name, value in {**given, **headers}.items()}
    http = EgressClient()
    request = Outbound(
        url=await listening + path,
        body=json.dumps(GOOD if body is None else body).encode(),
        headers={name: value for name, value in fields.items() if value},
        secrets={"x-kept": Secret("x")},
    )
    async with http.send(request) as answer:
        assert answer.status == 200
        assert b"event: done" in await answer.read()
    await http.close()
    return await judging


def broken(verdicts: list[Verdict]) -> set[str]:
    return {each.check for each in verdicts if each.outcome == "broken"}


async def test_a_front_that_keeps_the_contract_passes() -> None:
    verdicts = await asked(x_correlation_id="req_1")
    assert {each.outcome for each in verdicts} == {"ok"}
    assert {each.check for each in await asked() if each.outcome == "unseen"} == {"correlation"}


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"path": "/chat"}, "asked"),
        ({"content_type": "text/plain"}, "media"),
        ({"authorization": ""}, "credential"),
        ({"x_api_key": "tok-123"}, "credential"),
        ({"x_actor_id": "owner"}, "identity"),
        ({"body": {**GOOD, "model": "m"}}, "form"),
        ({"body": {**GOOD, "messages": [{"role": "user", "content": "tok-123"}]}}, "secrets"),
        ({"x_correlation_id": "other"}, "correlation"),
    ],
)
async def test_one_that_breaks_a_sentence_is_told_by_its_check(
    changes: dict[str, Any], check: str
) -> None:
    assert broken(await asked(**changes)) == {check}


async def test_where_nobody_asks_that_is_told() -> None:
    where: list[str] = []
    verdicts = await judge_front("http://127.0.0.1:0", seconds=0.01, on_listening=where.append)
    assert broken(verdicts) == {"asked"}


async def test_it_listens_at_an_address_alone() -> None:
    for url in ("unix:x", "http://127.0.0.1", "https://127.0.0.1:1", "http://127.0.0.1:x"):
        with pytest.raises(UsageInvalid):
            await judge_front(url, seconds=1, on_listening=print)
