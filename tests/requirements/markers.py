"""Which tests may be left out of a run: those that are skipped or expected to fail, or may be.

Read from the text, so that a mark counts whatever it depends on: on the function, on its module,
behind a name, in a fixture that it asks for, or in a function that it calls.
"""

import ast
from functools import cache
from pathlib import Path

from tests.architecture.tree import ROOT, parsed

LEAVING_OUT = frozenset({"skip", "skipif", "xfail", "importorskip"})
_FROM_PYTEST = frozenset({"pytest", "mark"})


@cache
def left_out(path: Path) -> frozenset[str]:
    """The names of the tests of a file that may be left out."""
    return odd_tests(parsed(path), odd_names(path))


def odd_tests(tree: ast.Module, odd: frozenset[str]) -> frozenset[str]:
    """The tests that are odd, or all of them where the whole module is."""
    tests = frozenset(name for name in _functions(tree) if name.startswith("test_"))
    return tests if "pytestmark" in odd else tests & odd


@cache
def odd_names(path: Path) -> frozenset[str]:
    """The top-level names of a file that skip, or lead to something that does."""
    tree = parsed(path)
    known = _inherited(path) | _imported(tree)
    is_plain = not known and not any(word in path.read_text() for word in LEAVING_OUT)
    return frozenset() if is_plain else grown(tree, known)


def grown(tree: ast.Module, known: set[str]) -> frozenset[str]:
    """All odd names, from those that are known to be."""
    odd, defined = set(known), _functions(tree) | _values(tree)
    while more := {name for name in defined.keys() - odd if _leads(defined[name], odd)}:
        odd |= more
    return frozenset(odd)


def _functions(tree: ast.Module) -> dict[str, ast.AST]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name: node for node in tree.body if isinstance(node, kinds)}


def _values(tree: ast.Module) -> dict[str, ast.AST]:
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _inherited(path: Path) -> set[str]:
    """The odd fixtures of the conftest files above; plain modules have none."""
    if not path.name.startswith(("test_", "conftest")):
        return set()
    folders = [folder for folder in path.parents if folder.is_relative_to(ROOT / "tests")]
    files = [folder / "conftest.py" for folder in folders]
    return {name for file in files if file.exists() and file != path for name in odd_names(file)}


def _imported(tree: ast.Module) -> set[str]:
    """The odd names that come from other modules of the tests."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            file = ROOT / f"{(node.module or '').replace('.', '/')}.py"
            odd = odd_names(file) if file.exists() else frozenset()
            found |= {each.asname or each.name for each in node.names if each.name in odd}
    return found


def _leads(node: ast.AST, odd: set[str]) -> bool:
    """Whether it skips itself, or names or asks for something that does."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr in LEAVING_OUT and _is_pytest(part.value):
            return True
        if isinstance(part, ast.Name) and part.id in odd:
            return True
        if isinstance(part, ast.arg) and part.arg in odd:
            return True
    return False


def _is_pytest(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in _FROM_PYTEST
