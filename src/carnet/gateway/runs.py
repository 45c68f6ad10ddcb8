"""The endpoints that tell what happened, and the one that stops it.

Law. A token sees the runs it took part in; an operator sees all. What a caller may not see does
not exist for it: the answer is the one for an unknown id.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import parse_qs

import msgspec

from carnet.core.events import Event, read_events
from carnet.core.identity import Caller
from carnet.errors import InvalidRequest, PermissionMissing, RunNotFound, TokenInvalid
from carnet.gateway import pages
from carnet.gateway.inbound import read_authorization
from carnet.guards.authn import authenticate, caller_of
from carnet.guards.crowd import Crowd
from carnet.http.exchange import Disconnected, Exchange
from carnet.ports.agent import Journal
from carnet.ports.clock import Clock
from carnet.ports.records import JournalEntry, Records
from carnet.ports.trust import Tokens
from carnet.wire import json, sse

MOST_LINES = 200
MOST_ENTRIES = 500
LOOK_SECONDS = 1.0
ENDED = frozenset({"done", "failed", "unknown"})
SEES_ALL = "admin:runs"


class Watching(Protocol):
    """Tells when something of a run was committed."""

    def __enter__(self) -> Self:
        """Begin to watch."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Stop watching."""
        ...

    async def changed(self, seconds: float) -> bool:
        """Wait for a change since the last call; False if none came in time."""
        ...


class Access:
    """Who asks, and for what they may ask."""

    def __init__(
        self, tokens: Tokens, clock: Clock, look_again: Callable[[], Awaitable[bool]]
    ) -> None:
        """Look tokens up here; `look_again` reads them anew and tells whether they changed."""
        self._tokens = tokens
        self._clock = clock
        self._look_again = look_again

    async def check_at_once(self, exchange: Exchange) -> None:
        """Refuse a token that is not known, before anything else is read."""
        if read_authorization(exchange.headers) is not None:
            await self.check(exchange, None)

    async def check(self, exchange: Exchange, permission: str | None) -> Caller:
        """The caller, if its token is live and holds the permission that is asked for."""
        authorization = read_authorization(exchange.headers)
        now = self._clock.wall_us()
        try:
            token = authenticate(authorization, self._tokens, now)
        except TokenInvalid:
            if not await self._look_again():
                raise
            token = authenticate(authorization, self._tokens, now)
        caller = caller_of(token)
        if permission is not None and not caller.may(permission):
            raise PermissionMissing(permission=permission)
        return caller


def reader_of(caller: Caller) -> str | None:
    """Whose runs are shown: None is everybody's."""
    return None if caller.may(SEES_ALL) else caller.actor.name


