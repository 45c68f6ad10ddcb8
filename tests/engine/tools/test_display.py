"""A tool call as people see it: labels, and what is hidden."""

import json

import pytest

from carnet.engine.tools.display import HIDDEN, MOST_ARGUMENTS, MOST_LABEL, approved, shown
from tests.engine.scene import call, tool

LOGIN = tool("login", hidden=frozenset({"password"}), label="Signing in as {name}")


def test_a_hidden_argument_is_not_shown_and_the_label_is() -> None:
    seen = shown(call(name="login", arguments='{"name":"bob","password":"pw-1"}'), LOGIN)
    assert json.loads(seen.arguments) == {"name": "bob", "password": HIDDEN}
    assert seen.label == "Signing in as bob"
    assert "pw-1" not in str(seen)


def test_a_label_shows_nothing_that_is_hidden_either() -> None:
    leaky = tool("login", hidden=frozenset({"password"}), label="With {password} and {none}")
    assert shown(call(arguments='{"password":"pw-1"}'), leaky).label == "With *** and "


@pytest.mark.parametrize("arguments", ["[1]", "{", '"pw-1"'])
def test_arguments_that_are_no_object_are_not_shown_where_something_is_hidden(
    arguments: str,
) -> None:
    assert shown(call(arguments=arguments), LOGIN).arguments == "{}"


def test_a_label_is_one_short_line() -> None:
    seen = shown(call(arguments=json.dumps({"name": "a\nb\x1b" + 1000 * "x"})), LOGIN)
    assert len(seen.label) == MOST_LABEL
    assert seen.label.isprintable()
    assert shown(call(arguments='{"name":{"a":1}}'), LOGIN).label == 'Signing in as {"a":1}'


def test_other_calls_are_shown_as_the_model_wrote_them() -> None:
    asked = call(arguments='{ "b": 1, "a": 2 }')
    assert shown(asked, tool()) == shown(asked, None) == asked
    long = call(arguments=json.dumps({"a": MOST_ARGUMENTS * "x"}))
    assert shown(long, tool()).arguments == "{}"


def test_what_was_left_hidden_in_an_approval_has_not_changed() -> None:
    true = {"name": "bob", "password": "pw-1"}
    assert approved({"name": "eve", "password": HIDDEN}, true, LOGIN) == {**true, "name": "eve"}
    assert approved({"password": "pw-2"}, true, LOGIN) == {"password": "pw-2"}
    assert approved({"password": HIDDEN}, {}, LOGIN) == {"password": HIDDEN}
