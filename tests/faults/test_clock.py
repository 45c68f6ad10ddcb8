"""The wall clock is set while a gateway runs: calls do not notice, the log does (F23)."""

import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from carnet.core.call import Call
from carnet.core.messages.events import Done, Event, Text
from carnet.errors import ProviderTimeout, ProviderUnavailable
from carnet.log.repeats import Repeats
from carnet.runtime.clock_skew import ClockSkew
from carnet.runtime.system import SystemClock
from carnet.runtime.wrappers.retrying import Retrying
from carnet.runtime.wrappers.timed import Timed
from carnet.testing.clock import FakeClock, FakeIds
from carnet.testing.wait import until
from tests.faults.scene import ids, turns
from tests.runtime.scene import GOOD, collect, make_call, speaking
from tests.support.federation import organisation
from tests.support.http import Reply
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

STEPS = (600, -600, 86_400)
NOW = 1_800_000_000.0  # where a FakeClock stands

# Python runs it before anything else: the one module that reads a clock is given another.
CLOCK = """
import time
from pathlib import Path
from types import SimpleNamespace

import carnet.runtime.system as system

SET = Path(__file__).with_name("clock")

system.time = SimpleNamespace(
    time_ns=lambda: time.time_ns() + int(SET.read_text()) * 1_000_000_000,
    monotonic=time.monotonic,
    monotonic_ns=time.monotonic_ns,
)
"""
LATER = '''

async def later(visit: carnet.Visit) -> str:
    """Call on, once the test says so."""
    note(visit)
    while not RAN.with_name("go").exists():
        await asyncio.sleep(0.02)
    return await visit.peer("echo").ask("in time")
'''
CONFIG = """
[agents.later]
kind = "python"
target = "agents:later"
timeout = 300

[agents.brief]
kind = "python"
target = "agents:slow"
timeout = 0.5
"""


def set_clock(gateway: Organisation, seconds: int) -> None:
    """Set its wall clock so far ahead of the machine's."""
    draft = gateway.folder / "clock.new"
    draft.write_text(str(seconds))
    draft.replace(gateway.folder / "clock")


def skews(gateway: Organisation) -> list[float]:
    """The steps that its log tells of."""
    lines = [json.loads(line) for line in gateway.log_lines() if "clock skew" in line]
    return [line["seconds"] for line in lines]


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = organisation(tmp_path_factory.mktemp("clock") / "acme", "acme.example")
    gateway.configure(CONFIG, agents=AGENTS + LATER)
    (gateway.folder / "sitecustomize.py").write_text(CLOCK)
    set_clock(gateway, 0)
    path = os.pathsep.join([str(gateway.folder), os.environ.get("PYTHONPATH", "")])
    gateway.start(env={"PYTHONPATH": path})
    yield gateway
    assert gateway.stop() == 0


@contextmanager
def asked_before(gateway: Organisation, run: str, agent: str, text: str) -> Iterator[list[Reply]]:
    """A call that has begun; its reply when the context is left."""
    replies: list[Reply] = []

    def ask() -> None:
        replies.append(gateway.chat(text, agent, headers=ids(run)))

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: turns(gateway, run) != [])
    yield replies
    asking.join(30)


@pytest.mark.parametrize("step", STEPS)
def test_f23_a_step_of_the_wall_clock_is_logged_and_changes_no_call(
    step: int, acme: Organisation
) -> None:
    go, before = acme.folder / "go", acme.chat("before", headers=ids(f"conv_before{step}"))
    known = len(skews(acme))
    try:
        with asked_before(acme, f"conv_step{step}", "later", "") as replies:
            set_clock(acme, step)
            until(lambda: len(skews(acme)) > known)
            go.touch()
        assert replies[0].text == "in time"
        assert abs(skews(acme)[known] - step) < 60
        assert acme.chat("before", headers=ids(f"conv_before{step}")).body == before.body
    finally:
        go.unlink(missing_ok=True)
        set_clock(acme, 0)
        until(lambda: len(skews(acme)) > known + 1)


@pytest.mark.parametrize("step", STEPS)
def test_f23_an_agent_that_hangs_ends_in_time_whatever_the_wall_clock_says(
    step: int, acme: Organisation
) -> None:
    with asked_before(acme, f"conv_brief{step}", "brief", "600") as replies:
        set_clock(acme, step)
    set_clock(acme, 0)
    assert (replies[0].status, replies[0].code) == (504, "provider_timeout")


@pytest.mark.parametrize("step", STEPS)
async def test_f23_a_step_neither_takes_a_deadline_away_nor_adds_to_it(step: int) -> None:
    clock = FakeClock()
    call = make_call(deadline=NOW + 60)
    clock.jump(step)
    assert await collect(Timed(GOOD, seconds=600, clock=clock), call) == [Text("well"), Done()]
    clock.advance(60)
    with pytest.raises(ProviderTimeout):
        await collect(Timed(GOOD, seconds=600, clock=clock), call)


@pytest.mark.parametrize("step", STEPS)
async def test_f23_a_step_changes_neither_the_waits_between_attempts_nor_their_number(
    step: int,
) -> None:
    clock, attempts = FakeClock(), 0

    @speaking
    async def failing(_: Call, /) -> AsyncIterator[Event]:
        nonlocal attempts
        attempts += 1
        clock.jump(step)
        raise ProviderUnavailable
        yield

    agent = Retrying(failing, retries=3, clock=clock, ids=FakeIds(), sleep=clock.sleep)
    with pytest.raises(ProviderUnavailable):
        await collect(agent, make_call(deadline=NOW + 0.6))
    assert (clock.slept, attempts) == ([0.25], 2)  # the next would have been at 0.75 s


def test_f23_steady_time_is_wall_time_that_only_grows() -> None:
    clock = SystemClock()
    times = [clock.steady_us() for _ in range(1000)]
    assert times == sorted(times)
    assert abs(times[-1] - clock.wall_us()) < 60_000_000


def test_f23_a_clock_that_is_slowly_corrected_is_no_step(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    skew = ClockSkew(clock)
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            clock.advance(0.5)
            clock.jump(0.01)
            assert skew.look() == 0
    assert caplog.records == []
    clock.jump(-600)
    assert skew.look() == pytest.approx(-600)
    assert skew.look() == 0
    assert [record.getMessage() for record in caplog.records] == [
        "clock skew: the wall clock was set back"
    ]


def test_each_time_that_the_clock_is_set_is_a_line_however_alike(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A log that leaves out what was noted a moment ago leaves none of them out."""
    clock = FakeClock()
    late: list[logging.LogRecord] = []
    skew, repeats = ClockSkew(clock), Repeats(late.append)
    for step in (-600, 600, -600):
        clock.jump(step)
        clock.advance(0.5)
        skew.look()
    assert [repeats.filter(record) for record in caplog.records] == [True] * 3
