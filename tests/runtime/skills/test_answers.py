"""An answer is compared with what was asked for, in bounded time whoever wrote the schema."""

import time
from typing import Any

import pytest

from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.errors import InvalidRequest
from carnet.runtime.skills.answers import MOST_WORK, check_answer

ADDRESS = {
    "type": "object",
    "properties": {"street": {"$ref": "#/$defs/line"}, "town": {"$ref": "#/$defs/line"}},
    "required": ["street"],
    "$defs": {"line": {"type": "string", "maxLength": 40, "pattern": "^[A-Za-z0-9 ]+$"}},
}


def refused(value: object, schema: dict[str, Any] | None = None, *options: str) -> str | None:
    asked = Interrupt(kind="input", message="Which?", schema=schema, options=options)
    try:
        check_answer(asked, Resolution(outcome="accepted", value=value))
    except InvalidRequest as error:
        return str(error.facts["reason"])
    return None


def doubled(levels: int, word: str = "allOf") -> dict[str, Any]:
    """A schema whose references lead twice to the next, and so on: 2 ** levels places."""
    twice = {f"d{n}": {word: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": twice | {f"d{levels}": {"type": "string"}}}


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_an_answer_is_one_of_the_options() -> None:
    assert refused("red", None, "red", "blue") is None
    assert refused("green", None, "red", "blue") == "must be one of the options"
    assert refused(None, None, "red") == "must be one of the options"
    assert refused(["red"], None, "red") == "must be one of the options"


def test_an_answer_has_the_shape_of_the_schema_with_its_references() -> None:
    assert refused({"street": "Main 1", "town": "Ulm"}, ADDRESS) is None
    for wrong in ({"street": 1}, {"town": "Ulm"}, {"street": "<b>"}, "Main 1", None):
        assert refused(wrong, ADDRESS) == "does not fit the schema of what is asked for"


def test_a_payment_takes_no_value_and_arguments_are_an_object() -> None:
    payment = Interrupt(kind="payment", message="Two cents", amount=20_000)
    leave = Interrupt(kind="approval", message="May I?", more={"arguments": {"to": "bob"}})
    for asked, value in ((payment, "x"), (payment, {}), (leave, "eve"), (leave, ["eve"])):
        with pytest.raises(InvalidRequest):
            check_answer(asked, Resolution(outcome="accepted", value=value))
        check_answer(asked, Resolution(outcome="accepted"))
        check_answer(asked, Resolution(outcome="rejected", value=value))
    check_answer(leave, Resolution(outcome="accepted", value={"to": "eve"}))
    tip = Interrupt(kind="payment", message="A tip?", amount=1, options=("none", "some"))
    check_answer(tip, Resolution(outcome="accepted", value="some"))


def test_what_is_declined_needs_no_value() -> None:
    asked = Interrupt(kind="input", message="Which?", options=("red",), schema={"type": "string"})
    check_answer(asked, Resolution(outcome="rejected"))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubled(40), "x"),
        (doubled(40, "anyOf"), 1),
        (doubled(40, "oneOf"), "x"),
        ({"anyOf": [{"type": "array", "items": {"$ref": "#"}}] * 4}, nested(30)),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, 1),
        ({"$id": "x:y", "allOf": [{"$ref": "y#/allOf/0"}] * 2}, 1),
        ({"$dynamicAnchor": "a", "allOf": [{"items": {"$dynamicRef": "#a"}}] * 3}, nested(30)),
        ({"allOf": [{"pattern": "^(a?){900}(a?){900}$"}] * 100}, "a" * 10_000),
        ({"allOf": [{"pattern": "x" * 1025}]}, "x"),
        ({"pattern": "(?=a)b"}, "b"),
        ({"$ref": "https://elsewhere.example/schema"}, 1),
        ({"$ref": "#/not/there"}, 1),
        ({"type": "nothing"}, 1),
    ],
)
def test_a_schema_that_nobody_can_hold_to_costs_no_time(schema: dict[str, Any], value: Any) -> None:
    began = time.thread_time()
    assert refused(value, schema) is None
    assert time.thread_time() - began < 1


def test_a_value_that_is_long_for_its_schema_is_refused_unread() -> None:
    wide = {"items": {"allOf": [{"type": "integer"}] * 400}}
    began = time.thread_time()
    assert refused([1] * (MOST_WORK // 400), wide) == "is too long for what is asked for"
    assert refused([1] * 500, wide) is None
    assert refused(["x"] * 500, wide) == "does not fit the schema of what is asked for"
    assert time.thread_time() - began < 1


def test_the_most_work_that_is_done_holds_nobody_up() -> None:
    wide = {"items": {"allOf": [{"type": "integer"}] * 900}}
    longest = [1] * (MOST_WORK // 2000 // 2)
    began = time.thread_time()
    assert refused(longest, wide) is None
    assert time.thread_time() - began < 0.25
