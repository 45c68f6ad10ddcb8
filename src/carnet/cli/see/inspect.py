"""`carnet agents inspect`: what an agent says about itself, here or elsewhere.

An agent may have a SAMVAD card, an A2A card, or both. Without a choice the first that can be read
is shown.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import (
    Command,
    Invocation,
    in_line,
    pass_invocation,
    table,
    visible,
    wait,
)
from carnet.cli.see.cards.a2a import CARD_PATH, card_place, inspect_card, page_text

if TYPE_CHECKING:
    from carnet.ports.world.http_client import HttpClient
    from carnet.runtime.peers.samvad_request import Recipient
    from carnet.wire.dialects.samvad import Card
    from carnet.wire.travel import WellKnown

LAST_MOMENT = 253_402_300_799_000_000  # of the last year that a date can name


@click.command("inspect", cls=Command)
@click.argument("address", metavar="ADDRESS")
@click.option(
    "--dialect",
    type=click.Choice(["samvad", "a2a"]),
    help="Which card, where there are both; by default SAMVAD's.",
)
@pass_invocation
def inspect(invocation: Invocation, address: str, dialect: str | None) -> None:
    """Show the card of an agent: who it is, its skills, its keys or what its signature is worth.

    ADDRESS is the name of an agent here, agent://domain, @name@domain, or the URL where it is or
    of its card. A peer of ours is asked where we know it to be, our own gateway where it runs.
    """
    page = wait(_inspect(invocation, address, dialect))
    text = page_text if page.get("protocol") == "a2a" else _text
    invocation.result(page, lambda: visible(text(page)))


async def _inspect(invocation: Invocation, address: str, dialect: str | None) -> dict[str, Any]:
    from carnet.cli.reach.gateway import open_http, unreadable
    from carnet.errors import PeerAgentNotFound, PeerUnreachable
    from carnet.runtime.peers.cards import NotPublished

    place = card_place(address)
    base, path = place or (address, CARD_PATH)
    async with open_http() as http:
        recipient = await _recipient(invocation, base, http)
        try:
            if dialect == "samvad" or (place is None and dialect is None):
                return await _samvad(http, recipient)
            return await inspect_card(invocation, http, recipient.site, path)
        except NotPublished as error:
            missing = PeerAgentNotFound(f"there is no card at {recipient.site.url}{path}")
            raise unreadable(missing) from error
        except (PeerUnreachable, PeerAgentNotFound) as error:
            if dialect is None and place is None:
                with suppress(NotPublished, PeerUnreachable):
                    return await inspect_card(invocation, http, recipient.site, CARD_PATH)
            raise unreadable(error) from error


async def _samvad(http: "HttpClient", recipient: "Recipient") -> dict[str, Any]:
    from carnet.runtime.peers.cards import Cards
    from carnet.runtime.system import SystemClock

    cards = Cards(http, SystemClock())
    try:
        card = await cards.card(recipient.site)
        carnet = await cards.carnet(recipient.home)
    finally:
        await cards.close()
    return _page(recipient.site.url, card, carnet)


async def _recipient(invocation: Invocation, address: str, http: "HttpClient") -> "Recipient":
    from carnet.cli.reach.gateway import QUICK, find_place, is_answering
    from carnet.cli.reach.recipient import find_own, find_recipient
    from carnet.errors import Unreachable
    from carnet.runtime.peers.cards import Site
    from carnet.runtime.peers.samvad_request import Recipient

    name = find_own(invocation, address)
    if name is None:
        return (await find_recipient(invocation, address, QUICK))[0]
    place = await find_place(invocation, http)
    if not await is_answering(http, place):
        raise Unreachable(url=place.url)
    return Recipient(site=Site(f"{place.url}/agents/{name}" if name else place.url))


def _page(url: str, card: "Card", carnet: "WellKnown | None") -> dict[str, Any]:
    from carnet.wire.crypto.ed25519 import write_public_key

    ends = {} if carnet is None else {key.kid: key.not_after for key in carnet.keys}
    return {
        "url": url,
        "id": card.id,
        "name": card.name,
        "description": card.description,
        "card_url": card.url,
        "protocol_version": card.protocol_version,
        "is_carnet": carnet is not None,
        "dialects": [] if carnet is None else list(carnet.dialects),
        "skills": [
            {
                "id": skill.id,
                "description": skill.description,
                "modes": list(skill.modes),
                "trust": skill.trust,
                "input_schema": skill.input_schema,
                "output_schema": skill.output_schema,
            }
            for skill in card.skills
        ],
        "keys": [
            {
                "kid": key.kid,
                "key": write_public_key(key.public),
                "active": key.active,
                "not_after": _end(ends.get(key.kid)),
            }
            for key in card.keys
        ],
        "rate_limit": {
            "requests_per_minute": card.limits.get("requestsPerMinute"),
            "requests_per_sender": card.limits.get("requestsPerSender"),
            "tokens_per_sender_per_day": card.limits.get("tokensPerSenderPerDay"),
        },
        "ttl": card.ttl,
    }


def _end(not_after: int | None) -> str | None:
    """When a key that is being replaced is honoured no more."""
    from carnet.wire.grammar.times import when

    return None if not_after is None else when(min(not_after, LAST_MOMENT))


def _state(key: dict[str, Any]) -> str:
    from carnet.cli.times import short

    if not key["active"]:
        return "revoked"
    return f"until {short(key['not_after'])}" if key["not_after"] else "active"


def _limits(limits: dict[str, int | None]) -> list[str]:
    """What it says that it takes, in one line."""
    bounds = [f"{most:,} {word.replace('_', ' ')}" for word, most in limits.items() if most]
    return [f"It takes {', '.join(bounds)}."] if bounds else []


def _text(page: dict[str, Any]) -> str:
    what = "a Carnet gateway" if page["is_carnet"] else f"SAMVAD {page['protocol_version']}"
    skills = [
        [skill["id"], ", ".join(skill["modes"]), skill["trust"] or "-", skill["description"]]
        for skill in page["skills"]
    ]
    keys = [[key["kid"], _state(key), key["key"]] for key in page["keys"]]
    return "\n".join(
        [
            in_line(f"{page['id']}  {page['name']}  ({what})"),
            *([in_line(page["description"])] if page["description"] else []),
            *_limits(page["rate_limit"]),
            "",
            table(skills, ["SKILL", "MODES", "TRUST", ""]),
            "",
            table(keys, ["KEY", "STATE", "PUBLIC KEY"]),
        ]
    )
