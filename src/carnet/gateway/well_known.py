"""GET /.well-known/carnet.json: that this is a Carnet, and which keys it signs with.

Below the prefix of an agent the page is that of the agent: what a call to it costs is signed too.
`/.well-known/carnet-ended.json` lists the delegations that were ended before their time (R59): ids
that say nothing, and are told until the delegation would have expired.

Law. Whoever asks is answered, without a token: the page holds nothing but public keys, and what a
call to the agent costs and is bounded by (R31). It is signed once for as long as the keys stay the
same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from carnet.http.exchange import Exchange, Row
from carnet.ports.trust.keys import OwnKey, OwnKeys
from carnet.ports.world.clock import Clock
from carnet.wire import travel
from carnet.wire.dialects.dialect import Terms

FRESH_SECONDS: Final = 60  # how long others may keep the page
SIGNED_SECONDS: Final = 15  # how often a list that stays the same is signed anew

_MICROSECONDS: Final = 1_000_000


class WellKnownPage:
    """Serves the page."""

    def __init__(
        self,
        keys: OwnKeys,
        *,
        domain: str,
        clock: Clock,
        dialects: Sequence[str],
        terms: Callable[[str], Terms | None],
    ) -> None:
        """`domain` is ours, and `keys` are; `dialects` are those that are spoken.

        `terms` tells those of an agent, of the default one where the name is empty; it raises
        AgentNotFound for one that is not served.
        """
        self._terms = terms
        self._keys = keys
        self._domain = domain
        self._clock = clock
        self._dialects = tuple(dialects)
        self._shown: Sequence[OwnKey] = ()
        self._pages: dict[Terms | None, bytes] = {}  # no more than there are agents

    async def __call__(self, exchange: Exchange, name: str = "") -> None:
        """Answer with the page of an agent, by default that of the default one."""
        terms = self._terms(name)
        published = list(self._keys.published(self._clock.wall_us()))[: travel.MOST_KEYS]
        if published != self._shown:
            self._pages, self._shown = {}, published
        page = self._pages.get(terms)
        if page is None:
            page = self._pages[terms] = self._write(published, terms)
        headers = [
            (b"content-type", b"application/json"),
            (b"cache-control", b"public, max-age=%d" % FRESH_SECONDS),
        ]
        await exchange.reply(200, headers, page)

    def _write(self, published: Sequence[OwnKey], terms: Terms | None) -> bytes:
        signer = self._keys.signer()
        shown = travel.WellKnown(
            domain=self._domain,
            version=max(key.revoked or key.created for key in published) // _MICROSECONDS,
            keys=tuple(
                travel.PublishedKey(
                    kid=key.kid,
                    key=key.public,
                    active=key.state != "revoked",
                    not_after=key.not_after,
                )
                for key in published
            ),
            dialects=self._dialects,
            terms=None if terms is None else terms.page(),
        )
        return travel.write_well_known(shown, kid=signer.kid, sign=signer.sign)


class EndedPage:
    """Serves the list of delegations that were ended."""

    def __init__(
        self, keys: OwnKeys, ended: Callable[[], Mapping[str, int]], *, domain: str, clock: Clock
    ) -> None:
        """`ended` gives the ids, each with until when it would have held."""
        self._keys = keys
        self._ended = ended
        self._domain = domain
        self._clock = clock
        self._page = b""
        self._of: tuple[int, frozenset[str], str] | None = None  # what the page was made of

    async def __call__(self, exchange: Exchange) -> None:
        """Answer with the list, signed a few times a minute at the most unless it changes."""
        now, signer = self._clock.wall_us() // _MICROSECONDS, self._keys.signer()
        until = self._ended()
        ids = frozenset(id for id, end in until.items() if end > now * _MICROSECONDS)
        of = (now - now % SIGNED_SECONDS, ids, signer.kid)
        if of != self._of:
            shown = travel.EndedList(
                domain=self._domain, issued=now, expires=now + FRESH_SECONDS, ids=ids
            )
            self._page = travel.write_ended(shown, kid=signer.kid, sign=signer.sign)
            self._of = of
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache")]
        await exchange.reply(200, headers, self._page)


ENDED_ROUTES = (
    Row(
        method="GET",
        path="/.well-known/carnet-ended.json",
        endpoint=EndedPage.__call__,
        auth="open",
        summary="The delegations that were ended before their time",
        answer="Page",
    ),
)

ROUTES = (
    Row(
        method="GET",
        path="/.well-known/carnet.json",
        endpoint=WellKnownPage.__call__,
        auth="open",
        summary="The keys of this gateway",
        answer="Page",
    ),
    Row(
        method="GET",
        path="/agents/{name}/.well-known/carnet.json",
        endpoint=WellKnownPage.__call__,
        auth="open",
        summary="The keys of this gateway, and the terms of one agent",
        answer="Page",
    ),
)
