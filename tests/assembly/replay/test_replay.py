"""Runs whose agents had called several at once or had others converse, run again."""

import json
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.organisation import Organisation, shared_with_others

AGENTS = """
import asyncio
import atexit
import contextlib
import socket

import carnet

TAKEN = asyncio.Event()


async def quick(visit):
    return f"quick ({visit.text})"


async def gated(visit):
    await TAKEN.wait()
    return "gated"


async def never(visit):
    yield "once "
    await asyncio.Event().wait()


async def failing(visit):
    raise ValueError("oh")


async def mixed(visit):
    async with visit.fan_out(["gated", "quick"], visit.text) as fan:
        async for answer in fan:
            yield answer.text + " "
            TAKEN.set()


async def enough(visit):
    answers = await visit.fan_out(["never", "quick", "failing"], visit.text, first=1)
    return ", ".join(f"{answer.to} {answer.state}" for answer in answers)


async def impatient(visit):
    async for event in visit.peer("never")(visit.text):
        return event.text


async def aside(visit):
    return f"aside after {len(visit.messages)}"


async def chair(visit):
    result = await visit.conversation(["quick", aside], seed=visit.text, max_turns=4)
    return " / ".join(turn.text for turn in result.transcript)


async def lingering(visit):
    def leave():
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", int(visit.text)), timeout=30).close()

    atexit.register(leave)
    return "Bye."


async def other(visit):
    return f"other ({visit.text})"
"""

NAMES = (
    *("quick", "gated", "never", "failing", "mixed", "enough", "impatient", "chair", "lingering"),
    "other",
)
SECTIONS = (
    "".join(f'[agents.{name}]\nkind = "python"\ntarget = "people:{name}"\n' for name in NAMES)
    + """
[agents.halts]
kind = "conversation"
participants = ["quick", "failing"]
max_turns = 4
"""
)
FAILS = {"halts"}


class Kept(NamedTuple):
    """A gateway, and the runs that it has, by the agent asked."""

    home: Organisation
    runs: dict[str, str]

    def replay(self, agent: str, *words: str) -> tuple[int, list[dict[str, Any]], str]:
        done = self.home.try_carnet("run", "replay", self.runs[agent], "--format", "json", *words)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)["turns"], done.stderr


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    """Somebody who would hear of it if a replay called out."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        yield listening


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, listener: socket.socket) -> Iterator[Kept]:
    with shared_with_others():
        home = Organisation(tmp_path_factory.mktemp("replay"), "acme.example")
        home.configure(SECTIONS)
        (home.folder / "people.py").write_text(AGENTS)
        home.start()
        runs: dict[str, str] = {}
        for agent in ("mixed", "enough", "impatient", "chair", "halts", "lingering"):
            text = str(listener.getsockname()[1]) if agent == "lingering" else "hi"
            reply = home.chat(text, agent, stream=agent == "impatient")  # else it is given all
            assert (reply.status == 200) != (agent in FAILS), reply.body
            runs[agent] = reply.headers["x-tangle-runid"]
    yield Kept(home, runs)
    assert home.stop() == 0


@pytest.mark.parametrize(
    ("agent", "given"),
    [
        ("mixed", set()),  # the answer to the second call came first
        ("enough", {"never"}),  # one answer was enough, and the others were cancelled
        ("impatient", {"never"}),  # it was left in the midst of what it said
        ("chair", set()),
        ("halts", set()),  # somebody in it has failed
    ],
)
def test_calls_that_were_made_at_once_are_answered_as_they_were(
    kept: Kept, agent: str, given: set[str]
) -> None:
    code, turns, shown = kept.replay(agent)
    assert (code, turns[0]["agent"], turns[0]["verdict"]) == (0, agent, "equal"), turns
    assert {each["agent"] for each in turns if each["verdict"] == "given"} >= given
    assert "Traceback" not in shown


def test_what_an_agent_has_begun_does_not_leave_after_its_turn_either(
    kept: Kept, listener: socket.socket
) -> None:
    code, turns, shown = kept.replay("lingering")
    assert (code, turns[0]["verdict"], shown) == (0, "equal", "")
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_who_is_asked_anew_in_a_conversation_is_asked_each_time(kept: Kept) -> None:
    secret = kept.home.folder / "token"
    secret.write_text(kept.home.token)
    swap = ("--swap", f"quick={kept.home.url}/agents/other", "--token", f"@{secret}", "--yes")
    code, (chair, *asked), _ = kept.replay("chair", *swap)
    assert code == 4
    assert [each["reason"] for each in asked] == ["asked anew"] * 2
    assert [each["turn"] for each in asked] == [
        each["turn"] for each in kept.replay("chair")[1] if each["agent"] == "quick"
    ]
    now = "other (hi) / aside after 2 / other ([aside] aside after 2) / aside after 4"
    assert json.loads(chair["now"]) == ["text", now]


def test_what_is_for_somebody_who_is_asked_anew_is_refused_without(kept: Kept) -> None:
    words = ("run", "replay", kept.runs["chair"])
    done = kept.home.try_carnet(*words, "--token", "x")
    assert (done.returncode, "--swap" in done.stderr) == (2, True)
    for swap, part in {
        "quik=http://127.0.0.1:1": "'quick'",
        "quick=http://[::1": "address",
    }.items():
        done = kept.home.try_carnet(*words, "--swap", swap, "--yes")
        assert (done.returncode, part in done.stderr) == (2, True), done.stderr
