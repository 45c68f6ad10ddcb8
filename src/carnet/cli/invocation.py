"""One use of the command line: which configuration, which format, and how it speaks.

Law 1. Results go to stdout, everything said about them to stderr.
Law 2. The configuration is read on first use: commands that need none work without one.
"""

import os
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

if TYPE_CHECKING:
    from carnet.cli.source import Sight
    from carnet.config import Settings

T = TypeVar("T")
Format = Literal["text", "json", "jsonl"]
FORMATS = ("text", "json", "jsonl")
WHOLE = 200  # a first sentence of a help text is never cut off

# A command within a sentence.
_READS_CONFIG = (
    "serve|doctor|call|chat|tasks|runs?|tail|tokens|keys|peers|agents|ledger|config|migrate|backup"
    "|restore|prune|outbox|reload|people|inbox|memory|schedules|hooks|sessions"
)
_READS_NONE = "init|demo|model|conversation|explain|conform|completion|help|version|--help"
_COMMAND = re.compile(rf"(?<![\w./-])carnet (?=({_READS_CONFIG}|{_READS_NONE})\b)")

# What people type for a command that has another name here.
_OTHER_WORDS = {
    **dict.fromkeys(
        ("end", "delete", "rm", "remove"), ("revoke", "revoke-key", "remove", "cancel")
    ),
    **dict.fromkeys(("new", "add", "make"), ("create", "new", "add")),
    **dict.fromkeys(("ls", "show"), ("list", "runs", "run")),
    **dict.fromkeys(("start", "up"), ("serve",)),
    **dict.fromkeys(("status", "check"), ("doctor",)),
    **dict.fromkeys(("log", "logs"), ("tail", "runs")),
}


class Invocation:
    """What every command is given."""

    def __init__(self, format: Format = "text", config: Path | None = None) -> None:
        self.format: Format = format
        self.config = config
        self.trusts_owner = False
        self.ends_process = False  # nothing else is done in this process after the command

    @cached_property
    def settings(self) -> "Settings":
        """The settings of the configuration that `-c` names or that is found upward from here."""
        from carnet.config import find
        from carnet.errors import UsageInvalid

        path = self.config or find(Path.cwd())
        if path is None:
            raise UsageInvalid(
                reason="There is no carnet.toml in this folder or above it.",
                fix="Make one with 'carnet init', or name one with -c FILE.",
            )
        return self.read(path.absolute())

    def read(self, path: Path) -> "Settings":
        """The settings of a file, as it is now."""
        from carnet.cli.references import own_sources
        from carnet.config import load

        self.refuse_foreign(path.parent, path)
        settings = load(path, os.environ)
        self.refuse_foreign(*own_sources(settings))
        return settings

    def refuse_foreign(self, *paths: Path) -> None:
        """Refuse what somebody else may have written, unless we were told to trust it."""
        from carnet.config import refuse_foreign

        for each in () if self.trusts_owner else paths:
            refuse_foreign(each)

    def result(
        self,
        page: dict[str, Any],
        text: Callable[[], str],
        rows: Iterable[Any] | None = None,
    ) -> None:
        """Print a result: as text for people, whole as JSON, or its rows as lines of JSON."""
        if self.format == "text":
            click.echo(text())
        elif self.format == "json":
            click.echo(to_json(page, indent=2))
        else:
            for row in [page] if rows is None else rows:
                click.echo(to_json(row))

    def spell(self, text: str) -> str:
        """A sentence whose commands can be typed as they stand: our own name, and `-c` if given."""
        own = program()
        option = f"-c {quote(str(self.config))} " if self.config else ""

        def spelled(match: re.Match[str]) -> str:
            reads_config = re.fullmatch(_READS_CONFIG, match[1])
            return f"{own} {option if reads_config else ''}"

        return _COMMAND.sub(spelled, text)

    def line(self, row: Any, text: str) -> None:
        """Print one of many lines as it comes; JSON has one value a line here too."""
        click.echo(text if self.format == "text" else to_json(row))

    def note(self, text: str) -> None:
        """Say something beside the result."""
        click.echo(self.dim(text), err=True)

    def note_unseen(self, seen: "Mapping[str, Sight]", command: str, *, is_loaded: bool) -> None:
        """Say what could not be seen of agents that were read and not run."""
        if is_loaded:
            return
        for name, sight in seen.items():
            if sight.unseen:
                self.note(f"Not seen of {name}: {sight.unseen}.")
        self.note(self.spell(f"Agents were read, not run. '{command}' imports them."))

    def dim(self, text: str) -> str:
        """Text that steps back, where a terminal can show it."""
        return click.style(text, dim=True) if has_color(sys.stderr) else text


