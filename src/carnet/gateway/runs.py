"""The endpoints that tell what happened.

Law 1. A token sees the runs it took part in; an operator sees all. What a caller may not see does
       not exist for it: the answer is the one for an unknown id.
Law 2. Who follows a run sees no more of it once its token has ended (R54): it is told so, and
       whoever does not read what it is told is hung up on a moment later.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, nullcontext
from types import TracebackType
from typing import Protocol, Self

import msgspec

from carnet.core.messages.events import Event, read_in_pieces
from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest, RunNotFound, TokenInvalid
from carnet.gateway import pages
from carnet.guards.limits import Concurrency
from carnet.guards.readers import READER_BYTES
from carnet.http.exchange import (
    SEES_ALL,
    Disconnected,
    DisconnectWatch,
    Exchange,
    Row,
    reader_of,
    reply_json,
)
from carnet.http.link import Line
from carnet.ports.world.records import OF_TURN, JournalEntry, Records, RunFilter
from carnet.wire.grammar import json, sse
from carnet.wire.grammar.query import (
    Query,
    is_number,
    read_flag,
    read_lines,
    read_moment,
    read_number,
    read_query,
    read_word,
)

MOST_ENTRIES = 500
FRAMES_BYTES = 64 * 1024  # that are written at a time
LOOK_SECONDS = 1.0
UNSENT_SECONDS = 0.05  # between two looks whether a reader has taken all
ME = "me"  # the payer who asks; no account is written so, without an issuer
ENDED = frozenset({"done", "failed", "unknown"})


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


class Runs:
    """The pages of runs over HTTP."""

    def __init__(
        self,
        *,
        records: Records,
        concurrency: Concurrency,
        watch: Callable[[str], Watching],
        currency: str,
        limit: int,
        has_left: Callable[[Caller], bool],
        paid: Callable[[Caller, Query], Awaitable[pages.Page]],
    ) -> None:
        """`watch` tells when a journal grows; `concurrency` counts those who follow a run.

        `has_left` tells whether the token of a caller has ended, `paid` what a caller pays for.
        """
        self._paid = paid
        self._has_left = has_left
        self._following: dict[Line, Caller] = {}  # those who follow a run
        self._noticed: set[Line] = set()  # those of them whose token has ended
        self._records = records
        self._concurrency = concurrency
        self._watch = watch
        self._currency = currency
        self._limit = limit

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /runs."""
        query = read_query(exchange.query.decode("latin-1"))
        if query.get("payer") == [ME]:  # R26: whoever called
            await reply_json(exchange, await self._paid(caller, query))
            return
        page = await pages.runs_page(
            self._records,
            reader=reader_of(caller),
            limit=read_lines(query),
            before=read_number(query, "before", 0) or None,
            currency=self._currency,
            matching=read_filter(query),
        )
        await reply_json(exchange, page)

    async def show(self, exchange: Exchange, caller: Caller, run: str) -> None:
        """GET /runs/{id}."""
        full = read_flag(read_query(exchange.query.decode("latin-1")), "full")
        readers, size = self._concurrency.readers, pages.MOST_PIECES * READER_BYTES
        async with readers.room(caller.actor.name, size) if full else nullcontext():
            page = await pages.run_page(
                self._records,
                run,
                reader=reader_of(caller),
                currency=self._currency,
                limit=self._limit,
                full=full,
            )
            if page is None:
                raise RunNotFound
            await reply_json(exchange, page)

    async def grounds(self, exchange: Exchange, caller: Caller, run: str) -> None:
        """GET /runs/{id}/grounds: what each guard found of each turn."""
        del caller  # the router has checked that it sees all
        page = await pages.grounds_page(self._records, run)
        if page is None:
            raise RunNotFound
        await reply_json(exchange, page)

    async def events(self, exchange: Exchange, caller: Caller, run: str) -> None:
        """GET /runs/{id}/events: the journal of a run as it grows, until its turns have ended."""
        reader = reader_of(caller)
        if not await self._records.run(run, reader=reader):
            raise RunNotFound
        row, sequence = _cursor(exchange.headers.get("last-event-id"))
        name = caller.actor.name
        with self._concurrency.watching(name), self._held(exchange.line, caller):
            frames = self._frames(run, caller, row, sequence)
            await self._follow(exchange, self._allowed(caller, exchange.line, frames))

    @contextmanager
    def _held(self, line: Line, caller: Caller) -> Iterator[None]:
        self._following[line] = caller
        try:
            yield
        finally:
            del self._following[line]
            self._noticed.discard(line)

    def stop_ended(self) -> None:
        """Hang up on who follows a run with a token that had ended a look ago."""
        for line in [line for line, caller in self._following.items() if self._has_left(caller)]:
            if line in self._noticed:
                line.cut()
            self._noticed.add(line)

    async def _allowed(
        self, caller: Caller, line: Line, following: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """The frames for as long as the token of a caller is good; then it has to take the last."""
        async with aclosing(following) as frames:
            async for frame in frames:
                if self._has_left(caller):
                    break
                if frame:
                    yield frame
            else:
                return
        ended = TokenInvalid("it has ended meanwhile")
        yield sse.write_event(json.write({"code": ended.code}), event="error")
        line.close_after()
        while line.has_unsent():  # noqa: ASYNC110  nobody tells; at last it is hung up on
            await asyncio.sleep(UNSENT_SECONDS)

    async def _follow(self, exchange: Exchange, following: AsyncGenerator[bytes, None]) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        try:
            with DisconnectWatch(exchange.line):
                await exchange.start(200, headers)
                if exchange.method == "HEAD":  # it has its whole answer
                    await following.aclose()
                async with aclosing(following) as frames:
                    async for frame in frames:
                        await exchange.write(frame)
                        await asyncio.sleep(0)  # a fast reader is no reason to let others wait
                await exchange.write(b"", more=False)
        except Disconnected:
            return

    async def _frames(
        self, run: str, caller: Caller, row: int, sequence: int
    ) -> AsyncGenerator[bytes, None]:
        """The frames of a run; an empty one at every look that finds nothing new."""
        reader, name = reader_of(caller), caller.actor.name
        after = row - 1  # the row itself may hold events beyond the last one seen
        size = READER_BYTES
        entries: Sequence[JournalEntry]
        with self._watch(run) as watching:
            while True:
                # Asked before the entries are read: what ends meanwhile is read by the next look.
                is_over = await self._is_over(run, reader)
                async with self._concurrency.readers.room(name, size):
                    entries = await self._records.entries(
                        run, reader=reader, after=after, limit=MOST_ENTRIES, most_bytes=size
                    )
                    size = _size_of(entries)
                    for entry in entries if size == READER_BYTES else ():
                        after = entry.n
                        for frames in _frames_of(entry, sequence if entry.n == row else -1):
                            yield frames
                if is_over and not entries:
                    yield sse.write_event(json.write({"run": run}), event="end")
                    return
                if not entries:
                    await watching.changed(LOOK_SECONDS)
                yield b""

    async def _is_over(self, run: str, reader: str | None) -> bool:
        return all(turn.state in ENDED for turn in await self._records.run(run, reader=reader))


def _size_of(entries: Sequence[JournalEntry]) -> int:
    """How much room the next look needs: that of a row which did not fit, else what is usual."""
    match entries:
        case [JournalEntry(kind="events", size=int() as size)]:
            return size
    return READER_BYTES


def _frames_of(entry: JournalEntry, seen: int) -> Iterator[bytes]:
    """The frames of a row, some at a time."""
    if entry.kind != "events":
        if seen < 0:
            data = json.write({"turn": entry.turn, "kind": entry.kind})
            yield sse.write_event(data, event=entry.kind, id=f"{entry.n}.0")
        return
    number, size = entry.first, 0
    frames: list[bytes] = []
    for events in read_in_pieces(entry.data):
        for event in events:
            if number > seen:
                frames.append(_frame(entry, event, number))
                size += len(frames[-1])
            number += 1
            if size > FRAMES_BYTES:
                yield b"".join(frames)
                frames, size = [], 0
    if frames:
        yield b"".join(frames)


def _frame(entry: JournalEntry, event: Event, number: int) -> bytes:
    return sse.write_event(
        json.write({"turn": entry.turn, **_plain(event)}),
        event=str(type(event).__struct_config__.tag),
        id=f"{entry.n}.{number}",
    )


def _plain(event: Event) -> dict[str, object]:
    return {name: msgspec.to_builtins(getattr(event, name)) for name in event.__struct_fields__}


def _cursor(last_event_id: str | None) -> tuple[int, int]:
    """Row and sequence of the last event a client saw; nothing seen before the first."""
    row, _, sequence = (last_event_id or "").partition(".")
    if not row:
        return 0, -1
    if not (is_number(row) and is_number(sequence)):
        raise InvalidRequest("last-event-id", "is not an id of this stream")
    return int(row), int(sequence)


def read_filter(query: Query) -> RunFilter:
    """What the runs are to be like that are asked for."""
    words = {name: read_word(query, name) for name in (*OF_TURN, "payer")}
    return RunFilter(**words, since=read_moment(query, "since"))


ROUTES = (
    Row(
        method="GET",
        path="/runs",
        endpoint=Runs.list,
        permission="run:read",
        summary="List runs; payer=me lists those that whoever asks pays for",
        query=("limit", "before", *OF_TURN, "payer", "since"),
        answer="Page",
    ),
    Row(
        method="GET",
        path="/runs/{run}",
        endpoint=Runs.show,
        permission="run:read",
        summary="One run as a tree of turns",
        query=("full",),
        answer="Page",
    ),
    Row(
        method="GET",
        path="/runs/{run}/grounds",
        endpoint=Runs.grounds,
        permission=SEES_ALL,
        summary="Why each turn of a run was admitted: what each guard found",
        answer="Page",
    ),
    Row(
        method="GET",
        path="/runs/{run}/events",
        endpoint=Runs.events,
        permission="run:read",
        summary="The journal of a run (SSE, Last-Event-ID)",
        streams=True,
    ),
)
