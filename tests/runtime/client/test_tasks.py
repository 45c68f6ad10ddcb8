"""Tasks of an agent elsewhere, as a program without a gateway begins, watches and cancels them."""

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import carnet
from carnet.errors import (
    PeerRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    TaskNotFound,
    UsageInvalid,
)
from carnet.runtime.client.key import ClientKey
from carnet.runtime.peers.samvad_tasks import MOST_FAILURES, SamvadTasks
from carnet.testing.wait import until_so
from carnet.wire.crypto import ed25519
from tests.runtime.peer import LONG, reply
from tests.runtime.peers.globex import refusal
from tests.runtime.peers.task_peer import TASK, UNKNOWN, Taskful, accepted, task_record

SOON = 0.01
KEY = ClientKey(b"k" * 32)


@asynccontextmanager
async def connected(peer: Taskful, path: str = "") -> AsyncIterator[carnet.Client]:
    async with peer, carnet.connect(f"http://127.0.0.1:{peer.port}{path}", key=KEY) as client:
        yield client


# ---------------------------------------------------------------------- beginning


async def test_a_task_is_begun_by_a_signed_request_of_the_mode_async() -> None:
    peer = Taskful(task_record("pending"))
    async with connected(peer, "/agents/critic") as client:
        task = await client.within(trace_id="r", span_id="s").task("add", {"a": 1}, b=2)
    (sent,) = peer.begun
    assert sent.lines[0] == "POST /agents/critic/agent/task HTTP/1.1"
    assert "signature" in sent.headers
    body = json.loads(sent.body)
    assert (body["mode"], body["skill"], body["payload"]) == ("async", "add", {"a": 1, "b": 2})
    assert (body["traceId"], body["spanId"]) == ("r", "s")
    assert "callbackUrl" not in body
    assert "delegationToken" not in body
    assert (task.id, task.webhook_secret, repr(task)) == (TASK, None, f"Task({TASK!r})")


async def test_a_callback_and_a_delegation_go_along_and_a_carnet_gives_its_secret() -> None:
    peer = Taskful(task_record("pending"), begins=accepted(carnet_webhook_secret="whsec_canary"))
    async with connected(peer) as client:
        task = await client.within(delegation="a.b.c").task(
            "add", callback="https://x.example/done"
        )
        await client.within(delegation="a.b.c").task("add", delegation="d.e.f")
    first, second = [json.loads(sent.body) for sent in peer.begun]
    assert (first["callbackUrl"], first["delegationToken"]) == ("https://x.example/done", "a.b.c")
    assert second["delegationToken"] == "d.e.f"
    assert task.webhook_secret is not None
    assert task.webhook_secret.reveal() == "whsec_canary"
    assert "canary" not in repr(task) + repr(task.webhook_secret)


async def test_a_delegation_of_the_client_goes_along_with_calls_too(tmp_path: Path) -> None:
    peer = Taskful(begins=accepted())
    async with peer:
        url = f"http://127.0.0.1:{peer.port}"
        async with carnet.connect(url, key=tmp_path / "k", delegation="a.b.c") as client:
            await client.task("add")
    assert json.loads(peer.begun[0].body)["delegationToken"] == "a.b.c"


async def test_a_task_that_is_refused_is_an_error_with_its_code() -> None:
    async with connected(Taskful(begins=refusal(400, "SCHEMA_INVALID"))) as client:
        with pytest.raises(PeerRefused) as refused:
            await client.task("add")
    assert refused.value.facts["peer_code"] == "SCHEMA_INVALID"


async def test_an_answer_that_names_no_task_is_a_fault_of_the_peer() -> None:
    async with connected(Taskful(begins=reply(b"{}", status=202))) as client:
        with pytest.raises(ProviderError):
            await client.task("add")


# ---------------------------------------------------------------------- how it goes


