"""Our agents as others find them by their addresses: WebFinger, Mentionable cards, a directory.

Law 1. Whoever asks is answered without a token, with what the A2A card tells everybody anyway. The
       directory lists those alone whose trust is public: nobody learns the names of others.
Law 2. A name is found in whatever case it is asked for. Of two that differ in case alone neither is
       found, nor listed: whoever asks for one must not be led to the other.
Law 3. These pages stand at the root of the domain. Where others are not reached over https, there
       are none, unless that is this machine.
"""

from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import quote, urlsplit

from carnet.core.people.address import Address, check_local
from carnet.errors import AddressInvalid, AgentNotFound
from carnet.gateway.cards.a2a import CARD, FRESH_SECONDS, A2aCardPages
from carnet.gateway.published import Published
from carnet.http.exchange import Exchange, Row
from carnet.ports.calls.agent import Target
from carnet.wire.grammar import json
from carnet.wire.grammar.query import read_query
from carnet.wire.mentions.card import write_card
from carnet.wire.mentions.directory import PATH as DIRECTORY
from carnet.wire.mentions.directory import DirectoryEntry, write_directory
from carnet.wire.mentions.webfinger import MEDIA, PATH, read_resource, write_document

HANDLE_CARD: Final = "/.well-known/agent-card/"
MOST_LISTED: Final = 1000
MOST_RELS: Final = 16
PUBLIC: Final = "public"


class MentionPages:
    """Serves the pages."""

    def __init__(self, published: Published, cards: A2aCardPages, *, domain: str) -> None:
        """`cards` know what there is to tell of an agent; `domain` is ours."""
        self._published = published
        self._cards = cards
        self._domain = domain

    async def webfinger(self, exchange: Exchange) -> None:
        """What there is of an agent, by its address."""
        self._check_reachable()
        query = read_query(str(exchange.query, "latin-1"))
        address = read_resource(query)
        if address is None or address.domain != self._domain:
            raise AgentNotFound
        target = self._found(address.local)
        page = write_document(
            address,
            card=self._card_url(target),
            page=self._published.url(target) + CARD,
            rels=query.get("rel", [])[:MOST_RELS],
        )
        await _reply(exchange, page, MEDIA)

    async def card(self, exchange: Exchange, name: str) -> None:
        """The Mentionable card of an agent."""
        self._check_reachable()
        target = self._found(name)
        facts = self._cards.facts(target.name)
        a2a_card = self._published.url(target) + CARD
        await _reply(exchange, write_card(facts, self._address(target), a2a_card=a2a_card))

    async def directory(self, exchange: Exchange) -> None:
        """The agents that everybody may know of."""
        self._check_reachable()
        listed = [self._listed(each) for each in self._named() if each.trust == PUBLIC]
        base = self._published.public_url.rstrip("/")
        await _reply(exchange, write_directory(self._domain, base, listed[:MOST_LISTED]))

    def _check_reachable(self) -> None:
        """Nobody is led to an address without https, unless it is on this machine."""
        parts = urlsplit(self._published.public_url)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise AgentNotFound

    def _named(self) -> list[Target]:
        """The agents that an address can have, and that only one has."""
        by_name: dict[str, list[Target]] = {}
        for target in self._published.local():
            by_name.setdefault(target.name.lower(), []).append(target)
        return [alike[0] for name, alike in by_name.items() if len(alike) == 1 and _is_local(name)]

    def _found(self, name: str) -> Target:
        wanted = name.lower()
        for target in self._named():
            if target.name.lower() == wanted:
                return target
        raise AgentNotFound

    def _listed(self, target: Target) -> DirectoryEntry:
        view = self._published.view(target.name)
        return DirectoryEntry(
            name=target.name,
            address=self._address(target),
            description=view.description,
            card=self._card_url(target),
        )

    def _address(self, target: Target) -> str:
        return str(Address(target.name, self._domain))

    def _card_url(self, target: Target) -> str:
        base = self._published.public_url.rstrip("/")
        return f"{base}{HANDLE_CARD}{quote(target.name, safe='')}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_local(name: str) -> bool:
    try:
        check_local(name)
    except AddressInvalid:
        return False
    return True


async def _reply(exchange: Exchange, page: dict[str, Any], media: str = "application/json") -> None:
    headers = [
        (b"content-type", media.encode()),
        (b"cache-control", b"public, max-age=%d" % FRESH_SECONDS),
        (b"access-control-allow-origin", b"*"),  # RFC 7033: anybody may ask
    ]
    await exchange.reply(200, headers, json.write(page))


def _row(path: str, endpoint: Any, summary: str) -> Row:
    return Row(
        method="GET", path=path, endpoint=endpoint, auth="open", summary=summary, answer="Page"
    )


ROUTES = (
    _row(PATH, MentionPages.webfinger, "Where the card of @name@domain is (WebFinger)"),
    _row(HANDLE_CARD + "{name}", MentionPages.card, "The Mentionable card of an agent"),
    _row(DIRECTORY, MentionPages.directory, "The agents that everybody may know of"),
)
