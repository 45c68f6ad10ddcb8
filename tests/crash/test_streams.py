"""kill -9 in the midst of a stream, (F06)."""

import json
from contextlib import suppress
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.faults.scene import Pair, frames, streamed_text
from tests.faults.stores import end_leases
from tests.support.http import stream

WORDS = "6"  # one each tenth of a second
WHOLE = "0 1 2 3 4 5 "
Entry = tuple[str, str, dict[str, Any]]  # event, id, data


def ask(pair: Pair, run: str) -> list[bytes]:
    """Stream the turn; the lines that came before the connection broke or it was over."""
    lines: list[bytes] = []
    try:
        for line in pair.stream(run, "@drip@b.example", WORDS):
            lines.append(line)  # noqa: PERF402  kept when it raises
    except OSError:
        pass
    return lines


def answered(pair: Pair, run: str) -> list[bytes]:
    """Stream it until it is whole: B may still be busy with what was cut off."""
    lines: list[bytes] = []

    def is_whole() -> bool:
        with suppress(AssertionError):  # refused for a moment
            lines[:] = ask(pair, run)
        return lines[-2:-1] == [b"data: [DONE]\n"]

    until(is_whole)
    return lines


def journal(pair: Pair, run: str, after: str = "") -> list[Entry]:
    """The run's own stream, from an id on."""
    fields = [("authorization", f"Bearer {pair.a.token}")]
    fields += [("last-event-id", after)] if after else []
    found: list[Entry] = []
    event = number = ""
    for line in stream("GET", f"{pair.a.url}/runs/{run}/events", fields):
        name, _, value = line.decode().strip().partition(": ")
        if name == "event":
            event = value
        elif name == "id":
            number = value
        elif name == "data":
            found.append((event, number, json.loads(value)))
        else:
            event = number = ""
    return found


def restart(pair: Pair, crash_at: str = "") -> None:
    pair.a.kill()
    end_leases(pair.a)
    pair.a.start(env={"CRASH_AT": crash_at})


@pytest.mark.parametrize("received", [0, 2])
def test_f06_a_stream_cut_off_by_a_kill_is_never_done_and_a_retry_is_a_new_attempt(
    received: int, pair: Pair
) -> None:
    run = f"conv_cut_{received}"
    restart(pair, f"event.after_socket_write:{received}" if received else "reply.half_written")
    cut = ask(pair, run)
    assert pair.a.died()
    assert b"data: [DONE]\n" not in cut
    assert not any(choice.get("finish_reason") for f in frames(cut) for choice in f["choices"])

    restart(pair)
    again = answered(pair, run)
    assert streamed_text(again) == WHOLE
    assert ask(pair, run) == again  # a replay is the same to the byte, with its ids

    entries = journal(pair, run)
    kinds = [kind for kind, _, _ in entries]
    assert "discard" in kinds
    kept = entries[len(kinds) - kinds[::-1].index("discard") :]
    assert "".join(data["text"] for kind, _, data in kept if kind == "text") == streamed_text(again)
    assert kinds[-1] == "end"


def test_f06_a_reader_that_reconnects_misses_nothing_and_reads_nothing_twice(pair: Pair) -> None:
    run = "conv_resumed"
    restart(pair, "event.after_socket_write:2")
    ask(pair, run)
    assert pair.a.died()
    restart(pair)
    before = journal(pair, run)
    seen = [entry for entry in before if entry[0] != "end"]
    answered(pair, run)
    after = journal(pair, run)
    assert seen + journal(pair, run, seen[-1][1]) == after
    numbers = [number for kind, number, _ in after if kind != "end"]
    assert len(set(numbers)) == len(numbers)
    for kind, number, _ in after[:-1]:
        rest = after[1 + [n for _, n, _ in after].index(number) :]
        assert journal(pair, run, number) == rest, kind
