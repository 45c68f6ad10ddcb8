"""What providers may do wrong, and what of it anybody sees: a code, one fixed sentence, no more."""

import itertools
import json
from collections.abc import Iterator

import pytest

from carnet.core.messages.events import Done, Failed, Text
from carnet.wire.dialects.engine_chat import MESSAGES
from tests.engine.process import KEY, Scene, asking, events_of
from tests.support.model import CLOSED, Answer

LEAKS = (
    f"Incorrect API key provided: {KEY}",
    'Traceback (most recent call last):\n  File "/srv/provider/app.py", line 7, in <module>',
    "upstream 10.1.2.3:5432 refused; see /var/log/provider.log",
)
STATUSES = (
    *(400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 415, 422, 425, 429, 451),
    *(500, 501, 502, 503, 504, 520, 529),
)
SSE = "text/event-stream"
SHOWN = b'data: {"choices":[{"index":0,"delta":{"content":"So far"}}]}\n\n'
LEAKED = (b"/srv", b"/var", KEY.encode(), b"Traceback", b"10.1.2.3", b"provider.log")


def errors() -> Iterator[Answer]:
    """Every status, with some text that nobody is to see, in three forms."""
    for status, words in zip(STATUSES, itertools.cycle(LEAKS), strict=False):
        body = {"error": {"message": words, "type": "x", "param": None, "code": None}}
        yield Answer(status, json.dumps(body).encode())
    for status, words in zip(STATUSES, itertools.cycle(LEAKS[1:]), strict=False):
        yield Answer(status, f"<html>{words}</html>".encode(), media_type="text/html")


def stream(data: bytes) -> Answer:
    return Answer(body=data, media_type=SSE)


def broken() -> Iterator[Answer]:
    """What is no answer at all, or breaks off."""
    leak = json.dumps(LEAKS[1]).encode()
    yield CLOSED
    yield from (Answer(body=body) for body in (b"", b"[]", b"null", leak, b"{", b"\xff\xfe"))
    yield Answer(body=b'{"choices":[]}')
    yield Answer(body=b'{"choices":[{"message":{"content":7}}]}')
    yield Answer(body=b'{"error":{"message":%b}}' % leak)
    yield from (stream(body) for body in (b"", b"data: ", b"data: {", b": only a comment\n\n"))
    yield stream(b"data: not json\n\n")
    yield stream(b"data: \xff\n\n")
    yield stream(b"data: " + b"x" * 300_000 + b"\n\n")
    yield stream(b'data: {"choices":[{"index":0,"delta":{"content":7}}]}\n\n')
    yield stream(b'data: {"error":{"message":%b,"code":"server_error"}}\n\n' % leak)
    yield stream(SHOWN)
    yield stream(SHOWN + b"data: [DO")
    yield stream(SHOWN + b'data: {"error":{"message":%b}}\n\n' % leak)
    yield stream(SHOWN + b"data: garbage\n\n")
    yield stream(SHOWN + b'data: {"choices":[{"index":0,"finish_reason":"error"}]}\n\n')
    call = b'{"index":0,"function":{"arguments":"{}"}}'
    yield stream(
        SHOWN
        + b'data: {"choices":[{"index":0,"delta":{"tool_calls":[%b]}}]}\n\ndata: [DONE]\n\n' % call
    )


CASES = [*errors(), *broken()]


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("answer", CASES, ids=[str(n) for n in range(len(CASES))])
def test_of_a_providers_failure_nobody_sees_more_than_a_code_and_its_sentence(
    scene: Scene, answer: Answer
) -> None:
    scene.replies(answer)
    reply = scene.engine.post(asking())
    events = events_of(reply)
    end = events[-1]
    assert isinstance(end, Failed)
    assert end.code in {"provider_error", "context_length_exceeded"}
    assert [event for event in events if isinstance(event, Done | Failed)] == [end]
    assert [event for event in events[:-1] if event != Text("So far")] == []
    assert reply.body.count(b"event: error") == 1
    assert any(f'"message":"{sentence}"'.encode() in reply.body for sentence in MESSAGES.values())
    assert [leak for leak in LEAKED if leak in reply.body] == []
