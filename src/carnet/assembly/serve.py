"""Running a gateway process: open the store, listen, drain, close.

Law 1. Where it really listens is written beside the database as long as it does, readable by its
       owner alone: commands find a gateway that was started on another port.
Law 2. SIGHUP has the configuration read again. Where it tells that the terminal has gone it is what
       it always was, the end.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from carnet.assembly.banner import banner, local_address, shown_address
from carnet.assembly.console.link import sign_in_line
from carnet.assembly.gateway import RunningGateway, build
from carnet.assembly.reload import Reloading
from carnet.assembly.sockets import Sockets, bound, listen
from carnet.assembly.store import open_from, own_limits
from carnet.config import Limits, LogSettings, Settings
from carnet.errors import ConfigInvalid, StorageUnavailable
from carnet.http.arrival import RequestIds
from carnet.http.cors import Application, allowing, allowing_refusals
from carnet.http.link import EdgeLimits
from carnet.http.process import Process
from carnet.http.proxies import Proxies
from carnet.http.refusal import Refuse
from carnet.http.server import Server, make_server, room_for
from carnet.log.file import LogFile
from carnet.log.repeats import Repeats
from carnet.log.text import lines_for
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.clock_skew import watch_clock_skew
from carnet.runtime.system import SystemClock, SystemIds, new_seed
from carnet.runtime.watchdog import Watchdog
from carnet.stores.open import database_path, is_postgres, start_store
from carnet.telemetry import start_logging

logger = logging.getLogger("carnet.serve")

STORE_FAILED = 5  # our fault, in the words of the command line
# Containers made and not yet freed before the collector looks for cycles. The hot path makes none;
# with Python's 700 the looking was an eighth of a hop.
COLLECT_AFTER = (20_000, 20, 100)
UNREACHED = "cards name an address that other machines do not reach; set [gateway] public_url"


class Beside(Protocol):
    """What else listens in the process of a gateway."""

    sockets: Sockets  # bound, and not yet listening

    def serving(
        self,
        gateway: RunningGateway,
        limits: EdgeLimits,
        process: Process,
        clock: Clock,
        ids: Ids,
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """Answer, for the time of a context."""

    async def drain(self, seconds: float) -> None:
        """Take no new work; what runs has some time to end."""


def serve(
    settings: Settings,
    *,
    beside: Callable[[Settings], contextlib.AbstractContextManager[Beside]],
    host: str | None = None,
    port: int | None = None,
    fd: int | None = None,
    spell: Callable[[str], str] = str,
    read: Callable[[], Settings] | None = None,
    watch: bool = False,
) -> int:
    """Run until a signal, at the address given or on an inherited socket; the exit code.

    `beside` is what listens at an address of its own. `spell` gives a sentence whose commands can
    be typed as they stand. `read` reads the settings again, when it is asked to or, with `watch`,
    when a file has changed.
    """
    listening = settings.listening_at(host, port)
    with bound(listening, fd=fd) as (real, sockets), beside(settings) as other:
        at = real.gateway
        process = Process(drain_seconds=at.drain_seconds, grace_seconds=at.grace_seconds)
        process.own(lambda: [each.fileno() for each in (*sockets, *other.sockets)])
        with logged(settings.log) as relog, _hung_up() as asks:
            sources = _Sources(settings, read or (lambda: settings), watch, relog, asks)
            code = process.run(lambda: _serve(real, sockets, process, spell, sources, other))
    return process.leave(code)


class _Sources(Struct, frozen=True, eq=False):
    """Where the configuration comes from, and what else holds to it."""

    file: Settings
    read: Callable[[], Settings]
    watch: bool
    relog: Callable[[LogSettings], None]
    asks: list[Callable[[], object]]  # what SIGHUP calls


@contextlib.contextmanager
def logged(log: LogSettings) -> Iterator[Callable[[LogSettings], None]]:
    """Write the log as it is configured, until the end; gives what configures it otherwise."""
    file = LogFile(sys.stdout)
    sink = start_logging(log.level.upper(), file, lines=lines_for(log.format, file))
    repeats = Repeats(sink.emit)
    sink.addFilter(repeats)

    def relog(other: LogSettings) -> None:
        sink.setFormatter(lines_for(other.format, file))
        logging.getLogger().setLevel(other.level.upper())

    try:
        yield relog
    finally:
        repeats.rest()
        sink.close()


async def _serve(
    settings: Settings,
    sockets: Sockets,
    process: Process,
    spell: Callable[[str], str],
    sources: _Sources,
    other: Beside,
) -> int:
    clock, ids = SystemClock(), SystemIds()
    store = await open_from(settings, exclusive=True)
    try:
        await start_store(store, settings.store.url, own_limits(settings))
        gateway = build(settings, store, clock, ids)
    except BaseException as error:
        await store.close()
        if isinstance(error, StorageUnavailable) and not is_postgres(settings.store.url):
            raise _unreadable(settings, error) from error
        raise
    _settle_memory()
    gateway.start()
    skew = asyncio.create_task(watch_clock_skew(clock))
    reloading = Reloading(gateway, file=sources.file, read=sources.read, clock=clock, ids=ids)
    try:
        ask = partial(asyncio.get_running_loop().call_soon_threadsafe, reloading.ask)
        sources.asks.append(ask)
        with Watchdog(gateway.metrics.held):
            limits = edge_limits(settings.limits, ())
            async with other.serving(gateway, limits, process, clock, ids):
                await _listen(settings, sockets, reloading, process, spell, sources, other)
    finally:
        skew.cancel()
        # What a second Ctrl-C did not wait for is ended while it can still be told.
        await gateway.backend.worker.stop()
        await gateway.journal.drain(0)
        code = STORE_FAILED if store.is_broken() else 0
        await reloading.close()
        await reloading.gateway.close()
    logger.info("stopped")
    return code


def _unreadable(settings: Settings, error: StorageUnavailable) -> ConfigInvalid:
    """What to do about a store that opens, and cannot be worked with."""
    path = database_path(settings.store.url, settings.base)
    reason = (
        f"{path}: it cannot be used ({error.detail}). If it is damaged, put a backup in its place "
        "(docs/operations/backup.md) or name another file; if its disk is full, make room"
    )
    return ConfigInvalid(error.detail, key="[store] url", reason=reason)


def _settle_memory() -> None:
    """Tell the collector of cycles that what is loaded now stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


