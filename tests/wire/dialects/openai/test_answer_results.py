"""The result of a skill in chat: written by one Carnet, read by another, under one receipt."""

import pytest

from carnet.core.call import Ask
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import RESULT, Data, Done, Event, Extension, Message, Text
from carnet.core.people.identity import Account
from carnet.errors import ProviderError
from carnet.wire.dialects.openai import (
    ChunkReader,
    ChunkWriter,
    digest_content,
    read_answer,
    read_ask,
    write_answer,
    write_request,
)
from carnet.wire.grammar import json
from carnet.wire.travel import answer_digest

TURN = Turn(n=7, agent="a", run="r", turn="r.t0.a", payer=Account("x", "y"), created=1)
SMALL = Extension(RESULT, {"total": 5, "rate": 1.0, "big": 2**60})
LARGE = Extension(RESULT, {"text": "x" * 300_000})


def deep(levels: int) -> Extension:
    value: dict[str, object] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return Extension(RESULT, value)


ANSWERS: dict[str, list[Event]] = {
    "a result alone": [SMALL],
    "a result after text": [Text("one "), Text("two"), SMALL],
    "a result after structured output": [Data(1), SMALL],
    "a result that is told as text": [Text(json.write_text(SMALL.payload)), SMALL],
    "a result too large for a frame": [LARGE],
    "text, and a result too large for a frame": [Text("one"), LARGE],
    "the deepest result": [Text("one"), deep(64)],
    "no result": [Text("one")],
}


def read_whole(events: list[Event]) -> list[Event]:
    return read_answer(write_answer(TURN, events, model="m", currency="c"), currency="c")


def read_stream(events: list[Event]) -> list[Event]:
    reader = ChunkReader(currency="c")
    writer = ChunkWriter(TURN, model="m", include_usage=False, currency="c")
    return [*reader.feed(writer.write(events)), *reader.close()]


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("read", [read_whole, read_stream])
def test_what_is_read_tells_what_was_written(case: str, read: object) -> None:
    events: list[Event] = [*ANSWERS[case], Done()]
    reread = read(events)  # type: ignore[operator]
    assert answer_digest(digest_content(reread)) == answer_digest(digest_content(events))
    if SMALL in events:
        assert SMALL in reread


def test_a_result_that_no_receipt_would_cover_is_left_out() -> None:
    assert LARGE not in read_whole([Text("one"), LARGE, Done()])
    assert LARGE in read_whole([LARGE, Done()])


def test_a_result_says_more_than_the_text_it_came_with() -> None:
    changed = Extension(RESULT, {"total": 6})
    assert digest_content([Text("one"), SMALL, Done()]) != digest_content(
        [Text("one"), changed, Done()]
    )


@pytest.mark.parametrize("member", [b"3", b'{"result":3}', b'{"result":' + b'{"a":' * 70 + b"1"])
def test_a_result_that_is_none_is_no_answer(member: bytes) -> None:
    member += b"}" * (member.count(b"{") - member.count(b"}"))
    body = b'{"choices":[{"message":{"content":"x"}}],"carnet":%b}' % member
    with pytest.raises(ProviderError):
        read_answer(body, currency="c")


def test_a_skill_leaves_only_to_a_reader_who_knows_how() -> None:
    body: dict[str, object] = {
        "messages": [{"role": "user", "content": "x"}],
        "carnet": {"skill": "add", "payload": {"a": 1}},
    }
    _, ask = read_ask(body)
    sent = json.read_object(write_request(ask, model="m", stream=False, with_skill=True))
    assert (sent["carnet"], sent["messages"]) == (body["carnet"], body["messages"])
    assert "carnet" not in json.read_object(write_request(ask, model="m", stream=False))
    plain = Ask(messages=(Message("user", ("x",)),), stream=False)
    assert b"carnet" not in write_request(plain, model="m", stream=False, with_skill=True)
