"""The configuration file as operators change it, beside the other endpoints that they ask."""

import os
import stat
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Final

from msgspec import Struct

from carnet.config import Settings
from carnet.config.changes import changed, pending
from carnet.config.file import load
from carnet.config.lines import KeyPath
from carnet.config.readers import ValueReader, Wrong
from carnet.config.sections.edit import EditRefused, edited, read_written
from carnet.config.settings import FAMILIES, SECTIONS
from carnet.config.sources import docs_of, dotted, readers_of
from carnet.errors import ConfigInvalid, InvalidRequest
from carnet.faults import point
from carnet.gateway.configuration.changes import ROUTES as CHANGES
from carnet.gateway.configuration.changes import ConfigurationChanges, Proposal
from carnet.gateway.operations import ROUTES as OPERATIONS
from carnet.gateway.operations import Operations
from carnet.http.exchange import Row, offered

MOST_FILE: Final = 1024 * 1024
DRAFT: Final = ".draft"
_REFERENCE: Final = "a reference, "  # what a reader of secrets expects


def operation_rows(settings: Settings, operations: Operations) -> list[Row]:
    """The rows of what operators ask and change."""
    file = StoredConfiguration(settings, settings.source)
    changes = ConfigurationChanges(file, lambda: operations.reloading)
    return [*offered(OPERATIONS, operations), *offered(CHANGES, changes)]


class StoredConfiguration:
    """The file of one gateway: the port `ConfigurationFile`."""

    def __init__(self, settings: Settings, file: Path) -> None:
        """`settings` are in force; they tell what there is, and what has the last word."""
        self._settings = settings
        self._file = file

    def propose(self, section: object, key: object, value: str | None) -> Proposal:
        """What a change would be, read as `carnet config check` reads a file."""
        path, reader = self._key(section, key)
        before = self._text()
        after = before
        errors: tuple[str, ...] = ()
        try:
            after = edited(before, path, None if value is None else read_written(value, reader))
        except (EditRefused, Wrong) as error:
            errors = (f"{dotted(path)} {error}",)
        now, _ = self._checked(before)
        read, wrong = (None, errors) if errors else self._checked(after)
        diff = unified_diff(
            before.splitlines(),
            after.splitlines(),
            self._file.name,
            self._file.name,
            lineterm="",
            n=2,
        )
        page: dict[str, Any] = {"diff": list(diff), "overruled_by": self._overruled(path)}
        both = None if read is None or now is None else (now, read)
        page["changed"] = [] if both is None else changed(*both)
        page["needs_restart"] = [] if both is None else pending(*both)
        return Proposal(
            key=dotted(path),
            before=before,
            after=after,
            digest=sha256(before.encode()).hexdigest(),
            errors=wrong,
            page=page,
        )

    def write(self, text: str) -> None:
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

    def put_back(self, proposal: Proposal) -> None:
        """What stood there before, unless somebody has written another one since."""
        if self._text() == proposal.after:
            self.write(proposal.before)

    def _key(self, section: object, key: object) -> tuple[KeyPath, ValueReader]:
        for path, kind in self._sections():
            if dotted(path) == section and isinstance(key, str) and key in docs_of(kind):
                reader = readers_of(kind)[key]
                if reader.expects.startswith(_REFERENCE):
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
        number, path = mkstemp(dir=self._file.parent, prefix=f".{self._file.name}.", suffix=DRAFT)
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
            return load(draft, os.environ), ()
        except ConfigInvalid as error:
            found, name = (error, *error.others), self._file.name
            return None, tuple(each.safe_text.replace(draft.name, name) for each in found)
        finally:
            draft.unlink(missing_ok=True)

    def _overruled(self, path: KeyPath) -> str | None:
        """What has the last word on a value, where that is not the file."""
        origin = self._settings.origins.get(dotted(path), "")
        return origin if origin.startswith(("environment", "option")) else None
