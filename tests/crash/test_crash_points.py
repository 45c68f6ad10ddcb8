"""kill -9 at every crash point of a call: nothing acknowledged is lost, rerun or billed twice."""

from collections.abc import Iterator
from decimal import Decimal
from http.client import HTTPException
from typing import Any, NamedTuple

import pytest

from carnet.faults import POINTS
from tests.support.federation import introduce, organisation
from tests.support.http import Reply
from tests.support.organisation import Organisation

WHOLE = (
    "recv.body",
    "parse.ok",
    "t1.begin",
    "t1.before_commit",
    "t1.after_commit",
    "upstream.before_connect",
    "upstream.request_sent",
    "upstream.first_byte",
    "upstream.done",
    "t3.begin",
    "t3.before_commit",
    "t3.after_commit",
    "reply.before_write",
    "reply.after_write",
)
STREAMED = (
    "upstream.mid_event",
    "event.before_t2",
    "event.after_t2",
    "event.after_socket_write",
    "reply.half_written",
)
RECOVERING = ("recover.begin", "recover.each_turn", "recover.end")
DRAINING = ("drain.begin", "drain.mid")
ELSEWHERE = ("migrate.mid", "purge.mid")  # tests/stores kills the process there


class Pair(NamedTuple):
    """The gateway that is killed, and the peer behind it that is not."""

    a: Organisation
    b: Organisation


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("crash")
    a, b = organisation(folder / "a", "a.example"), organisation(folder / "b", "b.example")
    introduce(a, b)
    for gateway in (a, b):
        gateway.configure(
            '[agents.spoken]\nkind = "python"\ntarget = "agents:words"\nprice = "0.0002"\n'
        )
    b.start()
    yield Pair(a, b)
    a.kill()
    assert b.stop() == 0


def ask(gateway: Organisation, run: str, *, stream: bool) -> Reply | None:
    """Send the turn; None if the connection broke before a whole answer came."""
    ids = [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0.spoken")]
    options: dict[str, Any] = {"stream": stream}
    if stream:
        options["stream_options"] = {"include_usage": True}
    try:
        reply = gateway.chat("one two three", "@spoken@b.example", headers=ids, **options)
    except (OSError, HTTPException):
        return None
    whole = reply.body.endswith(b"data: [DONE]\n\n") if stream else reply.status == 200
    return reply if whole else None


def billed(gateway: Organisation, run: str) -> Decimal:
    entries = gateway.json("ledger", "--run", run)["entries"]
    return sum((Decimal(entry["amount"]) for entry in entries), Decimal(0))


def check_after(pair: Pair, run: str, acknowledged: Reply | None, *, stream: bool) -> None:
    """Start again, repeat the turn, and look at both ledgers."""
    pair.a.start()
    again = ask(pair.a, run, stream=stream)
    assert again is not None
    if acknowledged is not None:
        assert again.body == acknowledged.body
    assert b"three" in again.body
    assert billed(pair.a, run) == Decimal("0.0002")
    assert billed(pair.b, run) == Decimal("0.0002")
    repeated = ask(pair.a, run, stream=stream)
    assert repeated is not None
    assert repeated.body == again.body
    turns = pair.a.get(f"/runs/{run}").json["turns"]
    assert [turn["state"] for turn in turns] == ["done"]
    pair.a.stop()


@pytest.mark.parametrize("point", WHOLE)
def test_a_whole_answer_survives_a_kill_at(point: str, pair: Pair) -> None:
    run = f"conv_{point.replace('.', '_')}"
    pair.a.start(env={"CRASH_AT": point})
    acknowledged = ask(pair.a, run, stream=False)
    assert pair.a.died()
    pair.a.process = None
    check_after(pair, run, acknowledged, stream=False)


@pytest.mark.parametrize("point", STREAMED)
def test_a_stream_survives_a_kill_at(point: str, pair: Pair) -> None:
    run = f"conv_{point.replace('.', '_')}"
    pair.a.start(env={"CRASH_AT": point})
    acknowledged = ask(pair.a, run, stream=True)
    assert pair.a.died()
    pair.a.process = None
    check_after(pair, run, acknowledged, stream=True)


@pytest.mark.parametrize("point", RECOVERING)
def test_recovery_survives_a_kill_at(point: str, pair: Pair) -> None:
    run = f"conv_{point.replace('.', '_')}"
    pair.a.start(env={"CRASH_AT": "upstream.done"})
    acknowledged = ask(pair.a, run, stream=False)
    assert pair.a.died()
    for _ in range(3):
        with pytest.raises(AssertionError):
            pair.a.start(env={"CRASH_AT": point})
    pair.a.process = None
    check_after(pair, run, acknowledged, stream=False)


@pytest.mark.parametrize("point", DRAINING)
def test_draining_survives_a_kill_at(point: str, pair: Pair) -> None:
    run = f"conv_{point.replace('.', '_')}"
    pair.a.start(env={"CRASH_AT": point})
    acknowledged = ask(pair.a, run, stream=False)
    assert acknowledged is not None
    assert pair.a.stop() == -9
    check_after(pair, run, acknowledged, stream=False)


def test_every_crash_point_is_killed_at_somewhere() -> None:
    assert {*WHOLE, *STREAMED, *RECOVERING, *DRAINING, *ELSEWHERE} == POINTS
