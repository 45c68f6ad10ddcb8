"""A tool call as people see it: labels, and what is hidden."""

import json

import pytest

from carnet.core.messages.events import ToolCall
from carnet.engine.tools.display import MOST_ARGUMENTS, MOST_LABEL, Cover, approved
from carnet.engine.tools.display import shown as shown_by
from carnet.ports.engine.tools import LoopTool
from carnet.stores.secrets.seal import WordSeal, draw_key
from carnet.wire.dialects.engine_chat.request import arguments_of
from carnet.wire.dialects.engine_chat.stream import HIDDEN, approval_of
from tests.engine.scene import call, tool

LOGIN = tool("login", hidden=frozenset({"password"}), label="Signing in as {name}")


def shown(asked: ToolCall, used: LoopTool | None) -> ToolCall:
    return shown_by(asked, used, Cover("alice"))


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


# ------------------------------------------------------------------ sealed


ASKED = call(name="login", arguments='{"name":"bob","password":{"pin":1}}')


def test_what_is_sealed_comes_back_for_who_acts_and_that_call_alone() -> None:
    seal = WordSeal(draw_key())
    seen = shown_by(ASKED, LOGIN, Cover("alice", seal))
    assert "pin" not in seen.arguments
    sealed = arguments_of(seen) or {}
    assert Cover("alice", seal).find(ASKED, sealed) == {"name": "bob", "password": {"pin": 1}}
    others = [
        (Cover("eve", seal), ASKED),
        (Cover("alice", WordSeal(draw_key())), ASKED),
        (Cover("alice", seal), call("c2", "login")),
        (Cover("alice", seal), call("c1", "send")),
    ]
    for cover, other in others:
        with pytest.raises(ValueError, match="argument"):
            cover.find(other, sealed)
    with pytest.raises(ValueError, match=r"."):
        Cover("alice", seal).find(ASKED, {"password": "sealed:not so"})
    # Whoever is asked to approve it is shown neither.
    assert (approval_of(seen).more or {})["arguments"] == {"name": "bob", "password": HIDDEN}
