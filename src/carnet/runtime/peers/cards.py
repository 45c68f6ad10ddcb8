"""What others publish about themselves: fetched within bounds, and remembered.

Law 1. A page is small and quick or it is not read: 256 KiB, 10 seconds, no redirect (WebFinger may
       have one), no encoding, a certificate that holds.
Law 2. Whoever asks for the same page at the same time waits for the same fetch.
Law 3. A few fetches run at once and some more wait; whoever comes then is told so. Places that the
       operator wrote down do not queue behind those that strangers name.
Law 4. What a page says holds for the time that it names, within our bounds. A page that cannot be
       read is not asked for again for a minute, or for a second where a call of ours needs it;
       what was read before holds until its own end.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Literal, TypeVar

from msgspec import Struct

from carnet.core.memo import Memo
from carnet.errors import (
    CarnetError,
    EgressRefused,
    Overloaded,
    PeerAgentNotFound,
    PeerUnreachable,
    Upstream,
)
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import (
    Bounds,
    HttpAnswer,
    HttpClient,
    NameUnknown,
    NotSent,
    Outbound,
)
from carnet.wire import travel
from carnet.wire.dialects import samvad

T = TypeVar("T")

CARD_PATH: Final = "/.well-known/agent.json"
CARNET_PATH: Final = "/.well-known/carnet.json"

BOUNDS: Final = Bounds(
    connect_seconds=3,
    first_byte_seconds=10,
    idle_seconds=10,
    total_seconds=10,
    max_bytes=256 * 1024,
)
AT_ONCE: Final = 8
QUEUE: Final = 64
QUEUE_SECONDS: Final = 10.0
LEAST_SECONDS: Final = 60.0  # a page is not asked for more often, whatever it says
MOST_SECONDS: Final = 3600.0  # a key that its owner ends is not believed for longer
FAILED_SECONDS: Final = 60.0
NEEDED_SECONDS: Final = 1.0  # for calls of ours, which no stranger can make us repeat

JSON: Final = "application/json"
_OK: Final = 200
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NOT_MODIFIED: Final = 304
_ETAG: Final = re.compile(r'(?:W/)?"[!#-~]{0,256}"', re.ASCII)
_AGE: Final = re.compile(r"(?:^|[ ,])max-age=([0-9]{1,9})(?![0-9])", re.ASCII)
_ABSENT: Final = frozenset({404, 410})
_CLIENT_ERRORS: Final = range(400, 500)


class Site(Struct, frozen=True):
    """Where pages are: the URL before their path, who named it, and whose they must be."""

    url: str
    kind: Literal["named", "learned"] = "named"
    domain: str | None = None


class PublishedPage(Struct, frozen=True):
    """A page as it came, and for how long its server says that it holds."""

    body: bytes
    etag: str | None = None
    max_age: int | None = None
    is_same: bool = False  # as the one with the tag that was asked with: its body is not sent again


class NotPublished(Exception):
    """There is no such page, or no such site; `fault` says which, where it is not the page."""

    def __init__(self, fault: str | None = None) -> None:
        super().__init__(fault)
        self.fault = fault


class PageAbsent(NotPublished):
    """The site answers, and has no such page."""


class _Redirected(Exception):
    """The page is said to be elsewhere."""

    def __init__(self, status: int, url: str) -> None:
        super().__init__(status)
        if not url.startswith("https://"):  # neither plain http nor a path: none that we follow
            raise PeerUnreachable(f"answered with {status}")
        self.status = status
        self.url = url


class Fetching:
    """Fetches pages, a few at once."""

    def __init__(
        self,
        http: HttpClient,
        *,
        at_once: int = AT_ONCE,
        queue: int = QUEUE,
        bounds: Bounds = BOUNDS,
    ) -> None:
        """`queue` is how many more may wait, for each kind of site."""
        self._http = http
        self._bounds = bounds
        self._queue = queue
        self._waiting = {"named": 0, "learned": 0}
        self._free = {kind: asyncio.Semaphore(at_once) for kind in self._waiting}

    async def page(self, site: Site, path: str) -> bytes:
        """One page. Raises NotPublished, PeerUnreachable, or Overloaded."""
        return (await self.fetch(site, path)).body

    async def fetch(
        self,
        site: Site,
        path: str,
        etag: str | None = None,
        *,
        accept: str = JSON,
        redirects: int = 0,
    ) -> PublishedPage:
        """The same with what its server says of it; `etag` is that of the page we have.

        It may lead on as often as `redirects` says, over https alone.
        """
        free = self._free[site.kind]
        await self._enter(free, site.kind)
        try:
            for _ in range(redirects):
                try:
                    return await self._get(site, path, etag, accept)
                except _Redirected as redirected:
                    site, path = Site(redirected.url, "learned", site.domain), ""
            return await self._get(site, path, etag, accept)
        except _Redirected as redirected:
            raise PeerUnreachable(f"answered with {redirected.status}") from None
        finally:
            free.release()

    async def _enter(self, free: asyncio.Semaphore, kind: str) -> None:
        if free.locked() and self._waiting[kind] >= self._queue:
            raise Overloaded("too many wait for what others publish")
        self._waiting[kind] += 1
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                await free.acquire()
        except TimeoutError:
            raise Overloaded("what others publish took too long to wait for") from None
        finally:
            self._waiting[kind] -= 1

    async def _get(self, site: Site, path: str, etag: str | None, accept: str) -> PublishedPage:
        known = {} if etag is None else {"if-none-match": etag}
        request = Outbound(
            method="GET",
            url=f"{site.url}{path}",
            body=b"",
            headers={"accept": accept, **known},
            kind=site.kind,
            bounds=self._bounds,
        )
        try:
            async with self._http.send(request) as answer:
                if answer.status in _ABSENT:
                    raise PageAbsent
                if answer.status in _CLIENT_ERRORS:
                    raise NotPublished(f"{path} was answered with {answer.status}")
                if answer.status in _REDIRECTS:
                    raise _Redirected(answer.status, answer.header("location") or "")
                is_same = answer.status == _NOT_MODIFIED and etag is not None
                if answer.status != _OK and not is_same:
                    raise PeerUnreachable(f"answered with {answer.status}")
                return await _page(answer, is_same=is_same)
        except EgressRefused:
            if site.kind == "named":
                raise
            raise NotPublished from None  # what is behind a private address is not told
        except Upstream as error:
            raise _unanswered(error, site) from None


async def _page(answer: HttpAnswer, *, is_same: bool) -> PublishedPage:
    etag, cached = answer.header("etag"), answer.header("cache-control") or ""
    is_tag = etag is not None and _ETAG.fullmatch(etag)
    lasts = _AGE.search(cached)
    return PublishedPage(
        await answer.read(),
        etag if is_tag else None,
        None if lasts is None else int(lasts[1]),
        is_same,
    )


def _unanswered(error: Upstream, site: Site) -> PeerUnreachable | NotPublished:
    if isinstance(error.__cause__, NameUnknown):
        return NotPublished("no host has that name")
    fault = reason(error)
    never_left = isinstance(error.__cause__, NotSent)
    return PeerUnreachable(f"nothing answers at {site.url} ({fault})" if never_left else fault)


def reason(error: CarnetError) -> str:
    """Why something could not be read, in words of ours and without the code."""
    return error.detail or error.safe_text.removesuffix(".")


class Found(Struct, Generic[T]):
    """What is known of a site. Times are of the clock that never jumps."""

    value: T | None
    fault: str | None  # why it could not be read; None also for a page that is not there
    until: float
    tried: float
    absent: str | None = None  # why it is not there, unless it is just that page


class Remembered(Generic[T]):
    """What one kind of page says, for many sites."""

    def __init__(
        self,
        load: Callable[[Site], Awaitable[tuple[T, float]]],
        clock: Clock,
        *,
        most: int = 1024,
    ) -> None:
        """`load` reads a site and says for how many seconds that holds.

        It raises NotPublished, or an error of ours that says why it cannot be read.
        """
        self._load = load
        self._clock = clock
        self._good: Memo[Site, Found[T]] = Memo(most)
        self._bad: Memo[Site, Found[T]] = Memo(most)
        self._running: dict[Site, asyncio.Task[Found[T]]] = {}

    def peek(self, site: Site) -> Found[T] | None:
        """What is known and still holds."""
        now = self._clock.monotonic()
        for known in (self._good, self._bad):
            found = known.get(site)
            if found is not None and found.until > now:
                return found
        return None

    def known(self) -> list[tuple[Site, T]]:
        """All that is known and still holds; nobody is asked."""
        now = self._clock.monotonic()
        return [
            (site, found.value)
            for site, found in self._good.items()
            if found.value is not None and found.until > now
        ]

    def is_due(self, found: Found[T], seconds: float = FAILED_SECONDS) -> bool:
        """Whether a site may be asked again, for something that its page did not say."""
        return self._clock.monotonic() >= found.tried + seconds

    async def find(self, site: Site, *, after: float | None = None) -> Found[T]:
        """What is known, fetched if it is not.

        With `after` also if that many seconds have passed since it was last asked for.
        """
        found = self.peek(site)
        if found is not None and (after is None or not self.is_due(found, after)):
            return found
        task = self._running.get(site)
        if task is None:
            task = asyncio.create_task(self._fetch(site))
            self._running[site] = task
            task.add_done_callback(lambda _: self._running.pop(site, None))
        # Whoever leaves while it runs leaves alone: others may wait for the same.
        return await asyncio.shield(task)

    def forget(self, site: Site) -> None:
        """Ask anew the next time."""
        self._good.pop(site, None)
        self._bad.pop(site, None)

    async def close(self) -> None:
        """End what is running."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _fetch(self, site: Site) -> Found[T]:
        fault = absent = None
        try:
            value, seconds = await self._load(site)
        except NotPublished as error:
            absent = error.fault
        except (Overloaded, EgressRefused):
            raise  # nobody was asked
        except CarnetError as error:
            fault = reason(error)
        else:
            return self._keep_good(site, value, seconds)
        return self._keep_bad(site, fault, absent)

    def _keep_good(self, site: Site, value: T, seconds: float) -> Found[T]:
        now = self._clock.monotonic()
        holds = min(max(seconds, LEAST_SECONDS), MOST_SECONDS)
        found = Found(value, None, now + holds, now)
        self._bad.pop(site, None)
        return self._good.keep(site, found)

    def _keep_bad(self, site: Site, fault: str | None, absent: str | None) -> Found[T]:
        now = self._clock.monotonic()
        before = self._good.get(site)
        if before is not None and before.until > now:  # F33: until its own end
            before.tried = now
            return before
        found: Found[T] = Found(None, fault, now + FAILED_SECONDS, now, absent)
        self._good.pop(site, None)
        return self._bad.keep(site, found)


