"""`carnet ledger`: who owes what to whom, and whether anybody changed it afterwards."""

import re
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.failures import OK, UNVERIFIED
from carnet.cli.invocation import Group, Invocation, count, pass_invocation, table, wait
from carnet.cli.money.statements import compare, statement
from carnet.cli.progress import ProgressLine

if TYPE_CHECKING:
    from carnet.ports.money.payments import Kind
    from carnet.stores.ledger.verification import Fault, Verified


KINDS = ("payer", "peer", "agent", "run")
_SEAL = re.compile(r"[0-9a-f]{64}", re.ASCII)


@click.group(cls=Group, invoke_without_command=True)
@click.option("--run", metavar="ID", help="Only the postings of one run.")
@click.option("--account", metavar="A", help="Only postings of one account, either side.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, help="How many (100).")
@click.option("--mine", is_flag=True, help="What the holder of a token has paid (--as).")
@click.option("--as", "token", metavar="TOKEN", help="That token: TOKEN or @FILE (CARNET_TOKEN).")
@click.option("--before", type=click.IntRange(1), metavar="N", help="With --mine: go on there.")
@click.option("--by", type=click.Choice(KINDS), help="What was debited in all, to each.")
@pass_invocation
@click.pass_context
def ledger(ctx: click.Context, invocation: Invocation, /, **options: Any) -> None:
    """List postings, newest first: the debit account owes, the credit account is owed."""
    if ctx.invoked_subcommand is not None:
        return
    if options["by"] is not None:
        sums = wait(_totals(invocation, options["by"], options["limit"]))
        invocation.result(sums, lambda: _totals_text(sums), sums["totals"])
        return
    if options["mine"]:
        page = wait(_own_postings(invocation, options))
    else:
        page = wait(_postings(invocation, options["run"], options["account"], options["limit"]))
    invocation.result(page, lambda: invocation.spell(_text(page)), page["entries"])


async def _own_postings(invocation: Invocation, options: dict[str, Any]) -> dict[str, Any]:
    from urllib.parse import urlencode

    from carnet.cli.reach.pages import Pages
    from carnet.core.money.amount import format_amount, parse_amount
    from carnet.errors import Unreachable

    asked = {name: options[name] for name in ("limit", "before", "run") if options[name]}
    async with Pages(invocation, options["token"]) as pages:
        if pages.is_stored:  # whose they are, a gateway tells by a token
            raise Unreachable(url="its gateway")
        page = await pages.read(f"/ledger?{urlencode(asked)}")
    total = format_amount(sum(parse_amount(entry["amount"]) for entry in page["entries"]))
    return {**page, "sum": total, "currency": invocation.settings.ledger.currency}


async def _totals(invocation: Invocation, by: "Kind", limit: int) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.core.money.amount import format_amount

    async with opened(invocation.settings) as store:
        found = await store.payments.totals(by, limit=limit)
    listed = [
        {"name": one.name, "postings": one.postings, "amount": format_amount(one.amount)}
        for one in found
    ]
    return {"by": by, "totals": listed, "currency": invocation.settings.ledger.currency}


def _totals_text(page: dict[str, Any]) -> str:
    if not page["totals"]:
        return "No postings."
    rows = [[one["name"], str(one["postings"]), one["amount"]] for one in page["totals"]]
    return table(rows, [page["by"].upper(), "POSTINGS", page["currency"].upper()])


async def _postings(
    invocation: Invocation, run: str | None, account: str | None, limit: int
) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.core.money.amount import format_amount
    from carnet.gateway.pages import ledger_page

    settings = invocation.settings
    async with opened(settings) as store:
        entries = await store.records.ledger(run=run, account=account, limit=limit)
    total = format_amount(sum(entry.amount for entry in entries))
    currency = settings.ledger.currency
    return {**ledger_page(entries, currency), "sum": total, "currency": currency}


@ledger.command()
@click.argument("quota")
@click.option("--amount", metavar="A", help="How much of it (default: all).")
@click.option("--forgive", is_flag=True, help="It need not be paid.")
@pass_invocation
def settle(invocation: Invocation, quota: str, amount: str | None, forgive: bool) -> None:  # noqa: FBT001  as click gives it
    """Note that what a payer owed above its limit was paid: it may make calls that cost again."""
    from carnet.core.money.amount import format_amount, parse_amount
    from carnet.errors import UsageInvalid

    wanted = None if amount is None else parse_amount(amount, field="--amount")
    settled = wait(_settle(invocation, quota, wanted, forgive=forgive))
    if settled is None:
        raise UsageInvalid(
            reason=f"{quota} does not owe as much above its limit.",
            fix="'carnet ledger differences' shows who owes what.",
        )
    how = "forgiven" if forgive else "paid"
    page = {"quota": quota, "settled": format_amount(settled), "how": how}
    invocation.result(page, lambda: f"{page['settled']} of {quota} is {how}.")


async def _settle(
    invocation: Invocation, quota: str, amount: int | None, *, forgive: bool
) -> int | None:
    from carnet.assembly.store import open_from
    from carnet.runtime.system import SystemClock, SystemIds

    store = await open_from(invocation.settings, exclusive=False)
    try:
        return await store.settlements.settle(
            SystemIds().uuid(),
            quota,
            amount=amount,
            how="forgiven" if forgive else "paid",
            now=SystemClock().wall_us(),
        )
    finally:
        await store.close()


@ledger.command("differences")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, help="Of each kind (100).")
@pass_invocation
def show_differences(invocation: Invocation, limit: int) -> None:
    """List where our ledger and those of peers may differ, and what payers have not paid.

    disputed: a peer says that a call cost more than it may. unpaid: used above a payer's limit.
    unmatched: a call left us and nobody told what it cost; the peer may have a posting of it.
    """
    page = wait(_differences(invocation, limit))
    invocation.result(page, lambda: invocation.spell(_differences_text(page)), page["differences"])


