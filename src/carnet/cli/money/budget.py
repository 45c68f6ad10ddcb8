"""`carnet budget`: what people, tokens, peers, agents and runs may spend, and what is left."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Group, Invocation, pass_invocation, table, wait

if TYPE_CHECKING:
    from carnet.stores.store import Store

KINDS = ("person", "token", "peer", "agent", "run")


@click.group(cls=Group)
def budget() -> None:
    """Bound what is spent, by person, token, peer, agent or run."""


@budget.command("set")
@click.argument("subject")
@click.option("--money", metavar="AMOUNT", help="The most that may be paid.")
@click.option("--calls", type=click.IntRange(0), metavar="N", help="The most calls.")
@click.option("--tokens", type=click.IntRange(0), metavar="N", help="The most tokens.")
@click.option("--seconds", type=click.IntRange(1), metavar="N", help="How long, from now on.")
@click.option("--per", type=click.Choice(["day", "all"]), default="all", help="Anew each day, UTC.")
@click.option(
    "--on-budget",
    type=click.Choice(["refuse", "ask"]),
    help="Of a run: refuse when it is used up, or wait and ask who pays for more.",
)
@pass_invocation
def set_(invocation: Invocation, /, subject: str, **options: Any) -> None:
    """Set a budget. SUBJECT is person:NAME, token:NAME, peer:DOMAIN, agent:NAME, or a run.

    What is left out is not bounded. What was spent stays spent: to give a run more that has used
    it up, set its budget higher. It never gives more than a token's limit or a peer's credit.
    """
    from carnet.errors import UsageInvalid

    parts = ("money", "calls", "tokens", "seconds")
    if all(options[part] is None for part in parts):
        raise UsageInvalid(
            reason="A budget bounds something.",
            fix="Add --money AMOUNT, --calls N, --tokens N or --seconds N.",
        )
    is_run = subject.partition(":")[0] not in KINDS[:-1]
    if options["on_budget"] == "ask" and not is_run:
        raise UsageInvalid(
            reason="What you set for a person, token, peer or agent is raised by you alone.",
            fix="Leave out --on-budget, or set the budget of a run.",
        )
    pages = wait(_set(invocation, subject, options))
    invocation.result({"budgets": pages}, lambda: _text(pages), pages)


@budget.command("show")
@click.argument("subject")
@pass_invocation
def show(invocation: Invocation, /, subject: str) -> None:
    """Show what a budget has, what is spent and held of it, and what is left."""
    pages = wait(_show(invocation, subject))
    invocation.result({"budgets": pages}, lambda: _text(pages), pages)


@budget.command("list")
@pass_invocation
def list_(invocation: Invocation, /) -> None:
    """List the budgets that were set."""
    pages = wait(_list(invocation))
    invocation.result({"budgets": pages}, lambda: _text(pages), pages)


@budget.command("clear")
@click.argument("subject")
@pass_invocation
def clear(invocation: Invocation, /, subject: str) -> None:
    """Bound it no more."""
    names = wait(_clear(invocation, subject))
    page = {"cleared": names}
    invocation.result(page, lambda: f"cleared {', '.join(names)}")


async def _set(
    invocation: Invocation, subject: str, options: dict[str, Any]
) -> list[dict[str, Any]]:
    from carnet.assembly.store import opened
    from carnet.cli.trust.forms import read_amount
    from carnet.core.people.proof import SECOND_US, Spending
    from carnet.errors import UsageInvalid
    from carnet.gateway.money.budgets import budget_page
    from carnet.ports.money.budgets import RUN
    from carnet.runtime.system import SystemClock

    money = None if options["money"] is None else read_amount(options["money"], "--money")
    limits = Spending(
        money=money,
        currency=None if money is None else invocation.settings.ledger.currency,
        calls=options["calls"],
        tokens=options["tokens"],
    )
    now = SystemClock().wall_us()
    until = None if options["seconds"] is None else now + options["seconds"] * SECOND_US
    async with opened(invocation.settings) as store:
        names = await _names(store, invocation, subject, per=options["per"], makes=True)
        if options["on_budget"] == "ask" and any(name.startswith(RUN) for name, _ in names):
            raise UsageInvalid(
                reason=f"The run '{subject}' came without a budget of its own.",
                fix="Leave out --on-budget.",
            )
        for name, run in names:
            before = await store.budgets.find(name)
            asks = before is not None and before.asks
            if options["on_budget"] is not None:
                asks = options["on_budget"] == "ask"
            await store.budgets.put(name, limits, now=now, run=run, until=until, asks=asks)
        found = [await store.budgets.find(name) for name, _ in names]
    return [budget_page(one) for one in found if one is not None]


async def _show(invocation: Invocation, subject: str) -> list[dict[str, Any]]:
    from carnet.assembly.store import opened
    from carnet.gateway.money.budgets import budget_page

    async with opened(invocation.settings) as store:
        names = await _names(store, invocation, subject)
        found = [await store.budgets.find(name) for name, _ in names]
    pages = [budget_page(one) for one in found if one is not None]
    if not pages:
        raise _none_of(subject)
    return pages


async def _list(invocation: Invocation) -> list[dict[str, Any]]:
    from carnet.assembly.store import opened
    from carnet.gateway.money.budgets import budget_page

    async with opened(invocation.settings) as store:
        return [budget_page(one) for one in await store.budgets.list()]


async def _clear(invocation: Invocation, subject: str) -> list[str]:
    from carnet.assembly.store import opened

    async with opened(invocation.settings) as store:
        names = [name for name, _ in await _names(store, invocation, subject)]
        cleared = [name for name in names if await store.budgets.clear(name)]
    if not cleared:
        raise _none_of(subject)
    return cleared


def _none_of(subject: str) -> Exception:
    from carnet.errors import UsageInvalid

    return UsageInvalid(
        reason=f"No budget is set for '{subject}', or carnet.toml sets it.",
        fix=f"Set one: carnet budget set {subject} --money AMOUNT",
    )


async def _names(
    store: "Store",
    invocation: Invocation,
    subject: str,
    *,
    per: str | None = None,
    makes: bool = False,
) -> list[tuple[str, str]]:
    """The names that a subject has in the store, and the run of each."""
    from carnet.errors import UsageInvalid
    from carnet.ports.money.budgets import DAY

    kind, _, name = subject.partition(":")
    if kind not in KINDS or not name:
        kind, name = "run", subject.removeprefix("run:")
    if kind == "run":
        return await _of_run(store, name, makes=makes)
    found = await _named(store, invocation, kind, name)
    if found is None:
        lists = {"person": "people list", "peer": "peers list"}.get(kind, f"{kind}s list")
        raise UsageInvalid(
            reason=f"There is no {kind} named '{name}'.", fix=f"List them: carnet {lists}"
        )
    if per is None:
        return [(found, ""), (found + DAY, "")]
    return [(found + DAY if per == "day" else found, "")]


async def _named(store: "Store", invocation: Invocation, kind: str, name: str) -> str | None:
    if kind == "person":
        person = store.people.find(name)
        return None if person is None else f"person:{person.n}"
    if kind == "token":
        tokens = [token for token in await store.tokens.list() if token.name == name]
        return f"token:{tokens[-1].account}" if tokens else None
    if kind == "peer":
        return f"peer:{name}" if store.peers.find(name) is not None else None
    return f"agent:{name}" if name in invocation.settings.agents else None


async def _of_run(store: "Store", run: str, *, makes: bool) -> list[tuple[str, str]]:
    """The budgets of a run: those that its first calls came with, or that were set for it."""
    from carnet.errors import UsageInvalid
    from carnet.ports.money.budgets import RUN

    found = [one for one in await store.budgets.of_run(run) if one.parent is None]
    if found or not makes:
        return [(one.name, run) for one in found]
    payers = await store.budgets.payers_of(run)
    if not payers:
        raise UsageInvalid(
            reason=f"There is no run '{run}', nor anything else of that name.",
            fix="SUBJECT is person:NAME, token:NAME, peer:DOMAIN, agent:NAME, or the id of a run.",
        )
    return [(f"{RUN}{issuer}/{account}/{run}", run) for issuer, account in payers]


def _text(pages: Sequence[dict[str, Any]]) -> str:
    titles = ["budget", "part", "limit", "spent", "held", "left"]
    rows: list[list[str]] = []
    for page in pages:
        for part in ("money", "calls", "tokens"):
            if page["limits"][part] is not None:
                columns = [str(page[each][part]) for each in ("limits", "spent", "held", "left")]
                rows.append([page["name"], part, *columns])
        if page["until"] is not None:
            rows.append([page["name"], "time", page["until"], "", "", ""])
    return table(rows, titles)
