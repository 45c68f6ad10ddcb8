"""The organisations we know: the port `carnet.ports.trust.trust.Peers`.

Law 1. A peer written in carnet.toml wins over a stored one of the same domain, and the program
       does not change it.
Law 2. A peer's token is sealed for its domain before it is stored.
Law 3. A peer whose token cannot be opened is not known: calls to it are refused, not sent without.
"""

import builtins
import logging
from collections.abc import Iterable

from carnet.core.people.identity import Secret
from carnet.errors import UsageInvalid
from carnet.ports.trust.trust import Peer
from carnet.stores.database import Database, Row
from carnet.stores.secrets.seal import Seal, Unsealable
from carnet.stores.secrets.secrets_file import Keys

_log = logging.getLogger(__name__)

_LOAD = "SELECT domain, url, may_forward, sealed, dialect, credit, most_cost, auth FROM peer"
_PUT = (
    "INSERT INTO peer (domain, url, may_forward, sealed, key_id, dialect, credit, most_cost, auth)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (domain) DO UPDATE SET url = excluded.url,"
    " may_forward = excluded.may_forward, sealed = excluded.sealed, key_id = excluded.key_id,"
    " dialect = excluded.dialect, credit = excluded.credit, most_cost = excluded.most_cost,"
    " auth = excluded.auth"
)
_REMOVE = "DELETE FROM peer WHERE domain = ?"


class StoredPeers:
    """The peers of one store, with those of the configuration file over them."""

    def __init__(self, database: Database, keys: Keys, from_file: Iterable[Peer]) -> None:
        self._database = database
        self._key_id = keys.key_id
        self._seal = Seal(keys.seal)
        self._stored: dict[str, Peer] = {}
        self.take(from_file)

    def take(self, from_file: Iterable[Peer]) -> None:
        """Know these of the file from now on, in the place of those that it had."""
        self._from_file = {peer.domain: peer for peer in from_file}
        self._known = self._stored | self._from_file
        listed = self._from_file.values()
        self._by_certificate = {p.certificate: p for p in listed if p.certificate is not None}

    def find(self, domain: str) -> Peer | None:
        """A peer by domain; from memory, at most a second old."""
        return self._known.get(domain)

    def certified(self, certificate: str, /) -> Peer | None:
        """The one that a certificate is of; those of the file alone have one."""
        return self._by_certificate.get(certificate)

    async def put(self, peer: Peer) -> None:
        """Add or replace one; its token is sealed before it is stored."""
        if peer.domain in self._from_file:
            raise UsageInvalid(
                reason=f"{peer.domain} is written in carnet.toml, which wins over the store.",
                fix=f'Change the section [peers."{peer.domain}"] there.',
            )
        sealed = None
        if peer.token is not None:
            sealed = self._seal.seal(peer.token.reveal(), label=peer.domain)
        await self._database.execute(
            _PUT,
            (
                *(peer.domain, peer.url, int(peer.may_forward), sealed, self._key_id),
                *(peer.dialect, peer.credit, peer.most_cost, peer.auth),
            ),
        )
        await self.refresh()

    async def remove(self, domain: str) -> bool:
        """Forget one; False if there is none."""
        removed = await self._database.execute(_REMOVE, (domain,))
        await self.refresh()
        return removed > 0

    async def list(self) -> builtins.list[Peer]:
        await self.refresh()
        return [self._known[domain] for domain in sorted(self._known)]

    async def refresh(self) -> None:
        stored: dict[str, Peer] = {}
        for row in await self._database.fetch(_LOAD):
            try:
                stored[row[0]] = self._read(row)
            except Unsealable:
                _log.warning(
                    "the token of peer %s was sealed with another secrets file;"
                    " add the peer again: carnet peers add %s --url URL",
                    *(row[0], row[0]),
                )
        self._stored, self._known = stored, stored | self._from_file

    def _read(self, row: Row) -> Peer:
        domain, url, may_forward, sealed, dialect, credit, most_cost, auth = row
        return Peer(
            domain=domain,
            url=url,
            may_forward=bool(may_forward),
            token=self._opened(domain, sealed),
            dialect=dialect,
            credit=credit,
            most_cost=most_cost,
            auth=auth,
        )

    def _opened(self, domain: str, sealed: bytes | None) -> Secret | None:
        return None if sealed is None else Secret(self._seal.open(sealed, label=domain))
