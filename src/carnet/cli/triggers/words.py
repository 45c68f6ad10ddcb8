"""What the commands for hooks and schedules have in common."""

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

import click

from carnet.cli.invocation import Group, Invocation, pass_invocation, table, wait

AS = click.option("--as", "token", metavar="TOKEN", help="Ask with this token, or @FILE.")


def ask(invocation: Invocation, token: str | None, *request: Any) -> dict[str, Any]:
    """Ask the gateway as a person: a method, a path, and what is sent."""
    from carnet.cli.reach.requests import ask_as_owner

    return wait(ask_as_owner(invocation, token, *request))


class Wording(NamedTuple):
    """How schedules, or hooks, are spoken of and shown."""

    noun: str
    columns: tuple[str, ...]  # of a list
    lines: tuple[str, ...]  # of one
    make: str  # what makes the first one
    rests: str  # what a paused one does
    helps: dict[str, str]  # what each command says of itself
    more: Callable[[dict[str, Any]], list[str]] = lambda _: []  # lines beside those

    @property
    def plural(self) -> str:
        """What they are called together."""
        return f"{self.noun}s"

    def path(self, name: str) -> str:
        """Where one of them is asked for."""
        return f"/{self.plural}/{quote(name, safe='')}"

    def list_text(self, page: dict[str, Any]) -> str:
        """All of them, a line each."""
        found = page[self.plural]
        if not found:
            return f"None. Make one: carnet {self.plural} add {self.make}"
        shown = [{**each, "state": _state(each)} for each in found]
        rows = [[each[name] or "-" for name in self.columns] for each in shown]
        return table(rows, [name.upper() for name in self.columns])

    def text(self, page: dict[str, Any]) -> str:
        """One of them, and what became of what it began."""
        from carnet.cli.invocation import visible

        shown = {**page, "state": _state(page)}
        lines = [f"  {name:<10}{visible(str(shown[name]))}" for name in self.lines]
        recent = [
            f"  {each['state']:<10}{each['at']} {each['code'] or each['conversation'] or ''}"
            for each in page["recent"]
        ]
        return "\n".join([page["name"], *lines, *self.more(page), *map(str.rstrip, recent)])


def _state(page: dict[str, Any]) -> str:
    """How one stands; with the reason where nobody has paused it."""
    state, reason = page["state"], page["reason"]
    return state if reason is None else f"{state} ({reason})"


def add_commands(group: Group, shown: Wording) -> None:
    """Give a group what schedules and hooks can do alike."""

    @group.command("list", help=f"List your {shown.plural}.")
    @AS
    @pass_invocation
    def list_all(invocation: Invocation, token: str | None) -> None:
        page = ask(invocation, token, "GET", f"/{shown.plural}")
        text = shown.list_text
        invocation.result(page, lambda: invocation.spell(text(page)), page[shown.plural])

    @group.command("show", help=shown.helps["show"])
    @click.argument("name")
    @AS
    @pass_invocation
    def show(invocation: Invocation, name: str, token: str | None) -> None:
        page = ask(invocation, token, "GET", shown.path(name))
        invocation.result(page, lambda: shown.text(page))

    _add_action(group, shown, "pause", f"{{name}} {shown.rests}. {_next(shown, 'resume')}")
    _add_action(group, shown, "resume", f"{{name}} goes on. {_next(shown, 'show')}")
    _add_action(group, shown, "delete", "{name} is deleted.")


def _next(shown: Wording, action: str) -> str:
    return f"carnet {shown.plural} {action} {{name}}"


def _add_action(group: Group, shown: Wording, action: str, text: str) -> None:
    """Give a group a command that has one thing done, and says so."""

    @group.command(action, help=shown.helps[action])
    @click.argument("name")
    @AS
    @pass_invocation
    def do(invocation: Invocation, name: str, token: str | None) -> None:
        act(invocation, token, f"{shown.path(name)}/{action}", text.format(name=name))


def act(
    invocation: Invocation,
    token: str | None,
    path: str,
    text: str,
    asked: dict[str, Any] | None = None,
) -> None:
    """Have something done about one of them, and say so."""
    page = ask(invocation, token, "POST", path, asked)
    invocation.result(page, lambda: invocation.spell(text))