async def test_the_record_of_a_task_tells_how_it_goes() -> None:
    peer = Taskful(task_record("running", progress=0.5))
    async with connected(peer, "/agents/critic") as client:
        record = await client.task_of(TASK).status()
    assert (record.status, record.progress, record.result) == ("running", 0.5, None)
    (look,) = peer.looks
    assert look.lines[0] == f"GET /agents/critic/agent/task/{TASK} HTTP/1.1"
    assert "signature" not in look.headers


async def test_a_task_is_watched_until_its_end_and_told_when_something_changed() -> None:
    half = task_record("running", progress=0.5)
    peer = Taskful(
        task_record("pending"), half, half, half, task_record("completed", result={"n": 1})
    )
    async with connected(peer) as client:
        seen = [record async for record in client.task_of(TASK).watch(SOON)]
    assert [record.status for record in seen] == ["pending", "running", "done"]
    assert seen[-1].result == {"n": 1}
    assert len(peer.looks) == 5


async def test_the_result_comes_in_the_end_and_progress_before_it() -> None:
    peer = Taskful(
        task_record("pending"),
        task_record("running", progress=0.5),
        task_record("done", result={"n": 1}),
    )
    received: list[float | None] = []

    async def later(record: carnet.TaskRecord) -> None:
        received.append(record.progress)

    async with connected(peer) as client:
        task = await client.task("add")
        assert await task.result(on_progress=later, every=SOON) == {"n": 1}
        plain: list[carnet.TaskRecord] = []
        assert await task.result(on_progress=plain.append, every=SOON) == {"n": 1}
    assert received == [None, 0.5]
    assert plain == []  # it had ended


async def test_a_task_that_failed_raises_what_a_call_would() -> None:
    failed = task_record("failed", error={"code": "SCHEMA_INVALID", "message": "x"})
    async with connected(Taskful(failed)) as client:
        with pytest.raises(PeerRefused) as refused:
            await client.task_of(TASK).result()
    assert refused.value.facts["peer_code"] == "SCHEMA_INVALID"


async def test_who_waits_no_longer_is_told_that_the_task_goes_on() -> None:
    peer = Taskful(task_record("running"))
    async with connected(peer) as client:
        with pytest.raises(ProviderTimeout, match="goes on"):
            await client.task_of(TASK).result(timeout=0.05, every=SOON)
    assert peer.cancels == []


async def test_a_task_that_nobody_knows_is_not_found() -> None:
    async with connected(Taskful(UNKNOWN)) as client:
        with pytest.raises(TaskNotFound):
            await client.task_of(TASK).status()
        with pytest.raises(TaskNotFound):
            await client.task_of(TASK).result()


@pytest.mark.parametrize("task", ["", "..", "a b", "é"])
async def test_what_is_no_id_is_never_sent(task: str) -> None:
    async with connected(Taskful()) as client:
        with pytest.raises(UsageInvalid):
            client.task_of(task)


async def test_a_pause_of_nothing_is_refused() -> None:
    async with connected(Taskful(task_record("running"))) as client:
        with pytest.raises(UsageInvalid):
            await anext(client.task_of(TASK).watch(0))


# ---------------------------------------------------------------------- signed polling


async def test_who_is_asked_to_sign_signs_from_then_on() -> None:
    peer = Taskful(refusal(401, "AUTH_FAILED"), task_record("running"))
    async with connected(peer, "/agents/critic") as client:
        for _ in range(2):
            assert (await client.task_of(TASK).status()).status == "running"
    first, *signed = peer.looks
    assert "signature" not in first.headers
    assert len(signed) == 2
    for look in signed:
        line = look.headers["signature-input"].removeprefix("sig1=")
        base = f'"@method": GET\n"@path": /agent/task/{TASK}\n"content-digest": '
        base += f'{look.headers["content-digest"]}\n"@signature-params": {line}\n'
        assert ed25519.holds(KEY.public, base.encode(), _signature(look.headers["signature"]))


