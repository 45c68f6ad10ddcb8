"""The commands that answer a question: they can be typed as they stand, whatever an agent wrote."""

from shlex import split
from typing import Any

import pytest

from carnet.cli.call.advice import answer_advice
from carnet.cli.call.answers import MOST_OPTIONS, approvals, as_whom, check, denial
from carnet.errors import UsageInvalid


def question(**more: Any) -> dict[str, Any]:
    return {"id": "int_1", "kind": "input", "status": "open", "message": "Which?", **more}


def refused(asked: dict[str, Any], **answer: Any) -> UsageInvalid | None:
    try:
        check(asked, {"outcome": "accepted", **answer}, None)
    except UsageInvalid as error:
        return error
    return None


def test_a_plain_question_is_approved_or_denied() -> None:
    assert approvals(question(kind="approval"), None) == ["carnet inbox approve int_1"]
    assert denial(question(), None) == "carnet inbox deny int_1"


def test_each_option_is_named_as_a_shell_takes_it() -> None:
    options = ["red", "light blue", "$(rm -rf ~)", "it's\x1b[2J"]
    commands = approvals(question(options=options), None)
    assert [split(command)[-1] for command in commands[:3]] == options[:3]
    assert "\x1b" not in commands[3]
    many = [f"option {n}" for n in range(MOST_OPTIONS + 1)]
    assert approvals(question(options=many), None) == ["carnet inbox approve int_1 --value OPTION"]


@pytest.mark.parametrize(
    ("schema", "ends"),
    [
        ({"type": "string"}, "--value TEXT"),
        ({"enum": ["light blue", "red"]}, "--value 'light blue'"),
        ({"type": "integer"}, "--json 1"),
        ({"type": "boolean"}, "--json true"),
        (
            {"type": "object", "properties": {"n": {"type": "integer"}, "to": {"type": "string"}}},
            """--json '{"n":1,"to":"..."}'""",
        ),
        ({"$ref": "#"}, "--value TEXT"),
    ],
)
def test_a_schema_is_shown_by_something_of_its_shape(schema: dict[str, Any], ends: str) -> None:
    (command,) = approvals(question(schema=schema), None)
    assert command == f"carnet inbox approve int_1 {ends}"


def test_a_schema_without_end_has_an_example_that_ends() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["again"] = schema
    (command,) = approvals(question(schema=schema), None)
    assert command.count("again") == 4


def test_arguments_can_be_agreed_to_or_changed() -> None:
    plain, changed = approvals(question(kind="approval", arguments={"to": "bob"}), None)
    assert plain == "carnet inbox approve int_1"
    assert changed == """carnet inbox approve int_1 --json '{"to":"bob"}'"""


def test_a_token_is_named_by_its_file_and_never_printed() -> None:
    assert as_whom(None) == ""
    assert as_whom("@my tokens/alice") == " --as '@my tokens/alice'"
    assert as_whom("carnet_s3cret") == " --as TOKEN"
    assert denial(question(), "@alice.token") == "carnet inbox deny int_1 --as @alice.token"


def test_what_a_gateway_would_refuse_is_refused_with_what_to_type() -> None:
    options = question(options=["red", "blue"])
    for wrong in (None, "green"):
        error = refused(options, value=wrong)
        assert error is not None
        assert "one of: red, blue" in error.safe_text
        assert "--value red" in error.next_step
    assert refused(options, value="red") is None
    assert refused(question(schema={"type": "integer"}), value=None) is not None
    assert refused(question(schema={"type": "integer"}), value=3) is None
    ceiling = refused(question(kind="payment"), remember={"ceiling": None})
    assert ceiling is not None
    assert "--up-to AMOUNT" in ceiling.next_step
    assert refused(question(kind="payment"), remember={"ceiling": "1"}) is None
    assert refused(question(kind="approval"), remember={"ceiling": None}) is None


def test_what_is_declined_or_was_answered_is_left_to_the_gateway() -> None:
    asked = question(options=["red"])
    check(asked, {"outcome": "rejected", "value": None}, None)
    check({**asked, "status": "resolved"}, {"outcome": "accepted", "value": None}, None)


@pytest.mark.parametrize("ends", ["Mail to bob", "Mail to bob."])
def test_the_question_ends_before_the_commands_begin(ends: str) -> None:
    asked = question(kind="approval", message=ends, origin="@a@b.example")
    advice = answer_advice(asked, None)
    assert advice.startswith(
        "@a@b.example asks: Mail to bob. Answer it: carnet inbox approve int_1,"
    )
