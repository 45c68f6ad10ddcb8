"""Names and openings: what a reader meets first in every file."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import FOLDERS, ROOT, name_of, package_modules, parsed, python_files

# Words that say nothing. The house has names of its own: dialect, claim, guard, call, agent, event.
EMPTY_WORDS = {"manager", "service", "processor", "handler", "helper", "util", "common"}

# Words of our own, where the field has one: what was told is a reply, an output, an error.
PRIVATE_WORDS = {"told", "said", "heard", "crowd", "errand", "purse", "slip"}

# Class names that are defined twice, each with its reason.
DEFINED_TWICE = {
    "Address": "that of carnet.testing is public: a port that a test owns",
}

# Written with brackets so that this file does not say what it looks for.
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:home|Users|root|wor[k]|opt|mnt)/[\w.-]")
REGISTRY = re.compile(
    r"p[y]pi\.|pythonhoste[d]|n[p]mjs|^\s*--(?:(?:extra-)?index-url|find-links|trusted-host)\b"
)

# Files at the root that belong to the repository; the rest there is made by running it.
ROOT_FILES = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "Makefile", "pyproject.toml"),
    *(".gitignore", ".editorconfig", ".dockerignore", "Dockerfile", "compose.yaml"),
    *("packaging/carnet.service", "packaging/start.sh"),
)


def words(name: str) -> Iterator[str]:
    """The words of a snake_case or CamelCase name, in lower case and the singular."""
    for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name):
        yield word.lower().removesuffix("s")


def text_files() -> Iterator[tuple[Path, str]]:
    """Every file of the repository that is text."""
    inside = (p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*")) if p.is_file())
    for path in (*(ROOT / name for name in ROOT_FILES), *inside):
        if "__pycache__" in path.parts:
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            yield path, data.decode()


def test_every_module_opens_with_a_docstring() -> None:
    assert [name_of(path) for path in python_files() if not ast.get_docstring(parsed(path))] == []


def test_the_words_of_a_name_are_found_in_either_spelling() -> None:
    assert list(words("HTTPHandler")) == ["http", "handler"]
    assert list(words("string_utils")) == ["string", "util"]
    assert list(words("CommonServices")) == ["common", "service"]


def test_no_module_or_class_is_named_with_an_empty_word() -> None:
    empty: list[str] = []
    for path in package_modules():
        classes = [node.name for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef)]
        empty += [
            f"{name_of(path)}: {name}"
            for name in (path.stem, path.parent.name, *classes)
            if EMPTY_WORDS.intersection(words(name))
        ]
    assert empty == []


def identifiers(path: Path) -> Iterator[str]:
    """Every name that a file defines or uses, but the sentences that tests are called by."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield "" if name.startswith("test_") else name
            case _:
                pass


def test_no_identifier_has_a_word_of_our_own_where_the_field_has_one() -> None:
    private = {
        f"{name_of(path)}: {name}"
        for path in python_files()
        for name in identifiers(path)
        if PRIVATE_WORDS.intersection(words(name))
    }
    assert private == set()


def test_a_public_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = {}
    for path in package_modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name_of(path))
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert twice == {name: twice.get(name) for name in DEFINED_TWICE}
    assert len(DEFINED_TWICE) <= 3


def test_no_file_names_a_machine_or_a_package_registry() -> None:
    found = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path, text in text_files()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line) or REGISTRY.search(line)
    ]
    assert found == []
