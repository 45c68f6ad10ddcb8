"""The A2A cards of our agents, signed: for everybody, and for callers who have shown a token.

Law 1. Whoever asks is given the card, without a token: it holds what the agent is and what a call
       is bounded by (R31), and nothing of any caller.
Law 2. At the root the host decides: `NAME.DOMAIN` is that agent, any other host the default one.
Law 3. A card is written and signed once for as long as nothing that it tells changes; who has it
       already, and says so, is answered with 304.
Law 4. An agent that is not served is told like one that never was.
"""

import hashlib
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.people.identity import Caller
from carnet.gateway.cards.keys import JWKS_PATH
from carnet.gateway.published import Published
from carnet.http.exchange import Exchange, Row
from carnet.ports.calls.agent import Target
from carnet.ports.trust.keys import SigningKeys
from carnet.ports.world.clock import Clock
from carnet.wire.dialects.a2a.card import (
    A2aFacts,
    DeclaredExtension,
    OriginCard,
    Reach,
    facts_of,
    sign_card,
    write_members,
)
from carnet.wire.grammar import json

FRESH_SECONDS: Final = 300  # how long others may keep a card
CARD: Final = "/.well-known/agent-card.json"
MOST_REACHED: Final = 256  # agents that an extended card names

Origins = Callable[[Target], OriginCard | None]


def no_origin(_target: Target) -> OriginCard | None:
    """No agent is known to have a card of its own behind it."""
    return None


class _Page(Struct, frozen=True):
    """A card as it is served, and what it was written from."""

    facts: A2aFacts
    kid: str
    body: bytes
    etag: str
    since: str  # when this gateway wrote it


class A2aCardPages:
    """Writes the cards of one gateway, and serves them."""

    def __init__(
        self,
        published: Published,
        keys: SigningKeys,
        *,
        domain: str,
        clock: Clock,
        is_legacy: bool = True,
        extensions: tuple[DeclaredExtension, ...] = (),
        origins: Origins = no_origin,
        own_extensions: Callable[[str], tuple[DeclaredExtension, ...]] = lambda _: (),
    ) -> None:
        """`extensions` are those of every agent; `origins` finds the card behind an agent (R22).

        `own_extensions` are those of one agent.

        With `is_legacy` clients of 0.3 can read the cards too.
        """
        self._clock = clock
        self._is_legacy = is_legacy
        self._published = published
        self._keys = keys
        self._domain = domain
        self._extensions = extensions
        self._origins = origins
        self._own_extensions = own_extensions
        self._pages: dict[str, _Page] = {}  # no more than there are agents

    async def at_host(self, exchange: Exchange) -> None:
        """The card of the agent that the host names."""
        await self.named(exchange, self._published.named(exchange))

    async def named(self, exchange: Exchange, name: str) -> None:
        """The card of an agent, unless the client has it already."""
        page = self._page(name)
        headers = [
            (b"cache-control", b"public, max-age=%d" % FRESH_SECONDS),
            (b"etag", page.etag.encode()),
            (b"last-modified", page.since.encode()),
        ]
        if is_known(exchange.headers.get("if-none-match"), page.etag):
            await exchange.reply(304, headers, b"")
            return
        await exchange.reply(200, [(b"content-type", b"application/json"), *headers], page.body)

    def extended(self, name: str, caller: Caller) -> dict[str, Any]:
        """The card of an agent for a caller who is known: it names what else she may call here."""
        may_call = [one for one in self._published.local() if caller.may(one.needs)]
        reached = tuple([self._reach(one) for one in may_call[:MOST_REACHED]])
        return self._signed(replace(self.facts(name), may_call=reached))

    def _page(self, name: str) -> _Page:
        facts, kid = self.facts(name), self._keys.signer().kid
        page = self._pages.get(facts.name)
        if page is None or page.kid != kid or page.facts != facts:
            body = json.write(self._signed(facts))
            etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            since = formatdate(self._clock.wall_us() // 1_000_000, usegmt=True)
            page = self._pages[facts.name] = _Page(facts, kid, body, etag, since)
        return page

    def facts(self, name: str) -> A2aFacts:
        """What there is to tell everybody of an agent."""
        view, target = self._published.view(name), self._published.target(name)
        return facts_of(
            view,
            permission=target.needs,
            domain=self._domain,
            public_url=self._published.public_url.rstrip("/"),
            extensions=(*self._extensions, *self._own_extensions(target.name)),
            origin=self._origins(target),
            is_legacy=self._is_legacy,
        )

    def _signed(self, facts: A2aFacts) -> dict[str, Any]:
        signer = self._keys.signer()
        jku = self._published.public_url.rstrip("/") + JWKS_PATH
        return sign_card(write_members(facts), kid=signer.kid, jku=jku, sign=signer.sign)

    def _reach(self, target: Target) -> Reach:
        return Reach(name=target.name, card=self._published.url(target) + CARD)


def is_known(given: str | None, etag: str) -> bool:
    """Whether If-None-Match names what would be sent; weak and strong are the same here."""
    if given is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in given.split(",")]
    return "*" in tags or etag in tags


def _row(path: str, endpoint: Any, summary: str) -> Row:
    return Row(
        method="GET", path=path, endpoint=endpoint, auth="open", summary=summary, answer="Page"
    )


ROUTES = (
    _row(CARD, A2aCardPages.at_host, "The A2A card of the agent"),
    _row("/agents/{name}" + CARD, A2aCardPages.named, "The A2A card of one agent"),
)
