"""Bearer tokens: the port `carnet.ports.trust.trust.Tokens`.

Law 1. The text of a token is shown once and kept nowhere: the table has its HMAC under a pepper
       that is not in the database (A71).
Law 2. Looking one up touches no disk: the table is in memory and at most a second old.
Law 3. What is lent for a token (`lent`) is known to this process alone, and is no more than it.
Law 4. A person's token may do what both allow, the token and she; and it ends with her.
Law 5. Records are known by the name of a token: while some may be kept, nobody else is given that
       name, who would read them.
"""

import builtins
import hmac
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from msgspec.structs import replace

from carnet.core.money.budget import read_ceilings, write_ceilings
from carnet.core.people.identity import Secret, Token
from carnet.core.people.permissions import both, rights_of
from carnet.core.principal import ceiling_of
from carnet.errors import CarnetError, UsageInvalid
from carnet.ports.trust.trust import NewToken, Whose
from carnet.ports.world.clock import Ids
from carnet.stores.database import Database, Row, Statement, Value, marks
from carnet.stores.secrets.secrets_file import Keys

PREFIX: Final = "ck_"
SHOWN: Final = 8  # characters of a token by which people recognise it

_LOAD = (
    "SELECT t.n, t.name, t.hash, t.prefix, t.scopes, t.created, t.peer, t.forwardable,"
    " t.may_forward, t.rate_calls, t.rate_seconds, t.spending_limit, t.expires, t.revoked,"
    " t.last_used, t.agent, t.client, t.workspace, t.allowed, t.denied, t.chain_depth, t.budgets,"
    " t.person, t.payer, t.taken_back, p.name, p.roles, p.permissions, p.ended"
    " FROM token t LEFT JOIN person p ON p.n = t.person ORDER BY t.n DESC"
)
_CLEAR = (  # an expired token gives its name free
    "UPDATE token SET revoked = expires WHERE name = ? AND revoked IS NULL AND expires <= ?"
)
_CREATE = (
    "INSERT INTO token (name, hash, key_id, prefix, scopes, created, peer, forwardable,"
    " may_forward, rate_calls, rate_seconds, spending_limit, expires, person, service, payer,"
    " agent, client, workspace, allowed, denied, chain_depth, budgets)"
    f" SELECT {marks(23)} WHERE {{}} ON CONFLICT DO NOTHING"
)
_LIVE_PERSON = "EXISTS (SELECT 1 FROM person WHERE n = ? AND ended IS NULL)"
_HAD_BY_OTHERS = (
    "EXISTS (SELECT 1 FROM token o WHERE o.name = ? AND o.peer IS NULL"
    " AND COALESCE(o.person, 0) <> ?)"
)
_IS_LIVE = "EXISTS (SELECT 1 FROM token l WHERE l.name = ? AND l.revoked IS NULL)"
_REVOKE = "UPDATE token SET revoked = ? WHERE {} = ? AND revoked IS NULL"
_END_SESSIONS = (
    "UPDATE session SET ended = ? WHERE ended IS NULL"
    " AND token IN (SELECT n FROM token WHERE {} = ? AND revoked IS NOT NULL)"
)
_REVOKED = "SELECT name FROM token WHERE {} = ? AND revoked = ? ORDER BY n"
_USED = "UPDATE token SET last_used = ? WHERE n = ? AND (last_used IS NULL OR last_used < ?)"


def _service(new: NewToken) -> str | None:
    """What a token is that is nobody's and no peer's."""
    return None if new.person is not None or new.peer is not None else new.name.partition("#")[0]


def _listed(permissions: frozenset[str] | None) -> str | None:
    return None if permissions is None else " ".join(sorted(permissions))


def _read(row: Row) -> Token:
    scopes, revoked = frozenset(row[4].split()), row[13]
    person, payer, taken_back, holder, roles, permissions, ended = row[22:]
    allowed, denied = [None if each is None else frozenset(each.split()) for each in row[18:20]]
    if holder is not None:
        scopes = both(scopes, rights_of(roles.split(), permissions.split()))
        revoked = ended if revoked is None else revoked
    elif person is not None:  # whoever that was, nobody is left who bounds it
        revoked = row[5] if revoked is None else revoked
    return Token(
        n=row[0],
        name=row[1],
        hash=row[2],
        prefix=row[3],
        scopes=scopes,
        created=row[5],
        peer=row[6],
        forwardable=bool(row[7]),
        may_forward=bool(row[8]),
        rate_calls=row[9],
        rate_seconds=row[10],
        spending_limit=row[11],
        expires=row[12],
        revoked=revoked,
        last_used=row[14],
        number=str(row[0]),
        person=person,
        holder=holder,
        payer=payer,
        taken_back=tuple((taken_back or "").split()),
        agent=row[15],
        client=row[16],
        workspace=row[17],
        chain_depth=row[20],
        budgets=read_ceilings((row[21] or "").split()),
        ceiling=ceiling_of(allowed, denied, is_autonomous=row[15] is not None and person is None),
    )


