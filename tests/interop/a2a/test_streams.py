"""Streams and subscriptions of one task: several at once, the same in all, each left for itself."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.a2a.wire import BINDINGS, JSON, VERSION, Line, message, written
from tests.support.http import stream

Lines = dict[str, Line]
pytestmark = pytest.mark.parametrize("binding", BINDINGS)


def read(line: Line, binding: str, operation: str, **given: Any) -> Iterator[bytes]:
    """The data of the events of a stream as they come."""
    method, path, body = written(binding, operation, **given)
    own = [("authorization", f"Bearer {line.token}"), JSON, VERSION]
    with closing(stream(method, line.url + path, own, body)) as came:
        for each in came:
            if each.startswith(b"data: "):
                yield each[6:].strip()


def test_every_reader_is_told_the_same_and_one_that_leaves_disturbs_nobody(
    lines: Lines, binding: str
) -> None:
    line = lines["slow"]
    sender = read(line, binding, "SendStreamingMessage", **message())
    begun = json.loads(next(sender))
    task = begun.get("result", begun)["task"]["id"]
    others = [read(line, binding, "SubscribeToTask", id=task) for _ in range(2)]
    firsts = [json.dumps(begun, separators=(",", ":")).encode(), *map(next, others)]
    readers = [sender, *others]
    assert [b'"task":{' in first for first in firsts] == [True] * 3
    assert b'"0 ' in next(readers[0])
    readers[0].close()  # type: ignore[attr-defined]
    held: list[bytes] = [b"", b""]
    for place, reader in enumerate(readers[1:]):
        while b"3 " not in held[place]:  # it goes on, told as it happens
            held[place] += next(reader)
    line.result(binding, "CancelTask", id=task)
    for place, reader in enumerate(readers[1:]):
        rest = list(reader)
        held[place] += b"".join(rest)
        assert b"TASK_STATE_CANCELED" in rest[-1]
    stated = [[int(n) for n in _numbers(text)] for text in held]
    assert stated[0] == stated[1] == list(range(len(stated[0])))


def _numbers(text: bytes) -> list[str]:
    found = re.findall(rb'"text":"([0-9 ]+)"', text)
    return b"".join(found).decode().split()


def test_who_waits_for_an_answer_with_many_readers_reads_everything_else(
    lines: Lines, binding: str
) -> None:
    """A reader of a task that waits holds nothing that others, or its own caller, would need."""
    line = lines["asks"]
    task = line.task(binding)["id"]
    readers = [read(line, binding, "SubscribeToTask", id=task) for _ in range(24)]
    for reader in readers:  # all of them have come to the question
        assert task.encode() in next(reader)
        assert b"Which city?" in next(reader)
    page = line.result(binding, "ListTasks", includeArtifacts=True)
    assert task in [each["id"] for each in page["tasks"]]
    line.task(binding, "Bern", taskId=task)
    for reader in readers:
        rest = list(reader)
        assert b"weather of Bern" in b"".join(rest)
        assert b"TASK_STATE_COMPLETED" in rest[-1]


def test_what_was_shown_before_a_question_is_not_shown_again(lines: Lines, binding: str) -> None:
    line = lines["draws"]
    task = line.task(binding)["id"]
    reader = read(line, binding, "SubscribeToTask", id=task)
    shown = [next(reader) for _ in range(3)]
    while b"In which colour?" not in shown[-1]:
        shown.append(next(reader))
    line.task(binding, "red", taskId=task)
    whole = b"".join([*shown, *reader])
    assert (whole.count(b"see: "), whole.count(b"hello.txt"), whole.count(b"in red")) == (1, 1, 1)


def test_a_subscription_begins_with_the_task_as_it_is(lines: Lines, binding: str) -> None:
    for agent, state in (("asks", "INPUT_REQUIRED"), ("signs", "AUTH_REQUIRED")):
        task = lines[agent].task(binding)["id"]
        reader = read(lines[agent], binding, "SubscribeToTask", id=task)
        first, second = next(reader).decode(), next(reader).decode()
        assert task in first
        assert "TASK_STATE_INPUT_REQUIRED" in first  # it waits; for what is told at once
        assert f"TASK_STATE_{state}" in second
        reader.close()  # type: ignore[attr-defined]
