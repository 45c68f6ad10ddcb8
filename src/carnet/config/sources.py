"""The two places a value can come from, the file and the environment, merged key by key.

Law 1. The environment wins over the file, and the file over the default.
Law 2. Whatever is asked for is remembered with its origin.
Law 3. A name that no section knows is refused with the nearest one that exists.
Law 4. What is wrong is gathered, and told at once in the order of the file.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from math import inf
from typing import Any, Final, Never, TypeVar, get_type_hints

from msgspec import Struct, structs

from carnet.config.lines import KeyPath, find_lines, line_of
from carnet.config.readers import ValueReader, Wrong
from carnet.config.settings import FAMILIES, SECTIONS
from carnet.errors import ConfigInvalid

S = TypeVar("S", bound=Struct)
T = TypeVar("T")

PREFIX: Final = "CARNET__"
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_NOT_IN_ENVIRONMENT: Final = re.compile(r"[^A-Z0-9]", re.ASCII)


def dotted(path: KeyPath) -> str:
    """A key as it is typed: `peers."globex.example".url`."""
    return ".".join(part if _BARE.fullmatch(part) else f'"{part}"' for part in path)


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that offers the nearest known name, or lists them if nothing is near."""
    known = list(known)
    close = get_close_matches(name, known, n=1)
    return f"Did you mean '{close[0]}'?" if close else f"Known here: {', '.join(known)}."


def readers_of(kind: type[Struct]) -> dict[str, ValueReader]:
    """The keys of a section and how each is read."""
    return {name: hint.__metadata__[0] for name, hint in _hints_of(kind).items()}


def docs_of(kind: type[Struct]) -> dict[str, str]:
    """The keys of a section and the sentence that explains each."""
    return {name: hint.__metadata__[1] for name, hint in _hints_of(kind).items()}