async def _listen(
    settings: Settings,
    sockets: Sockets,
    reloading: Reloading,
    process: Process,
    spell: Callable[[str], str],
    sources: _Sources,
    other: Beside,
) -> None:
    gateway = reloading.gateway
    sign_in = await _sign_in_line(settings, gateway)
    listen(sockets)
    with contextlib.ExitStack() as until_stopped:

        def announce() -> None:
            where = local_address(settings)
            until_stopped.enter_context(_written(address_file(settings), where))
            logger.info("listening", extra={"path": where})
            if settings.needs_public_url:
                logger.warning(UNREACHED, extra={"path": where})
            _say(banner(settings, gateway.published.local(), spell, sign_in))

        async def drain() -> None:
            _say(farewell(gateway.journal.running, settings.gateway.drain_seconds))
            reloading.stop_admitting()
            try:
                seconds = settings.gateway.drain_seconds
                await asyncio.gather(reloading.gateway.drain(), other.drain(seconds))
            finally:
                process.drained()

        app, limits, proxies, refusing = _edge(gateway)
        server = make_server(
            app,
            sockets=sockets,
            limits=limits,
            note=gateway.note,
            proxies=proxies,
            refusing=refusing,
            request_ids=RequestIds(new_seed(), SystemClock().wall_us),
            drain=drain,
            on_listening=announce,
            on_stop=process.stop,
        )
        process.own(server.connected)
        reloading.swap = partial(_swap, server, sources)
        watch = reloading.watch() if sources.watch else asyncio.sleep(0)
        with _beside(_stop_when_broken(server, gateway, process)), _beside(watch):
            await server.serve()


