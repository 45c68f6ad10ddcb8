"""Schemas of skills: what is refused at start, what at a call, and in which words."""

import socket
from typing import Any

import pytest

from carnet.core.people.identity import CHAT, Skill
from carnet.errors import AgentFailed, ConfigInvalid, SchemaInvalid
from carnet.runtime.skills import schemas
from carnet.runtime.skills.schemas import MAX_PATTERN, CompiledSchemas

ANY: dict[str, Any] = {"type": "object"}


def skill(given: dict[str, Any], returned: dict[str, Any] = ANY) -> Skill:
    return Skill(
        id="review", name="review", description="x", input_schema=given, output_schema=returned
    )


def of(code: Any, **more: Any) -> Skill:
    """A skill whose input has one field."""
    return skill({"type": "object", "properties": {"code": code}, **more})


def refusal(asked: Skill, payload: dict[str, Any]) -> str:
    with pytest.raises(SchemaInvalid) as refused:
        CompiledSchemas().check_input("writer", asked, payload)
    assert refused.value.public_facts().keys() <= {"field"}
    return refused.value.safe_text


SECRET = "hunter2hunter2"

CASES: list[tuple[Any, Any, str]] = [
    ({"maxLength": 5}, SECRET, "Field 'code' exceeds maxLength of 5 characters"),
    ({"minLength": 50}, SECRET, "Field 'code' is below minLength of 50 characters"),
    ({"pattern": "^[0-9]+$"}, SECRET, "Field 'code' does not match pattern ^[0-9]+$"),
    ({"pattern": "^" + "[0-9]" * 60}, SECRET, "Field 'code' does not match pattern"),
    ({"format": "date-time"}, SECRET, "Field 'code' is not of format date-time"),
    ({"format": "uuid"}, SECRET, "Field 'code' is not of format uuid"),
    ({"format": "email"}, SECRET, "Field 'code' is not of format email"),
    ({"format": "duration"}, SECRET, "Field 'code' is not of format duration"),
    ({"maximum": 10}, 4711, "Field 'code' exceeds maximum of 10"),
    ({"minimum": 9999}, 4711, "Field 'code' is below minimum of 9999"),
    ({"exclusiveMaximum": 10}, 4711, "Field 'code' must be less than exclusiveMaximum of 10"),
    ({"exclusiveMinimum": 9999}, 4711, "Field 'code' must be more than exclusiveMinimum of 9999"),
    ({"multipleOf": 10}, 4711, "Field 'code' is not a multipleOf 10"),
    ({"type": "integer"}, SECRET, "Field 'code' must be of type integer"),
    ({"type": ["integer", "null"]}, SECRET, "Field 'code' must be of type integer or null"),
    ({"enum": ["a", 1]}, SECRET, "Field 'code' must be one of \"a\", 1"),
    ({"enum": ["a" * 300]}, SECRET, "Field 'code' is not one of the enum's values"),
    ({"const": "a"}, SECRET, "Field 'code' must be \"a\""),
    ({"const": "a" * 300}, SECRET, "Field 'code' is not the const that it must be"),
    ({"maxItems": 0}, [SECRET], "Field 'code' exceeds maxItems of 0"),
    ({"minItems": 2}, [SECRET], "Field 'code' is below minItems of 2"),
    ({"uniqueItems": True}, [SECRET, SECRET], "Field 'code' has equal items (uniqueItems)"),
    (
        {"contains": {"type": "null"}},
        [SECRET],
        "Field 'code' does not contain what it must (contains)",
    ),
    ({"items": {"type": "null"}}, [None, SECRET], "Field 'code[1]' must be of type null"),
    ({"prefixItems": [{}], "items": False}, [1, SECRET], "Field 'code[1]' is not allowed"),
    (
        {"prefixItems": [{}], "unevaluatedItems": False},
        [1, SECRET],
        "Field 'code' has items that are not allowed (unevaluatedItems)",
    ),
    ({"maxProperties": 0}, {"x": SECRET}, "Field 'code' exceeds maxProperties of 0"),
    ({"minProperties": 2}, {"x": SECRET}, "Field 'code' is below minProperties of 2"),
    ({"required": ["y"]}, {"x": SECRET}, "Field 'code.y' is required"),
    ({"dependentRequired": {"x": ["y"]}}, {"x": SECRET}, "Field 'code.y' is required"),
    (
        {"properties": {"y": {}}, "additionalProperties": False},
        {"y": 1, "x": SECRET},
        "Field 'code.x' is not allowed (additionalProperties)",
    ),
    (
        {"additionalProperties": False},
        {"x": SECRET},
        "Field 'code' may have no properties (additionalProperties)",
    ),
    (
        {"unevaluatedProperties": False},
        {"x": SECRET},
        "Field 'code.x' is not allowed (unevaluatedProperties)",
    ),
    (
        {"propertyNames": {"maxLength": 1}},
        {"xyz": SECRET},
        "Field 'code' has a property whose name is not allowed (propertyNames)",
    ),
    ({"patternProperties": {"^x": {"type": "null"}}}, {"x1": 1}, "Field 'code.x1' must be of"),
    ({"additionalProperties": {"type": "null"}}, {"x\ny": 1}, "Field 'code.(unprintable)' must"),
    ({"not": {}}, SECRET, "Field 'code' has a form that is not allowed (not)"),
    (False, SECRET, "Field 'code' is not allowed"),
    (
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        SECRET,
        "Field 'code' has none of the forms that are allowed (anyOf)",
    ),
    (
        {"oneOf": [{"type": "integer"}, {"type": "null"}]},
        SECRET,
        "Field 'code' has none of the forms that are allowed (oneOf)",
    ),
    (
        {"oneOf": [{"type": "string"}, {"minLength": 1}]},
        SECRET,
        "Field 'code' has more than one of the forms that are allowed (oneOf)",
    ),
    (
        {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
        SECRET,
        "Field 'code' exceeds maxLength of 5 characters",
    ),
    (
        {"anyOf": [{"properties": {"x": {"type": "null"}}, "type": "object"}, {"type": "null"}]},
        {"x": SECRET},
        "Field 'code.x' must be of type null",
    ),
    (
        {"if": {"type": "string"}, "then": {"maxLength": 5}},
        SECRET,
        "Field 'code' exceeds maxLength",
    ),
]


@pytest.mark.parametrize(("code", "value", "beginning"), CASES, ids=[case[2] for case in CASES])
def test_a_refusal_names_the_field_and_the_constraint_and_never_the_value(
    code: Any, value: Any, beginning: str
) -> None:
    text = refusal(of(code), {"code": value})
    assert text.startswith(beginning)
    assert SECRET not in text
    assert "4711" not in text


def test_the_example_of_the_protocol_reads_as_it_is_written() -> None:
    asked = of({"type": "string", "maxLength": 50_000})
    text = refusal(asked, {"code": "x" * 50_001})
    assert text == "Field 'code' exceeds maxLength of 50000 characters"


def test_a_payload_as_a_whole_is_named_so() -> None:
    assert refusal(skill({"minProperties": 1}), {}) == "Field 'payload' is below minProperties of 1"
    assert refusal(CHAT, {}) == "Field 'text' is required"


def test_what_older_drafts_call_by_other_names_is_known_too() -> None:
    draft = {"$schema": "http://json-schema.org/draft-07/schema#"}
    code = {"items": [{}], "additionalItems": False, "contentEncoding": "base64"}
    asked = skill({**draft, "properties": {"code": code}})
    assert refusal(asked, {"code": [1, 2]}) == "Field 'code' exceeds the 1 items that are allowed"
    assert refusal(asked, {"code": "%"}) == "Field 'code' is not of contentEncoding base64"


@pytest.mark.parametrize("text", ["P1D", "PT0.5S", "-PT86396.5S", "+P1Y2M3DT4H5M6S", "P2W"])
def test_a_duration_may_have_a_sign(text: str) -> None:
    CompiledSchemas().check_input("writer", of({"format": "duration"}), {"code": text})


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1", "--P1D", "P1DT", "P1D\n"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    refusal(of({"format": "duration"}), {"code": text})


@pytest.mark.parametrize(
    "reference", ["$ref", "$dynamicRef"], ids=["an ordinary reference", "a dynamic one"]
)
@pytest.mark.parametrize("scheme", ["http", "https", "file", "relative"])
def test_a_schema_that_leads_elsewhere_is_refused_and_nothing_is_fetched(
    reference: str, scheme: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        where = {"file": "file:///etc/hostname", "relative": "other.json"}
        uri = where.get(scheme, f"{scheme}://127.0.0.1:{port}/schema.json")
        asked = of({reference: uri})
        with pytest.raises(ConfigInvalid) as refused:
            CompiledSchemas().compile("writer", [asked])
        with pytest.raises(BlockingIOError):  # nobody has knocked
            server.accept()
    assert refused.value.facts["key"] == "agents.writer.target"
    assert "input schema of skill 'review'" in str(refused.value)


def test_a_reference_within_the_schema_is_followed() -> None:
    definitions = {"Code": {"type": "string"}, "Tree": {"items": {"$ref": "#/$defs/Tree"}}}
    asked = of({"$ref": "#/$defs/Code"}, **{"$defs": definitions})
    assert refusal(asked, {"code": 1}) == "Field 'code' must be of type string"


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "text"},
        {"pattern": "("},
        {"pattern": "a{1000}{1000}{1000}"},
        {"pattern": r"^(?=a)(a+)+$"},
        {"pattern": r"(?<=a)(a+)+$"},
        {"pattern": r"^(a*)*\1$"},
        {"$ref": "#/$defs/none"},
        {"required": "x"},
    ],
)
def test_a_broken_schema_is_told_at_start(broken: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid):
        CompiledSchemas().compile("writer", [of(broken)])
    with pytest.raises(ConfigInvalid, match="output schema"):
        CompiledSchemas().compile("writer", [skill(ANY, {"properties": {"x": broken}})])