@cache  # to read them takes a millisecond, and a page asks for those of every value
def _hints_of(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


class _Noted(Exception):
    """What is wrong with a part was noted."""


def all_of(errors: Sequence[ConfigInvalid]) -> ConfigInvalid:
    """Several errors as one: the first, which knows the others."""
    first, *others = errors
    first.others = tuple(others)
    return first


class Sources:
    """The file and the environment of one load."""

    def __init__(self, tree: dict[str, Any], text: str, file: str, env: Mapping[str, str]) -> None:
        self.origins: dict[str, str] = {}
        self._paths: dict[str, KeyPath] = {}  # of keys that were refused
        self._tree = tree
        self._file = file
        self._lines = find_lines(text)
        self._wrong: dict[tuple[float, str], ConfigInvalid] = {}  # by line and key
        self._note_unknown((), tree, [*SECTIONS, *FAMILIES])
        self._env: dict[KeyPath, tuple[str, str]] = {}
        self._env = self.part(lambda: self._read_names(env)) or {}

    def part(self, read: Callable[[], T]) -> T | None:
        """What a function reads; None if it cannot be used, which is noted."""
        try:
            return read()
        except ConfigInvalid as error:
            self._note(error, ())
        except _Noted:
            pass
        return None

    def check(self) -> None:
        """Refuse everything that was found to be wrong, in the order of the file."""
        if self._wrong:
            raise all_of([self._wrong[place] for place in sorted(self._wrong)])

    def _note(self, error: ConfigInvalid, path: KeyPath) -> None:
        line = line_of(self._lines, path) or self._line_in(error)
        self._wrong.setdefault((line, str(error.facts["key"])), error)

    def _line_in(self, error: ConfigInvalid) -> float:
        """Where an error stands that was raised; what is not of the file comes last."""
        path = self._paths.get(str(error.facts["key"]), ())
        return line_of(self._lines, path) or inf

    def names(self, family: str) -> list[str]:
        """The names under `[agents]` or `[peers]`, as the file has them."""
        return list(self._table((family,)))

    def section(
        self, kind: type[S], path: KeyPath, instead: Mapping[str, ValueReader] | None = None
    ) -> S:
        """One section, read and checked; `instead` are readers of some of its keys."""
        table = self._table(path)
        readers = {**readers_of(kind), **(instead or {})}
        known = len(self._wrong)
        self._note_unknown(path, table, readers)
        values = {}
        for name, reader in readers.items():
            key = (*path, name)
            self.origins[dotted(key)] = "default"
            if key in self._env:
                variable, text = self._env[key]
                self.origins[dotted(key)] = f"environment {variable}"
                values[name] = self.part(partial(self._read, key, reader.read_text, text))
            elif name in table:
                self.origins[dotted(key)] = self._place(key)
                values[name] = self.part(partial(self._read, key, reader.read, table[name]))
        self._note_missing(kind, path, values)
        if len(self._wrong) > known:
            raise _Noted
        return kind(**values)

    def override(self, path: KeyPath, text: str, variable: str, reader: ValueReader) -> Any:
        """A value that a variable with a name of its own has the last word on."""
        self.origins[dotted(path)] = f"environment {variable}"
        return self._read(path, reader.read_text, text)

    def refuse(self, path: KeyPath, reason: str) -> Never:
        """Refuse a key, saying where its value came from."""
        origin = self.origins.get(dotted(path)) or self._place(path)
        self._paths[dotted(path)] = path
        raise ConfigInvalid(key=dotted(path), reason=f"{reason} ({origin}).")

    def _read(self, key: KeyPath, read: Any, value: Any) -> Any:
        try:
            return read(value)
        except Wrong as wrong:
            self.refuse(key, str(wrong))

    def _table(self, path: KeyPath) -> dict[str, Any]:
        table: Any = self._tree
        for depth, part in enumerate(path, 1):
            table = table.get(part, {})
            if not isinstance(table, dict):
                self.refuse(path[:depth], f"should be a section, [{dotted(path[:depth])}]")
        return table  # type: ignore[no-any-return]  # the tree of tomllib is untyped

    def _place(self, path: KeyPath) -> str:
        line = line_of(self._lines, path)
        return f"{self._file}:{line}" if line else self._file

    def _note_unknown(self, path: KeyPath, table: Mapping[str, Any], known: Iterable[str]) -> None:
        for name in table.keys() - set(known):
            key = (*path, name)
            what = "key" if path else "section"
            reason = f"is no known {what} ({self._place(key)}). {nearest(name, known)}"
            self._note(ConfigInvalid(key=dotted(key), reason=reason), key)

    def _note_missing(self, kind: type[Struct], path: KeyPath, values: Mapping[str, Any]) -> None:
        for field in structs.fields(kind):
            if field.required and field.name not in values:
                key = dotted((*path, field.name))
                reason = f"is needed and is not set ({self._place(path)})."
                self._note(ConfigInvalid(key=key, reason=reason), path)

    def _read_names(self, env: Mapping[str, str]) -> dict[KeyPath, tuple[str, str]]:
        known = {_variable(path): path for path in self._settable()}
        found = {}
        for variable in sorted(name for name in env if name.startswith(PREFIX)):
            path = known.get(variable)
            if path is None:
                hint = nearest(variable, known) if known else ""
                if hint.startswith("Known"):
                    hint = f"Sections: {', '.join([*SECTIONS, *FAMILIES])}."
                reason = f"this environment variable sets no known key. {hint}"
                self._note(ConfigInvalid(key=variable, reason=reason), ())
                continue
            found[path] = (variable, env[variable])
        return found

    def _settable(self) -> Iterable[KeyPath]:
        for section, kind in SECTIONS.items():
            yield from ((section, key) for key in readers_of(kind))
        for family, kind in FAMILIES.items():
            for name in self.names(family):
                yield from ((family, name, key) for key in readers_of(kind))


def _variable(path: KeyPath) -> str:
    return PREFIX + "__".join(_NOT_IN_ENVIRONMENT.sub("_", part.upper()) for part in path)
