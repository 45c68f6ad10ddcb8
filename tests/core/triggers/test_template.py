"""The message of an event: what stands in its places, and what is no template."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.triggers.template import (
    CUT,
    MOST_CHARACTERS,
    MOST_LEVELS,
    MOST_OF_PLACE,
    MOST_PLACES,
    MOST_WRITTEN,
    NO_SIGN,
    read_template,
)
from carnet.errors import InvalidRequest
from carnet.wire.grammar.json import write_text
from tests.core.growth import SQUARE, times_as_long

BODY: dict[str, Any] = {
    "order": {"id": "o_1", "total": 12.5, "paid": True, "note": None},
    "items": [{"title": "A tea pot"}, {"title": "{{ event }}"}],
}


def made(template: str, body: Any = BODY) -> str:
    values = {"body": body, "event": "evt_1", "hook": "orders"}
    return read_template(template).write(values, write_text)


def test_places_hold_what_the_event_says() -> None:
    text = "Order {{ body.order.id }} ({{body.order.total}}, {{ body.order.paid }}) by {{ hook }}"
    assert made(text) == "Order o_1 (12.5, true) by orders"
    assert made("{{ body.items.0.title }}") == "A tea pot"
    assert made("{{ body.order }}") == '{"id":"o_1","total":12.5,"paid":true,"note":null}'
    assert made("{{ body }}", [1]) == "[1]"
    assert made("plain { braces }") == "plain { braces }"


@pytest.mark.parametrize(
    "way", ["body.nothing", "body.order.note", "body.items.2", "body.items.x", "body.order.id.x"]
)
def test_where_there_is_nothing_nothing_stands(way: str) -> None:
    assert made(f"[{{{{ {way} }}}}]") == "[]"


def test_what_an_event_says_is_never_read_as_a_template() -> None:
    assert made("{{ body.items.1.title }} {{ event }}") == "{{ event }} evt_1"


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "{{ body", "body }}", "{{ }}", "{{ env.HOME }}", "{{ body.__class__() }}"),
        *("{{ body..a }}", "{{ body.a b }}", "{{ body | upper }}", "{% if body %}{{", "{{ Body }}"),
        "{{ body." + ".".join("a" * MOST_LEVELS) + " }}",
        "{{ body }}" * (MOST_PLACES + 1),
        "a" * (MOST_CHARACTERS + 1),
    ],
)
def test_anything_else_in_braces_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_template(text)
    assert refusal.value.facts["field"] == "template"


def test_what_is_made_is_bounded() -> None:
    place = made("{{ body }}", "x" * (MOST_OF_PLACE + 1))
    assert len(place) == MOST_OF_PLACE
    assert place.endswith(CUT)
    whole = made("{{ body }}" * MOST_PLACES, "y" * MOST_OF_PLACE)
    assert len(whole) == MOST_WRITTEN


@given(st.text(max_size=200))
def test_a_text_stands_as_it_is(text: str) -> None:
    shown = text.replace("\0", NO_SIGN)  # that one sign no store need hold
    assert made("<{{ body.text }}>", {"text": text}) == f"<{shown}>"


@pytest.mark.parametrize("piece", ["{", "{{ ", "{{ }", "}}", "{{ body }} {{"])
def test_to_read_a_template_takes_time_that_grows_as_its_text_does(piece: str) -> None:
    text = (piece * MOST_CHARACTERS)[:MOST_CHARACTERS]

    def refused(many: int) -> None:
        with pytest.raises(InvalidRequest):
            read_template(text[:many])

    assert times_as_long(refused, MOST_CHARACTERS) < SQUARE
