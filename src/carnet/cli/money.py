"""`carnet ledger`: who owes what to whom."""

from typing import Any

import click

from carnet.cli.invocation import Command, Invocation, count, pass_invocation, table, wait


@click.command(cls=Command)
@click.option("--run", metavar="ID", help="Only the postings of one run.")
@click.option("--account", metavar="A", help="Only postings of one account, either side.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, help="How many (100).")
@pass_invocation
def ledger(invocation: Invocation, run: str | None, account: str | None, limit: int) -> None:
    """List postings, newest first: the debit account owes, the credit account is owed."""
    page = wait(_postings(invocation, run, account, limit))
    invocation.result(page, lambda: invocation.spell(_text(page)), page["entries"])


async def _postings(
    invocation: Invocation, run: str | None, account: str | None, limit: int
) -> dict[str, Any]:
    from carnet.assembly.storing import open_from
    from carnet.core.money import format_amount
    from carnet.gateway.pages import ledger_page

    settings = invocation.settings
    store = await open_from(settings, exclusive=False)
    try:
        entries = await store.records.ledger(run=run, account=account, limit=limit)
    finally:
        await store.close()
    total = format_amount(sum(entry.amount for entry in entries))
    currency = settings.ledger.currency
    return {**ledger_page(entries, currency), "sum": total, "currency": currency}


def _text(page: dict[str, Any]) -> str:
    from carnet.cli.moments import short

    if not page["entries"]:
        return "No postings. Every served call makes one; 'carnet runs' shows what was called."
    columns = ["at", "debit", "credit", "amount", "run", "turn"]
    rows = [
        [short(entry["at"]), *(str(entry[column]) for column in columns[1:])]
        for entry in page["entries"]
    ]
    total = f"{count(len(rows), 'posting')}, {page['sum']} {page['currency']} together."
    return table(rows, [column.upper() for column in columns]) + "\n" + total
