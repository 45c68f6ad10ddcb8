"""Tasks between two Carnets: signed polling, progress, cancel, and ends that are proved."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import carnet
from carnet.errors import Cancelled, TaskNotFound
from carnet.runtime.client.key import ClientKey, load_key
from carnet.testing.wait import until
from tests.support.federation import organisation
from tests.support.http import request
from tests.support.organisation import Organisation, environment

CLERK = """

import asyncio
import pathlib
from typing import Any

clerk = carnet.agent("clerk")


@clerk.skill("report", modes=["async"])
async def report(text: str) -> dict[str, Any]:
    return {"text": f"report of {text}"}


@clerk.skill("wait", modes=["async"])
async def wait(word: str, visit: carnet.Visit) -> dict[str, Any]:
    visit.progress(0.25, "reading")
    pathlib.Path(f"began-{word}").write_text("")
    try:
        while not pathlib.Path(f"go-{word}").exists():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        pathlib.Path(f"left-{word}").write_text("")
        raise
    return {"text": f"waited for {word}"}
"""

SOON = 0.05


class Scene(NamedTuple):
    """Acme and Globex list one another, Globex as one that speaks SAMVAD; and a person."""

    acme: Organisation
    globex: Organisation
    key: ClientKey


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("tasks")
    acme, globex = (organisation(folder / name, f"{name}.example") for name in ("acme", "globex"))
    key = load_key(folder / "client.key")
    config = globex.folder / "carnet.toml"
    signed = '[gateway]\ntask_polling = "signed"\n'
    config.write_text(config.read_text().replace("[gateway]\n", signed))
    globex.configure(
        '[agents.clerk]\ntarget = "agents:clerk"\ntrust = "public"\nprice = "0.0002"\n'
        '[agents.free]\ntarget = "agents:words"\ntrust = "public"\n'
        '[agents.idle]\ntarget = "agents:slow"\ntrust = "public"\n'
        f'[peers."acme.example"]\nurl = "{acme.url}"\ncredit = "10"\n',
        agents=(globex.folder / "agents.py").read_text() + CLERK,
    )
    acme.configure(
        f'[peers."globex.example"]\nurl = "{globex.url}"\ndialect = "samvad"\ncredit = "10"\n'
    )
    globex.carnet("peers", "add", f"agent://client-{key.kid}", "--key", key.public_text)
    acme.start()
    globex.start()
    yield Scene(acme, globex, key)
    assert (acme.stop(), globex.stop()) == (0, 0)


@pytest.fixture
async def agent(scene: Scene) -> AsyncIterator[carnet.Client]:
    """A program of the person's, connected to the agent that is free of charge."""
    async with carnet.connect(f"{scene.globex.url}/agents/free", key=scene.key) as client:
        yield client


def test_a_skill_that_is_only_to_be_had_as_a_task_is_bridged_and_its_cost_proved(
    scene: Scene,
) -> None:
    acme, globex, _ = scene
    wanted = {"skill": "report", "payload": {"text": "november"}}
    answer = acme.chat("x", "@clerk@globex.example", carnet=wanted)
    assert (answer.status, answer.text) == (200, "report of november")
    run = answer.headers["x-tangle-runid"]
    (turn,) = acme.get(f"/runs/{run}").json["turns"]
    (outbound,) = turn["legs"]
    assert (outbound["status"], outbound["cost"]) == ("done", "0.0002")
    assert outbound["receipt"]
    (theirs,) = globex.json("ledger", "--run", run)["entries"]
    (ours,) = acme.json("ledger", "--run", run)["entries"]
    assert theirs["amount"] == ours["amount"] == "0.0002"
    (task,) = globex.json("tasks", "list", "--agent", "clerk")["tasks"]
    assert (task["status"], task["sender"], task["run"]) == ("done", "agent://acme.example", run)


def test_who_leaves_a_call_that_is_a_task_elsewhere_has_it_cancelled(scene: Scene) -> None:
    acme, globex, _ = scene
    words = ["call", "@clerk@globex.example", "skill=wait", "word=leave"]
    with subprocess.Popen(  # noqa: S603  our own command
        [sys.executable, "-m", "carnet.cli.main", *words],
        cwd=acme.folder,
        env=environment(None),
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_for(globex.folder / "began-leave")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    wait_for(globex.folder / "left-leave")
    newest = globex.json("tasks", "list", "--limit", "1")["tasks"][0]
    assert newest["cancelled"] is not None


def wait_for(path: Path) -> None:
    until(path.exists)


async def test_a_task_of_a_person_is_polled_with_a_signature_where_that_is_asked_for(
    scene: Scene, agent: carnet.Client, tmp_path: Path
) -> None:
    task = await agent.task("chat", text="a b")
    assert await task.result(every=SOON) == {"text": "a b "}
    url = f"{scene.globex.url}/agents/free/agent/task/{task.id}"
    assert request("GET", url).status == 401
    async with carnet.connect(
        f"{scene.globex.url}/agents/free", key=tmp_path / "other", sender=agent.sender
    ) as other:
        with pytest.raises(TaskNotFound):
            await other.task_of(task.id).status()


async def test_a_task_of_a_carnet_tells_its_progress_and_is_cancelled(scene: Scene) -> None:
    """By somebody who signs as the organisation: the skill is not free."""
    acme = scene.acme
    there = ("--at", "@clerk@globex.example")
    words = ("call", "@clerk@globex.example", "skill=wait", "word=cancel", "--task", "--no-wait")
    task = acme.carnet(*words).stdout.strip()
    until(
        lambda: acme.json("tasks", "show", task, *there), lambda page: page["status"] == "running"
    )
    assert "was told to stop" in acme.carnet("tasks", "cancel", task, *there).stdout
    ended = acme.try_carnet("tasks", "wait", task, *there)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "cancelled" in ended.stderr
    wait_for(scene.globex.folder / "left-cancel")


async def test_the_end_of_a_cancelled_task_says_so(scene: Scene) -> None:
    async with carnet.connect(f"{scene.globex.url}/agents/idle", key=scene.key) as slow:
        task = await slow.task("chat", text="600")
        await task.cancel()
        with pytest.raises(Cancelled) as ended:
            await task.result(every=SOON)
    assert ended.value.facts["peer_code"] == "AGENT_UNAVAILABLE"
