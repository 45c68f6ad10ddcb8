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
import os
import stat
from collections.abc import Awaitable, Callable
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Final

from msgspec import Struct

from carnet.config import Settings
from carnet.config.changes import changed, is_reloadable, pending
from carnet.config.lines import KeyPath
from carnet.config.readers import ValueReader, Wrong
from carnet.config.sections.edit import EditRefused, edited, read_written
from carnet.config.settings import FAMILIES, SECTIONS
from carnet.config.sources import docs_of, dotted, readers_of
from carnet.core.people.identity import Caller
from carnet.errors import ConfigInvalid, InvalidRequest, PermissionMissing, RouteNotFound
from carnet.faults import point
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.wire.grammar import json

logger = logging.getLogger("carnet.reload")

Page = dict[str, Any]
Reload = Callable[[], Awaitable[Page]]

SEES: Final = "admin:config"
APPLIES: Final = "admin:reload"
MOST_BYTES: Final = 64 * 1024
MOST_FILE: Final = 1024 * 1024
_SECRET: Final = "a reference, "  # noqa: S105  what a reader of secrets expects
_DRAFT: Final = ".draft"


class Proposal(Struct, frozen=True, kw_only=True):
    """A change, as far as it was found to be possible."""

    path: KeyPath
    before: str
    after: str
    digest: str  # of the file as it is
    now: Settings | None  # what the file says as it is; None: it cannot be used
    read: Settings | None  # and with the change
    errors: tuple[str, ...] = ()


