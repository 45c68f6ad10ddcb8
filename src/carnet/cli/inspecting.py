"""`carnet agents inspect`: what an agent elsewhere says about itself."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Command, Invocation, pass_invocation, table, visible, wait

if TYPE_CHECKING:
    from carnet.wire.samvad import Card
    from carnet.wire.travel import WellKnown


@click.command("inspect", cls=Command)
@click.argument("address", metavar="URL")
@pass_invocation
def inspect(invocation: Invocation, address: str) -> None:
    """Show the card of an agent elsewhere: who it is, its skills and its keys.

    URL is where it is, agent://domain, or @name@domain.
    """
    page = wait(_inspect(address))
    invocation.result(page, lambda: visible(_text(page)))


async def _inspect(address: str) -> dict[str, Any]:
    from carnet.cli.reaching import open_door, unreadable
    from carnet.errors import PeerUnreachable
    from carnet.runtime.cards import Cards, Place
    from carnet.runtime.client import read_address
    from carnet.runtime.errand import Recipient
    from carnet.runtime.system import SystemClock

    url, expected = read_address(address)
    async with open_door() as door:
        cards = Cards(door, SystemClock())
        expects = frozenset({expected} if expected else ())
        recipient = Recipient(place=Place(url), identities=expects)
        try:
            card = await cards.card(recipient.place)
            carnet = await cards.carnet(recipient.home)
        except PeerUnreachable as error:
            raise unreadable(error) from error
        finally:
            await cards.close()
    return _page(url, card, carnet)


def _page(url: str, card: "Card", carnet: "WellKnown | None") -> dict[str, Any]:
    from carnet.wire.ed25519 import write_public_key

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
            {"kid": key.kid, "key": write_public_key(key.public), "active": key.active}
            for key in card.keys
        ],
        "ttl": card.ttl,
    }


def _text(page: dict[str, Any]) -> str:
    what = "a Carnet gateway" if page["is_carnet"] else f"SAMVAD {page['protocol_version']}"
    skills = [
        [skill["id"], ", ".join(skill["modes"]), skill["trust"] or "-", skill["description"]]
        for skill in page["skills"]
    ]
    keys = [
        [key["kid"], "active" if key["active"] else "revoked", key["key"]] for key in page["keys"]
    ]
    return "\n".join(
        [
            f"{page['id']}  {page['name']}  ({what})",
            *([page["description"]] if page["description"] else []),
            "",
            table(skills, ["SKILL", "MODES", "TRUST", ""]),
            "",
            table(keys, ["KEY", "STATE", "PUBLIC KEY"]),
        ]
    )