@pytest.mark.parametrize("size", [MAX_PATTERN, MAX_PATTERN + 1])
def test_a_pattern_that_is_too_long_is_told_at_start(size: int) -> None:
    schemas: list[dict[str, Any]] = [
        {"allOf": [{"pattern": "a" * size}]},
        {"patternProperties": {"a" * size: {}}},
    ]
    for schema in schemas:
        if size <= MAX_PATTERN:
            CompiledSchemas().compile("writer", [of(schema)])
        else:
            with pytest.raises(ConfigInvalid, match="pattern of more than 1024 characters"):
                CompiledSchemas().compile("writer", [of(schema)])


@pytest.mark.parametrize(
    "pattern",
    [r"^(a+)+$", r"^(a|a)*$", r"^(\w+\s?)*$", r"^(a*)*b$", r"^(?:a?){500}a{500}$"],
)
def test_no_pattern_makes_a_payload_expensive(pattern: str) -> None:
    schemas, asked = CompiledSchemas(), of({"pattern": pattern})
    schemas.compile("writer", [asked])
    with pytest.raises(SchemaInvalid):  # at once, or the test never ends
        schemas.check_input("writer", asked, {"code": "a" * 100_000 + "!"})


def test_each_schema_is_compiled_once() -> None:
    schemas, asked = CompiledSchemas(), of({"type": "string"})
    schemas.compile("writer", [asked])
    first = schemas._of("writer", asked)  # noqa: SLF001
    schemas.check_input("writer", asked, {"code": "x"})
    assert schemas._of("writer", asked) is first  # noqa: SLF001


