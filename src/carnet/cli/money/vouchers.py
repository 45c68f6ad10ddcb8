"""`carnet vouchers`: promise to pay for a call at another gateway, and take it back."""

from typing import TYPE_CHECKING, Any, Final

import click

from carnet.cli.failures import OK, UNVERIFIED
from carnet.cli.invocation import Command, Group, Invocation, pass_invocation, table, wait

if TYPE_CHECKING:
    from carnet.config import Settings

LIFE: Final = "24h"
MOST_LISTED: Final = 1000


@click.group(cls=Group)
def vouchers() -> None:
    """Issue vouchers, each good for one call at one gateway; list and revoke them."""


@vouchers.command(cls=Command)
@click.argument("audience")
@click.argument("amount")
@click.option(
    "--account",
    metavar="NAME",
    default="operator",
    help="Whose it is with us: the name that the bill of the other side will say.",
)
@click.option(
    "--for",
    "holder",
    metavar="WHO",
    help="Who alone may show it: a domain, agent://NAME, or the name of a token over there.",
)
@click.option(
    "--expires", metavar=LIFE, default=LIFE, help="How long it holds: 24h (default), 90d at most."
)
@pass_invocation
def issue(invocation: Invocation, /, audience: str, amount: str, **options: Any) -> None:
    """Issue a voucher: AUDIENCE, a domain, may bill us for one call, AMOUNT at the most.

    Who holds it can use it, so hand it over as you would hand over money. It is shown this once.
    AUDIENCE takes it if it lists us as a peer, with credit, and has [payers."voucher_"]. One for
    our own domain is good at our own gateway.
    """
    page = wait(_issue(invocation.settings, audience, amount, options))
    invocation.result(page, lambda: str(page["voucher"]))
    if invocation.format == "text":
        invocation.note(_issued_text(page))


async def _issue(
    settings: "Settings", audience: str, amount: str, options: dict[str, Any]
) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.money.voucher_forms import new_voucher, voucher_page
    from carnet.runtime.system import SystemClock
    from carnet.wire.travel.voucher import write_voucher

    now = SystemClock().wall_us()
    made = new_voucher(settings, audience, amount, options, now)
    async with opened(settings) as store:
        await store.keys.ensure(now)
        signer = store.keys.signer()
        text = write_voucher(made, kid=signer.kid, sign=signer.sign)
        await store.vouchers.record(made)  # before anybody can have it
    return {"voucher": text.reveal(), **voucher_page(made)}


def _issued_text(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    who = page["holder"] or "Whoever holds it"
    return (
        f"{who} may spend {page['amount']} {page['currency']} with it on one call at "
        f"{page['audience']}, until {short(page['expires'])} UTC: carnet call ADDRESS TEXT "
        f"--voucher FILE. Take it back: carnet vouchers revoke {page['id']}"
    )


@vouchers.command("list", cls=Command)
@click.option("--all", "with_ended", is_flag=True, help="Also those that were revoked or expired.")
@pass_invocation
def list_(invocation: Invocation, /, **options: bool) -> None:
    """List the vouchers that we have issued and that still hold."""
    page = wait(_listed(invocation.settings, with_ended=options["with_ended"]))
    invocation.result(page, lambda: _listed_text(page), page["vouchers"])


async def _listed(settings: "Settings", *, with_ended: bool) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.money.voucher_forms import issued_page
    from carnet.runtime.system import SystemClock

    now, domain = SystemClock().wall_us(), settings.gateway.domain
    async with opened(settings) as store:
        found = await store.vouchers.list(domain, now, limit=MOST_LISTED, with_ended=with_ended)
    return {"vouchers": [issued_page(one, now) for one in found]}


def _listed_text(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    if not page["vouchers"]:
        return "No vouchers. Issue one: carnet vouchers issue AUDIENCE AMOUNT"
    titles = ["ID", "AT", "AMOUNT", "ACCOUNT", "FOR", "UNTIL", "STATE"]
    rows = [
        [
            *(one["id"], one["audience"], f"{one['amount']} {one['currency']}", one["account"]),
            *(one["holder"] or "whoever holds it", short(one["expires"]), one["state"]),
        ]
        for one in page["vouchers"]
    ]
    return table(rows, titles)


@vouchers.command(cls=Command)
@click.argument("id")
@pass_invocation
def show(invocation: Invocation, /, **options: str) -> None:
    """Show a voucher that we have issued, by its id."""
    page = wait(_show(invocation.settings, options["id"]))
    invocation.result(page, lambda: _lines(page))


async def _show(settings: "Settings", id: str) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.money.voucher_forms import issued_page, refuse_voucher
    from carnet.runtime.system import SystemClock

    async with opened(settings) as store:
        found = await store.vouchers.find(settings.gateway.domain, id)
    if found is None:
        refuse_voucher(id)
    return issued_page(found, SystemClock().wall_us())


@vouchers.command(cls=Command)
@click.argument("id")
@pass_invocation
def revoke(invocation: Invocation, /, **options: str) -> None:
    """Revoke a voucher that nobody has used yet, by its id.

    Our own gateway refuses it within a second; others ask us, and refuse it within a minute. A call
    that it has paid for stays paid.
    """
    id = options["id"]
    wait(_revoke(invocation.settings, id))
    invocation.result({"id": id, "revoked": True}, lambda: f"Revoked the voucher {id}.")


async def _revoke(settings: "Settings", id: str) -> None:
    from carnet.assembly.store import opened
    from carnet.cli.money.voucher_forms import refuse_voucher
    from carnet.runtime.system import SystemClock

    async with opened(settings) as store:
        if not await store.vouchers.end(settings.gateway.domain, id, SystemClock().wall_us()):
            refuse_voucher(id)


@vouchers.command(cls=Command)
@click.argument("voucher")
@pass_invocation
def inspect(invocation: Invocation, /, voucher: str) -> int:
    """Show what a VOUCHER says (its text, a FILE, or -), and whether it would be taken here.

    It is not used up by that. Exit code 4 if our gateway would refuse it.
    """
    page = wait(_inspect(invocation.settings, voucher))
    invocation.result(page, lambda: _lines(page))
    return OK if page["holds"] else UNVERIFIED


async def _inspect(settings: "Settings", given: str) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.money.voucher_forms import judged, voucher_page
    from carnet.cli.reach.gateway import open_http
    from carnet.cli.reach.payment import read_given
    from carnet.runtime.peers.ended import EndedLists
    from carnet.runtime.peers.keyring import Ring
    from carnet.runtime.system import SystemClock
    from carnet.wire.travel.voucher import read_voucher

    text, clock = read_given(given), SystemClock()
    page = voucher_page(read_voucher(text))
    async with opened(settings) as store, open_http() as http:
        own = (settings.gateway.domain, store.keys)
        ring = Ring(pinned=store.pinned, peers=store.peers, http=http, clock=clock, own=own)
        ended = EndedLists(ring, http, clock)
        try:
            return page | await judged(settings, store, ring, ended, text, clock.wall_us())
        finally:
            await ended.close()
            await ring.close()


def _lines(page: dict[str, Any]) -> str:
    return "\n".join(f"{name:<12}{value}" for name, value in page.items() if value is not None)
