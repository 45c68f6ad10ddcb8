"""Tasks at the real server of the samvad package: by our client, our gateway and our commands."""

import json
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from samvad.server import _run_task
from samvad.task_store import TaskStore

import carnet
from carnet.errors import (
    ProviderError,
    ProviderTimeout,
    SignatureMissing,
    TaskNotFound,
    UsageInvalid,
)
from carnet.runtime.webhooks.payload import verify_webhook
from tests.interop.samvad.sdk_scene import Scene, beside_gateway
from tests.interop.samvad.sdk_task_server import built

SERVER = Path(__file__).with_name("sdk_task_server.py")
SOON = 0.02


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with beside_gateway(SERVER, tmp_path_factory.mktemp("sdk")) as scene:
        yield scene


@pytest.fixture
async def agent(scene: Scene) -> AsyncIterator[carnet.Client]:
    """Our client, connected to the server."""
    async with carnet.connect(scene.url, key=scene.key) as client:
        yield client


def let_go(scene: Scene, word: str) -> None:
    """Let the task `wait` of this word end."""
    (scene.gateway.folder.parent / "keys" / f"go-{word}").write_text("")


# ---------------------------------------------------------------------- our client


async def test_a_task_at_the_real_server_gives_its_result(agent: carnet.Client) -> None:
    task = await agent.within(trace_id="trace-1").task("add", a=2, b=3)
    result = await task.result(every=SOON)
    assert result == {"total": 5, "sender": agent.sender, "trace": "trace-1"}
    record = await agent.task_of(task.id).status()
    assert (record.status, record.result) == ("done", result)


async def test_a_task_at_the_real_server_is_watched_to_its_end(
    scene: Scene, agent: carnet.Client
) -> None:
    task = await agent.task("wait", text="watch")
    seen = []
    async for record in task.watch(SOON):
        seen.append(record.status)
        if record.status == "running":
            assert record.progress == 0
            let_go(scene, "watch")
    assert seen[-2:] == ["running", "done"]
    assert (await task.status()).result == {"text": "waited for watch"}


async def test_who_does_not_wait_comes_back_to_the_task(scene: Scene, agent: carnet.Client) -> None:
    task = await agent.task("wait", text="later")
    with pytest.raises(ProviderTimeout, match="goes on"):
        await task.result(timeout=0.1, every=SOON)
    let_go(scene, "later")
    again = agent.task_of(task.id)
    assert await again.result(every=SOON) == {"text": "waited for later"}


async def test_a_task_that_fails_at_the_real_server_is_an_error_with_its_code(
    agent: carnet.Client,
) -> None:
    task = await agent.task("fail", text="hi")
    with pytest.raises(ProviderError) as failed:
        await task.result(every=SOON)
    assert failed.value.facts["peer_code"] == "AGENT_UNAVAILABLE"
    assert "slip-of" not in str(failed.value) + failed.value.safe_text
    unfit = await agent.task("add", a="x")  # it is accepted first, and fails later
    with pytest.raises(carnet.CarnetError) as refused:
        await unfit.result(every=SOON)
    assert refused.value.facts["peer_code"] == "SCHEMA_INVALID"


async def test_what_the_real_server_cannot_do_is_told(agent: carnet.Client) -> None:
    task = await agent.task("add", a=2, b=3)
    with pytest.raises(UsageInvalid) as refused:
        await task.cancel()
    assert "cannot cancel" in refused.value.safe_text
    with pytest.raises(TaskNotFound):
        await agent.task_of("7b0c6a4e-52a7-4f3a-9a53-31a3d4f1f6a0").status()
    with pytest.raises(carnet.CarnetError) as forbidden:
        await agent.task("add", a=2, b=3, callback="https://127.0.0.1/x")
    assert forbidden.value.facts["peer_code"] == "SCHEMA_INVALID"


