"""Files, functions and constructors stay small enough to be read at one sitting."""

import ast

from tests.architecture.tree import name_of, package_modules, parsed

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_ARGUMENTS = 8  # of a constructor; a value (a Struct) has fields and no constructor of its own

# What may be longer, by name, with the reason: {"src/carnet/wire/x.py": "one table, ..."} and
# {"src/carnet/wire/x.py:read": "..."}.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}


def long_files() -> dict[str, int]:
    sizes = {name_of(path): len(path.read_bytes().splitlines()) for path in package_modules()}
    return {name: lines for name, lines in sizes.items() if lines > MAX_FILE_LINES}


def long_functions() -> dict[str, int]:
    found: dict[str, int] = {}
    for path in package_modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    found[f"{name_of(path)}:{node.name}"] = lines
    return found


def wide_constructors() -> dict[str, int]:
    found: dict[str, int] = {}
    for path in package_modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                for made in node.body:
                    if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                        given = made.args
                        named = [*given.posonlyargs, *given.args, *given.kwonlyargs][1:]
                        found[f"{name_of(path)}:{node.name}"] = len(named)
    return {name: n for name, n in found.items() if n > MAX_ARGUMENTS}


def test_no_file_is_longer_than_the_limit_unless_it_is_listed_with_a_reason() -> None:
    assert {name: n for name, n in long_files().items() if name not in LONG_FILES} == {}


def test_no_function_is_longer_than_the_limit_unless_it_is_listed_with_a_reason() -> None:
    assert {name: n for name, n in long_functions().items() if name not in LONG_FUNCTIONS} == {}


def test_no_constructor_takes_more_arguments_than_the_limit() -> None:
    assert wide_constructors() == {}


def test_an_exception_leaves_the_list_when_it_is_no_longer_needed() -> None:
    assert LONG_FILES.keys() <= long_files().keys()
    assert LONG_FUNCTIONS.keys() <= long_functions().keys()
