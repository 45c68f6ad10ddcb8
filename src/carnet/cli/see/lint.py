"""`carnet agents lint`: whether anybody's card is one that others can read and believe.

Law. What is wrong is told by field and constraint; no value of the card is repeated.
"""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click

from carnet.cli.invocation import Command, Invocation, pass_invocation, visible, wait
from carnet.cli.see.cards.a2a import CARD_PATH as A2A_PATH
from carnet.cli.see.cards.a2a import card_place, judge_card

if TYPE_CHECKING:
    from carnet.runtime.peers.cards import Fetching, Site
    from carnet.wire.dialects.samvad import Card

_NAMES: Final = {"samvad": "SAMVAD", "a2a": "A2A"}
Problem = tuple[str, str, str]  # fail | warn, what is wrong, and what to do about it


@click.command("lint", cls=Command)
@click.argument("url", metavar="URL")
@pass_invocation
def lint(invocation: Invocation, url: str) -> int:
    """Judge the SAMVAD card and the A2A card of anybody's agent.

    URL is where the agent is, what stands before /.well-known/, or that of one card. The end is 2
    if others would refuse a card; a warning alone is no failure.
    """
    found = wait(_judge(invocation, url))
    failed = any(status == "fail" for status, *_ in chain(*found.values()))
    problems = [
        {"card": card, "status": status, "message": message, "fix": fix}
        for card, listed in found.items()
        for status, message, fix in listed
    ]
    page = {"url": url, "ok": not failed, "cards": list(found), "problems": problems}
    invocation.result(page, lambda: visible("\n".join(_lines(found))))
    return 2 if failed else 0


def _lines(found: dict[str, list[Problem]]) -> Iterator[str]:
    for card, problems in found.items():
        name = _NAMES[card]
        for status, message, fix in problems:
            yield f"{status}  {name}: {message}"
            yield f"      {fix}"
        if not problems:
            yield f"ok    {name}: The card has no fault."


async def _judge(invocation: Invocation, url: str) -> dict[str, list[Problem]]:
    """What is wrong with each card that is published."""
    from carnet.cli.reach.gateway import open_http, unreadable
    from carnet.errors import PeerAgentNotFound, PeerUnreachable
    from carnet.runtime.client.client import read_address
    from carnet.runtime.peers.cards import CARD_PATH, Fetching, Site

    place = card_place(url)
    base = read_address(url if place is None else place[0])[0]
    is_samvad = url.rstrip("/").endswith(CARD_PATH)
    async with open_http() as http:
        judging = _Judging(invocation, Fetching(http), Site(base))
        try:
            found = {} if place else await judging.samvad(CARD_PATH)
            if not is_samvad:
                found |= await judging.a2a(A2A_PATH if place is None else place[1])
        except (PeerUnreachable, PeerAgentNotFound) as error:
            raise unreadable(error) from error
    where = place[1] if place else CARD_PATH if is_samvad else f"{CARD_PATH} or {A2A_PATH}"
    kind = "a2a" if place else "samvad"
    return found or {kind: [("fail", f"Nothing is published at {where}.", "Publish a card.")]}


class _Judging:
    """Judges what is published at one site."""

    def __init__(self, invocation: Invocation, fetching: "Fetching", site: "Site") -> None:
        self._invocation = invocation
        self._fetching = fetching
        self._site = site

    async def samvad(self, path: str) -> dict[str, list[Problem]]:
        from carnet.runtime.peers.cards import NotPublished

        try:
            body = await self._fetching.page(self._site, path)
        except NotPublished:
            return {}
        if not _is_a2a(body):
            return {"samvad": list(_problems(self._site.url, body))}
        misplaced = ("fail", f"The card lies at {path}.", f"Clients of 1.0 look at {A2A_PATH}.")
        return {"a2a": [misplaced, *await self._a2a(body)]}

    async def a2a(self, path: str) -> dict[str, list[Problem]]:
        from carnet.runtime.peers.cards import NotPublished

        try:
            body = await self._fetching.page(self._site, path)
        except NotPublished:
            return {}
        return {"a2a": await self._a2a(body)}

    async def _a2a(self, body: bytes) -> list[Problem]:
        found = await judge_card(self._invocation, self._fetching, self._site, body)
        return [(each.status, each.message, each.fix) for each in found]


def _is_a2a(body: bytes) -> bool:
    """Whether a card of A2A lies where SAMVAD's do, as it did before version 0.3."""
    from carnet.errors import InvalidJson
    from carnet.wire.grammar import json

    try:
        members = json.read_object(body)
    except InvalidJson:
        return False
    return "publicKeys" not in members and "capabilities" in members


def _problems(base: str, body: bytes) -> Iterator[Problem]:
    from carnet.errors import InvalidJson, PeerUnreachable, SchemaInvalid
    from carnet.wire.dialects import samvad
    from carnet.wire.grammar import json

    try:
        _check_schema(json.read_object(body))
    except InvalidJson as error:
        yield "fail", error.safe_text, "Serve one JSON object, in UTF-8."
        return
    except SchemaInvalid as error:
        yield "fail", f"{error.safe_text}.", "The schema is served at /-/schemas/card."
    try:
        card = samvad.read_card(body)
    except PeerUnreachable as error:
        message = f"{error.detail[:1].upper()}{error.detail[1:]}."
        yield "fail", message, "Correct it: nobody who checks it calls the agent."
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
        message = "Field 'publicKeys' has no key that is active: nobody can verify its calls."
        yield "fail", message, "Publish the key that signs, with active = true."
    if host_of(card.id) != there.hostname:
        message = "Field 'id' names another host than the one that serves it."
        yield "warn", message, "Serve the card at the host of its id, or let callers pin its key."
    if (named.scheme, named.netloc) != (there.scheme, there.netloc):
        message = "Field 'url' leads elsewhere than where the card is; the SDKs follow it."
        yield "warn", message, "Name the URL under which the agent is reached."
    if named.scheme != "https":
        message = "Field 'url' is not https: nobody who does not know it will call it."
        yield "warn", message, "Serve it over https."
    if card.ttl == 0:
        message = "Field 'cardTTL' is 0: it is fetched anew for every call."
        yield "warn", message, "Name the seconds for which it may be kept, such as 300."