async def _differences(invocation: Invocation, limit: int) -> dict[str, Any]:
    from carnet.assembly.agents.kinds import KINDS
    from carnet.assembly.store import open_from
    from carnet.core.money.amount import format_amount
    from carnet.wire.grammar.times import when

    settings = invocation.settings
    agents = settings.agents.items()
    elsewhere = [name for name, agent in agents if KINDS[agent.kind].is_remote]
    store = await open_from(settings, exclusive=False)
    try:
        found = await store.differences(elsewhere=elsewhere, limit=limit)
        unpaid = await store.settlements.unpaid()
    finally:
        await store.close()
    listed = [
        {
            "kind": each.kind,
            "at": when(each.at),
            "payer": each.payer,
            "other": each.other,
            "amount": None if each.amount is None else format_amount(each.amount),
            "run": each.run,
            "turn": each.turn,
        }
        for each in found
    ]
    owing = {each.quota: format_amount(each.amount) for each in unpaid}
    return {"differences": listed, "unpaid": owing, "currency": settings.ledger.currency}


def _differences_text(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    lines = [
        f"{quota} owes {amount} {page['currency']} above its limit; when it is paid:"
        f" carnet ledger settle {quota}"
        for quota, amount in page["unpaid"].items()
    ]
    if not page["differences"]:
        return "\n".join(["No difference is known.", *lines])
    columns = ["payer", "other", "amount", "run", "turn"]
    rows = [
        [
            *(entry["kind"], "-" if entry["at"] is None else short(entry["at"])),
            *(str(entry[column] or "-") for column in columns),
        ]
        for entry in page["differences"]
    ]
    return "\n".join([table(rows, ["KIND", "AT", *map(str.upper, columns)]), *lines])


def _text(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    if not page["entries"]:
        return "No postings. Every served call makes one; 'carnet runs' shows what was called."
    columns = ["debit", "credit", "amount", "run", "turn"]
    rows = [
        [str(entry["n"]), short(entry["at"]), *(str(entry[column]) for column in columns)]
        for entry in page["entries"]
    ]
    total = f"{count(len(rows), 'posting')}, {page['sum']} {page['currency']} together."
    if page.get("next"):
        total += f" More: carnet ledger --mine --before {page['next']}"
    return table(rows, ["ROW", "AT", *map(str.upper, columns)]) + "\n" + total


@ledger.command()
@click.option("--expect", metavar="SEAL", default="", help="A seal that was noted earlier.")
@pass_invocation
def verify(invocation: Invocation, expect: str) -> int:
    """Check that no posting was changed, removed or invented; exit code 4 if one was.

    Prints the seal of the last checkpoint. Note it elsewhere, and give it to --expect later: then
    it is also found if the whole database was set back to an earlier state.
    """
    expected = expect.strip().lower()
    if expected and not _SEAL.fullmatch(expected):
        raise click.BadParameter("a seal is 64 hexadecimal digits.", param_hint="--expect")
    found = wait(_verified(invocation, expected))
    page = _verified_page(found, invocation.settings.ledger.currency)
    invocation.result(page, lambda: "\n".join(_verified_lines(page)), page["faults"] or [page])
    return OK if found.ok else UNVERIFIED


async def _verified(invocation: Invocation, expected: str) -> "Verified":
    from carnet.assembly.store import opened

    async with opened(invocation.settings) as store:
        with ProgressLine("postings checked") as progress:
            return await store.verify_ledger(expected=expected, progress=progress.so_far)


def _verified_page(found: "Verified", currency: str) -> dict[str, Any]:
    from carnet.core.money.amount import format_amount
    from carnet.wire.grammar.times import when

    return {
        "ok": found.ok,
        "postings": found.postings,
        "before_the_chain": found.unchained,
        "shards": found.shards,
        "checkpoints": found.checkpoints,
        "last_checkpoint": when(found.last),
        "seal": found.seal or None,
        "debits": format_amount(found.debits),
        "credits": format_amount(found.credits),
        "currency": currency,
        "fault_count": found.fault_count,
        "faults": [_fault(fault) for fault in found.faults],
    }


def _fault(fault: "Fault") -> dict[str, Any]:
    import msgspec

    return {"row": fault.row, "shard": fault.shard, **msgspec.to_builtins(fault)}


def _verified_lines(page: dict[str, Any]) -> list[str]:
    head = "The ledger is as it was written." if page["ok"] else "The ledger was changed."
    old = page["before_the_chain"]
    lines = [
        head,
        f"  {count(page['postings'], 'posting')} in {count(page['shards'], 'shard')}"
        + (f", {old} of them from before the chain" if old else ""),
        f"  debits {page['debits']}, credits {page['credits']} {page['currency']}",
    ]
    if page["seal"]:
        last = f"the last at {page['last_checkpoint']}, seal {page['seal']}"
        lines.append(f"  {count(page['checkpoints'], 'checkpoint')}, {last}")
    lines += [f"  {_place(fault)}: {fault['what']}" for fault in page["faults"]]
    more = page["fault_count"] - len(page["faults"])
    if more:
        lines.append(f"  and {count(more, 'fault')} more")
    if not page["ok"]:
        lines.append("Keep a copy of the database as it is; docs/operations/ledger.md says more.")
    return lines


def _place(fault: dict[str, Any]) -> str:
    named = [f"{word} {fault[word]}" for word in ("row", "shard", "checkpoint") if fault.get(word)]
    return ", ".join(named) or "ledger"


ledger.add_command(statement)
ledger.add_command(compare)
