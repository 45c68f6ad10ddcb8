"""Changing a value of the configuration file, over HTTP: first shown, then done.

Law 1. What is proposed is read as the file itself is read, by the code of `carnet config check`,
       before anybody is shown it. What that refuses is told and goes no further.
Law 2. A change is written over the file that it was shown for and no other: the digest of that one
       is brought along. Who changes the file meanwhile is not overwritten.
Law 3. The file is replaced in one step, and taken over as by `carnet reload`. Where that refuses
       it, what stood there before is put back.
Law 4. A secret never stands in the file; where it is kept is not changed here.
Law 5. Who has changed what is told in the log, without the value.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from msgspec import Struct

from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest, PermissionMissing, RouteNotFound
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.wire.grammar import json

logger = logging.getLogger("carnet.reload")

Page = dict[str, Any]
Reload = Callable[[], Awaitable[Page]]

SEES: Final = "admin:config"
APPLIES: Final = "admin:settings"
MOST_BYTES: Final = 64 * 1024


class Proposal(Struct, frozen=True, kw_only=True):
    """A change, as far as it was found to be possible."""

    key: str  # as it is typed: `sessions.idle_hours`
    before: str  # the whole text
    after: str
    digest: str  # of the file as it is
    errors: tuple[str, ...] = ()
    page: Page = {}  # what else is told of it


class ConfigurationFile(Protocol):
    """The file of one gateway; all of it waits for a disk."""

    def propose(self, section: object, key: object, value: str | None) -> Proposal:
        """What a change would be."""

    def write(self, text: str) -> None:
        """Replace the file in one step."""

    def put_back(self, proposal: Proposal) -> None:
        """What stood there before, unless somebody has written another one since."""


class ConfigurationChanges:
    """Changes a value of it."""

    def __init__(self, file: ConfigurationFile, reload: Callable[[], Reload | None]) -> None:
        """`reload` takes over what the file says; None where nothing is read again."""
        self._file = file
        self._reload = reload
        self._one_at_a_time = asyncio.Lock()

    async def preview(self, exchange: Exchange, caller: Caller) -> None:
        """POST /-/config/preview: what a change would be, without making it."""
        proposal = await self._proposed(await _asked(exchange, caller))
        page = {"key": proposal.key, "digest": proposal.digest, "errors": list(proposal.errors)}
        await reply_json(exchange, page | proposal.page)

    async def apply(self, exchange: Exchange, caller: Caller) -> None:
        """POST /-/config/apply: make it, over the file whose digest is brought along."""
        asked = await _asked(exchange, caller)
        reload = self._reload()
        if reload is None:
            raise RouteNotFound
        async with self._one_at_a_time:
            proposal = await self._proposed(asked)
            if asked.get("digest") != proposal.digest:
                raise InvalidRequest("digest", "is of another file: it was changed meanwhile")
            if proposal.errors:
                raise InvalidRequest("value", proposal.errors[0])
            await asyncio.to_thread(self._file.write, proposal.after)
            report = await reload()
            if not report["applied"]:
                await asyncio.to_thread(self._file.put_back, proposal)
        state = "applied" if report["applied"] else "refused"
        extra = {"actor": caller.actor.name, "detail": proposal.key, "state": state}
        logger.warning("a setting was changed over HTTP", extra=extra)
        page = {**report, "key": proposal.key}
        await reply_json(exchange, page, 200 if report["applied"] else 409)

    async def _proposed(self, asked: Page) -> Proposal:
        value = asked.get("value")
        if value is not None and not isinstance(value, str):
            raise InvalidRequest("value", "must be text, or null to take it out")
        return await asyncio.to_thread(
            self._file.propose, asked.get("section"), asked.get("key"), value
        )


async def _asked(exchange: Exchange, caller: Caller) -> Page:
    if not caller.may(SEES):
        raise PermissionMissing(permission=SEES)
    check_json_body(exchange.headers)
    return json.read_object(await exchange.read(MOST_BYTES))


_BODY: Final[dict[str, Any]] = {
    "permission": APPLIES,
    "body": "ConfigurationChange",
    "answer": "Page",
}
ROUTES: Final = (
    Row(
        method="POST",
        path="/-/config/preview",
        endpoint=ConfigurationChanges.preview,
        summary="What changing a setting would be, without changing it",
        **_BODY,
    ),
    Row(
        method="POST",
        path="/-/config/apply",
        endpoint=ConfigurationChanges.apply,
        summary="Change a setting in the file, and take it over",
        also=((409, "Page"),),
        **_BODY,
    ),
)
SCHEMAS: Final[dict[str, Any]] = {
    "ConfigurationChange": {
        "type": "object",
        "required": ["section", "key", "value"],
        "properties": {
            "section": {"type": "string", "description": "As GET /-/config names it"},
            "key": {"type": "string"},
            "value": {"type": ["string", "null"], "description": "As TOML; null takes it out"},
            "digest": {"type": "string", "description": "Of the file that it was shown for"},
        },
    },
}
