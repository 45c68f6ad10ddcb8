"""Receipts: what the answering side signs, and how an answer is told from another."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.messages.events import (
    RESULT,
    Data,
    Done,
    Event,
    Extension,
    Failed,
    Text,
    ToolCall,
    Usage,
)
from carnet.errors import Cancelled, PeerResponseInvalid
from carnet.wire import travel
from carnet.wire.crypto import ed25519, jws
from carnet.wire.dialects import openai
from carnet.wire.grammar.sse import SseReader
from tests.wire.travel.scene import KID, NOW, PUBLIC, sign

RECEIPT = travel.Receipt(
    issuer="b.example",
    audience="a.example",
    issued=NOW,
    run="conv_1",
    turn="t",
    cost=200,
    currency="credits",
    calls=3,
    max_depth=2,
    digest=travel.answer_digest({"text": "hello"}),
    keyid=KID,
)
FAILED = replace(RECEIPT, digest=None, code="agent_failed", cost=None)
CLAIMS: dict[str, Any] = {
    "iss": "b.example",
    "aud": "a.example",
    "iat": NOW,
    "run": "r",
    "turn": "t",
    "cost": "0.1",
    "currency": "credits",
    "calls": 1,
    "max_d": 1,
    "dig": "x",
}


def text(typ: str = "carnet-receipt+jwt", **claims: Any) -> str:
    payload = {name: value for name, value in (CLAIMS | claims).items() if value is not ...}
    return jws.write(payload, kid=KID, typ=typ, sign=sign)


@pytest.mark.parametrize("receipt", [RECEIPT, FAILED])
def test_what_is_written_is_read_again_and_its_signature_holds(receipt: travel.Receipt) -> None:
    read = travel.read_receipt(travel.write_receipt(receipt, sign=sign))
    assert replace(read, signed=b"", signature=b"") == receipt
    assert ed25519.holds(PUBLIC, read.signed, read.signature)


@pytest.mark.parametrize(
    "claims",
    [
        *({"cost": 1}, {"cost": "-1"}, {"cost": "1e3"}, {"calls": -1}, {"max_d": "1"}),
        *({"iat": 1.5}, {"dig": ...}, {"code": "x"}, {"typ": "JWT"}, {"run": ""}, {"cost": ...}),
    ],
)
def test_what_is_not_a_receipt_proves_nothing(claims: dict[str, Any]) -> None:
    with pytest.raises(PeerResponseInvalid):
        travel.read_receipt(text(**claims))


def test_a_travel_document_is_no_receipt() -> None:
    with pytest.raises(PeerResponseInvalid):
        travel.read_receipt(text(typ="carnet+jwt"))


def test_a_receipt_rides_in_a_stream_as_a_comment() -> None:
    comments: list[str] = []
    reader = SseReader(on_comment=comments.append)
    assert reader.feed(b": keep-alive\n\n" + travel.write_comment("a.b.c") + b"data: x\n\n")
    assert [travel.read_comment(comment) for comment in comments] == [None, "a.b.c"]


def test_the_digest_is_over_the_canonical_form_of_what_was_told() -> None:
    # sha256 of {"text":"hello"}
    assert travel.answer_digest({"text": "hello"}) == RECEIPT.digest
    assert travel.answer_digest({"b": 1, "a": 2}) == travel.answer_digest({"a": 2, "b": 1})


def test_every_answer_that_can_be_sent_has_a_digest() -> None:
    """Ids of 64 bits and deep results too: the call has run and is billed when this is made."""
    assert travel.answer_digest({"id": 2**60}) != travel.answer_digest({"id": 2**60 + 1})
    deep: dict[str, Any] = {}
    for _ in range(travel.MOST_LEVELS - 1):
        deep = {"in": deep}
    for answer in (deep, {"text": "", "result": deep}):
        assert travel.answer_digest(answer).startswith("sha-256=:")


@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=6))
def test_a_whole_answer_and_its_stream_have_the_same_digest(texts: list[str]) -> None:
    call = ToolCall("c1", "look", '{"x": 1}')
    streamed: list[Event] = [*map(Text, texts), call, Usage(), Done()]
    whole: list[Event] = [Text("".join(texts)), call, Done()]
    assert openai.digest_content(streamed) == openai.digest_content(whole)


def test_structured_output_is_told_as_the_text_it_is_written_as() -> None:
    assert openai.digest_content([Data({"a": 1}), Data(2), Done()]) == {"text": '{"a":1}\n2'}
    assert openai.digest_content([Data(1), Text("x"), Done()]) == {"text": "x"}
    result = Extension(RESULT, {"n": 1})
    assert openai.digest_content([Data(1), result, Done()]) == {"text": '{"n":1}'}
    assert openai.digest_content([Text('{"n":1}'), result, Done()]) == {"text": '{"n":1}'}
    assert openai.digest_content([Text("x"), result, Done()]) == {"text": "x", "result": {"n": 1}}


def test_a_turn_that_failed_tells_nothing() -> None:
    with pytest.raises(Cancelled):
        openai.digest_content([Text("so far"), Failed.of(Cancelled())])