async def test_the_webhook_of_the_real_server_is_not_believed(tmp_path: Path) -> None:
    """It is sent unsigned, whatever the text of the protocol says."""
    received: list[tuple[dict[str, str], bytes]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append((dict(self.headers), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    store = TaskStore()
    task = store.create_task()
    envelope = {
        "from": "agent://a.example",
        "to": "agent://b.example",
        "skill": "chat",
        "mode": "async",
        "nonce": "n" * 8,
        "timestamp": "2026-11-15T19:30:00Z",
        "traceId": "t",
        "spanId": "s",
        "payload": {"text": "hi"},
    }
    registry = built(1, str(tmp_path))._registry  # noqa: SLF001
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/done"
        await _run_task(task.task_id, envelope, "span", registry, store, url)
        server.shutdown()
    ((headers, body),) = received
    assert json.loads(body)["result"] == {"text": "you said hi"}
    with pytest.raises(SignatureMissing):
        verify_webhook(headers, body, secret="whsec_c2VjcmV0")


# ---------------------------------------------------------------------- through a gateway


@pytest.mark.parametrize("model", ["sdk", "agent://globex.example"])
def test_chat_is_bridged_to_a_skill_that_is_only_to_be_had_as_a_task(
    scene: Scene, model: str
) -> None:
    answer = scene.gateway.chat("hello", model)
    assert (answer.status, answer.text) == (200, "you said hello")
    run = answer.headers["x-tangle-runid"]
    (turn,) = scene.gateway.get(f"/runs/{run}").json["turns"]
    (outbound,) = turn["legs"]
    assert (outbound["status"], outbound["depth"]) == ("done", 1)


def test_a_task_that_fails_reaches_the_caller_of_the_gateway(scene: Scene) -> None:
    answer = scene.gateway.chat("x", "sdk", carnet={"skill": "fail", "payload": {"text": "x"}})
    assert (answer.status, answer.code) == (502, "provider_error")
    assert b"slip-of" not in answer.body + scene.gateway.written()


# ---------------------------------------------------------------------- at the command line


def test_the_command_line_waits_for_a_task_elsewhere(scene: Scene) -> None:
    words = ["call", "agent://globex.example", "skill=add", "a:=2", "b:=3", "--task"]
    ran = scene.gateway.carnet(*words)
    output = json.loads(ran.stdout)
    assert (output["total"], output["sender"]) == (5, "agent://acme.example")
    assert "task " in ran.stderr
    key = str(scene.gateway.folder.parent / "client.key")
    by_url = scene.gateway.carnet(
        "call", scene.url, "--dialect", "samvad", "hello", "--task", "--key", key
    )
    assert by_url.stdout == "you said hello\n"


def test_the_command_line_comes_back_to_a_task_elsewhere(scene: Scene) -> None:
    carnet_ = scene.gateway.carnet
    words = ["call", "agent://globex.example", "skill=wait", "text=cli", "--task", "--no-wait"]
    ran = carnet_(*words)
    task = ran.stdout.strip()
    there = [task, "--at", "agent://globex.example"]
    assert f"carnet tasks show {task} --at agent://globex.example" in ran.stderr
    assert scene.gateway.json("tasks", "show", *there)["status"] in {"pending", "running"}
    late = scene.gateway.try_carnet("tasks", "wait", *there, "--timeout", "0.2")
    assert (late.returncode, "The task goes on" in late.stderr) == (3, True)
    refused = scene.gateway.try_carnet("tasks", "cancel", *there)
    assert (refused.returncode, "cannot cancel" in refused.stderr) == (2, True)
    let_go(scene, "cli")
    assert carnet_("tasks", "wait", *there).stdout == "waited for cli\n"


def test_the_command_line_tells_why_a_task_elsewhere_failed(scene: Scene) -> None:
    words = ["call", "agent://globex.example", "skill=add", "a=x", "--task"]
    ran = scene.gateway.try_carnet(*words)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "SCHEMA_INVALID" in ran.stderr
