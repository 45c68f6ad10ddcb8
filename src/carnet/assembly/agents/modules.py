"""The user's own modules: those that lie below the folder of carnet.toml, and how they come anew.

Law 1. Imported anew is all of them or none: where one cannot be imported, those that were there
       before are there again, and nothing of the attempt is left.
Law 2. What is imported anew comes from the source. Python's own copies of compiled modules are told
       apart by whole seconds, and an editor is faster.
Law 3. Ours are neither Carnet itself nor packages that are installed below the folder.
"""

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_CARNET: Final = Path(__file__).parents[2]


def is_own(file: Path, base: Path) -> bool:
    """Whether a file belongs to the user; an environment beside carnet.toml does not, nor do we.

    In a checkout Carnet itself lies below the folder of carnet.toml.
    """
    is_theirs = _INSTALLED & set(file.parts) or file.is_relative_to(_CARNET)
    return file.is_relative_to(base) and not is_theirs


def own_modules(base: Path) -> dict[str, ModuleType]:
    """The modules of the user that are imported, by name."""
    start = str(base) if base.is_absolute() else ""
    return {
        name: each for name, each in list(sys.modules.items()) if _is_own(name, each, base, start)
    }


def own_files(base: Path) -> set[Path]:
    """Where they lie."""
    return {Path(str(each.__file__)) for each in own_modules(base).values()}


def _is_own(name: str, module: ModuleType, base: Path, start: str) -> bool:
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        return False
    # Of a thousand modules a few are below the folder: a path of each is half of a start.
    if not file.startswith(start) and "/./" not in file and "//" not in file:
        return False
    return name != "__main__" and is_own(Path(file), base)


@contextmanager
def imported_anew(base: Path) -> Iterator[None]:
    """Have imports of the user's modules read their files again; who fails leaves all as it was."""
    former, path = own_modules(base), list(sys.path)
    for name in former:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    finder = _FromSource(base)
    sys.meta_path.insert(0, finder)
    try:
        yield
    except BaseException:
        for name in own_modules(base):
            sys.modules.pop(name, None)
        sys.modules.update(former)
        sys.path[:] = path
        raise
    finally:
        sys.meta_path.remove(finder)


class _FromSource:
    """Finds the user's modules, and has them compiled from what is written there now."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, if it is the user's; everybody else's are found as always."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or type(spec.loader) is not SourceFileLoader:
            return None
        if not is_own(Path(spec.origin), self._base):
            return None
        spec.loader = _SourceLoader(name, spec.origin)
        return spec


class _SourceLoader(SourceFileLoader):
    """Compiles a module, and keeps nothing of that."""

    def get_code(self, fullname: str) -> CodeType:
        del fullname
        return self.source_to_code(self.get_data(self.path), self.path)