async def _sign_in_line(settings: Settings, gateway: RunningGateway) -> str:
    now, url = SystemClock().wall_us(), shown_address(settings).rstrip("/")
    is_seen = sys.stderr.isatty()
    return await sign_in_line(settings, gateway.store, url, now, is_terminal=is_seen)


def _swap(server: Server, sources: _Sources, gateway: RunningGateway) -> None:
    """Have another gateway answer, and the log written as that wants it."""
    server.take(*_edge(gateway))
    sources.relog(gateway.settings.log)


@contextlib.contextmanager
def _beside(work: Coroutine[Any, Any, None]) -> Iterator[None]:
    """Have something done for the time of a context."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()


def _edge(gateway: RunningGateway) -> tuple[Application, EdgeLimits, Proxies, Refuse]:
    """What answers requests, within which limits, which proxies are believed, how it refuses."""
    settings = gateway.settings
    return (
        allowing(gateway.app, settings.gateway.cors_origins),
        edge_limits(settings.limits, gateway.stamps.tolerated),
        Proxies(settings.gateway.trusted_proxies),
        allowing_refusals(gateway.refusing, settings.gateway.cors_origins),
    )


@contextlib.contextmanager
def _hung_up() -> Iterator[list[Callable[[], object]]]:
    """Have SIGHUP call what is listed; from a terminal that has gone it is the end, as SIGTERM is.

    While the gateway starts it calls nothing: what is read then is what is there.
    """
    asks: list[Callable[[], object]] = []
    had_terminal = os.isatty(0)

    def signalled(_: int, __: object) -> None:
        if had_terminal and not os.isatty(0):
            signal.raise_signal(signal.SIGTERM)
        for ask in asks:
            ask()

    former = signal.signal(signal.SIGHUP, signalled)
    try:
        yield asks
    finally:
        signal.signal(signal.SIGHUP, former)


async def _stop_when_broken(server: Server, gateway: RunningGateway, process: Process) -> None:
    """Stop when a commit has failed: what was written is unknown until the store is opened anew."""
    await gateway.store.until_broken()
    logger.critical("the store failed while committing; stopping so that a restart recovers it")
    process.drained()
    server.should_exit = True


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def address_file(settings: Settings) -> Path:
    """Where a running gateway writes its address."""
    url = settings.store.url
    folder = settings.base / "var" if is_postgres(url) else database_path(url, settings.base).parent
    return folder / "gateway.url"


@contextlib.contextmanager
def _written(path: Path, text: str) -> Iterator[None]:
    """A file for its owner, there for the time of a context; one of a dead gateway is replaced."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text + "\n")
        draft.replace(path)
    except OSError as error:  # commands then look at the configured address
        logger.warning("the address is not written", extra={"detail": str(error)})
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.read_text().strip() == text:  # not that of a gateway which began since
                path.unlink()


def farewell(running: int, seconds: float) -> str:
    """What a person sees who has pressed Ctrl-C."""
    if not running:
        return "\nStopping.\n"
    calls = "1 call" if running == 1 else f"{running} calls"
    return f"\nFinishing {calls}, up to {seconds:g} s; Ctrl-C again stops now.\n"


def edge_limits(limits: Limits, tolerated: tuple[bytes, ...]) -> EdgeLimits:
    """What the edge holds a connection to; `tolerated` fields are left to their readers."""
    return EdgeLimits(
        header_bytes=limits.header_bytes,
        header_fields=limits.header_fields,
        url_bytes=limits.url_bytes,
        header_seconds=limits.header_seconds,
        body_bytes=limits.chat_body_bytes,
        body_seconds=limits.body_seconds,
        write_stall_seconds=limits.write_stall_seconds,
        connections=room_for(limits.connections),
        requests=limits.requests,
        bodies_bytes=limits.bodies_bytes,
        tolerated=tolerated,
    )
