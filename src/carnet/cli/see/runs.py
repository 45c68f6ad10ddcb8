"""`carnet runs`, `run` and `tail`: what happened."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from carnet.cli.invocation import (
    Command,
    Group,
    Invocation,
    find_begun,
    in_line,
    pass_invocation,
    table,
    to_json,
    visible,
    wait,
)

if TYPE_CHECKING:
    from carnet.cli.reach.pages import Pages

T = TypeVar("T")

LAST: Final = "last"  # the newest run
POLL_SECONDS = 1.0
MOST_RUNS = 100
ALL: Final = "carnet runs"
NONE_SUCH: Final = f"No run is like that. All of them: {ALL}"
NOTHING: Final[Mapping[str, str | None]] = MappingProxyType({})


@click.command(cls=Command)
@click.option("--limit", type=click.IntRange(1, MOST_RUNS), default=20, help="How many (20).")
@click.option("--before", type=click.IntRange(1), metavar="N", help="Go on where a list ended.")
@click.option("--agent", metavar="NAME", help="Those in which this agent was called.")
@click.option("--actor", metavar="WHO", help="Those with a call of this caller.")
@click.option("--speaker", metavar="NAME", help="Those in which somebody was addressed so.")
@click.option("--payer", metavar="WHO", help="Those that this account pays for.")
@click.option("--state", metavar="STATE", help="Those with a turn in this state.")
@click.option("--code", metavar="CODE", help="Those with a turn that failed so.")
@click.option("--correlation", metavar="ID", help="The one that a caller named so itself.")
@click.option("--since", metavar="WHEN", help="Those that began since: 2h, 7d, or a moment (UTC).")
@pass_invocation
def runs(invocation: Invocation, /, limit: int, before: int | None, **matching: str | None) -> None:
    """List the newest runs."""
    from shlex import join

    from carnet.cli.reach.pages import read_page
    from carnet.cli.times import read_since
    from carnet.runtime.system import SystemClock

    if since := matching["since"]:
        matching["since"] = read_since(since, SystemClock().wall_us())
    page = read_page(invocation, _runs_path(limit, before, matching))
    chosen = [word for name, value in matching.items() if value for word in (f"--{name}", value)]
    again = join(["carnet", "runs", *chosen])
    invocation.result(page, lambda: invocation.spell(_runs_text(page, before, again)), page["runs"])


def _runs_path(
    limit: int, before: int | None = None, matching: Mapping[str, str | None] = NOTHING
) -> str:
    from urllib.parse import urlencode

    asked = {"limit": limit, **({"before": before} if before else {})}
    named = {name: value for name, value in matching.items() if value is not None}
    return f"/runs?{urlencode({**asked, **named})}"


def _runs_text(page: dict[str, Any], before: int | None, again: str) -> str:
    more = f"More: {again} --before {page['next']}" if page.get("next") else ""
    if not page["runs"] and more:  # all that were looked at are like something else by now
        return f"None of the newest. {more}"
    if not page["runs"] and before:
        return "No earlier runs: the list ended."
    if not page["runs"]:
        return NONE_SUCH if again != ALL else "No runs yet. Make one: carnet call echo hello"
    rows = [_run_row(entry) for entry in page["runs"]]
    titles = ["RUN", "STARTED", "AGENT", "PAYER", "TURNS", "DEPTH", "COST", "STATE"]
    if any(entry.get("caller") for entry in page["runs"]):  # who says of itself where it lives
        titles = [*titles, "CALLED BY"]
        callers = [in_line(entry.get("caller") or "-") for entry in page["runs"]]
        rows = [[*row, caller] for row, caller in zip(rows, callers, strict=True)]
    return "\n".join([table(rows, titles), *([more] if more else [])])


def _run_row(entry: dict[str, Any]) -> list[str]:
    from carnet.cli.times import short

    cost = "-" if entry.get("cost") is None else f"{entry['cost']} {entry.get('currency') or ''}"
    words = [entry["run"], short(entry["started"]), entry["agent"], entry["payer"]]
    words += [entry["turns"], entry["depth"], cost.rstrip(), _state(entry)]
    return [str(word) for word in words]


def _state(entry: dict[str, Any]) -> str:
    """How it stands, and which error it met; who called may have gone on without what failed."""
    state, code = entry["state"], entry.get("code")
    if not code:
        return str(state)
    return f"{state} ({code})" if state in {"failed", "unknown"} else f"{state} (met {code})"


class RunGroup(Group):
    """Its commands come before the id; whoever gives the id alone is told so."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from difflib import get_close_matches

        word = args[0]
        if word not in self.commands and not get_close_matches(word, self.commands):
            raise click.UsageError(f"'{word}' is no command. Did you mean 'run show {word}'?", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=RunGroup)
def run() -> None:
    """Look at one run, cancel it, write it out, or run it again."""


@run.command()
@click.argument("run_id", metavar="ID")
@click.option("--full", is_flag=True, help="With what was asked and what was answered.")
@pass_invocation
def show(invocation: Invocation, run_id: str, full: bool) -> None:  # noqa: FBT001  click passes it
    """Show a run as a tree: who called whom, how deep, who paid, where it was refused.

    The beginning of an ID is enough if only one of the newest runs begins so; 'last' is the newest.
    'carnet tail ID' shows what happened within it, such as the tools that were used.
    """
    from carnet.cli.see.tree import draw

    page = wait(read_run(invocation, run_id, "?full=true" if full else ""))
    invocation.result(page, lambda: visible(draw(page)))


