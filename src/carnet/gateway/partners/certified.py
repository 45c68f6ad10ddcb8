"""Requests of peers that a trusted proxy knows by their client certificates (R33).

The certificate becomes a credential like any other, as the cookie of a browser does.

Law 1. The header is read of requests that came from the address of a trusted proxy. Whoever else
       writes it has written nothing.
Law 2. What lies behind sees a token of the peer, lent for the length of the request: the peer pays
       up to its credit, and may forward credentials if it is listed so.
Law 3. A certificate adds nothing to a token or a signature beside it: those are judged alone. One
       that no peer is listed with is nobody's, since proxies tell everybody's.
"""

from typing import Final

from carnet.core.people.identity import Token
from carnet.gateway.people.signed_in import Dispatch
from carnet.http.exchange import Exchange
from carnet.ports.trust.trust import CertificateLender, CertifiedPeers
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import Stamps

RIGHTS: Final = frozenset({"call:*", "call:remote", "pay", "run:read", "run:cancel"})


class CertifiedRequests:
    """Has requests answered, those of peers with a certificate as theirs."""

    def __init__(
        self,
        dispatch: Dispatch,
        stamps: Stamps,
        peers: CertifiedPeers,
        tokens: CertificateLender,
        *,
        calls_per_minute: int,
    ) -> None:
        """`calls_per_minute` are those of one peer, signed ones counted with them."""
        self._dispatch = dispatch
        self._stamps = stamps
        self._peers = peers
        self._tokens = tokens
        self._calls = calls_per_minute

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one."""
        domain = self._domain(exchange)
        if domain is None:
            await self._dispatch(exchange)
            return
        token = Token(
            n=0,
            name=f"certificate:{domain}",
            hash=b"",
            prefix="",
            scopes=RIGHTS,
            created=0,
            peer=domain,
            rate_calls=self._calls,
            is_certificate=True,
        )
        with self._tokens.lent_to(token) as lent:
            shown = f"Bearer {lent.reveal()}".encode()
            exchange.headers = Headers([*exchange.headers.raw, (b"authorization", shown)])
            await self._dispatch(exchange)

    def _domain(self, exchange: Exchange) -> str | None:
        """The peer whose certificate it was sent with."""
        headers = exchange.headers
        if not exchange.line.is_proxied:
            return None
        if headers.has(b"authorization") or headers.has(b"signature-input"):
            return None
        shown = self._stamps.certificate_of(headers)
        peer = None if shown is None else self._peers.certified(shown)
        return None if peer is None else peer.domain
