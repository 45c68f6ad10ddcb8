"""Who asks about a run so that others are asked too: a token, or a gateway that called us in it.

Law 1. A gateway proves itself by its signature, and is shown what it has called itself, and what
       was called for that here.
Law 2. Whoever may not see a run is told what is told of one that there is not.
Law 3. One caller has so many walks going on at a time, and no more: each may ask other gateways.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from carnet.core.people.address import AGENT
from carnet.errors import InvalidRequest, RunNotFound, TooManyCalls
from carnet.gateway.endpoint import request_of
from carnet.guards.caller.owner import Owners, check_time
from carnet.http.exchange import Access, Exchange, read_authorization, reader_of
from carnet.ports.world.clock import Clock
from carnet.ports.world.records import READER, STRANGER, Records
from carnet.wire.dialects.samvad.tasks import read_asking
from carnet.wire.grammar import json
from carnet.wire.stamps.stamp import Stamps

SECONDS: Final = 20.0  # that a walk takes at the most
MOST_BYTES: Final = 128 * 1024  # of what is asked
MOST_TURNS: Final = 256
MOST_WALKS: Final = 16  # of one caller, at a time
MOST_ACTORS: Final = 64  # of a run, that a signature is compared with the keys of

_SIGNS_AS: Final = {"peer": AGENT, "sender": ""}  # what stands before the name of such an actor


class Walks:
    """Counts what each caller has going on."""

    def __init__(self, most: int = MOST_WALKS) -> None:
        """Nothing goes on; `most` of one caller may."""
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, caller: str) -> Iterator[None]:
        """Hold a place, or refuse."""
        if self._open[caller] >= self._most:
            raise TooManyCalls(limit=self._most, retry_after=1)
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]


class RunAsker(Struct, frozen=True, kw_only=True):
    """Who asks, and about what."""

    name: str
    reader: str | None  # whose turns it may see; None: everybody's
    turns: frozenset[str] | None  # of these alone; None: of all
    seconds: float  # that it may take


class RunAskers:
    """Finds out who asks about a run."""

    def __init__(
        self, records: Records, access: Access, owners: Owners, *, stamps: Stamps, clock: Clock
    ) -> None:
        """`access` knows tokens, `owners` the keys of gateways."""
        self._records = records
        self._access = access
        self._owners = owners
        self._stamps = stamps
        self._clock = clock

    async def who(self, exchange: Exchange, run: str, permission: str) -> RunAsker:
        """Who sends a request about a run, and what it says; a token needs the permission."""
        headers = exchange.headers
        if read_authorization(headers) is None and headers.get("signature") is not None:
            READER.set(STRANGER)
            body = await exchange.read(MOST_BYTES)
            name = await self._signer(exchange, body, run)
            reader: str | None = name
        else:
            caller = await self._access.check(exchange, permission)
            name, reader = caller.actor.name, reader_of(caller)
            body = await exchange.read(MOST_BYTES)
        READER.set(name)
        turns, seconds = _read(body)
        return RunAsker(name=name, reader=reader, turns=turns, seconds=seconds)

    async def _signer(self, exchange: Exchange, body: bytes, run: str) -> str:
        """Who has called us in a run, and signs."""
        asking = read_asking(
            request_of(exchange),
            body,
            short_path=exchange.path.decode("latin-1"),
            stamps=self._stamps,
        )
        now = self._clock.wall_us()
        check_time(asking, now)
        turns = await self._records.run(run, reader=None)
        for actor, identity in _gateways({turn.actor for turn in turns}):
            if await self._owners.is_signed_by(identity, asking, now):
                return actor
        raise RunNotFound


def _gateways(actors: Iterable[str]) -> list[tuple[str, str]]:
    """Those of the actors of a run that are gateways, and the identities that they sign as."""
    found = []
    for actor in sorted(actors):
        kind, _, name = actor.partition(":")
        if kind in _SIGNS_AS:
            found.append((actor, _SIGNS_AS[kind] + name))
    return found[:MOST_ACTORS]


def _read(body: bytes) -> tuple[frozenset[str] | None, float]:
    """Of which turns alone, and within how many seconds; all of them where nothing is said."""
    page = json.read_object(body) if body else {}
    within, turns = page.get("within", SECONDS), page.get("turns")
    if not isinstance(within, int | float) or isinstance(within, bool):
        raise InvalidRequest("within", "is not a number of seconds")
    seconds = min(max(float(within), 0.0), SECONDS)
    if turns is None:
        return None, seconds
    if isinstance(turns, list) and len(turns) <= MOST_TURNS:
        ids = frozenset([each for each in turns if isinstance(each, str)])
        if len(ids) == len(turns):
            return ids, seconds
    raise InvalidRequest("turns", f"is not a list of at most {MOST_TURNS} different texts")
