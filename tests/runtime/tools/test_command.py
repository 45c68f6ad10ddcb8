"""A program as a tool: what becomes of its arguments, its output and its time."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.messages.events import ToolResult
from carnet.core.people.identity import Ceiling
from carnet.engine.toolbox import TOO_SLOW
from carnet.errors import ConfigInvalid, SchemaInvalid, ToolUnusable
from carnet.ports.engine.tools import ToolFailed
from carnet.runtime.tools.command import (
    MOST_ERRORS,
    MOST_OUTPUT,
    MOST_PROCESSES,
    TOO_LONG,
    CommandTool,
    Template,
    schema_of,
)
from carnet.runtime.tools.process import Launch, environment_of
from carnet.testing.wait import until_so
from carnet.wire.dialects.engine_chat.actor import EngineActor
from tests.engine.scene import Scene, call, tool
from tests.runtime.tools.test_function import used

TEXT = {"type": "string"}


def filled(*arguments: str, **values: Any) -> tuple[str, ...]:
    return Template(("program", *arguments)).fill(values)[1:]


def python(code: str, *arguments: str, **schema: Any) -> CommandTool:
    """A command that runs Python."""
    template = Template((sys.executable, *arguments))
    launch = Launch(
        program=(sys.executable, "-c", code),
        folder=Path.cwd(),
        environment=environment_of(os.environ, ()),
    )
    return CommandTool(launch, template, schema or schema_of(template, None, key="k"))


# ------------------------------------------------------------------ arguments


def test_a_value_fills_in_within_one_argument_whatever_it_holds() -> None:
    wild = "a b; rm -rf / $(id) `id` \n'\" {x} | & > \\"
    assert filled("--path={path}", "{path}", path=wild) == (f"--path={wild}", wild)
    assert filled("{{a}}", "{n}:{flag}", n=3, flag=True) == ("{a}", "3:true")


@pytest.mark.parametrize("value", ["-rf", "--output=/etc/passwd", "-", -5])
def test_a_value_does_not_become_an_option(value: object) -> None:
    with pytest.raises(ToolFailed, match="must not begin with '-'"):
        filled("{path}", path=value)
    with pytest.raises(ToolFailed):
        filled("{a}{path}", a="", path=value)
    # Behind the end of options, or within an argument that we have begun, it is a value.
    assert filled("--", "{path}", path=value)[1] == str(value)
    assert filled("--path={path}", path=value) == (f"--path={value}",)


def test_the_end_of_options_is_ours_to_write() -> None:
    with pytest.raises(ToolFailed):
        filled("{a}", "{b}", a="--", b="-rf")


def test_an_argument_without_any_of_its_values_is_left_out() -> None:
    assert filled("-n", "{count}", "--since={since}", count=3) == ("-n", "3")
    assert filled("{a}-{b}", a="x") == ("x-",)


def test_no_argument_holds_a_zero() -> None:
    with pytest.raises(ToolFailed):
        filled("{path}", path="a\0b")


@pytest.mark.parametrize("argument", ["{0}", "{a.b}", "{a!r}", "{a:>9}", "{", "{}", "{a[0]}"])
def test_a_template_has_plain_names(argument: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Template(("program", argument))


def test_the_program_itself_is_fixed() -> None:
    with pytest.raises(ValueError, match="the program itself is fixed"):
        Template(("{program}",))


def test_parameters_are_those_of_the_template() -> None:
    template = Template(("git", "log", "{path}", "{path}", "{count}"))
    assert schema_of(template, None, key="k")["required"] == ["path", "count"]
    given = {"type": "object", "properties": {"path": TEXT}}
    with pytest.raises(ConfigInvalid, match="'count' is in an argument alone"):
        schema_of(template, given, key="k")
    with pytest.raises(ConfigInvalid, match="'path' is a parameter, and no argument has it"):
        schema_of(Template(("git",)), given, key="k")


# ------------------------------------------------------------------ running


async def test_it_is_run_without_a_shell_and_gives_what_it_writes() -> None:
    command = python("import sys; print(sys.argv[1:])", "{name}", "--", "{more}")
    assert await command(used(name="$HOME; id", more="-x")) == "['$HOME; id', '--', '-x']\n"


async def test_values_that_do_not_fit_start_nothing() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 7}}}
    command = python("import sys; print(sys.argv[1])", "{n}", **schema)
    with pytest.raises(SchemaInvalid):
        await command(used(n="3; id"))
    assert await command(used(n=3)) == "3\n"
    assert await command(used()) == "7\n"


async def test_another_exit_code_is_told_with_what_it_said() -> None:
    code = f"import sys; sys.stderr.write('no such page' + {2 * MOST_ERRORS} * 'x'); sys.exit(3)"
    with pytest.raises(ToolFailed, match=r"exit code 3\. no such page") as failed:
        await python(code)(used())
    assert len(str(failed.value)) < MOST_ERRORS + 100


async def test_a_program_that_is_gone_cannot_be_used() -> None:
    launch = Launch(program=("/nowhere/at/all",), folder=Path.cwd(), environment={})
    with pytest.raises(ToolUnusable):
        await CommandTool(launch, Template(("x",)), {"type": "object"})(used())


async def test_it_has_little_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-1")
    monkeypatch.setenv("PAGES", "/pages")
    assert "MODEL_KEY" not in environment_of(os.environ, ("PAGES",))
    assert environment_of(os.environ, ("PAGES",))["PAGES"] == "/pages"
    seen = str(await python("import os; print(dict(os.environ))")(used()))
    assert "'PATH': " in seen
    assert "'CARNET_CORRELATION_ID': 'req_1'" in seen
    assert "MODEL_KEY" not in seen


async def test_whoever_leaves_ends_it_with_all_that_it_has_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    child = (
        f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid()) + '.'); time.sleep(600)"
    )
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    running = asyncio.ensure_future(python(code)(used()))

    def started() -> str:
        return mark.read_text() if mark.exists() else ""

    pid = int((await until_so(started, lambda text: text.endswith("."))).rstrip("."))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    def is_there() -> bool:
        try:  # by its words too: on a busy machine its number may be another's by now
            return str(mark).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    await until_so(is_there, lambda seen: not seen)


async def test_time_that_is_up_is_told_to_the_model() -> None:
    slow = tool("slow", python("import time; time.sleep(600)"), seconds=0.01)
    scene = Scene([call(name="slow")], ["So."], tools=[slow])
    await scene.run()
    assert ToolResult("c1", "error", TOO_SLOW) in scene.events


async def test_an_endless_output_is_read_to_a_bound() -> None:
    code = f"import sys; sys.stdout.write({4 * MOST_OUTPUT} * 'x')"
    assert len(str(await python(code)(used()))) == MOST_OUTPUT


async def test_values_that_are_too_long_for_a_program_are_told_to_the_model() -> None:
    with pytest.raises(ToolFailed, match=TOO_LONG):
        await python("", "{text}{text}")(used(text=100_000 * "x"))


async def test_one_caller_leaves_room_for_others() -> None:
    wait = python("import time; time.sleep(600)")
    held = [asyncio.ensure_future(wait(used())) for _ in range(MOST_PROCESSES)]
    other = python("print('here')")
    other._room = wait._room  # noqa: SLF001
    bob = replace(used(), actor=EngineActor("bob", Ceiling()))
    assert await other(bob) == "here\n"
    assert not any(each.done() for each in held)
    for each in held:
        each.cancel()
    await asyncio.gather(*held, return_exceptions=True)
