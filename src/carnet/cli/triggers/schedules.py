"""`carnet schedules`: what your agents are told at set times."""

from typing import Any

import click

from carnet.cli.invocation import Group, Invocation, pass_invocation
from carnet.cli.triggers.words import AS, Wording, act, add_commands, ask

MISSED = ("skip", "last", "all")


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
    page = ask(invocation, token, "POST", "/schedules", {"name": name, **asked})
    text = f"{name} is due next at {page['next']}. See it: carnet schedules show {name}"
    invocation.result(page, lambda: invocation.spell(text))


def _ticks(page: dict[str, Any]) -> list[str]:
    return [f"  {'due':<10}{tick}" for tick in page["coming"]]


SHOWN = Wording(
    noun="schedule",
    columns=("name", "agent", "cron", "zone", "missed", "state", "next"),
    lines=("agent", "cron", "zone", "missed", "state", "message"),
    make="NAME --agent A --cron @daily --message TEXT",
    rests="rests",
    helps={
        "show": "Show a schedule: its next runs, and what became of the last ones.",
        "pause": "Let a schedule rest until it is resumed.",
        "resume": "Let a schedule go on with your token; what it missed is not made up for.",
        "delete": "Delete a schedule; the conversations that it began stay.",
    },
    more=_ticks,
)
add_commands(schedules, SHOWN)


@schedules.command()
@click.argument("name")
@AS
@pass_invocation
def fire(invocation: Invocation, name: str, token: str | None) -> None:
    """Have a schedule begin now, beside its times."""
    text = f"{name} begins now. carnet schedules show {name}"
    act(invocation, token, f"{SHOWN.path(name)}/fire", text)