class ConfigurationChanges:
    """The file of one gateway, and how a value of it becomes another."""

    def __init__(
        self,
        settings: Settings,
        load: Callable[[Path], Settings],
        reload: Callable[[], Reload | None],
    ) -> None:
        """`load` reads a file as `carnet config check` does; `reload` takes it over."""
        self._settings = settings
        self._load = load
        self._reload = reload
        self._one_at_a_time = asyncio.Lock()

    async def preview(self, exchange: Exchange, caller: Caller) -> None:
        """POST /-/config/preview: what a change would be, without making it."""
        asked = await self._asked(exchange, caller)
        proposal = await asyncio.to_thread(self._proposed, asked)
        await reply_json(exchange, self._page(proposal))

    async def apply(self, exchange: Exchange, caller: Caller) -> None:
        """POST /-/config: make it, over the file whose digest is brought along."""
        asked = await self._asked(exchange, caller)
        reload = self._reload()
        if reload is None:
            raise RouteNotFound
        async with self._one_at_a_time:
            proposal = await asyncio.to_thread(self._proposed, asked)
            if asked.get("digest") != proposal.digest:
                raise InvalidRequest("digest", "is of another file: it was changed meanwhile")
            if proposal.errors:
                raise InvalidRequest("value", proposal.errors[0])
            await asyncio.to_thread(self._write, proposal.after)
            report = await reload()
            if not report["applied"]:
                await asyncio.to_thread(self._put_back, proposal)
        state = "applied" if report["applied"] else "refused"
        key = dotted(proposal.path)
        extra = {"actor": caller.actor.name, "detail": key, "state": state}
        logger.warning("a setting was changed over HTTP", extra=extra)
        await reply_json(exchange, {**report, "key": key}, 200 if report["applied"] else 409)

    # ------------------------------------------------------------------ what is asked

    async def _asked(self, exchange: Exchange, caller: Caller) -> Page:
        if not caller.may(SEES):
            raise PermissionMissing(permission=SEES)
        check_json_body(exchange.headers)
        return json.read_object(await exchange.read(MOST_BYTES))

    def _proposed(self, asked: Page) -> Proposal:
        path, reader = self._key(asked.get("section"), asked.get("key"))
        text = asked.get("value")
        if text is not None and not isinstance(text, str):
            raise InvalidRequest("value", "must be text, or null to take it out")
        before = self._text()
        digest = sha256(before.encode()).hexdigest()
        errors: tuple[str, ...] = ()
        after = before
        try:
            after = edited(before, path, None if text is None else read_written(text, reader))
        except (EditRefused, Wrong) as error:
            errors = (f"{dotted(path)} {error}",)
        now, _ = self._checked(before)
        read, wrong = (None, errors) if errors else self._checked(after)
        return Proposal(
            path=path,
            before=before,
            after=after,
            digest=digest,
            now=now,
            read=read,
            errors=wrong,
        )

    def _key(self, section: object, key: object) -> tuple[KeyPath, ValueReader]:
        for path, kind in self._sections():
            if dotted(path) == section and isinstance(key, str) and key in docs_of(kind):
                reader = readers_of(kind)[key]
                if reader.expects.startswith(_SECRET):
                    raise InvalidRequest("key", "is that of a secret: it is set in the file alone")
                return (*path, key), reader
        raise InvalidRequest("key", "is none of this configuration")

    def _sections(self) -> list[tuple[KeyPath, type[Struct]]]:
        found: list[tuple[KeyPath, type[Struct]]] = [
            ((name,), kind) for name, kind in SECTIONS.items()
        ]
        for family in FAMILIES:
            members = getattr(self._settings, family)
            found += [((family, name), type(member)) for name, member in members.items()]
        return found

    # ------------------------------------------------------------------ the file

    @property
    def _file(self) -> Path:
        if self._settings.source is None:
            raise RouteNotFound
        return self._settings.source

    def _text(self) -> str:
        try:
            data = self._file.read_bytes()
        except OSError:
            raise InvalidRequest("file", "cannot be read") from None
        if len(data) > MOST_FILE:
            raise InvalidRequest("file", "is larger than is changed here")
        return data.decode("utf-8", "replace")

    def _draft(self, text: str) -> Path:
        """A file beside it that holds a text."""
        name = self._file.name
        number, path = mkstemp(dir=self._file.parent, prefix=f".{name}.", suffix=_DRAFT)
        with os.fdopen(number, "w") as out:
            out.write(text)
            out.flush()
            os.fsync(number)
        return Path(path)

    def _checked(self, text: str) -> tuple[Settings | None, tuple[str, ...]]:
        """The settings that a text gives, or why it gives none."""
        try:
            draft = self._draft(text)
        except OSError:
            raise InvalidRequest("file", "cannot be written: its folder is read-only") from None
        try:
            return self._load(draft), ()
        except ConfigInvalid as error:
            found, name = (error, *error.others), self._file.name
            return None, tuple(each.safe_text.replace(draft.name, name) for each in found)
        finally:
            draft.unlink(missing_ok=True)

    def _write(self, text: str) -> None:
        """Replace the file in one step, with the mode that it has."""
        try:
            mode = self._file.stat().st_mode
            if not mode & stat.S_IWUSR:
                raise InvalidRequest("file", "is read-only")
            draft = self._draft(text)
            point("config.written")
            draft.chmod(stat.S_IMODE(mode))
            draft.replace(self._file)
        except OSError:
            raise InvalidRequest("file", "cannot be written") from None
        point("config.replaced")

    def _put_back(self, proposal: Proposal) -> None:
        """What stood there before, unless somebody has written another one since."""
        if self._text() == proposal.after:
            self._write(proposal.before)

    def _page(self, proposal: Proposal) -> Page:
        """What a change would be."""
        name, now, read = self._file.name, proposal.now, proposal.read
        diff = unified_diff(
            proposal.before.splitlines(), proposal.after.splitlines(), name, name, lineterm="", n=2
        )
        return {
            "key": dotted(proposal.path),
            "digest": proposal.digest,
            "diff": list(diff),
            "errors": list(proposal.errors),
            "changed": [] if read is None or now is None else changed(now, read),
            "needs_restart": [] if read is None or now is None else pending(now, read),
            "is_reloadable": is_reloadable(proposal.path[0], proposal.path[-1]),
            "overruled_by": self._overruled(proposal.path),
        }

    def _overruled(self, path: KeyPath) -> str | None:
        """What has the last word on a value, where that is not the file."""
        origin = self._settings.origins.get(dotted(path), "")
        return origin if origin.startswith(("environment", "option")) else None


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
        path="/-/config",
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
