"""What the commands for hooks and schedules have in common: the token, and how they are shown."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import click

from carnet.cli.invocation import Invocation, wait

AS = click.option("--as", "token", metavar="TOKEN", help="Ask with this token, or @FILE.")


def path_of(root: str, name: str) -> str:
    """Where one of them is asked for."""
    return f"{root}/{quote(name, safe='')}"


def confirm_text(invocation: Invocation, page: dict[str, Any], text: str) -> None:
    """Say that something was done."""
    invocation.result(page, lambda: invocation.spell(text))


def shown_lines(page: dict[str, Any], names: Iterable[str]) -> list[str]:
    """One of them, line by line."""
    from carnet.cli.invocation import visible

    return [page["name"], *(f"  {name:<10}{visible(str(page[name]))}" for name in names)]


def recent_lines(page: dict[str, Any]) -> list[str]:
    """What became of what it began."""
    return [
        f"  {each['state']:<10}{each['at']} {each['code'] or each['conversation'] or ''}".rstrip()
        for each in page["recent"]
    ]


def ask(invocation: Invocation, token: str | None, *request: Any) -> dict[str, Any]:
    """Ask the gateway as a person: a method, a path, and what is sent."""
    from carnet.cli.reach.requests import ask_as_owner

    return wait(ask_as_owner(invocation, token, *request))


def do(invocation: Invocation, token: str | None, path: str, action: str, text: str) -> None:
    """Have something done about one of them, and say so."""
    confirm_text(invocation, ask(invocation, token, "POST", f"{path}/{action}"), text)
