"""`carnet peers confirm`: a person says that the new keys of a stranger are its own (R42)."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Command, Invocation, pass_invocation, wait
from carnet.cli.trust.tokens import refuse_unknown

if TYPE_CHECKING:
    from carnet.config import Settings
    from carnet.ports.trust.strangers import Stranger

AT_THIS_MACHINE = 0  # whoever may run commands here


@click.command(cls=Command)
@click.argument("domain", metavar="DOMAIN")
@pass_invocation
def confirm(invocation: Invocation, domain: str) -> None:
    """Confirm the keys that an organisation shows which is no peer, in place of its former ones.

    Ask there first, by another way, whether its keys are those that are shown.
    """
    page = wait(_confirm(invocation.settings, domain)) or {}
    if not page:
        refuse_unknown("changed stranger", domain, "carnet peers list")
    invocation.result(page, lambda: _confirmed_text(page))


def _confirmed_text(page: dict[str, Any]) -> str:
    keys = ", ".join(page["keys"]) or "none"
    return f"Confirmed: {page['domain']} is known by these keys from now on: {keys}."


async def _confirm(settings: "Settings", domain: str) -> dict[str, Any] | None:
    from carnet.assembly.store import opened

    async with opened(settings) as store:
        confirmed = await store.strangers.confirm(domain.lower(), AT_THIS_MACHINE)
    return None if confirmed is None else stranger_page(confirmed)


def stranger_page(stranger: "Stranger") -> dict[str, Any]:
    """An organisation that is no peer, as commands show it."""
    from carnet.wire.crypto.ed25519 import write_public_key

    offered = stranger.offered
    return {
        "domain": stranger.domain,
        "keys": sorted(map(write_public_key, stranger.keys)),
        "first_seen": stranger.first_seen,
        "offered": None if offered is None else sorted(map(write_public_key, offered)),
        "confirmed": stranger.confirmed_by is not None,
    }


def strangers_text(page: dict[str, Any]) -> str:
    """Those that were met, and whose change waits for a person."""
    lines = [
        f"{each['domain']} is no peer. Its keys: {', '.join(each['keys']) or 'none'}."
        + (
            ""
            if each["offered"] is None
            else f" It shows others now: carnet peers confirm {each['domain']}"
        )
        for each in page["strangers"]
    ]
    return "\n".join(lines)
