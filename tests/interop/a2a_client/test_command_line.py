"""`carnet call URL --dialect a2a` at the real server of the a2a-sdk."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.interop.a2a_client.scene import Scene, beside_gateway
from tests.interop.a2a_client.sdk_server import SERVED


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with beside_gateway(tmp_path_factory.mktemp("sdk")) as scene:
        yield scene


def called(scene: Scene, agent: str, *words: str) -> Any:
    url = f"{scene.url}/{agent}"
    return scene.gateway.carnet("call", url, "--dialect", "a2a", "--as", "sesame", *words)


@pytest.mark.parametrize("agent", sorted(SERVED))
def test_an_agent_is_called_by_the_url_of_its_card(scene: Scene, agent: str) -> None:
    assert called(scene, agent, "chunks a b").stdout == "ab\n"
    assert called(scene, agent, "chunks a b", "--stream").stdout == "ab\n"
    summed = called(scene, agent, "--skill", "sum", "a:=2", "b:=40", "--format", "json")
    assert json.loads(summed.stdout)["result"] == {"total": 42}
    card = f"{agent}/.well-known/agent-card.json"
    assert called(scene, card, "say hi").stdout == "you said hi\n"


def test_a_file_is_named(scene: Scene) -> None:
    ran = called(scene, "rpc", "files")
    assert ran.stdout == "see\n"
    assert "file b.bin" in ran.stderr
    assert "https://x.example/a.png" in ran.stderr
    page = json.loads(called(scene, "rpc", "files", "--format", "json").stdout)
    assert page["files"][0] == {"raw": "AAE=", "filename": "b.bin"}


def test_a_dry_run_shows_the_request_and_sends_nothing(scene: Scene) -> None:
    before = len(scene.asked())
    shown = called(scene, "plain-rpc", "hello there", "--dry-run").stdout
    assert shown.startswith(f"POST {scene.url}/plain-rpc\n")
    assert "a2a-version: 1.0" in shown
    assert "x-sesame: ***" in shown
    assert "sesame-secret" not in shown
    assert '"text": "hello there"' in shown
    rest = called(scene, "rest", "hello", "--dry-run", "--format", "json").stdout
    page = json.loads(rest)
    assert page["url"] == f"{scene.url}/rest/message:stream"
    assert page["body"]["message"]["parts"] == [{"text": "hello"}]
    assert len(scene.asked()) == before


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("rpc", "fail x"), 1, "failed"),
        (("rpc", "reject x"), 1, "refused"),
        (("rpc", "ask what"), 1, "Which what?"),
        (("rpc", "--skill", "fly"), 1, "skill"),
        (("nowhere", "hi"), 1, "no card"),
        (("rpc", "hi", "--task"), 2, "decides itself"),
    ],
)
def test_what_goes_wrong_has_an_exit_code_and_a_next_step(
    scene: Scene, words: tuple[str, ...], code: int, says: str
) -> None:
    agent, *rest = words
    url = f"{scene.url}/{agent}"
    ran = scene.gateway.try_carnet("call", url, "--dialect", "a2a", *rest)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert says in ran.stderr
    assert "slip-of" not in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_url_without_a_dialect_names_those_that_there_are(scene: Scene) -> None:
    ran = scene.gateway.try_carnet("call", scene.url, "hi")
    assert ran.returncode == 2
    assert "--dialect openai, samvad, a2a or agents_api" in ran.stderr


def test_who_waits_no_longer_has_the_task_cancelled(scene: Scene) -> None:
    url, text = f"{scene.url}/rpc", "wait for-nobody"
    ran = scene.gateway.try_carnet("call", url, "--dialect", "a2a", text, "--timeout", "0.5")
    assert ran.returncode == 3
    (asked,) = scene.asked(text=text)
    until(lambda: {"task": asked["task"]} in scene.noted("cancelled"))


def test_who_interrupts_the_command_has_the_task_cancelled(scene: Scene) -> None:
    url, text = f"{scene.url}/rest", "wait for-me"
    words = [sys.executable, "-u", "-m", "carnet", "call", url, "--dialect", "a2a", text]
    with subprocess.Popen([*words, "--stream"], stdout=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        assert process.stdout.read(5) == b"begun"  # the task is known
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    (asked,) = scene.asked(text=text)
    until(lambda: {"task": asked["task"]} in scene.noted("cancelled"))
