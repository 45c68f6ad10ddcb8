"""What a turn waits for and what it is answered, as wires carry them."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.messages.events import Waiting
from carnet.core.messages.interrupt import Interrupt, Resolution, StatedResolution
from carnet.errors import MalformedCallerContext
from carnet.wire.dialects.policy import (
    MOST_BODY_BYTES,
    MOST_HEADER_BYTES,
    MOST_INTERRUPTS,
    MOST_RESOLUTION_BYTES,
    MOST_WORDS,
    addressed,
    interrupt_object,
    interrupt_objects,
    read_comment,
    read_header,
    read_interrupts,
    read_resolution,
    write_comment,
    write_header,
    write_resolution,
)
from carnet.wire.grammar.headers import Headers

WHOLE = Interrupt(
    id="int_1",
    state="s3cret",
    kind="payment",
    message="Two cents.",
    url="https://pay.example/1",
    amount=20_000,
    currency="credits",
    retry_after=3,
    expires_at="2026-11-16T12:00:00.000+00:00",
    origin="@seller@initech.example",
    schema={"type": "string"},
    options=("red", "blue"),
    more={"tariff": [1, {"x": None}]},
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def read_one(**members: Any) -> Interrupt:
    (asked,) = read_interrupts({"kind": "input", "id": "i", **members}, currency="credits")
    return asked


def read(text: str) -> StatedResolution | None:
    return read_resolution(Headers([(b"carnet-resolution", text.encode())]))


def test_what_is_written_is_read_again_with_the_members_that_nobody_knows() -> None:
    assert read_interrupts(interrupt_object(WHOLE), currency="credits") == (WHOLE,)
    waiting = Waiting((WHOLE, replace(WHOLE, id="int_2", state="other")))
    assert read_header(write_header(waiting), currency="credits") == waiting.interrupts
    assert read_comment(write_comment(waiting), currency="credits") == waiting.interrupts
    assert read_comment("keep-alive", currency="credits") == ()


def test_what_there_is_not_is_left_out() -> None:
    asked = Interrupt(id="i", kind="input", message="Which?")
    assert interrupt_object(asked) == {"id": "i", "kind": "input", "message": "Which?"}


def test_an_agent_that_names_nobody_asks_itself() -> None:
    asked = replace(WHOLE, origin=None)
    (ours,) = addressed(Waiting((asked,)), "seller", "acme.example").interrupts
    assert ours.origin == "@seller@acme.example"
    (theirs,) = addressed(Waiting((WHOLE,)), "seller", "acme.example").interrupts
    assert theirs.origin == WHOLE.origin


def test_a_header_is_shortened_until_it_fits_and_keeps_every_state_it_can() -> None:
    wide = replace(WHOLE, message="m" * MOST_WORDS, more={"x": "y" * 9000})
    several = Waiting(tuple(replace(wide, id=f"int_{n}", state=f"s{n}") for n in range(8)))
    written = write_header(several)
    assert len(written) <= MOST_HEADER_BYTES
    found = read_header(written, currency="credits")
    assert [each.state for each in found] == [each.state for each in several.interrupts]
    assert {each.amount for each in found} == {20_000}
    longest = tuple(replace(wide, id=f"{n}", state=f"{n}" + "s" * 1000) for n in range(9))
    assert len(write_header(Waiting(longest))) <= MOST_HEADER_BYTES
    widest = tuple(replace(WHOLE, id=f"{n}", more={"x": "y" * 16_000}) for n in range(9))
    assert len(json.dumps(interrupt_objects(Waiting(widest)))) <= MOST_BODY_BYTES
    assert len(interrupt_objects(Waiting(widest))) == 9
    assert interrupt_objects(Waiting(widest[:2])) == [interrupt_object(each) for each in widest[:2]]


@given(JSON)
def test_whatever_a_peer_writes_is_read_or_is_no_policy(value: Any) -> None:
    for asked in read_interrupts(value, currency="credits"):
        assert asked.kind
        assert len(asked.message) <= MOST_WORDS
    header = urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    assert read_header(header, currency="credits") == read_interrupts(value, currency="credits")


@pytest.mark.parametrize("text", [None, "", "%", "e30", "W10", "é", "A" * 300_000, "eyJ4"])
def test_a_header_that_holds_no_policy_is_none(text: str | None) -> None:
    assert read_header(text, currency="credits") == ()


def test_what_is_not_in_its_form_was_not_said() -> None:
    asked = read_one(
        message="tab\there\x00 and \x1b[31mred",
        state="has;separators",
        url="javascript:alert(1)",
        amount="1e9",
        currency="credits",
        retry_after=-1,
        expires_at="soon",
        schema=[],
        options="red",
        origin=["x"],
    )
    assert asked == Interrupt(id="i", kind="input", message="tab here and [31mred")
    assert read_one(message="m" * 5000).message == "m" * MOST_WORDS
    assert read_one(url="HTTPS://pay.example").url == "HTTPS://pay.example"
    assert read_one(id=7).id == read_one(id=7).id != read_one(id=8).id


def test_an_amount_in_another_currency_is_shown_and_never_counted() -> None:
    asked = read_one(amount="5", currency="eur")
    assert (asked.amount, asked.currency) == (None, None)
    assert interrupt_object(asked)["amount"] == "5"
    assert interrupt_object(asked)["currency"] == "eur"


def test_what_is_too_wide_or_too_deep_is_left_out() -> None:
    assert read_one(x="y" * 20_000).more is None
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    assert read_one(x=deep).more is None
    assert read_one(schema={"x": "y" * 20_000}, n=1) == read_one()
    assert read_one(x="nul\x00").more is None


def test_no_more_than_a_few_are_read_and_one_name_is_one_question() -> None:
    many = [{"kind": "input", "id": f"i{n}"} for n in range(30)]
    assert len(read_interrupts(many, currency="credits")) == MOST_INTERRUPTS
    same = [{"kind": "input", "id": "i"}, {"kind": "payment", "id": "i"}]
    (first,) = read_interrupts(same, currency="credits")
    assert first.kind == "input"


@pytest.mark.parametrize("outcome", ["accepted", "rejected"])
@pytest.mark.parametrize("value", [None, "text", {"a": [1, None]}, "ümlaut", 0, False])
def test_a_resolution_is_read_as_it_was_written(outcome: Any, value: Any) -> None:
    stated = StatedResolution("s-3c_ret", Resolution(outcome=outcome, value=value))
    assert read(write_resolution(stated)) == stated
    assert "s-3c" not in repr(stated)


def test_who_brings_none_brings_none() -> None:
    assert read_resolution(Headers([])) is None
    assert read(" ") is None


@pytest.mark.parametrize(
    "text",
    [
        *("s3cret", "s3cret;", ";outcome=accepted", "s3cret;outcome=", "s3cret;outcome=ACCEPTED"),
        *("s3cret;outcome=accepted;", "s3cret;outcome=accepted;value=", "a b;outcome=accepted"),
        *("s3cret;outcome=accepted;value=:e30:", "s3cret;outcome=accepted;value=:e30=:;x=1"),
        *("s3cret;outcome=accepted;value=::", "s3cret;outcome=accepted;outcome=rejected"),
        *("s3cret;value=:e30=:;outcome=accepted", "a,b;outcome=accepted"),
        "s3cret;outcome=accepted;value=:" + "A" * MOST_RESOLUTION_BYTES + ":",
        "s" * 1025 + ";outcome=accepted",
    ],
)
def test_a_resolution_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(MalformedCallerContext):
        read(text)


def test_two_resolutions_are_none() -> None:
    twice = [(b"carnet-resolution", b"s;outcome=accepted")] * 2
    with pytest.raises(MalformedCallerContext):
        read_resolution(Headers(twice))
