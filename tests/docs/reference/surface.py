"""What a gateway can be asked, by commands and by requests, as tables."""

import asyncio
import inspect
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from carnet.assembly.gateway import build
from carnet.assembly.store import open_from
from carnet.cli.main import GROUPS
from carnet.cli.start.init import start_in
from carnet.runtime.system import SystemClock, SystemIds

METHODS: Final = {"get", "post", "put", "patch", "delete", "options"}  # else it is about all
EVERYWHERE: Final = {"--config", "--format", "--trust-owner"}


def commands_table() -> str:
    """Every command, by what it is for."""
    parts = []
    for title, commands in GROUPS.items():
        rows = [row for command in commands for row in _command(command, f"carnet {command.name}")]
        head = [f"## {title.capitalize()}", "", "| command | takes | what |", "|---|---|---|"]
        parts += [*head, *rows, ""]
    return "\n".join(parts)


def _command(command: click.Command, name: str) -> Iterator[str]:
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield f"| `{name}` | {_takes(command)} | {_sentence(command.help)} |"
    if isinstance(command, click.Group):
        for below, child in sorted(command.commands.items()):
            yield from _command(child, f"{name} {below}")


def _sentence(text: str | None) -> str:
    first = inspect.cleandoc(text or "").split("\n\n")[0]
    return " ".join(first.split()).replace("|", "\\|")


def _takes(command: click.Command) -> str:
    words = []
    for each in command.params:
        if isinstance(each, click.Argument):
            words.append(f"`{each.make_metavar(click.Context(command))}`")
        elif isinstance(each, click.Option) and not EVERYWHERE.intersection(each.opts):
            value = "" if each.is_flag else f" {each.make_metavar(click.Context(command))}"
            words.append(f"`{max(each.opts, key=len)}{value}`")
    return ", ".join(words).replace("|", "\\|")


def endpoints_table() -> str:
    """Every path of a gateway, with what it is for and whether a token is asked for."""
    rows = [
        f"| `{method.upper()} {path}` | {_proof(operation)} | {operation['summary']} |"
        for path, methods in sorted(asyncio.run(_description())["paths"].items())
        for method, operation in methods.items()
        if method in METHODS
    ]
    return "\n".join(["| endpoint | needs | what |", "|---|---|---|", *rows, ""])


def _proof(operation: dict[str, Any]) -> str:
    return "no token" if operation.get("security") == [] else "a token"


async def _description() -> dict[str, Any]:
    """What a gateway with a starter's configuration says of itself."""
    with tempfile.TemporaryDirectory() as folder:
        _, settings = await start_in(Path(folder), domain="carnet.localhost", port=8700)
        store = await open_from(settings, exclusive=True)
        try:
            await store.start()
            gateway = build(settings, store, SystemClock(), SystemIds())
            return gateway.operations.api
        finally:
            await store.close()
