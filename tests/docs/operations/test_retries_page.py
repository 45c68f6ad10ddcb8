"""The page about what is tried again says what the constants say."""

import pytest

from carnet.assembly.agents import agents
from carnet.cli.call import task_view
from carnet.cli.reach import gateway
from carnet.config.limits import StoreSettings
from carnet.config.outbound import OutboxSettings
from carnet.config.settings import AgentSettings
from carnet.runtime.peers import cards, keyring, samvad_client, samvad_tasks
from carnet.runtime.tasks import worker
from carnet.runtime.triggers import scheduler
from carnet.runtime.turns import unfinished
from carnet.runtime.webhooks import schedule
from carnet.runtime.wrappers import retrying
from carnet.runtime.wrappers.breaker import Breaker
from carnet.stores import store
from carnet.stores.postgres import sessions
from carnet.stores.postgres import writer as postgres_writer
from carnet.stores.sqlite import writer
from carnet.testing.clock import FakeClock
from carnet.wire.dialects.refusal import ASKED_AGAIN
from tests.docs.test_quickstart import ROOT

PAGE = (ROOT / "docs" / "operations" / "retries.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "|---" not in line][1:]


def row(begins: str) -> str:
    (found,) = [line for line in ROWS if line.startswith(f"| {begins}")]
    return found


def seconds(value: float) -> str:
    return f"{value:g} s"


FIGURES = {
    "a call to a peer": [
        f"{agents.PEER_RETRIES} times more",
        f"(0 to {retrying.MOST_RETRIES}, by default {AgentSettings().retries})",
        seconds(retrying.FIRST_SECONDS),
        f"up to {seconds(retrying.MOST_SECONDS)}",
        f"more than {seconds(retrying.LONGEST_ASKED_SECONDS)}",
    ],
    "the other form": [seconds(samvad_client._DOUBTED_SECONDS)],  # noqa: SLF001
    "a task at another agent": [
        seconds(samvad_tasks.FIRST_SECONDS),
        f"by {samvad_tasks.GROWTH:g} up to {seconds(samvad_tasks.LONGEST_SECONDS)}",
        f"{samvad_tasks.MOST_FAILURES} failures in a row",
    ],
    "a card or a page": [
        seconds(cards.FAILED_SECONDS),
        seconds(cards.NEEDED_SECONDS),
        seconds(keyring.EARLY_SECONDS),
    ],
    "a conversation of a [hook": [
        f"{scheduler.MOST_ATTEMPTS} attempts",
        seconds(scheduler.FIRST_PAUSE_SECONDS),
        f"up to {seconds(scheduler.MOST_PAUSE_SECONDS)}",
    ],
    "a receiver that fails": [
        seconds(schedule.FIRST_PAUSE_SECONDS),
        f"up to {seconds(schedule.MOST_PAUSE_SECONDS)}",
    ],
    "a [task]": [f"{worker.MOST_LOST} times", seconds(StoreSettings().lease_seconds)],
    "the end of a turn": [
        ", ".join(f"{wait:g}" for wait in unfinished.WAITS_SECONDS[:-1]) + " s",
        f"every {seconds(unfinished.WAITS_SECONDS[-1])}",
    ],
    "a batch": [f"{postgres_writer.MOST_ATTEMPTS} attempts", f"{sessions.MOST_ATTEMPTS} attempts"],
    "a PostgreSQL": [seconds(postgres_writer.CONNECT_SECONDS)],
    "a SQLite": [seconds(writer.BUSY_LOOK_SECONDS), seconds(writer.BUSY_SECONDS)],
    "a command with": [
        seconds(gateway.LOOK_AGAIN_SECONDS),
        seconds(gateway.SEEN_WITHIN_SECONDS),
    ],
    "a command that waits": [
        seconds(task_view.FIRST_SECONDS),
        f"by {task_view.GROWTH:g} up to {seconds(task_view.LONGEST_SECONDS)}",
    ],
}


@pytest.mark.parametrize("begins", FIGURES)
def test_a_row_says_what_the_constants_say(begins: str) -> None:
    assert [text for text in FIGURES[begins] if text not in row(begins)] == []


def test_the_hours_and_the_second_are_those_of_the_code() -> None:
    hours = (samvad_client._REMEMBERED_SECONDS, cards.MOST_SECONDS, schedule.GRACE_SECONDS)  # noqa: SLF001
    assert (*hours, store.LOOK_SECONDS) == (3600, 3600, 3600, 1)


def test_the_schedule_of_webhooks_is_told_as_it_is() -> None:
    waits = OutboxSettings().schedule
    assert waits == schedule.SCHEDULE
    assert f"{len(waits)} attempts" in row("a [webhook]")
    assert ", ".join(map(spoken, waits)) in row("a [webhook]")
    assert (schedule.JITTER, schedule.MOST_ASKED_SECONDS) == (0.1, 86_400)


def spoken(wait: float) -> str:
    for unit, size in (("h", 3600), ("min", 60), ("s", 1)):
        if wait >= size:
            return f"{wait / size:g} {unit}"
    return "0"


def test_a_breaker_opens_and_probes_as_it_is_told() -> None:
    clock = FakeClock()
    breaker = Breaker(clock=clock)
    states = []
    for _ in range(5):
        states.append(breaker.state)
        breaker.leave(breaker.enter(), "bad")
    states.append(breaker.state)
    clock.advance(30)
    assert [*states, breaker.state] == [*["closed"] * 5, "open", "half_open"]
    assert "failed 5 times" in row("a callee")
    assert "30 s" in row("a callee")


def test_the_statuses_are_those_of_the_code() -> None:
    first, *rest, last = sorted(ASKED_AGAIN)
    text = ", ".join(map(str, [first, *rest])) + f" and {last}"
    assert text in PAGE.replace("\n", " ")


def test_every_row_is_checked() -> None:
    checked = (*FIGURES, "a [webhook]", "a callee")
    assert [line for line in ROWS if not line.removeprefix("| ").startswith(checked)] == []
