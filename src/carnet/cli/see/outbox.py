"""`carnet outbox`: webhook deliveries, those that are dead, and the secrets that sign them."""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from carnet.cli.invocation import (
    Group,
    Invocation,
    count,
    find_begun,
    more_of,
    pass_invocation,
    table,
    wait,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carnet.config import Settings
    from carnet.ports.world.outbox import DeliveryState, StoredDelivery
    from carnet.stores.open import Store

MOST = 1000
_NAMED = re.compile(r"notify|(token|peer|person):.+")  # senders that sign with no key of their own


@click.group(cls=Group)
def outbox() -> None:
    """See the webhooks that wait, were delivered or are dead, and send them again."""


@outbox.command("list")
@click.option(
    "--state",
    type=click.Choice(["pending", "delivered", "dead"]),
    help="Those alone (default: all).",
)
@click.option("--limit", type=click.IntRange(1, MOST), default=20, help="How many (20).")
@click.option("--before", type=click.IntRange(1), metavar="N", help="Go on where a list ended.")
@pass_invocation
def list_deliveries(
    invocation: Invocation, state: "DeliveryState | None", limit: int, before: int | None
) -> None:
    """List the newest webhook deliveries."""
    page = wait(_list(invocation.settings, state, limit, before))
    chosen = {"state": state, "limit": limit}
    invocation.result(page, lambda: invocation.spell(_list_text(page, chosen)), page["deliveries"])


async def _list(
    settings: "Settings", state: "DeliveryState | None", limit: int, before: int | None
) -> dict[str, Any]:
    from carnet.assembly.store import opened

    async with opened(settings) as store:
        found = await store.outbox.list(state=state, limit=limit, before=before)
    following = found[-1].n if len(found) == limit else None
    return {"deliveries": [_line(stored) for stored in found], "next": following}


def _line(stored: "StoredDelivery") -> dict[str, Any]:
    from carnet.wire.grammar.times import when

    delivery = stored.delivery
    return {
        "delivery": delivery.id,
        "kind": delivery.kind,
        "state": stored.state,
        "receiver": delivery.host,
        "taskId": delivery.task,
        "attempts": stored.attempts,
        "status": stored.status,
        "reason": stored.reason,
        "created": when(stored.created),
        "due": when(stored.due) if stored.state == "pending" else None,
        "ended": when(stored.ended),
    }


def _list_text(page: dict[str, Any], chosen: dict[str, Any]) -> str:
    from carnet.cli.times import short

    if not page["deliveries"]:
        return "No deliveries. A task with a callback adds one when it ends."
    titles = ["DELIVERY", "KIND", "STATE", "RECEIVER", "ATTEMPTS", "CREATED", "NEXT", "LAST"]
    rows = [
        [
            line["delivery"],
            line["kind"],
            line["state"],
            line["receiver"],
            str(line["attempts"]),
            short(line["created"]),
            short(line["due"]),
            line["reason"] or str(line["status"] or "-"),
        ]
        for line in page["deliveries"]
    ]
    more = f"\n{more_of('outbox list', page['next'], chosen)}" if page["next"] else ""
    return table(rows, titles) + more


@outbox.command()
@click.argument("delivery", metavar="ID")
@pass_invocation
def show(invocation: Invocation, delivery: str) -> None:
    """Show one delivery: its URL, its body, and how its last attempt went.

    The beginning of an ID is enough if only one of the newest deliveries begins so.
    """
    page = wait(_show(invocation.settings, delivery))
    invocation.result(page, lambda: invocation.spell(_show_text(page)))


async def _show(settings: "Settings", delivery: str) -> dict[str, Any]:
    from carnet.assembly.store import opened

    async with opened(settings) as store:
        stored = await _find(store, delivery)
    return {
        **_line(stored),
        "url": stored.delivery.url,
        "signed_for": stored.delivery.secret_of,
        "body": _body(stored.delivery.body),
    }


async def _find(store: "Store", delivery: str) -> "StoredDelivery":
    """A delivery by its id or the beginning of it."""
    from carnet.errors import DeliveryNotFound

    found = await store.outbox.find(delivery)
    if found is None:
        newest = await store.outbox.list(state=None, limit=MOST)
        begun = find_begun(delivery, (stored.delivery.id for stored in newest), "delivery")
        found = None if begun is None else await store.outbox.find(begun)
    if found is None:
        raise DeliveryNotFound
    return found


def _body(body: bytes) -> Any:
    """What it says: JSON, unless somebody wrote something else into the store."""
    from carnet.errors import InvalidJson
    from carnet.wire.grammar import json

    try:
        return json.read(body)
    except InvalidJson:
        return body.decode(errors="replace")


def _show_text(page: dict[str, Any]) -> str:
    from carnet.cli.invocation import to_json, visible

    facts = [
        ("delivery", page["delivery"]),
        ("kind", page["kind"]),
        ("state", page["state"]),
        ("url", page["url"]),
        ("task", page["taskId"] or "-"),
        ("attempts", page["attempts"]),
        ("last", page["reason"] or page["status"] or "-"),
        ("created", page["created"]),
        ("next" if page["due"] else "ended", page["due"] or page["ended"] or "-"),
        ("signed for", page["signed_for"] or "-"),
    ]
    lines = [f"{name:<11} {value}" for name, value in facts]
    again = []
    if page["state"] == "dead":
        again = [f"Send it again: carnet outbox replay {page['delivery']}"]
    return "\n".join([*lines, "", visible(to_json(page["body"], indent=2)), *again])


@outbox.command()
@click.argument("deliveries", metavar="[ID]...", nargs=-1)
@click.option("--dead", is_flag=True, help="All that died.")
@click.option("--receiver", metavar="HOST", help="With --dead: those to this host alone.")
@pass_invocation
def replay(
    invocation: Invocation,
    deliveries: tuple[str, ...],
    dead: bool,  # noqa: FBT001  click passes it
    receiver: str | None,
) -> None:
    """Send deliveries again, from the first attempt on, under the ids they had.

    A URL that answered 410 is accepted as a callback again.
    """
    _check_choice(deliveries, dead=dead, receiver=receiver)
    chosen, replayed = wait(_replay(invocation.settings, deliveries, receiver))
    page = {"replayed": replayed, "deliveries": chosen}
    text = f"{count(replayed, 'delivery')} will be sent again; running gateways begin in a second."
    none = f"There is no dead delivery{f' to {receiver}' if receiver else ''}: none is sent again."
    invocation.result(page, lambda: text if replayed else none)


def _check_choice(deliveries: "Sequence[str]", *, dead: bool, receiver: str | None) -> None:
    from carnet.errors import UsageInvalid

    if bool(deliveries) == dead or (receiver is not None and not dead):
        raise UsageInvalid(
            reason="It is not clear which deliveries are meant.",
            fix="Give their ids, or --dead for all that died, with --receiver HOST if need be.",
        )


async def _replay(
    settings: "Settings", deliveries: "Sequence[str]", receiver: str | None
) -> tuple[list[str], int]:
    from carnet.assembly.store import opened
    from carnet.runtime.system import SystemClock

    async with opened(settings) as store:
        named = [(await _find(store, delivery)).delivery.id for delivery in deliveries]
        chosen = named or await _dead(store, receiver)
        return chosen, await store.outbox.replay(chosen, SystemClock().wall_us())


async def _dead(store: "Store", receiver: str | None) -> list[str]:
    found: list[str] = []
    before: int | None = None
    while page := await store.outbox.list(state="dead", limit=MOST, before=before):
        found += [one.delivery.id for one in page if _is_to(one.delivery.host, receiver)]
        before = page[-1].n
    return found


def _is_to(receiver: str, host: str | None) -> bool:
    """Whether a receiver is the host that was named: alone, with its port, or as it is shown."""
    at = urlsplit(receiver)
    return host is None or host in {receiver, at.netloc, at.hostname}


@outbox.command()
@click.argument("identity", metavar="IDENTITY")
@pass_invocation
def secret(invocation: Invocation, identity: str) -> None:
    """Print the secret that webhooks to a sender are signed with, for its receiver.

    IDENTITY is the sender of the tasks: agent://HOST, or token:NAME of one that used a token.
    'notify' is for what [inbox] notify is told, person:NAME for what a person is told at an address
    of her own.
    """
    page = wait(_secret(invocation.settings, identity))
    invocation.result(page, lambda: str(page["secret"]))


async def _secret(settings: "Settings", identity: str) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.trust.people import live_person
    from carnet.core.people.address import check_identity
    from carnet.core.people.identity import owner_of
    from carnet.errors import AddressInvalid, UsageInvalid
    from carnet.runtime.webhooks.payload import write_secret

    try:
        named = identity if _NAMED.fullmatch(identity) else check_identity(identity)
    except AddressInvalid:
        raise UsageInvalid(
            reason=f"'{identity}' is nobody's identity.",
            fix="Write the sender of the tasks, such as agent://globex.example or token:NAME.",
        ) from None
    async with opened(settings) as store:
        kind, _, name = named.partition(":")
        owner = owner_of((await live_person(store, name)).n, "") if kind == "person" else named
        secret = write_secret(store.webhook_secret(owner))
        return {"identity": named, "secret": secret.reveal()}
