"""`carnet schedules`: what your agents are told at set times."""

from typing import Any

import click

from carnet.cli.invocation import Group, Invocation, pass_invocation, table
from carnet.cli.triggers.words import AS, ask, do, path_of, recent_lines, shown_lines

MISSED = ("skip", "last", "all")
PATH = "/schedules"


@click.group(cls=Group)
def schedules() -> None:
    """Make, see, pause and delete what your agents are told at set times."""


@schedules.command()
@click.argument("name")
@click.option("--agent", required=True, metavar="AGENT", help="Who is told.")
@click.option("--cron", required=True, metavar="'M H D M W'", help="When: five fields, or @daily.")
@click.option("--message", required=True, metavar="TEXT", help="What it is told.")
@click.option("--zone", default="UTC", metavar="ZONE", help="Whose clocks: Europe/Berlin (UTC).")
@click.option(
    "--missed",
    type=click.Choice(MISSED),
    default="last",
    help="What becomes of times at which no gateway ran (last).",
)
@AS
@pass_invocation
def add(invocation: Invocation, /, name: str, token: str | None, **asked: Any) -> None:
    """Make a schedule, which runs with your token.

    minute hour day-of-month month day-of-week: '30 7 * * mon-fri'. Or @hourly, @daily, @weekly,
    @monthly, @yearly.
    """
    page = ask(invocation, token, "POST", PATH, {"name": name, **asked})
    text = f"{name} is due next at {page['next']}. See it: carnet schedules show {name}"
    invocation.result(page, lambda: invocation.spell(text))


@schedules.command("list")
@AS
@pass_invocation
def list_schedules(invocation: Invocation, token: str | None) -> None:
    """List your schedules."""
    page = ask(invocation, token, "GET", PATH)
    invocation.result(page, lambda: invocation.spell(_list_text(page)), page["schedules"])


def _list_text(page: dict[str, Any]) -> str:
    if not page["schedules"]:
        return "None. Make one: carnet schedules add NAME --agent A --cron @daily --message TEXT"
    names = ("name", "agent", "cron", "zone", "missed", "state")
    rows = [[*(each[name] for name in names), each["next"] or "-"] for each in page["schedules"]]
    return table(rows, [*(name.upper() for name in names), "NEXT"])


@schedules.command()
@click.argument("name")
@AS
@pass_invocation
def show(invocation: Invocation, name: str, token: str | None) -> None:
    """Show a schedule: its next runs, and what became of the last ones."""
    page = ask(invocation, token, "GET", path_of(PATH, name))
    invocation.result(page, lambda: _text(page))


def _text(page: dict[str, Any]) -> str:
    lines = shown_lines(page, ("agent", "cron", "zone", "missed", "state", "message"))
    lines += [f"  {'due':<10}{tick}" for tick in page["coming"]]
    return "\n".join([*lines, *recent_lines(page)])


@schedules.command()
@click.argument("name")
@AS
@pass_invocation
def pause(invocation: Invocation, name: str, token: str | None) -> None:
    """Let a schedule rest until it is resumed."""
    do(
        invocation,
        token,
        path_of(PATH, name),
        "pause",
        f"{name} rests. carnet schedules resume {name}",
    )


@schedules.command()
@click.argument("name")
@AS
@pass_invocation
def resume(invocation: Invocation, name: str, token: str | None) -> None:
    """Let a schedule go on; what it missed meanwhile is not made up for."""
    do(
        invocation,
        token,
        path_of(PATH, name),
        "resume",
        f"{name} goes on. carnet schedules show {name}",
    )


@schedules.command()
@click.argument("name")
@AS
@pass_invocation
def fire(invocation: Invocation, name: str, token: str | None) -> None:
    """Have a schedule begin now, beside its times."""
    do(
        invocation,
        token,
        path_of(PATH, name),
        "fire",
        f"{name} begins now. carnet schedules show {name}",
    )


@schedules.command()
@click.argument("name")
@AS
@pass_invocation
def delete(invocation: Invocation, name: str, token: str | None) -> None:
    """Delete a schedule; the conversations that it began stay."""
    do(invocation, token, path_of(PATH, name), "delete", f"{name} is deleted.")