def program() -> str:
    """How this program was called, so that what it prints can be typed."""
    import shutil

    called = Path(sys.argv[0])
    if called.name == "__main__.py" and called.parent.name == "carnet":
        return f"{Path(sys.executable).name} -m carnet"
    if called.name != "carnet" or shutil.which("carnet") == str(called.absolute()):
        return "carnet"
    here = Path.cwd()
    inside = called.is_absolute() and called.is_relative_to(here)
    return quote(str(called.relative_to(here) if inside else called))


def count(number: int, noun: str) -> str:
    """`1 agent`, `2 agents`, `2 deliveries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def more_of(command: str, before: int, chosen: dict[str, Any]) -> str:
    """The command that goes on with a list, with the options that were chosen."""
    options = {**chosen, "before": before}
    words = [
        f"--{name}" if value is True else f"--{name} {value}"
        for name, value in options.items()
        if value is not None and value is not False
    ]
    return " ".join(["More: carnet", command, *words])


def find_begun(begun: str, known: Iterable[str], noun: str) -> str | None:
    """The only id that begins so, or None; several are refused."""
    from carnet.errors import UsageInvalid

    found = sorted({one for one in known if one.startswith(begun)})
    if len(found) > 1:
        raise UsageInvalid(
            reason=f"{count(len(found), noun)} begin with '{begun}'.",
            fix=f"Give more of it: {', '.join(found[:5])}{', ...' if found[5:] else ''}",
        )
    return found[0] if found else None


def paint(text: str, color: str) -> str:
    """Coloured text, where the terminal shows it and the person wants it."""
    return click.style(text, fg=color) if has_color(sys.stdout) else text


def has_color(stream: Any) -> bool:
    """Whether a stream is a terminal that may be coloured (NO_COLOR)."""
    return not os.environ.get("NO_COLOR") and bool(stream.isatty())


def visible(text: str) -> str:
    """What an agent says may not steer the terminal it is shown on."""
    if not sys.stdout.isatty():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def in_line(text: str) -> str:
    """What an agent says, as a part of a line of ours, wherever that is shown."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def to_json(value: Any, *, indent: int = 0) -> str:
    """JSON in the order of the fields; on one line unless indented."""
    import msgspec

    data = msgspec.json.encode(value)
    return (msgspec.json.format(data, indent=indent) if indent else data).decode()


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run what a command does over the network or in the store."""
    import asyncio

    return asyncio.run(work)


def table(rows: list[list[str]], titles: list[str]) -> str:
    """Aligned columns under their titles; a cell is never more than its part of a line."""
    lines = [titles, *([in_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _set_format(ctx: click.Context, _: click.Parameter, value: Format | None) -> None:
    if value is not None:
        ctx.ensure_object(Invocation).format = value


def _set_config(ctx: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.ensure_object(Invocation).config = value


def _set_trust(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001  click passes it
    if value:
        ctx.ensure_object(Invocation).trusts_owner = True


def everywhere() -> list[click.Parameter]:
    """The options that every command takes, before or after its name."""
    return [
        click.Option(
            ["-c", "--config"],
            type=click.Path(path_type=Path, dir_okay=False),
            callback=_set_config,
            expose_value=False,
            help="The configuration (default: carnet.toml, looked for upward from here).",
        ),
        click.Option(
            ["--format"],
            type=click.Choice(FORMATS),
            callback=_set_format,
            expose_value=False,
            help="How results are printed (default: text).",
        ),
        click.Option(
            ["--trust-owner"],
            is_flag=True,
            callback=_set_trust,
            expose_value=False,
            help="Use a configuration that belongs to somebody else.",
        ),
    ]


class Command(click.Command):
    """A command with the options that every command takes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(everywhere())


class Group(click.Group):
    """A group whose commands take them too."""

    command_class = Command
    group_class = type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(everywhere())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was named; another word for one of ours is answered with ours."""
        ours = [name for name in _OTHER_WORDS.get(args[0], ()) if name in self.commands]
        if not ours or args[0] in self.commands:
            return super().resolve_command(ctx, args)
        named = " or ".join(f"'{name}'" for name in ours)
        message = f"No such command '{args[0]}'. Did you mean {named}?"
        raise click.exceptions.NoSuchCommand(args[0], message, ctx=ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        with formatter.section("Commands"):
            formatter.write_dl([(n, self.commands[n].get_short_help_str(WHOLE)) for n in names])


pass_invocation = click.make_pass_decorator(Invocation, ensure=True)

loading = click.option(
    "--load", is_flag=True, help="Import the agents, which runs their code, rather than read them."
)
