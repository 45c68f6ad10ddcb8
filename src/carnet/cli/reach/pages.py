"""Pages of what happened: from the gateway if it answers, else from the store beside it.

Law. Both give the same page; whoever asks does not see the difference.
"""

import asyncio
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from carnet.cli.invocation import Invocation
from carnet.cli.reach import gateway
from carnet.errors import RunNotFound, Unreachable
from carnet.runtime.system import SystemClock

if TYPE_CHECKING:
    from carnet.config import Settings
    from carnet.ports.world.http_client import HttpClient
    from carnet.stores.open import Store

RENEW_SECONDS: Final = gateway.OPERATOR_SECONDS * 0.8
DEFAULT_LINES: Final = 50
GROUNDS: Final = "/grounds"  # why a run was admitted


def read_page(invocation: Invocation, path: str) -> dict[str, Any]:
    """One page, such as `/runs?limit=20` or `/runs/ID`."""

    async def read() -> dict[str, Any]:
        async with Pages(invocation) as pages:
            return await pages.read(path)

    return asyncio.run(read())


class Pages:
    """A reader of pages, for as long as it is entered."""

    def __init__(
        self,
        invocation: Invocation,
        token: str | None = None,
        by: gateway.Credential | None = None,
        *,
        was_there: bool = False,
    ) -> None:
        """`token` is the one to read with; by default one is found or made.

        `by` is a credential that was made a moment ago and lives as long as this. `was_there` is a
        gateway that has just answered: one elsewhere that does not now is asked all the same.
        """
        self._invocation = invocation
        self._token = token
        self._was_there = was_there
        self._stack = AsyncExitStack()
        self._place = gateway.Place("", is_ours=False)  # until it is entered
        self._http: HttpClient | None = None
        self._store: Store | None = None
        self._by = by
        self._until = 0.0 if by is None else SystemClock().monotonic() + RENEW_SECONDS

    async def __aenter__(self) -> "Pages":
        """Find out who answers."""
        try:
            http = await self._stack.enter_async_context(gateway.open_http())
            self._place = await gateway.find_place(self._invocation, http)
            is_expected = self._was_there and _is_named()
            if is_expected or await gateway.is_answering(http, self._place):
                self._http = http
            else:
                self._store = await self._open_store()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """End what was opened."""
        await self._stack.aclose()

    async def _open_store(self) -> "Store":
        from carnet.assembly.store import opened

        if _is_named():  # another gateway's runs are not in our store
            raise Unreachable(url=self._place.url)
        return await self._stack.enter_async_context(opened(self._invocation.settings))

    @property
    def is_stored(self) -> bool:
        """Whether it reads the store, because no gateway answers."""
        return self._http is None

    async def find_again(self) -> None:
        """Find out where the gateway is now: one that was started again may listen elsewhere."""
        if self._http is not None:
            self._place = await gateway.find_place(self._invocation, self._http)

    async def read(self, path: str) -> dict[str, Any]:
        """One page."""
        if self._http is None:
            return await self._from_store(path)
        by = await self._credential()
        request = gateway.request_to(self._place, "GET", path, by)
        async with gateway.sending(self._http, request, token_is_new=by.is_new) as answer:
            return gateway.decode(await answer.read())

    async def _credential(self) -> gateway.Credential:
        """The credential; one made here is made anew before it ends."""
        now = SystemClock().monotonic()
        if self._by is None or (self._by.is_new and now >= self._until):
            self._until = now + RENEW_SECONDS
            self._by = await self._stack.enter_async_context(
                gateway.credential(self._invocation, self._place, self._token)
            )
        return self._by

    async def _from_store(self, path: str) -> dict[str, Any]:
        from carnet.assembly.stamps import depth_limits
        from carnet.gateway import pages
        from carnet.gateway.runs import read_filter
        from carnet.wire.grammar.query import read_flag, read_number, read_query

        settings, store = self._invocation.settings, self._store
        assert store is not None  # noqa: S101  one of the two was opened
        currency = settings.ledger.currency
        parts = urlsplit(path)
        if parts.path.startswith("/tasks"):
            return await _stored_tasks(settings, store, path)
        name = parts.path.removeprefix("/runs").removeprefix("/")
        run = unquote(name.removesuffix(GROUNDS))
        if not run:
            query = read_query(parts.query)
            return await pages.runs_page(
                store.records,
                reader=None,
                limit=read_number(query, "limit", DEFAULT_LINES),
                before=read_number(query, "before", 0) or None,
                currency=currency,
                matching=read_filter(query),
            )
        limit = depth_limits(settings).default + 1
        if name.endswith(GROUNDS):
            page = await pages.grounds_page(store.records, run)
        else:
            full = read_flag(read_query(parts.query), "full")
            page = await pages.run_page(
                store.records, run, reader=None, currency=currency, limit=limit, full=full
            )
        if page is None:
            raise RunNotFound
        return page


def _is_named() -> bool:
    """Whether the gateway is one that the environment names."""
    return bool(os.environ.get("CARNET_URL"))


async def _stored_tasks(settings: "Settings", store: "Store", path: str) -> dict[str, Any]:
    """The list of tasks, or one of them, as the gateway would show it to its operator."""
    from carnet.gateway import pages
    from carnet.gateway.tasks import TaskRecords
    from carnet.guards.readers import Readers

    hours = settings.retention.task_hours
    records = TaskRecords(store.tasks, store.turns, SystemClock(), Readers(), kept_hours=hours)
    parts = urlsplit(path)
    task = unquote(parts.path.removeprefix("/tasks").removeprefix("/"))
    if task:
        found = await records.find(task)
        return pages.task_page(found, await records.events(found), settings.ledger.currency)
    asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
    limit, before = int(asked.get("limit", DEFAULT_LINES)), int(asked.get("before", 0)) or None
    chosen = {name: asked.get(name) for name in ("state", "agent")}
    tasks, following = await records.newest(reader=None, limit=limit, before=before, **chosen)
    return {"tasks": [pages.task_line(found) for found in tasks], "next": following}
