"""Tokens and peers in memory, for tests that ask about a guard and not about a store."""

from collections.abc import Sequence
from hashlib import sha256

from msgspec import structs

from carnet.core.people.identity import Secret, Token
from carnet.core.principal import ceiling_of
from carnet.ports.trust.trust import NewToken, Peer, Whose


def _hash(credential: Secret) -> bytes:
    return sha256(credential.reveal().encode()).digest()


class MemoryTokens:
    """The Tokens port over a dictionary."""

    def __init__(self) -> None:
        self._by_hash: dict[bytes, Token] = {}
        self.uses: list[tuple[str, int]] = []

    def add(self, text: str, token: NewToken, now: int = 0) -> Token:
        """Know a token by its text."""
        credential = Secret(text)
        record = Token(
            n=len(self._by_hash) + 1,
            name=token.name,
            hash=_hash(credential),
            prefix=text[:8],
            scopes=token.scopes,
            created=now,
            peer=token.peer,
            forwardable=token.forwardable,
            may_forward=token.may_forward,
            rate_calls=token.rate_calls,
            rate_seconds=token.rate_seconds,
            spending_limit=token.spending_limit,
            expires=token.expires,
            number=str(len(self._by_hash) + 1),
            person=token.person,
            agent=token.agent,
            client=token.client,
            workspace=token.workspace,
            chain_depth=token.chain_depth,
            budgets=token.budgets,
            ceiling=ceiling_of(
                token.allow,
                token.deny,
                is_autonomous=token.agent is not None and token.person is None,
            ),
        )
        self._by_hash[record.hash] = record
        return record

    def find(self, credential: Secret) -> Token | None:
        return self._by_hash.get(_hash(credential))

    def fingerprint(self, credential: Secret) -> str:
        """A stable name for somebody else's credential."""
        return "fp_" + _hash(credential).hex()[:16]

    def used(self, token: Token, now: int) -> None:
        self.uses.append((token.name, now))

    async def create(self, new: NewToken, now: int) -> tuple[Token, Secret]:
        """Make one with a text derived from its name."""
        text = f"ck_{new.name}"
        return self.add(text, new, now), Secret(text)

    async def revoke_all(self, whose: Whose, value: str | int, now: int) -> list[str]:
        """Revoke all of somebody."""
        found = [token for token in self._by_hash.values() if getattr(token, whose) == value]
        live = [token for token in found if token.is_live(now)]
        for token in live:
            self._by_hash[token.hash] = structs.replace(token, revoked=now)
        return [token.name for token in live]

    async def revoke(self, name: str, now: int) -> bool:
        for key, token in self._by_hash.items():
            if token.name == name and token.is_live(now):
                self._by_hash[key] = structs.replace(token, revoked=now)
                return True
        return False

    async def list(self) -> Sequence[Token]:
        return list(self._by_hash.values())


class MemoryPeers:
    """The Peers port over a dictionary."""

    def __init__(self, *peers: Peer) -> None:
        self._peers = {peer.domain: peer for peer in peers}

    def find(self, domain: str) -> Peer | None:
        return self._peers.get(domain)

    async def put(self, peer: Peer) -> None:
        self._peers[peer.domain] = peer

    async def remove(self, domain: str) -> bool:
        return self._peers.pop(domain, None) is not None

    async def list(self) -> Sequence[Peer]:
        return list(self._peers.values())
