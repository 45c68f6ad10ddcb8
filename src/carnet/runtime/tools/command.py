"""A program as a tool: its arguments are a template, and models fill in the blanks.

    command = ["git", "log", "--max-count={count}", "--", "{path}"]

Law 1. There is no shell. A value fills in within one argument, whatever it holds, and can neither
       end that argument nor begin another.
Law 2. A value does not become an option: an argument that begins with one is refused where it would
       begin with `-`, unless `--` stands before it.
Law 3. An argument is left out where none of its values is given.
Law 4. Values that do not fit are refused before anything is started, by field and rule.
Law 5. So many run at once, and of them a part for each whom they run for; the others wait.
Law 6. An exit code other than 0 is a failure that the model is told, with what the program said of
       it. A program that cannot be started cannot be used.
"""

import errno
from collections.abc import Mapping
from string import Formatter
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.people.identity import Skill
from carnet.errors import ConfigInvalid, ToolUnusable
from carnet.ports.engine.tools import ToolFailed, ToolUse
from carnet.runtime.skills.schemas import CompiledSchemas
from carnet.runtime.skills.types import OBJECT
from carnet.runtime.tools.process import Ended, Launch, ended, running
from carnet.runtime.tools.room import FairRoom
from carnet.wire.grammar import json

MOST_OUTPUT: Final = 256 * 1024  # bytes of each stream that are kept
MOST_ERRORS: Final = 4_000  # characters of what a program says of its failure
MOST_PROCESSES: Final = 32  # of one tool that run at once
MOST_OF_ONE: Final = 8  # of them for one actor
TOO_LONG: Final = "The values are longer than a program can be given."
TEXT: Final = {"type": "string"}
CORRELATION: Final = "CARNET_CORRELATION_ID"  # the variable with the name of the request

CONTEXT: Final = "CARNET_CLIENT_CONTEXT"  # and with what a person's client says of itself, as JSON

_ZERO: Final = "\0"
_NO_MORE_OPTIONS: Final = "--"
_ABSENT: Final = object()


def _context(use: ToolUse) -> dict[str, str]:
    return {CONTEXT: json.write_text(dict(use.client_context))} if use.client_context else {}


class Template:
    """The arguments of a program, with names where values stand."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        """Raises ValueError, in words for whoever wrote it."""
        self._arguments = [_parsed(argument) for argument in arguments]
        if any(name for _, name in self._arguments[0]):
            raise ValueError("begins with a parameter; the program itself is fixed")

    @property
    def names(self) -> tuple[str, ...]:
        """Of the values, in their order."""
        found = [name for argument in self._arguments for _, name in argument if name]
        return tuple(dict.fromkeys(found))

    def fill(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """The arguments; ToolFailed for a value that cannot stand where it would."""
        found: list[str] = []
        for argument in self._arguments:
            filled = _filled(argument, values)
            if filled is None:
                continue
            begins = not argument[0][0] and argument[0][1]
            if begins and filled.startswith("-") and _NO_MORE_OPTIONS not in found:
                raise ToolFailed(f"'{begins}' must not begin with '-' here")
            found.append(filled)
        return tuple(found)


class CommandTool:
    """One program."""

    def __init__(self, launch: Launch, template: Template, schema: dict[str, Any]) -> None:
        """`launch` names the program alone; ConfigInvalid for a schema that is none."""
        self._room = FairRoom(MOST_PROCESSES, each=MOST_OF_ONE)
        self._launch = launch
        self._template = template
        self._skill = Skill(
            id="command", name="", description="", input_schema=schema, output_schema=OBJECT
        )
        self._schemas = CompiledSchemas()
        self._schemas.compile("command", (self._skill,))
        given = schema.get("properties")
        properties = given if isinstance(given, dict) else {}
        self._defaults = {
            name: each["default"]
            for name, each in properties.items()
            if isinstance(each, dict) and "default" in each
        }

    async def __call__(self, use: ToolUse, /) -> object:
        """Run it, and give what it wrote."""
        self._schemas.check_input("command", self._skill, use.arguments)
        program = self._template.fill(self._defaults | use.arguments)
        launch = replace(
            self._launch,
            program=(*self._launch.program, *program[1:]),
            environment={**self._launch.environment, CORRELATION: use.correlation, **_context(use)},
        )
        async with self._room.place(use.actor.id):
            end = await self._run(launch)
        output = end.output.decode(errors="replace")
        if end.code:
            words = end.errors.decode(errors="replace").strip() or output.strip()
            raise ToolFailed(f"It ended with exit code {end.code}. {words[:MOST_ERRORS]}".strip())
        return output

    async def _run(self, launch: Launch) -> Ended:
        try:
            async with running(launch, limit=MOST_OUTPUT, has_input=False) as process:
                return await ended(process, most=MOST_OUTPUT)
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise ToolFailed(TOO_LONG) from None
            raise ToolUnusable(f"{self._launch.program[0]} cannot be started: {error}") from None


def schema_of(template: Template, given: dict[str, Any] | None, *, key: str) -> dict[str, Any]:
    """What a command takes; ConfigInvalid where that and its template differ."""
    if given is None:
        return {
            "type": "object",
            "properties": dict.fromkeys(template.names, TEXT),
            "required": list(template.names),
            "additionalProperties": False,
        }
    properties = given.get("properties")
    names, used = set(properties if isinstance(properties, dict) else ()), set(template.names)
    if names != used:
        one = min(names ^ used)
        where = "a parameter, and no argument has it" if one in names else "in an argument alone"
        raise ConfigInvalid(key=key, reason=f"'{one}' is {where}")
    return given


def _parsed(argument: str) -> list[tuple[str, str]]:
    """Texts, each with the name of the value behind it, or an empty one."""
    found: list[tuple[str, str]] = []
    for text, name, form, conversion in Formatter().parse(argument):
        if name is not None and (not name.isidentifier() or form or conversion):
            raise ValueError(f"has '{argument}', whose value is not a plain {{name}}")
        found.append((text, name or ""))
    return found or [("", "")]


def _filled(argument: list[tuple[str, str]], values: Mapping[str, Any]) -> str | None:
    names = [name for _, name in argument if name]
    if names and all(values.get(name, _ABSENT) is _ABSENT for name in names):
        return None
    texts = [text + (_text(values.get(name, "")) if name else "") for text, name in argument]
    return "".join(texts)


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.write_text(value)
    if _ZERO in text:
        raise ToolFailed("a value holds a character that no argument can")
    return text
