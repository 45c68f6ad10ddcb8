"""Where the project's files are and what their syntax says, for the tests of this folder."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "carnet"

# The folders of the repository. Environments, caches and the data of a local gateway are not in it.
FOLDERS = ("src", "tests", "bench", "docs", "examples", "requirements", ".ci")


def name_of(path: Path) -> str:
    """The path from the root of the repository, as people write it."""
    return path.relative_to(ROOT).as_posix()


def package_modules() -> list[Path]:
    """Every module of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def python_files() -> list[Path]:
    """Every Python file of the repository."""
    return sorted(
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if "__pycache__" not in path.parts
    )


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(path.read_bytes(), filename=name_of(path))


def imports(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield (line, local name, dotted origin) of each import, late and type-only ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                head = alias.name.partition(".")[0]
                yield node.lineno, alias.asname or alias.name, alias.name
                if not alias.asname and head != alias.name:
                    yield node.lineno, head, head  # `import a.b` binds a
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, alias.asname or alias.name, f"{node.module}.{alias.name}"
