"""`carnet keys`: the keys that this gateway signs with."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Group, Invocation, pass_invocation, table, wait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from carnet.config import Settings
    from carnet.ports.keys import OwnKey
    from carnet.stores.opening import Store

OVERLAP = "24h"  # longer than others keep our card


@click.group(cls=Group)
def keys() -> None:
    """Make, list, rotate and end the keys this gateway signs with."""


@keys.command()
@click.option("--kid", metavar="KID", help="Its name in our cards (default: it names itself).")
@pass_invocation
def new(invocation: Invocation, kid: str | None) -> None:
    """Make the first key. 'carnet init' and 'carnet serve' do it too."""
    page = _done(invocation, lambda store, now: store.keys.create(now, kid=kid))
    invocation.result(page, lambda: _made_text(page))


def _made_text(page: dict[str, Any]) -> str:
    return f"We sign with {page['kid']} from now on. Its public key:\n{page['key']}"


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
    from carnet.cli.moments import short

    if not shown:
        return "No keys. Make one: carnet keys new"
    titles = ["KID", "STATE", "CREATED", "HONOURED UNTIL", "PUBLIC KEY"]
    rows = [
        [key["kid"], key["state"], short(key["created"]), short(key["not_after"]), key["key"]]
        for key in shown
    ]
    return table(rows, titles)


@keys.command()
@click.option(
    "--overlap",
    metavar=OVERLAP,
    default=OVERLAP,
    help="How long the old key is honoured: 24h (default), 45m, 7d.",
)
@pass_invocation
def rotate(invocation: Invocation, overlap: str) -> None:
    """Sign with a new key from now on; the old one is honoured for a while."""
    from carnet.cli.moments import read_span
    from carnet.errors import UsageInvalid

    seconds = read_span(overlap, option="--overlap")
    if seconds is None:
        raise UsageInvalid(
            reason="A key that is replaced cannot be honoured for ever.",
            fix=f"Give a length of time: carnet keys rotate --overlap {OVERLAP}",
        )
    page = _done(invocation, lambda store, now: store.keys.rotate(now, overlap_seconds=seconds))
    invocation.result(page, lambda: invocation.spell(_rotated_text(page, overlap)))


def _rotated_text(page: dict[str, Any], overlap: str) -> str:
    return "\n".join(
        [
            _made_text(page),
            f"The old key is honoured for {overlap}. Running gateways notice within a second.",
            "Who has pinned the old key needs the new one before that time is over.",
            "If the old key was stolen, end it at once: carnet keys revoke KID",
        ]
    )


@keys.command()
@click.argument("kid")
@pass_invocation
def revoke(invocation: Invocation, kid: str) -> None:
    """End a key at once; the one that signs is replaced by a new one."""
    now_active = wait(_revoke(invocation.settings, kid))
    page = {"kid": kid, "revoked": True, "active": now_active}
    text = f"Ended the key {kid}. We sign with {now_active}; gateways notice within a second."
    invocation.result(page, lambda: text)


async def _revoke(settings: "Settings", kid: str) -> str:
    from carnet.assembly.storing import open_from
    from carnet.errors import UsageInvalid
    from carnet.runtime.system import SystemClock

    store = await open_from(settings, exclusive=False)
    try:
        if not await store.keys.revoke(kid, SystemClock().wall_us()):
            raise UsageInvalid(
                reason=f"There is no key named '{kid}' that is still honoured.",
                fix="'carnet keys list --all' shows which there are.",
            )
        return store.keys.signer().kid
    finally:
        await store.close()


def _done(
    invocation: Invocation, act: "Callable[[Store, int], Awaitable[OwnKey]]"
) -> dict[str, Any]:
    """The page of the key that came of something done in the store."""
    return wait(_do(invocation.settings, act))


async def _do(
    settings: "Settings", act: "Callable[[Store, int], Awaitable[OwnKey]]"
) -> dict[str, Any]:
    from carnet.assembly.storing import open_from
    from carnet.cli.pinning import own_key_page
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    store = await open_from(settings, exclusive=False)
    try:
        return own_key_page(await act(store, now), now)
    finally:
        await store.close()


async def _list(settings: "Settings") -> list[dict[str, Any]]:
    from carnet.assembly.storing import open_from
    from carnet.cli.pinning import own_key_page
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    store = await open_from(settings, exclusive=False)
    try:
        return [own_key_page(key, now) for key in await store.keys.list()]
    finally:
        await store.close()
