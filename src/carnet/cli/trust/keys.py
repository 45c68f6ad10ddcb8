"""`carnet keys`: the keys that this gateway signs with."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Group, Invocation, pass_invocation, table, wait

if TYPE_CHECKING:
    from carnet.config import Settings

OVERLAP = "24h"  # longer than others keep our card
KEPT_SECONDS = 300  # for which others may go by the card they have
LEAD = "10m"  # twice as long: a cache on the way may have kept it before


@click.group(cls=Group)
def keys() -> None:
    """Make, list, rotate and revoke the keys this gateway signs with."""


@keys.command()
@click.option("--kid", metavar="KID", help="Its name in our cards (default: it names itself).")
@pass_invocation
def new(invocation: Invocation, kid: str | None) -> None:
    """Make the first key. 'carnet init' and 'carnet serve' do it too."""
    page = wait(_create(invocation.settings, kid))
    text = f"We sign with {page['kid']} from now on. Its public key:\n{page['key']}"
    invocation.result(page, lambda: text)


@keys.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those whose time is over.")
@pass_invocation
def list_keys(invocation: Invocation, everything: bool) -> None:  # noqa: FBT001  click passes it
    """List the public keys; the private ones are sealed in the store and never shown."""
    found = wait(_list(invocation.settings))
    shown = [key for key in found if everything or key["state"] != "over"]
    page = {"keys": shown}
    invocation.result(page, lambda: invocation.spell(_keys_text(shown)), shown)


def _keys_text(shown: list[dict[str, Any]]) -> str:
    from carnet.cli.times import short

    if not shown:
        return "No keys. Make one: carnet keys new"
    titles = ["KID", "STATE", "SIGNS FROM", "HONOURED UNTIL", "PUBLIC KEY"]
    rows = [
        [key["kid"], key["state"], short(key["signs_from"]), short(key["not_after"]), key["key"]]
        for key in shown
    ]
    return table(rows, titles)


@keys.command()
@click.option(
    "--overlap",
    metavar=OVERLAP,
    default=OVERLAP,
    help="How long the old key is honoured when it signs no more: 24h (default), 45m, 7d.",
)
@click.option(
    "--lead",
    metavar=LEAD,
    help="How long the new key is shown before it signs: 10m (default), 1h.",
)
@click.option("--at-once", is_flag=True, help="Sign now, before others have seen the new key.")
@pass_invocation
def rotate(invocation: Invocation, overlap: str, lead: str | None, at_once: bool) -> None:  # noqa: FBT001  click passes it
    """Show a new key now, and sign with it when others have had time to see it.

    Until then the old key signs. With --at-once the new one does, or the one that is shown already;
    who goes by an older card of ours refuses what it signs, for some seconds up to five minutes.
    """
    from carnet.cli.times import read_span
    from carnet.errors import UsageInvalid

    if at_once and lead is not None:
        raise UsageInvalid(
            reason="--at-once leaves no time for --lead.", fix="Leave out one of them."
        )
    seconds = read_span(overlap, option="--overlap", never=False) or 0
    wait_seconds = 0 if at_once else read_span(lead or LEAD, option="--lead", never=False) or 0
    page = wait(_rotate(invocation.settings, seconds, wait_seconds))
    domain = invocation.settings.gateway.domain
    invocation.result(page, lambda: _rotated_text(invocation, page, domain))
    if wait_seconds < KEPT_SECONDS:
        invocation.note(
            "Others may keep our card for five minutes. Those who do refuse what the new key signs "
            "with 401 key_unknown until they look again; a Carnet that lists us looks soon."
        )


async def _rotate(settings: "Settings", overlap: int, lead: int) -> dict[str, Any]:
    """The page of the key that was made, and of the one that it replaces."""
    from carnet.assembly.store import opened
    from carnet.gateway.partners.trust import own_key_page
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    async with opened(settings) as store:
        old = [key.kid for key in await store.keys.list() if key.state == "active"]
        new = await store.keys.rotate(now, overlap_seconds=overlap, lead_seconds=lead)
        replaced = [key for key in await store.keys.list() if key.kid in old]
    before = own_key_page(replaced[0], now) if replaced else None
    return {**own_key_page(new, now), "replaces": before}


def _rotated_text(invocation: Invocation, page: dict[str, Any], domain: str) -> str:
    from carnet.cli.times import short

    kid, old = page["kid"], page["replaces"]
    begins = f"Our cards show {kid} from now on; it signs from {short(page['signs_from'])} UTC."
    lines = [
        begins if page["state"] == "next" else f"We sign with {kid} from now on.",
        f"Its public key:\n{page['key']}",
    ]
    if old is not None:
        pin = f"carnet peers add agent://{domain} --key {page['key']} --kid {kid}"
        stolen = f"If {old['kid']} was stolen, revoke it at once: carnet keys revoke {old['kid']}"
        lines += [
            f"{old['kid']} is honoured until {short(old['not_after'])} UTC.",
            "Running gateways notice within a second.",
            f"Who has pinned our key pins the new one beside it before it signs: {pin}",
            invocation.spell(stolen),
        ]
    return "\n".join(lines)


@keys.command()
@click.argument("kid")
@pass_invocation
def revoke(invocation: Invocation, kid: str) -> None:
    """Revoke a key at once. The one that signs is replaced by the next, or else by a new one."""
    now_active = wait(_revoke(invocation.settings, kid))
    page = {"kid": kid, "revoked": True, "active": now_active}
    text = f"Revoked the key {kid}. We sign with {now_active}; gateways notice within a second."
    invocation.result(page, lambda: text)


async def _revoke(settings: "Settings", kid: str) -> str:
    from carnet.assembly.store import opened
    from carnet.errors import UsageInvalid
    from carnet.runtime.system import SystemClock

    async with opened(settings) as store:
        if not await store.keys.revoke(kid, SystemClock().wall_us()):
            raise UsageInvalid(
                reason=f"There is no key named '{kid}' that is still honoured.",
                fix="'carnet keys list --all' shows which there are.",
            )
        return store.keys.signer().kid


async def _create(settings: "Settings", kid: str | None) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.gateway.partners.trust import own_key_page
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    async with opened(settings) as store:
        return own_key_page(await store.keys.create(now, kid=kid), now)


async def _list(settings: "Settings") -> list[dict[str, Any]]:
    from carnet.assembly.store import opened
    from carnet.gateway.partners.trust import own_key_page
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    async with opened(settings) as store:
        return [own_key_page(key, now) for key in await store.keys.list()]