def test_a_result_that_does_not_fit_is_told_to_our_log_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = skill(ANY, {"properties": {"text": {"type": "string"}}})
    CompiledSchemas().check_output("writer", asked, {"text": "well"})
    with pytest.raises(AgentFailed) as failed:
        CompiledSchemas().check_output("writer", asked, {"text": 4711})
    assert failed.value.safe_text == "The agent failed while answering."
    assert "skill review does not fit its schema: field 'text' must be of type string" in (
        caplog.text
    )
    assert "4711" not in caplog.text


def test_what_cannot_be_followed_is_refused() -> None:
    asked = skill({"additionalProperties": {"$ref": "#"}})
    payload: dict[Any, Any] = {1: 2}
    assert refusal(asked, payload) == "Field 'payload' cannot be checked"


def test_names_of_agents_elsewhere_without_end_fill_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schemas, "MOST_KEPT", 3)
    kept = CompiledSchemas()
    for number in range(10):
        kept.check_input(f"@agent-{number}@globex.example", CHAT, {"text": "hi"})
        assert len(kept) <= 3


def test_what_is_wrong_with_a_large_payload_is_told_by_its_beginning() -> None:
    """Of a choice that nothing fits every failure is told: here there would be 200,000."""
    choice = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
    assert refusal(of(choice), {"code": [0] * 99_000}) == "Field 'code[0]' must be of type string"
    late = {"code": ["x"] * 90_000 + [0]}
    assert refusal(of(choice), late) == "Field 'payload' does not fit its schema"
    both = skill({"type": "object", "properties": {"code": choice}, "required": ["code", "last"]})
    assert refusal(both, {"code": ["x"] * 90_000}) == "Field 'payload' does not fit its schema"
    assert refusal(both, {"code": ["x"]}) == "Field 'last' is required"
    CompiledSchemas().check_input("writer", both, {"code": ["x"] * 90_000, "last": 1})
