"""`carnet serve` where it runs already, and the line to paste for whatever the default agent is."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from carnet.assembly.banner import example
from tests.support.organisation import Organisation

CLERK = '''
import carnet

clerk = carnet.agent("clerk")


@clerk.skill("book")
async def book(day: str, seats: int, quiet: bool) -> str:
    """Book seats."""
    return f"{seats} on {day}"
'''


@pytest.mark.parametrize("options", [(), ("--port", "0")])
def test_a_second_serve_says_that_the_gateway_runs_and_where(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    acme = Organisation(tmp_path, "acme.example")
    acme.start()
    again = acme.try_carnet("serve", *options)
    assert again.returncode == 2
    assert f"is already running, at {acme.url}." in again.stderr
    assert "in use by another program" not in again.stderr
    assert acme.stop() == 0


def test_the_line_to_paste_calls_a_skill_where_the_agent_has_no_chat(tmp_path: Path) -> None:
    acme = Organisation(tmp_path, "acme.example")
    (tmp_path / "agents.py").write_text(CLERK)
    config = tmp_path / "carnet.toml"
    text = config.read_text().replace("[agents.echo]", "[agents.clerk]")
    config.write_text(text.replace("agents:echo", "agents:clerk"))
    acme.start()
    try:
        printed = acme.errors.read_text()
        line = printed.partition("Try it:\n")[2].strip()
        program, called = line.split(" call ", 1)
        assert program.endswith("carnet")
        ran = acme.try_carnet("call", *shlex.split(called))
        assert (ran.returncode, ran.stdout) == (0, "1 on hello\n"), ran.stderr
    finally:
        acme.stop()


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
        ({"properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}, {"a": "x"}),
        ({"type": "integer", "minimum": 7}, 7),
        ({"type": "number", "exclusiveMinimum": 2}, 3),
        ({"type": ["string", "null"], "maxLength": 2}, "he"),
        ({"type": "string", "format": "date"}, "2027-01-15"),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True]),
        ({"anyOf": [{"const": 5}, {"type": "null"}]}, 5),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "boolean"}}}, True),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "hello"),
        ({"type": "null"}, None),
        (True, "hello"),
    ],
)
def test_an_example_is_what_a_schema_takes(schema: Any, value: Any) -> None:
    assert example(schema, schema if isinstance(schema, dict) else {}) == value


def test_an_example_of_what_holds_itself_ends() -> None:
    node: dict[str, Any] = {"$ref": "#/$defs/N"}
    root = {"$defs": {"N": {"properties": {"next": node}, "required": ["next"]}}, **node}
    found, levels = example(root, root), 0
    while found is not None:
        found, levels = found["next"], levels + 1
    assert levels < 9