class Cards:
    """What those publish whom we call."""

    def __init__(self, http: HttpClient, clock: Clock) -> None:
        self._fetching = Fetching(http)
        self._cards = Remembered(self._load_card, clock)
        self._carnets = Remembered(self._load_carnet, clock)

    async def card(self, site: Site) -> samvad.Card:
        """The card of an agent; PeerAgentNotFound if there is none, or PeerUnreachable."""
        found = await self._cards.find(site)
        if found.value is None:
            found = await self._cards.find(site, after=NEEDED_SECONDS)
        if found.value is not None:
            return found.value
        fault = found.fault or found.absent
        if fault is None:  # an answer like any other: what is asked for is not there
            raise PeerAgentNotFound(f"there is no card at {site.url}{CARD_PATH}")
        raise PeerUnreachable(fault)

    async def carnet(self, site: Site) -> travel.WellKnown | None:
        """What a Carnet says of itself; None if there is none, or it cannot be read."""
        return (await self._carnet(site)).value

    async def is_carnet(self, site: Site, domain: str | None) -> bool:
        """Whether a Carnet is there, and that of the domain; PeerUnreachable if nobody can tell."""
        found = await self._carnet(site)
        if found.fault is not None:
            raise PeerUnreachable(found.fault)
        return found.value is not None and domain in {None, found.value.domain}

    async def _carnet(self, site: Site) -> Found[travel.WellKnown]:
        found = await self._carnets.find(site)
        if found.fault is not None:
            found = await self._carnets.find(site, after=NEEDED_SECONDS)
        return found

    def known(self) -> list[tuple[Site, samvad.Card]]:
        """The cards of agents that hold now; nobody is asked."""
        return self._cards.known()

    async def close(self) -> None:
        """End what is being fetched."""
        await self._cards.close()
        await self._carnets.close()

    async def _load_card(self, site: Site) -> tuple[samvad.Card, float]:
        card = samvad.read_card(await self._fetching.page(site, CARD_PATH))
        return card, card.ttl

    async def _load_carnet(self, site: Site) -> tuple[travel.WellKnown, float]:
        page = await self._fetching.page(site, CARNET_PATH)
        return travel.read_well_known(page), samvad.DEFAULT_TTL