class Runs:
    """The pages of runs over HTTP."""

    def __init__(
        self,
        *,
        access: Access,
        records: Records,
        journal: Journal,
        crowd: Crowd,
        watch: Callable[[str], Watching],
        currency: str,
        limit: int,
    ) -> None:
        """`watch` tells when the journal of a run grows; `crowd` counts those who follow it."""
        self._access = access
        self._records = records
        self._journal = journal
        self._crowd = crowd
        self._watch = watch
        self._currency = currency
        self._limit = limit

    async def list(self, exchange: Exchange) -> None:
        """GET /runs."""
        caller = await self._access.check(exchange, "run:read")
        query = parse_qs(exchange.query.decode("latin-1"))
        page = await pages.runs_page(
            self._records,
            reader=reader_of(caller),
            limit=max(1, min(read_number(query, "limit", 50), MOST_LINES)),
            before=read_number(query, "before", 0) or None,
            currency=self._currency,
        )
        await reply_json(exchange, page)

    async def show(self, exchange: Exchange, run: str) -> None:
        """GET /runs/{id}."""
        caller = await self._access.check(exchange, "run:read")
        page = await pages.run_page(
            self._records,
            run,
            reader=reader_of(caller),
            currency=self._currency,
            limit=self._limit,
        )
        if page is None:
            raise RunNotFound
        await reply_json(exchange, page)

    async def cancel(self, exchange: Exchange, run: str) -> None:
        """POST /runs/{id}/cancel."""
        caller = await self._access.check(exchange, "run:cancel")
        seen = await self._records.run(run, reader=reader_of(caller))
        if not seen:
            raise RunNotFound
        # Those it may see and no others: a run's id is known to all who took part in it.
        cancelled = await self._journal.cancel({turn.n for turn in seen})
        await reply_json(exchange, {"run": run, "cancelled": cancelled})

    async def events(self, exchange: Exchange, run: str) -> None:
        """GET /runs/{id}/events: the journal of a run as it grows, until its turns have ended."""
        caller = await self._access.check(exchange, "run:read")
        reader = reader_of(caller)
        if not await self._records.run(run, reader=reader):
            raise RunNotFound
        row, sequence = _cursor(exchange.headers.get("last-event-id"))
        with self._crowd.watching(caller.actor.name):
            await self._follow(exchange, self._frames(run, reader, row, sequence))

    async def _follow(self, exchange: Exchange, following: AsyncGenerator[bytes, None]) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        try:
            with exchange.watch():
                await exchange.start(200, headers)
                if exchange.method == "HEAD":  # it has its whole answer
                    await following.aclose()
                async with aclosing(following) as frames:
                    async for frame in frames:
                        await exchange.write(frame)
                await exchange.write(b"", more=False)
        except Disconnected:
            return

    async def _frames(
        self, run: str, reader: str | None, row: int, sequence: int
    ) -> AsyncGenerator[bytes, None]:
        after = row - 1  # the row itself may hold events beyond the last one seen
        with self._watch(run) as watching:
            while True:
                # Asked before the entries are read: what ends meanwhile is read by the next look.
                is_over = await self._is_over(run, reader)
                entries = await self._records.entries(
                    run, reader=reader, after=after, limit=MOST_ENTRIES
                )
                for entry in entries:
                    after = entry.n
                    yield b"".join(_frames_of(entry, sequence if entry.n == row else -1))
                if is_over and not entries:
                    yield sse.write_event(json.write({"run": run}), event="end")
                    return
                if not entries:
                    await watching.changed(LOOK_SECONDS)

    async def _is_over(self, run: str, reader: str | None) -> bool:
        return all(turn.state in ENDED for turn in await self._records.run(run, reader=reader))


def _frames_of(entry: JournalEntry, seen: int) -> list[bytes]:
    if entry.kind != "events":
        if seen >= 0:
            return []
        data = json.write({"turn": entry.turn, "kind": entry.kind})
        return [sse.write_event(data, event=entry.kind, id=f"{entry.n}.0")]
    return [
        sse.write_event(
            json.write({"turn": entry.turn, **_plain(event)}),
            event=str(type(event).__struct_config__.tag),
            id=f"{entry.n}.{entry.first + offset}",
        )
        for offset, event in enumerate(read_events(entry.data))
        if entry.first + offset > seen
    ]


def _plain(event: Event) -> dict[str, object]:
    return {name: msgspec.to_builtins(getattr(event, name)) for name in event.__struct_fields__}


def _cursor(last_event_id: str | None) -> tuple[int, int]:
    """Row and sequence of the last event a client saw; nothing seen before the first."""
    row, _, sequence = (last_event_id or "").partition(".")
    if not row:
        return 0, -1
    if not (_is_number(row) and _is_number(sequence)):
        raise InvalidRequest("last-event-id", "is not an id of this stream")
    return int(row), int(sequence)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18  # noqa: PLR2004  fits 64 bits


def read_number(query: dict[str, list[str]], name: str, default: int) -> int:
    """A whole number of a query."""
    values = query.get(name)
    if not values:
        return default
    if len(values) > 1 or not _is_number(values[0]):
        raise InvalidRequest(name, "must be one whole number")
    return int(values[0])


async def reply_json(exchange: Exchange, page: object, status: int = 200) -> None:
    """Answer with a JSON page."""
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await exchange.reply(status, headers, json.write(page))
