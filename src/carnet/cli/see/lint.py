"""`carnet agents lint`: whether anybody's card is one that others can read and believe.

Law. What is wrong is told by field and constraint; no value of the card is repeated.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Command, Invocation, pass_invocation, visible, wait

if TYPE_CHECKING:
    from carnet.wire.dialects.samvad import Card

Problem = tuple[str, str]  # fail | warn, and what is wrong


@click.command("lint", cls=Command)
@click.argument("url", metavar="URL")
@pass_invocation
def lint(invocation: Invocation, url: str) -> int:
    """Judge the SAMVAD card of anybody's agent.

    URL is where the agent is: what stands before /.well-known/agent.json. The end is 2 if others
    would refuse the card; a warning alone is no failure.
    """
    found = wait(_judge(url))
    problems = [{"status": status, "message": message} for status, message in found]
    failed = any(status == "fail" for status, _ in found)
    page = {"url": url, "ok": not failed, "problems": problems}
    lines = [f"{status}  {message}" for status, message in found]
    invocation.result(page, lambda: visible("\n".join(lines or ["ok    The card has no fault."])))
    return 2 if failed else 0


async def _judge(url: str) -> list[Problem]:
    from carnet.cli.reach.gateway import open_http, unreadable
    from carnet.errors import PeerAgentNotFound, PeerUnreachable
    from carnet.runtime.client.client import read_address
    from carnet.runtime.peers.cards import CARD_PATH, Fetching, NotPublished, Site

    base = read_address(url)[0]
    async with open_http() as http:
        try:
            body = await Fetching(http).page(Site(base), CARD_PATH)
        except NotPublished:
            return [("fail", "Nothing is published at /.well-known/agent.json.")]
        except (PeerUnreachable, PeerAgentNotFound) as error:
            raise unreadable(error) from error
    return list(_problems(base, body))


def _problems(base: str, body: bytes) -> Iterator[Problem]:
    from carnet.errors import InvalidJson, PeerUnreachable, SchemaInvalid
    from carnet.wire.dialects import samvad
    from carnet.wire.grammar import json

    try:
        _check_schema(json.read_object(body))
    except InvalidJson as error:
        yield "fail", error.safe_text
        return
    except SchemaInvalid as error:
        yield "fail", f"{error.safe_text}."
    try:
        card = samvad.read_card(body)
    except PeerUnreachable as error:
        yield "fail", f"{error.detail[:1].upper()}{error.detail[1:]}."
        return
    yield from _doubts(base, card)


def _check_schema(card: dict[str, Any]) -> None:
    """Hold a card to the schema that a gateway serves at /-/schemas/card."""
    from pathlib import Path

    from carnet.core.people.identity import Skill
    from carnet.runtime.skills.schemas import CompiledSchemas
    from carnet.wire.dialects import samvad
    from carnet.wire.grammar import json

    schema = json.read_object(
        Path(samvad.__file__).with_name("schemas").joinpath("card.json").read_bytes()
    )
    whole = Skill(id="card", name="", description="", input_schema=schema, output_schema={})
    CompiledSchemas().check_input("card", whole, card)


def _doubts(base: str, card: "Card") -> Iterator[Problem]:
    """What is allowed, and makes others stumble."""
    from urllib.parse import urlsplit

    from carnet.core.people.address import host_of

    there, named = urlsplit(base), urlsplit(card.url)
    if not any(key.active for key in card.keys):
        yield "fail", "Field 'publicKeys' has no key that is active: nobody can verify its calls."
    if host_of(card.id) != there.hostname:
        yield "warn", "Field 'id' names another host than the one that serves it."
    if (named.scheme, named.netloc) != (there.scheme, there.netloc):
        yield "warn", "Field 'url' leads elsewhere than where the card is; the SDKs follow it."
    if named.scheme != "https":
        yield "warn", "Field 'url' is not https: nobody who does not know it will call it."
    if card.ttl == 0:
        yield "warn", "Field 'cardTTL' is 0: it is fetched anew for every call."
