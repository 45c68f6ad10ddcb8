"""Those who have signed in: the port `carnet.ports.trust.sessions.PersonSessions`.

Law 1. The text of a cookie or a code is shown once and kept nowhere: the table has its HMAC under
       a pepper that is not in the database.
Law 2. A text that we did not make is known by itself, since it carries a mark under a key of ours:
       guessing costs no look at the store.
Law 3. A code becomes a session in one statement, which finds it unused: of two who show it at once
       one is let in, on all replicas together.
Law 4. A person has so many sessions and links at most; those that were used longest ago end.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

import builtins
import hmac
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from carnet.core.memo import Memo
from carnet.core.people.identity import Secret, Token
from carnet.core.people.session import PersonSession, SessionBounds
from carnet.errors import CarnetError, SignInCodeInvalid, TokenInvalid
from carnet.faults import point
from carnet.ports.world.clock import Clock, Ids
from carnet.stores.database import Database, Row, Statement, Value, marks
from carnet.stores.secrets.seal import derive
from carnet.stores.secrets.secrets_file import Keys

COOKIE: Final = "cs_"
CODE: Final = "cc_"
HOUR: Final = 3_600_000_000  # microseconds
USED_US: Final = 60_000_000  # between two notes that a session was used
KNOWN_SECONDS: Final = 1.0  # how long one that was found need not be looked for again
MOST_KNOWN: Final = 4096
AT_A_TIME: Final = 500
MARK_BYTES: Final = 12

_COLUMNS: Final = "n, person, token, created, begun, used, until, last, device, ended"
_LIVE: Final = "begun IS NOT NULL AND ended IS NULL AND until > ?"
# Who ends meanwhile is let in no more.
_HOLDS: Final = (
    "EXISTS (SELECT 1 FROM token t JOIN person p ON p.n = t.person AND p.ended IS NULL"
    " WHERE t.n = {} AND p.n = {} AND t.revoked IS NULL AND (t.expires IS NULL OR t.expires > ?))"
)
_MAKE: Final = (
    "INSERT INTO session (hash, key_id, person, token, created, begun, used, until, last, device)"
    f" SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE {_HOLDS.format('?', '?')}"
)
_REDEEM: Final = (
    "UPDATE session SET hash = ?, key_id = ?, begun = ?, used = ?, until = ?, last = ?, device = ?"
    " WHERE hash = ? AND begun IS NULL AND ended IS NULL AND until > ?"
    f" AND {_HOLDS.format('session.token', 'session.person')}"
)
_OF_NEW: Final = "(SELECT person FROM session s WHERE s.hash = ?)"
_END_LATE: Final = (
    f"UPDATE session SET ended = until WHERE ended IS NULL AND until <= ? AND person = {_OF_NEW}"
)
_END_MANY: Final = (
    f"UPDATE session SET ended = ? WHERE ended IS NULL AND person = {_OF_NEW} AND n NOT IN"
    f" (SELECT n FROM session WHERE ended IS NULL AND person = {_OF_NEW}"
    " ORDER BY COALESCE(used, created) DESC, n DESC LIMIT ?)"
)
_FIND: Final = f"SELECT {_COLUMNS} FROM session WHERE hash = ?"
_LIST: Final = f"SELECT {_COLUMNS} FROM session WHERE {_LIVE}"
_TOUCH: Final = (
    "UPDATE session SET used = ?, until = CASE WHEN last < ? THEN last ELSE ? END"
    " WHERE n = ? AND ended IS NULL AND until > ?"
)
_END: Final = "UPDATE session SET ended = ? WHERE ended IS NULL AND until > ?"


class StoredSessions:
    """The sessions of one store."""

    def __init__(self, database: Database, keys: Keys, clock: Clock, ids: Ids) -> None:
        self._database = database
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._mark_key = derive(keys.pepper, "session", "mark")
        self._csrf_key = derive(keys.pepper, "session", "csrf")
        self._known: Memo[bytes, tuple[float, PersonSession | None]] = Memo(MOST_KNOWN)
        self._noted: Memo[int, int] = Memo(MOST_KNOWN)  # when it was last noted that one was used
        self._watched: Counter[int] = Counter()
        self._over: set[int] = set()  # of those that are watched
        self.bounds = SessionBounds(
            idle_us=24 * HOUR, most_us=336 * HOUR, link_us=HOUR // 6, per_person=20
        )

    async def offer(self, token: Token, now: int) -> tuple[PersonSession, Secret]:
        """Make what signs in once, and soon, as who holds a token."""
        until = now + self.bounds.link_us
        return await self._make(CODE, token, (now, None, None, until, until, ""))

    async def begin(self, token: Token, device: str, now: int) -> tuple[PersonSession, Secret]:
        """Begin a session as who holds a token."""
        until, last = self._ends(now)
        return await self._make(COOKIE, token, (now, now, now, until, last, device))

    async def _make(
        self, prefix: str, token: Token, rest: tuple[Value, ...]
    ) -> tuple[PersonSession, Secret]:
        secret = self._draw(prefix)
        hashed, now = self._hash(secret), rest[0]
        whose = (token.person, token.n)
        row = (hashed, self._keys.key_id, *whose, *rest, token.n, token.person, now)
        point("session.before_keep")
        made, *_ = await self._database.transact([(_MAKE, row), *self._bounded(hashed, now)])
        if not made:
            raise TokenInvalid("the token, or whose it is, has ended")
        point("session.kept")
        return await self._of(hashed), secret

    async def redeem(self, code: Secret, device: str, now: int) -> tuple[PersonSession, Secret]:
        """Begin a session with a code, which is used up."""
        if not self._is_ours(code, CODE):
            raise SignInCodeInvalid("it is none of ours")
        secret = self._draw(COOKIE)
        hashed = self._hash(secret)
        row = (hashed, self._keys.key_id, now, now, *self._ends(now), device)
        found = (self._hash(code), now, now)
        point("session.before_keep")
        redeemed, *_ = await self._database.transact(
            [(_REDEEM, (*row, *found)), *self._bounded(hashed, now)]
        )
        if not redeemed:
            raise SignInCodeInvalid("it was used, has run out, or was ended")
        point("session.kept")
        return await self._of(hashed), secret

    def _ends(self, now: int) -> tuple[int, int]:
        last = now + self.bounds.most_us
        return min(now + self.bounds.idle_us, last), last

    def _bounded(self, hashed: bytes, now: Value) -> builtins.list[Statement]:
        """End what is over of whoever has this one, and what is too many."""
        most = self.bounds.per_person
        return [(_END_LATE, (now, hashed)), (_END_MANY, (now, hashed, hashed, most))]

    async def _of(self, hashed: bytes) -> PersonSession:
        return _read((await self._database.fetch(_FIND, (hashed,)))[0])

    async def find(self, secret: Secret, now: int) -> PersonSession | None:
        """The live session of a cookie, at most a second old."""
        if not self._is_ours(secret, COOKIE):
            return None
        hashed, moment = self._hash(secret), self._clock.monotonic()
        looked, session = self._known.get(hashed, (-KNOWN_SECONDS, None))
        if moment - looked >= KNOWN_SECONDS:
            rows = await self._database.fetch(_FIND, (hashed,))
            session = _read(rows[0]) if rows else None
            self._known.keep(hashed, (moment, session))
        return session if session is not None and session.is_live(now) else None

    async def touch(self, session: PersonSession, now: int) -> None:
        """Note that it was used, unless that was noted a moment ago, or cannot be."""
        if now - max(session.used or 0, self._noted.get(session.n, 0)) < USED_US:
            return
        until = now + self.bounds.idle_us
        with suppress(CarnetError):  # it lasts as long as it did; what is asked may still be read
            await self._database.execute(_TOUCH, (now, until, until, session.n, now))
            self._noted.keep(session.n, now)

    def csrf(self, session: PersonSession) -> str:
        """What a page of ours shows with a change; a number alone may be another's later."""
        text = f"{session.n}.{session.person}.{session.begun}"
        return hmac.digest(self._csrf_key, text.encode(), "sha256").hex()

    @contextmanager
    def watched(self, session: int) -> Iterator[None]:
        """Look after a session while something is read by it."""
        self._watched[session] += 1
        try:
            yield
        finally:
            self._watched[session] -= 1
            if not self._watched[session]:
                del self._watched[session]
                self._over.discard(session)

    def is_over(self, session: int) -> bool:
        """Whether one that is watched has ended."""
        return session in self._over

    async def keep(self) -> None:
        """See which of those that are watched have ended."""
        watched, now = builtins.list(self._watched), self._clock.wall_us()
        for at in range(0, len(watched), AT_A_TIME):
            some = watched[at : at + AT_A_TIME]
            query = f"SELECT n FROM session WHERE {_LIVE} AND n IN ({marks(len(some))})"
            live = {n for (n,) in await self._database.fetch(query, (now, *some))}
            self._over.update(n for n in some if n not in live and n in self._watched)

    async def list(self, person: int | None, now: int) -> builtins.list[PersonSession]:
        """Those that are live, newest first."""
        whose = "" if person is None else " AND person = ?"
        args = (now,) if person is None else (now, person)
        rows = await self._database.fetch(f"{_LIST}{whose} ORDER BY n DESC", args)
        return [_read(row) for row in rows]

    async def end(self, session: int, now: int, *, person: int | None = None) -> bool:
        """End one; of `person` alone, where she is named."""
        whose = "" if person is None else " AND person = ?"
        args = (now, now, session) if person is None else (now, now, session, person)
        ended = await self._end(f"{_END} AND n = ?{whose}", args)
        self._forget(lambda known: known.n == session)
        return ended > 0

    async def end_all(self, person: int, now: int) -> int:
        """End all of one person, and her links."""
        many = len(await self.list(person, now))
        await self._end(f"{_END} AND person = ?", (now, now, person))
        self._forget(lambda known: known.person == person)
        return many

    async def _end(self, statement: str, args: tuple[Value, ...]) -> int:
        point("session.before_end")
        ended = await self._database.execute(statement, args)
        point("session.ended")
        await self.keep()
        return ended

    def _forget(self, which: Callable[[PersonSession], bool]) -> None:
        """Look for these anew."""
        known = self._known.items()
        for hashed in [each for each, (_, one) in known if one is not None and which(one)]:
            del self._known[hashed]

    def _draw(self, prefix: str) -> Secret:
        text = prefix + self._ids.token()
        return Secret(f"{text}.{self._mark(text)}")

    def _mark(self, text: str) -> str:
        digest = hmac.digest(self._mark_key, text.encode("latin-1"), "sha256")[:MARK_BYTES]
        return urlsafe_b64encode(digest).decode()

    def _is_ours(self, secret: Secret, prefix: str) -> bool:
        """Whether we have made a text; it may have ended since."""
        text, _, mark = secret.reveal().rpartition(".")
        if not (text.startswith(prefix) and text.isascii() and mark.isascii()):
            return False
        return hmac.compare_digest(mark, self._mark(text))

    def _hash(self, secret: Secret) -> bytes:
        return hmac.digest(self._keys.pepper, secret.reveal().encode(), "sha256")


def _read(row: Row) -> PersonSession:
    n, person, token, created, begun, used, until, last, device, ended = row
    return PersonSession(
        n=n,
        person=person,
        token=token,
        created=created,
        begun=begun,
        used=used,
        until=until,
        last=last,
        device=device,
        ended=ended,
    )
