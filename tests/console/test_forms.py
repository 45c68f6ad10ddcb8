"""Forms: what they send, and those that are made from a JSON Schema."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from carnet.console.forms import SentForm, fields_of, read_fields
from carnet.console.owner.inbox import decision_of
from carnet.errors import InvalidRequest
from carnet.wire.grammar.query import read_query

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "sure"],
    "properties": {
        "name": {"type": "string", "maxLength": 20, "title": "Name", "description": "Of whom."},
        "text": {"type": "string"},
        "count": {"type": "integer", "default": 3},
        "share": {"type": "number"},
        "sure": {"type": "boolean"},
        "size": {"enum": [1, "two", None]},
        "list": {"type": "array"},
    },
}


def form(**fields: str) -> SentForm:
    return SentForm(read_query(urlencode(fields)))


def test_a_schema_becomes_fields_of_a_form() -> None:
    fields = fields_of(SCHEMA)
    assert fields is not None
    shapes = {each["name"]: each["shape"] for each in fields}
    assert shapes == {
        "name": "line",
        "text": "text",
        "count": "integer",
        "share": "number",
        "sure": "mark",
        "size": "choice",
        "list": "json",
    }
    assert [each["name"] for each in fields if each["is_needed"]] == ["name", "sure"]
    assert fields[5]["choices"] == ["1", "two", "null"]
    assert fields[2]["default"] == "3"
    many: dict[str, Any] = {"properties": {str(number): {} for number in range(65)}}
    none: list[Any] = [None, True, {}, {"properties": []}, many]
    assert [fields_of(each) for each in none] == [None] * 5


def test_what_is_filled_in_becomes_what_the_schema_says() -> None:
    sent = {
        "field.name": " Ann ",
        "field.count": "7",
        "field.share": "0.5",
        "field.size": "1",
        "field.list": "[1, 2]",
        "field.text": "",
        "other": "x",
    }
    assert read_fields(form(**sent), SCHEMA) == {
        "name": " Ann ",
        "count": 7,
        "share": 0.5,
        "sure": False,
        "size": 1,
        "list": [1, 2],
    }


@pytest.mark.parametrize("name", ["count", "list"])
def test_what_cannot_be_read_is_told_by_its_field(name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_fields(form(**{f"field.{name}": "[not"}), SCHEMA)
    assert refused.value.facts["field"] == name


def test_a_field_that_stands_once_may_not_stand_twice() -> None:
    with pytest.raises(InvalidRequest):
        SentForm(read_query("outcome=accepted&outcome=rejected")).text("outcome")


ASKED: dict[str, Any] = {"arguments": None, "schema": None}


@pytest.mark.parametrize(
    ("sent", "asked", "decision"),
    [
        ({"outcome": "accepted"}, ASKED, {"outcome": "accepted"}),
        ({"outcome": "rejected", "value": "x"}, ASKED, {"outcome": "rejected"}),
        ({"outcome": "without"}, ASKED, {"outcome": "rejected", "value": "without"}),
        ({"outcome": "accepted", "value": "M"}, ASKED, {"outcome": "accepted", "value": "M"}),
        (
            {"outcome": "accepted", "remember": "yes", "ceiling": "1"},
            ASKED,
            {"outcome": "accepted", "remember": {"ceiling": "1"}},
        ),
        ({"outcome": "rejected", "remember": "yes"}, ASKED, {"outcome": "rejected"}),
        (
            {"outcome": "accepted", "arguments": json.dumps({"to": "all"}, indent=2)},
            ASKED | {"arguments": {"to": "all"}},
            {"outcome": "accepted"},
        ),
        (
            {"outcome": "accepted", "arguments": '{"to": "bob"}'},
            ASKED | {"arguments": {"to": "all"}},
            {"outcome": "accepted", "value": {"to": "bob"}},
        ),
        (
            {"outcome": "accepted", "field.name": "Ann"},
            ASKED | {"schema": SCHEMA},
            {"outcome": "accepted", "value": {"name": "Ann", "sure": False}},
        ),
    ],
)
def test_a_form_says_what_is_decided(
    sent: dict[str, str], asked: dict[str, Any], decision: dict[str, Any]
) -> None:
    assert decision_of(form(**sent), asked) == decision


def test_a_form_without_an_outcome_decides_nothing() -> None:
    for outcome in ({}, {"outcome": "maybe"}):
        with pytest.raises(InvalidRequest):
            decision_of(form(**outcome), ASKED)