async def test_who_is_refused_though_it_signs_is_told_so() -> None:
    async with connected(Taskful(refusal(401, "AUTH_FAILED"))) as client:
        with pytest.raises(PeerRefused) as refused:
            await client.task_of(TASK).status()
    assert refused.value.facts["peer_code"] == "AUTH_FAILED"
    assert refused.value.facts["sender"] == client.sender


def _signature(header: str) -> bytes:
    return b64decode(header.removeprefix("sig1=:").removesuffix(":"))


# ---------------------------------------------------------------------- trouble on the way


async def test_a_gateway_that_is_away_for_a_moment_is_asked_again() -> None:
    away = refusal(503, "AGENT_UNAVAILABLE")
    broken = reply(b"x", status=500)
    peer = Taskful(away, broken, away, task_record("done", result={}))
    async with connected(peer) as client:
        assert await client.task_of(TASK).result(every=SOON) == {}
    assert len(peer.looks) == 4


async def test_a_gateway_that_stays_away_is_lost_and_never_told_as_a_task_that_never_left() -> None:
    async with Taskful() as peer:
        pass  # it was there
    async with carnet.connect(f"http://127.0.0.1:{peer.port}", key=KEY) as client:
        tasks = SamvadTasks(client._client, sleep=_no_sleep)  # noqa: SLF001
        with pytest.raises(ProviderUnavailable) as lost:
            await tasks.wait(TASK)
    assert lost.value.__cause__ is None
    assert "took on a task" in lost.value.detail


async def test_a_gateway_that_asks_for_time_is_given_it() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    busy = refusal(429, "RATE_LIMITED", {"retry-after": "7"})
    peer = Taskful(
        busy, task_record("running"), task_record("running"), task_record("done", result={})
    )
    async with connected(peer) as client:
        tasks = SamvadTasks(client._client, sleep=sleep)  # noqa: SLF001
        await tasks.wait(TASK, every=1.0)
    assert slept[0] == 7
    assert slept[1:] == [1.0, 1.3]  # a change begins anew, and then the pauses grow


async def test_a_gateway_that_is_busy_for_ever_is_lost_in_the_end() -> None:
    peer = Taskful(refusal(429, "RATE_LIMITED", {"retry-after": "1"}))
    async with connected(peer) as client:
        tasks = SamvadTasks(client._client, sleep=_no_sleep)  # noqa: SLF001
        with pytest.raises(ProviderUnavailable):
            await tasks.wait(TASK)
    assert len(peer.looks) == MOST_FAILURES + 1


async def _no_sleep(seconds: float) -> None:
    del seconds


# ---------------------------------------------------------------------- cancelling


async def test_a_task_of_a_carnet_is_cancelled_by_a_signed_request() -> None:
    peer = Taskful(task_record("running"), cancels=task_record("running"))
    async with connected(peer, "/agents/critic") as client:
        record = await client.task_of(TASK).cancel()
    assert record.status == "running"
    (sent,) = peer.cancels
    assert sent.lines[0] == f"POST /agents/critic/agent/task/{TASK}/cancel HTTP/1.1"
    assert sent.body == b""
    assert '"@path"' in sent.headers["signature-input"]


async def test_a_server_that_cannot_cancel_is_told_from_a_task_that_is_not_there() -> None:
    sdk = reply(b"Not Found", status=404, headers={"content-type": "text/plain"})
    async with connected(Taskful(cancels=sdk)) as client:
        with pytest.raises(UsageInvalid) as refused:
            await client.task_of(TASK).cancel()
    assert "cannot cancel" in refused.value.safe_text
    async with connected(Taskful(cancels=UNKNOWN)) as client:
        with pytest.raises(TaskNotFound):
            await client.task_of(TASK).cancel()


async def test_leaving_the_wait_leaves_the_task_alone() -> None:
    peer = Taskful(task_record("running"), is_carnet=True)
    async with connected(peer) as client:
        waiting = asyncio.ensure_future(client.task_of(TASK).result(every=SOON))
        await until_so(lambda: len(peer.looks) > 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(LONG):
                await waiting
    assert peer.cancels == []