async def read_run(invocation: Invocation, run_id: str, tail: str = "") -> dict[str, Any]:
    """A page of a run; the beginning of its id is enough if only one of the newest begins so."""
    from carnet.cli.reach.pages import Pages

    async with Pages(invocation) as pages:
        return await with_run(pages, run_id, lambda run: pages.read(run_path(run, tail)))


async def with_run(pages: "Pages", run_id: str, ask: Callable[[str], Awaitable[T]]) -> T:
    """Ask something about a run by its id, by the beginning of it, or about the newest (R55)."""
    from carnet.cli.failures import GatewayError
    from carnet.errors import RunNotFound

    if run_id == LAST:  # whatever callers call their runs
        return await ask(await _last(pages))
    try:
        return await ask(run_id)
    except (RunNotFound, GatewayError) as error:
        if isinstance(error, GatewayError) and error.facts.get("code") != RunNotFound.code:
            raise
        newest = (await pages.read(_runs_path(MOST_RUNS)))["runs"]
        found = find_begun(run_id, (entry["run"] for entry in newest), "run")
        if found is None:
            raise
        return await ask(found)


async def _last(pages: "Pages") -> str:
    from carnet.errors import UsageInvalid

    newest = (await pages.read(_runs_path(1)))["runs"]
    if not newest:
        raise UsageInvalid(
            reason="There is no run yet, so there is no last one.",
            fix="Make one: carnet call echo hello",
        )
    return str(newest[0]["run"])


@run.command()
@click.argument("run_id", metavar="ID")
@pass_invocation
def cancel(invocation: Invocation, run_id: str) -> None:
    """Cancel what is running or waits in a run, also at other organisations.

    Named as for 'run show'. Tells hop by hop what has come of it: done, failed, cancelled, or that
    nobody can tell.
    """
    from carnet.cli.see.tree import draw_cancelled

    page = wait(_ask_all(invocation, run_id, "/cancel"))
    invocation.result(page, lambda: visible(draw_cancelled(page)))


@run.command()
@click.argument("run_id", metavar="ID")
@pass_invocation
def proof(invocation: Invocation, run_id: str) -> int:
    """Show who has signed for the calls of a run, and for all that was called below them.

    Exit code 4 if a receipt is missing or does not hold. Named as for 'run show'. The other
    organisations are asked for the receipts that they hold.
    """
    from carnet.cli.failures import OK, UNVERIFIED
    from carnet.cli.see.tree import draw_proof

    page = wait(_ask_all(invocation, run_id, "/receipts"))
    invocation.result(page, lambda: visible(draw_proof(page)))
    return OK if page["proved"] else UNVERIFIED


def run_path(run_id: str, tail: str = "") -> str:
    """Where a gateway shows a run."""
    from urllib.parse import quote

    return f"/runs/{quote(run_id, safe='')}{tail}"


async def _ask_all(invocation: Invocation, run_id: str, tail: str) -> dict[str, Any]:
    """Ask for what the gateway asks others for in turn."""
    from carnet.cli.reach import gateway
    from carnet.cli.reach.pages import Pages

    async with gateway.open_http() as http, gateway.reached(invocation, http) as (place, by):

        async def ask(run: str) -> dict[str, Any]:
            request = gateway.request_to(place, "POST", run_path(run, tail), by)
            async with gateway.sending(http, request, token_is_new=by.is_new) as answer:
                return gateway.decode(await answer.read())

        async with Pages(invocation) as pages:
            return await with_run(pages, run_id, ask)


@click.command(cls=Command)
@click.argument("run_id", metavar="[RUN]", required=False)
@pass_invocation
def tail(invocation: Invocation, run_id: str | None) -> None:
    """Follow the events of a run as they happen, or the newest runs. Ctrl-C ends it.

    RUN is named as for 'run show'.
    """
    wait(_tail_run(invocation, run_id) if run_id else _tail_runs(invocation))


async def _tail_run(invocation: Invocation, run_id: str) -> None:
    from carnet.cli.reach import gateway
    from carnet.cli.reach.pages import Pages
    from carnet.ports.world.http_client import Bounds

    long = Bounds(idle_seconds=3600, total_seconds=86_400)  # a quiet run is no fault
    async with gateway.open_http() as http, gateway.reached(invocation, http) as (place, by):

        async def follow(run: str) -> None:
            request = gateway.request_to(place, "GET", run_path(run, "/events"), by, bounds=long)
            async with gateway.sending(http, request, token_is_new=by.is_new) as answer:
                async for event in gateway.read_events(answer):
                    data = gateway.decode(event.data)
                    shown = {"id": event.id, "event": event.event, "data": data}
                    invocation.line(shown, _event_line(event.event, data))

        async with Pages(invocation) as pages:
            await with_run(pages, run_id, follow)


def _event_line(kind: str, data: dict[str, Any]) -> str:
    rest = {name: value for name, value in data.items() if name not in {"turn", "kind"}}
    words = [f"{kind:<10}", str(data.get("turn") or data.get("run") or "")]
    return "  ".join([*words, to_json(rest) if rest else ""]).rstrip()


async def _tail_runs(invocation: Invocation) -> None:
    import asyncio

    from carnet.cli.reach.pages import Pages

    seen: dict[tuple[str, str], dict[str, Any]] = {}  # a run has a line for each of its payers
    async with Pages(invocation) as pages:
        while True:
            page = await pages.read(_runs_path(MOST_RUNS))
            for entry in reversed(page["runs"]):
                line = (entry["run"], entry["payer"])
                if seen.get(line) != entry:
                    seen[line] = entry
                    invocation.line(entry, "  ".join(_run_row(entry)))
            await asyncio.sleep(POLL_SECONDS)
