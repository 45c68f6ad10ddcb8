"""Reading the configuration again while the gateway serves: `carnet reload`, SIGHUP, a watch.

Law 1. Taken over is all of it or nothing. What is new is built beside the event loop and stands in
       the place of the former in one step of it: a request is answered by one of them from its
       head to its end, and so is all that its agents call.
Law 2. What cannot be used changes nothing, and everything that is wrong is told: to who asked, in
       the log, and on the page of readiness.
Law 3. What is bound to the process is not taken over (`config.changes`); that it needs a restart is
       told each time.
Law 4. One is read at a time, and one more may wait: who asks meanwhile shares that one.
Law 5. The former agents are let go when the last call that they answer has ended.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, to_builtins

from carnet.assembly.agents.modules import imported_anew, own_files
from carnet.assembly.gateway import RunningGateway, build
from carnet.assembly.store import file_callers, file_keys, file_peers
from carnet.config import Settings
from carnet.config.changes import changed, merged, pending
from carnet.config.sources import all_of
from carnet.core.people.caller_host import CallerHost
from carnet.core.people.identity import Secret
from carnet.errors import ConfigInvalid
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.trust.trust import Peer
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.threads import Threads

logger = logging.getLogger("carnet.reload")

LOAD_SECONDS: Final = 60.0  # that the user's modules may take to be imported
WATCH_SECONDS: Final = 0.5  # between two looks at the files

Marks = dict[Path, tuple[int, int, int]]  # of files: when changed, how long, which one
Swap = Callable[[RunningGateway], None]


class Reloaded(Struct, frozen=True, kw_only=True):
    """What came of reading a configuration again."""

    applied: bool
    config: str
    at: str
    agents: tuple[str, ...]  # that are served from now on
    changed: tuple[str, ...] = ()  # keys, and agents and peers that came or went
    files: tuple[str, ...] = ()  # modules of the user that are others than before
    needs_restart: tuple[str, ...] = ()  # keys whose running values stay in force
    errors: tuple[str, ...] = ()

    def page(self) -> dict[str, Any]:
        """As it is told; of a refusal also in the form of an error."""
        page: dict[str, Any] = to_builtins(self)
        if self.errors:
            first, *others = self.errors
            error = {"code": ConfigInvalid.code, "message": first, "others": others}
            page["error"] = error | {"hint": "Nothing was changed: the former one is in force."}
        return page


class _Next(Struct, frozen=True, eq=False):
    """What would be taken over."""

    read: Settings  # the file, as it is
    gateway: RunningGateway
    peers: list[Peer]
    keys: list[PinnedKey]
    callers: list[tuple[CallerHost, Secret | None]]
    marks: Marks
    changed: tuple[str, ...]
    needs_restart: tuple[str, ...]


class LoadAttempt:
    """One attempt to build what is new, which nobody may wait for any more."""

    def __init__(self) -> None:
        """Somebody waits."""
        self.is_given_up = False


class Reloading:
    """The gateway as it is configured at present, and how it becomes another."""

    def __init__(
        self,
        gateway: RunningGateway,
        *,
        file: Settings,
        read: Callable[[], Settings],
        clock: Clock,
        ids: Ids,
    ) -> None:
        """`file` is what was read at the start, and `read` reads it again."""
        self.gateway = gateway
        self.swap: Swap = lambda _: None  # gives requests to another; set by who serves
        self._at_start = self._file = file
        self._read = read
        self._clock = clock
        self._ids = ids
        self._threads = Threads(most=1)
        self._one_at_a_time = asyncio.Lock()
        self._waiting: asyncio.Task[Reloaded] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._former: dict[asyncio.Task[None], RunningGateway] = {}
        self._marks = self.marks()
        gateway.operations.reloading = self.page

    async def page(self) -> dict[str, Any]:
        """Read it again, for who asks over HTTP."""
        return (await self.reload()).page()

    def ask(self) -> None:
        """Read it again; the log tells what came of it."""
        self._begin()

    async def reload(self) -> Reloaded:
        """Read it again. Who leaves before it has ended changes nothing about it."""
        return await asyncio.shield(self._begin())

    def _begin(self) -> "asyncio.Task[Reloaded]":
        if self._waiting is None:
            self._waiting = self._keep(asyncio.get_running_loop().create_task(self._reload()))
        return self._waiting

    def _keep(self, task: "asyncio.Task[Reloaded]") -> "asyncio.Task[Reloaded]":
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _reload(self) -> Reloaded:
        async with self._one_at_a_time:
            self._waiting = None  # what is written from now on may not be seen
            try:
                found = await self._built()
                self._refuse_at_the_end()
            except ConfigInvalid as error:
                report = self._refused([each.safe_text for each in (error, *error.others)])
            except Exception as error:  # whatever it is, the former one stays
                logger.exception("the configuration cannot be taken over")
                report = self._refused([f"it cannot be taken over ({type(error).__name__})"])
            else:
                report = self._take(found)
        self.gateway.operations.last_reload = report.page()
        return report

    def _refuse_at_the_end(self) -> None:
        if self.gateway.operations.draining:
            raise ConfigInvalid(key=str(self._file.source), reason="the gateway is stopping")

    async def _built(self) -> _Next:
        self._refuse_at_the_end()
        attempt = LoadAttempt()
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                return await self._threads.run(self._build, attempt)
        except TimeoutError:
            attempt.is_given_up = True
            reason = f"its modules were not imported within {LOAD_SECONDS:g} s"
            raise ConfigInvalid(key=str(self._file.source), reason=reason) from None

    def _build(self, attempt: LoadAttempt) -> _Next:
        """What would be taken over; nothing that serves is touched."""
        read = self._read()
        settings = merged(self.gateway.settings, read)
        former, wrong = self.gateway, []
        with imported_anew(settings.base):
            try:
                peers, keys = file_peers(settings), file_keys(settings)
                callers = file_callers(settings)
            except ConfigInvalid as error:
                wrong, peers, keys, callers = [error], [], [], []
            try:
                gateway = build(settings, former.store, self._clock, self._ids, former=former)
            except ConfigInvalid as error:
                raise all_of([error, *error.others, *wrong]) from error
            if wrong:
                raise all_of(wrong)
            if attempt.is_given_up:
                raise TimeoutError
            differing = tuple(changed(self._file, read)), tuple(pending(self._at_start, read))
            return _Next(read, gateway, peers, keys, callers, self.marks(read), *differing)

    def _take(self, found: _Next) -> Reloaded:
        """Let the new stand in the place of the former: in this one step of the loop."""
        former, gateway = self.gateway, found.gateway
        files = self._moved(found.marks)
        gateway.operations.reloading = self.page
        self.swap(gateway)
        gateway.take_over(found.peers, found.keys, found.callers)
        self.gateway, self._file, self._marks = gateway, found.read, found.marks
        retiring = asyncio.get_running_loop().create_task(former.retire())
        self._former[retiring] = former
        retiring.add_done_callback(self._forget)
        report = self._report(
            applied=True,
            changed=found.changed,
            files=files,
            needs_restart=found.needs_restart,
        )
        logger.info("the configuration was read again", extra={"detail": summary(report)})
        if report.needs_restart:
            names = ", ".join(report.needs_restart)
            logger.warning("a restart is needed", extra={"detail": names})
        return report

    def _forget(self, retiring: "asyncio.Task[None]") -> None:
        del self._former[retiring]
        if not retiring.cancelled() and retiring.exception() is not None:
            logger.error("former agents did not end well", exc_info=retiring.exception())

    def _refused(self, errors: list[str]) -> Reloaded:
        report = self._report(applied=False, errors=tuple(errors))
        detail = {"detail": "; ".join(errors)}
        logger.error("the configuration is refused, and the former stays in force", extra=detail)
        return report

    def _report(self, **more: Any) -> Reloaded:
        return Reloaded(
            config=str(self._file.source),
            at=datetime.fromtimestamp(self._clock.wall_us() / 1e6, UTC).isoformat("T", "seconds"),
            agents=tuple(target.name for target in self.gateway.published.local()),
            **more,
        )

    def stop_admitting(self) -> None:
        """Take no new work, by those either that still answer what came before."""
        for former in self._former.values():
            former.stop_admitting()

    async def close(self) -> None:
        """Let go of what is left of former ones."""
        for task in list(self._tasks):
            task.cancel()
        for retiring, former in list(self._former.items()):
            retiring.cancel()
            await former.backend.agents.close()

    # --------------------------------------------------------------------------------- files

    def marks(self, settings: Settings | None = None) -> Marks:
        """The files that a configuration is made of, as they are now."""
        found: Marks = {}
        for path in set(_files(settings or self._file)):
            with contextlib.suppress(OSError):
                look = path.stat()
                found[path] = (look.st_mtime_ns, look.st_size, look.st_ino)
        return found

    def _moved(self, now: Marks) -> tuple[str, ...]:
        """The modules that are others than those in force."""
        base = self._file.base
        both = {path for path in (*now, *self._marks) if path.suffix == ".py"}
        moved = [path for path in both if now.get(path) != self._marks.get(path)]
        return tuple(sorted(str(path.relative_to(base)) for path in moved))

    async def watch(self) -> None:
        """Read it again whenever a file has changed and is at rest."""
        known = self._marks
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now = await asyncio.to_thread(self.marks)
            if now == known:
                continue
            await asyncio.sleep(WATCH_SECONDS)
            if await asyncio.to_thread(self.marks) == now:  # else somebody is writing
                await self.reload()
                # What has changed while it was read is seen by the next look.
                after = await asyncio.to_thread(self.marks)
                known = {path: now.get(path, mark) for path, mark in after.items()}


def _files(settings: Settings) -> Iterator[Path]:
    """carnet.toml, the modules beside it and those that were imported, and files of secrets."""
    base = settings.base
    yield settings.source
    yield from base.glob("*.py")
    yield from own_files(base)
    for agent in settings.agents.values():
        for ref in (agent.api_key, agent.token):
            if ref is not None and ref.file is not None:
                yield base / Path(ref.file).expanduser()
    for peer in settings.peers.values():
        if peer.token is not None and peer.token.file is not None:
            yield base / Path(peer.token.file).expanduser()


def summary(report: Reloaded) -> str:
    """What has changed, in one line."""
    return ", ".join((*report.changed, *report.files)) or "nothing in the files has changed"