class StoredTokens:
    """The tokens of one store."""

    def __init__(self, database: Database, keys: Keys, ids: Ids) -> None:
        self._database = database
        self._keys = keys
        self._ids = ids
        self._by_hash: dict[bytes, Token] = {}
        self._by_number: dict[int, Token] = {}
        # By hash: a token, and to which session; or one that is kept nowhere.
        self._lent: dict[bytes, tuple[int, int | None] | Token] = {}
        self._used: dict[int, int] = {}  # token number: when it was last used, not yet written

    def find(self, credential: Secret) -> Token | None:
        """The record of a credential, live or not."""
        hashed = self._hash(credential)
        found = self._by_hash.get(hashed)
        return self._find_lent(hashed) if found is None and hashed in self._lent else found

    def _find_lent(self, hashed: bytes) -> Token | None:
        lent = self._lent[hashed]
        if isinstance(lent, Token):
            return lent
        n, session = lent
        found = self.numbered(n)
        return None if found is None else replace(found, forwardable=False, session=session)

    def numbered(self, n: int) -> Token | None:
        """The record of a number, live or not; from memory, at most a second old."""
        return self._by_number.get(n)

    @contextmanager
    def lent(self, n: int, session: int | None = None) -> Iterator[Secret]:
        """A credential that stands for a token, in this process and for a while."""
        with self._lending((n, session)) as secret:
            yield secret

    def lent_to(self, token: Token, /) -> AbstractContextManager[Secret]:
        """A credential that is that token, in this process and for a while."""
        return self._lending(token)

    @contextmanager
    def _lending(self, what: tuple[int, int | None] | Token) -> Iterator[Secret]:
        secret = Secret(PREFIX + self._ids.token())
        hashed = self._hash(secret)
        self._lent[hashed] = what
        try:
            yield secret
        finally:
            del self._lent[hashed]

    def known(self) -> Collection[Token]:
        """All of them, live or not; from memory, at most a second old."""
        return self._by_hash.values()

    def fingerprint(self, credential: Secret) -> str:
        """A keyed, stable name for a credential of somebody else's."""
        return hmac.digest(self._keys.names, credential.reveal().encode(), "sha256").hex()[:32]

    def used(self, token: Token, now: int) -> None:
        """Note that a token was used; written later, in bulk."""
        if not token.is_certificate:
            self._used[token.n] = now

    async def _refuse_of_others(self, new: NewToken) -> None:
        """Say so where a name is free, and was somebody else's."""
        query = f"SELECT 1 WHERE {_HAD_BY_OTHERS} AND NOT {_IS_LIVE}"
        args = (new.name, new.person or 0, new.name)
        if new.peer is None and await self._database.fetch(query, args):
            raise UsageInvalid(
                reason=f"The name '{new.name}' was another's, whose records are kept under it.",
                fix="Choose another name: whoever has this one would read them.",
            )

    async def create(self, new: NewToken, now: int) -> tuple[Token, Secret]:
        """Make one. The secret is shown once and kept nowhere."""
        text = PREFIX + self._ids.token()
        secret = Secret(text)
        hashed = self._hash(secret)
        scopes = " ".join(sorted(new.scopes))
        row = (
            *(new.name, hashed, self._keys.key_id, text[:SHOWN], scopes, now, new.peer),
            *(int(new.forwardable), int(new.may_forward), new.rate_calls, new.rate_seconds),
            *(new.spending_limit, new.expires, new.person, _service(new), new.payer),
            *(new.agent, new.client, new.workspace, _listed(new.allow), _listed(new.deny)),
            new.chain_depth,
            write_ceilings(new.budgets) or None,
        )
        where, args = ["TRUE"], list[Value]()
        if new.person is not None:  # who ends meanwhile is given none
            where, args = [_LIVE_PERSON], [new.person]
        if new.peer is None:
            where.append(f"NOT {_HAD_BY_OTHERS}")
            args += [new.name, new.person or 0]
        create: Statement = (_CREATE.format(" AND ".join(where)), (*row, *args))
        _, created = await self._database.transact([(_CLEAR, (new.name, now)), create])
        if not created:
            await self._refuse_of_others(new)
            raise UsageInvalid(
                reason=f"There is a live token named '{new.name}' already.",
                fix=f"Choose another name, or revoke that one: carnet tokens revoke {new.name}",
            )
        await self.refresh()
        return self._by_hash[hashed], secret

    async def revoke(self, name: str, now: int) -> bool:
        """Revoke one by name, and end the sessions that stand for it; False if there is none."""
        return bool(await self.revoke_all("name", name, now))

    async def revoke_all(self, whose: Whose, value: str | int, now: int) -> builtins.list[str]:
        """Revoke all of an agent, a client or a person in one transaction; their names."""
        await self._database.transact(
            [
                (_REVOKE.format(whose), (now, value)),
                (_END_SESSIONS.format(whose), (now, value)),
            ]
        )
        # Not one look before: what is made meanwhile is revoked too, and told.
        rows = await self._database.fetch(_REVOKED.format(whose), (value, now))
        await self.refresh()
        return [name for (name,) in rows]

    async def list(self) -> builtins.list[Token]:
        return [_read(row) for row in await self._database.fetch(_LOAD)]

    async def refresh(self) -> None:
        known = await self.list()
        self._by_hash = {token.hash: token for token in known}
        self._by_number = {token.n: token for token in known}

    async def flush(self) -> None:
        """Write down which tokens were used and when."""
        if self._used:
            used, self._used = self._used, {}
            try:
                await self._database.transact([(_USED, (at, n, at)) for n, at in used.items()])
            except CarnetError:
                self._used = used | self._used  # for the next time
                raise

    def _hash(self, credential: Secret) -> bytes:
        return hmac.digest(self._keys.pepper, credential.reveal().encode(), "sha256")
