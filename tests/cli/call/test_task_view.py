"""The options of `carnet call` that make a task or a delegated call, without a gateway."""

import io
import json
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import carnet
from carnet.cli.call import task_view
from carnet.cli.call.task_view import TaskStatus
from carnet.errors import ProviderUnavailable
from carnet.runtime.client.key import ClientKey
from carnet.runtime.peers.samvad_tasks import MOST_FAILURES, SamvadTasks
from tests.cli.conftest import Cli
from tests.runtime.peers.globex import card, refusal
from tests.runtime.peers.task_peer import TASK, Taskful, task_record
from tests.support.signing.delegations import ours
from tests.support.signing.signed import Sender, now

JSON = ("--dry-run", "--format", "json")
KEY = ClientKey(b"k" * 32)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("echo", "x", "--task", "--stream"), "no stream"),
        (("echo", "x", "--no-wait"), "Add --task"),
        (("http://127.0.0.1:9", "x", "--dialect", "openai", "--task"), "neither tasks nor"),
        (
            ("http://127.0.0.1:9", "x", "--dialect", "openai", "--delegate", "t"),
            "neither tasks nor",
        ),
        (("echo", "x", "--delegate", "t"), "signed, to an agent elsewhere"),
        (("@echo@acme.example", "x", "--delegate", "t"), "signed, to an agent elsewhere"),
        (("agent://acme.example", "x", "--delegate", "t"), "signed, to an agent elsewhere"),
        (("echo", "x", "--task", "--key", "k"), "--key is for"),
    ],
)
def test_options_that_make_no_sense_together_are_bad_usage(
    cli: Cli, words: tuple[str, ...], message: str
) -> None:
    ran = cli("call", *words)
    assert (ran.code, message in ran.err) == (2, True)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("address", ["echo", "@echo@acme.example", "agent://echo.acme.example"])
def test_a_task_for_an_agent_of_ours_goes_to_our_gateway(cli: Cli, port: int, address: str) -> None:
    page = cli("call", address, "hi", "--callback", "https://x.example/done", *JSON).page
    assert page["url"].endswith(f":{port}/tasks")
    assert page["headers"]["authorization"] == "Bearer ***"
    assert (page["body"]["model"], page["body"]["callback"]) == (address, "https://x.example/done")


class Shown(BaseHTTPRequestHandler):
    """It shows a card and nothing else."""

    def do_GET(self) -> None:
        page = card(identity="agent://b.example") if self.path.endswith("/agent.json") else b""
        self.send_response(200 if page else 404)
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def peer(home: Path, cli: Cli) -> Iterator[str]:
    """The address of a SAMVAD peer of ours."""
    del home
    with ThreadingHTTPServer(("127.0.0.1", 0), Shown) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        cli("peers", "add", "b.example", "--url", url, "--dialect", "samvad")
        yield url
        server.shutdown()


@pytest.mark.parametrize(
    ("address", "path"),
    [("agent://b.example", ""), ("@clerk@b.example", "/agents/clerk")],
)
def test_a_task_for_an_agent_elsewhere_goes_there_signed(
    cli: Cli, peer: str, address: str, path: str
) -> None:
    page = cli("call", address, "skill=add", "a:=1", "--callback", "https://x.example/", *JSON).page
    assert page["url"] == f"{peer}{path}/agent/task"
    assert "signature" in page["headers"]
    body = page["body"]
    assert (body["mode"], body["callbackUrl"]) == ("async", "https://x.example/")
    assert body["from"] == "agent://acme.example"


OWN = ("tokens", "delegate", "agent://acme.example", "--scope", "add")
CALL = ("call", "agent://b.example", "skill=add", "a:=1", "--delegate")


def test_a_delegation_goes_along_and_is_not_shown(
    cli: Cli, peer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = cli(*OWN, "--for", "agent://b.example").out.strip()
    (tmp_path / "token").write_text(f"{token}\n")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{token}\n"))
    for given in (token, "token", "@token", "-"):
        ran = cli(*CALL, given, *JSON)
        assert ran.page["url"] == f"{peer}/agent/message"
        assert ran.page["body"]["delegationToken"] == "***"
        assert json.loads(ran.page["raw"])["delegationToken"] == "***"
        assert token not in ran.out + ran.err


@pytest.mark.usefixtures("peer")
def test_a_delegation_that_is_not_there_is_bad_usage(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    for given in ("-", "@nowhere", "nowhere"):
        assert cli(*CALL, given, "--dry-run").code == 2
    assert "there is no file of that name" in cli(*CALL, "nowhere", "--dry-run").err


@pytest.mark.usefixtures("peer")
def test_a_delegation_that_anybody_would_refuse_is_not_sent(cli: Cli) -> None:
    us = "agent://acme.example"
    alice = Sender("agent://client-alice")
    expired = ours(alice, us, "agent://b.example", exp=int(now()) - 1, iat=int(now()) - 60)
    for token, why in (
        (expired, "Link 1 of the delegation does not hold: it has expired."),
        (
            ours(alice, "agent://client-bob", us),
            f"is for agent://client-bob, and this call is signed by {us}",
        ),
        ("head.canary.tail", "does not hold: it "),
    ):
        ran = cli(*CALL, token)  # nothing answers there: it was not asked
        assert (ran.code, why in ran.err) == (1, True), ran.err
        assert cli(*CALL, token, "--format", "json").error["code"] == "delegation_invalid"
    assert "--key FILE" in cli(*CALL, ours(alice, "agent://client-bob", us)).err


# ------------------------------------------------------------------ waiting


async def test_an_agent_elsewhere_that_does_not_answer_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_view, "FIRST_SECONDS", 0.001)
    away = [refusal(503, "AGENT_UNAVAILABLE")] * (MOST_FAILURES + 1)
    silences: list[int] = []

    async def seen(peer: Taskful, *, is_known: bool) -> list[str]:
        async with peer, carnet.connect(f"http://127.0.0.1:{peer.port}", key=KEY) as client:
            tasks = SamvadTasks(client._client)  # noqa: SLF001  as the command line has it
            silence = partial(silences.append, 1)
            states = task_view.seen_there(tasks, TASK, silence, is_known=is_known)
            return [state.status async for state in states]

    done = task_record("done", result={"n": 1})
    assert await seen(Taskful(task_record("running"), *away, *away, done), is_known=False) == [
        "running",
        "done",
    ]
    assert await seen(Taskful(*away, done), is_known=True) == ["done"]
    assert len(silences) == 3
    with pytest.raises(ProviderUnavailable):  # whoever never answered may not be there at all
        await seen(Taskful(*away, done), is_known=False)


def test_what_an_agent_notes_does_not_steer_the_terminal() -> None:
    """In a list as in the line that is written over, wherever the result goes."""
    seen = TaskStatus(status="running", progress=0.5, note="half\n\x1b[2J\x9bdone\r\u202e")
    assert seen.text == "running 50%  half\ufffd\ufffd[2J\ufffddone\ufffd\ufffd"
