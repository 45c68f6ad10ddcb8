"""Agents as their source shows them: read, and not run.

Whoever looks at a configuration, perhaps somebody else's, does not want to run it. So decorators,
names and parameters are read from the text.

Law 1. Nothing is imported and nothing is evaluated.
Law 2. What the text does not show is said (`unseen`), and not taken for a mistake.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from carnet.core.people.identity import CHAT
from carnet.errors import ConfigInvalid

MOST_BYTES: Final = 4 * 1024 * 1024
NO_PARAMETER: Final = (
    "'{target}' takes no parameter: write it as 'async def name(visit)' or 'def name(visit)'"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Maker = Literal["agent", "skill"]


class Sight(Struct, frozen=True):
    """What can be seen of an agent."""

    skills: tuple[str, ...] = ()  # by which it is asked
    functions: tuple[str, ...] = ()  # as they are written: `async echo(visit)`
    unseen: str = ""  # why there may be more


def look(target: str, base: Path, *, key: str) -> Sight:
    """Look at what `module:name` means; refuse what can be seen to be no agent."""
    module, _, name = target.partition(":")
    path = module_file(module, base)
    if path is None:
        return Sight(unseen=f"the module '{module}' is not in {base}")
    source = _Source(_parsed(path, module, key))
    try:
        return source.agent(name, module)
    except _Wrong as wrong:
        raise ConfigInvalid(key=key, reason=wrong.args[0]) from None


def module_file(module: str, base: Path) -> Path | None:
    """Where a module beside carnet.toml lies."""
    whole = base.joinpath(*module.split("."))
    found = (whole.with_name(f"{whole.name}.py"), whole / "__init__.py")
    return next((path for path in found if path.is_file()), None)


def _parsed(path: Path, module: str, key: str) -> ast.Module:
    try:
        data = path.read_bytes()
        if len(data) > MOST_BYTES:
            raise ConfigInvalid(key=key, reason=f"{path} is too large to be looked at")
        return ast.parse(data)
    except OSError as error:
        raise ConfigInvalid(key=key, reason=f"{path} cannot be read ({error.strerror})") from None
    except SyntaxError as error:
        reason = f"reading '{module}' failed in line {error.lineno} of {path.name}: {error.msg}"
        raise ConfigInvalid(key=key, reason=reason) from None
    except (ValueError, RecursionError, MemoryError):
        raise ConfigInvalid(key=key, reason=f"{path} is no Python that can be read") from None


class _Wrong(Exception):
    """What can be seen to be no agent."""


class _Source:
    """One module: what its names are bound to, as far as that is written down."""

    def __init__(self, tree: ast.Module) -> None:
        self._statements = list(_statements(tree.body))
        self._modules: set[str] = set()  # names of the package `carnet`
        self._makers: dict[str, Maker] = {}  # names of its `agent` and `skill`
        self._bound: dict[str, ast.stmt] = {}
        self._is_open = False  # names may come from elsewhere
        for statement in self._statements:
            self._bind(statement)

    def agent(self, name: str, module: str) -> Sight:
        """The agent of a name."""
        bound = self._bound.get(name)
        if bound is None:
            if self._is_open:
                return Sight(unseen=f"'{name}' may come from another module")
            raise _Wrong(f"the module '{module}' has no '{name}'")
        if isinstance(bound, Function):
            return self._function(bound, f"{module}:{name}")
        if isinstance(bound, ast.Assign) and self._made(bound.value) == "agent":
            return self._definition(name)
        return Sight(unseen=f"what '{name}' is shows when it runs")

    def _bind(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            is_ours = isinstance(statement, ast.ImportFrom) and statement.module == "carnet"
            for each in statement.names:
                self._import(each, is_ours=is_ours)
        for name in _bound_by(statement):
            self._bound[name] = statement
            self._is_open |= name in {"*", "__getattr__"}

    def _import(self, each: ast.alias, *, is_ours: bool) -> None:
        name = each.asname or each.name
        if is_ours and each.name in {"agent", "skill"}:
            self._makers[name] = "agent" if each.name == "agent" else "skill"
        elif each.name == "carnet":
            self._modules.add(name)

    def _made(self, value: ast.expr) -> Maker | None:
        """Which of ours a call is of: `carnet.agent(...)`, `skill(...)`."""
        match value:
            case ast.Call(func=ast.Name(id=name)):
                return self._makers.get(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="agent" | "skill" as a)):
                return ("agent" if a == "agent" else "skill") if name in self._modules else None
        return None

    def _function(self, function: Function, target: str) -> Sight:
        """The agent that a function is, by its decorator."""
        match function.decorator_list:
            case []:
                return _chat(function, target)
            case [decorator]:
                return self._decorated(function, decorator, target)
        return Sight(unseen=f"what the decorators of '{function.name}' make of it")

    def _decorated(self, function: Function, decorator: ast.expr, target: str) -> Sight:
        made, owner = self._made(decorator), _owner(decorator)
        if made is not None:
            skill = [(_id_of(decorator), function)]
            return _chat(function, target) if made == "agent" else _skills(skill)
        if owner is None or not self._is_agent(owner):
            return Sight(unseen=f"what the decorator of '{function.name}' makes of it")
        if isinstance(decorator, ast.Call):
            raise _Wrong(f"'{target}' is a skill of agent '{owner}': name the agent, not the skill")
        return self._definition(owner)

    def _is_agent(self, name: str) -> bool:
        bound = self._bound.get(name)
        return isinstance(bound, ast.Assign) and self._made(bound.value) == "agent"

    def _definition(self, owner: str) -> Sight:
        """The agent of a name, with all that is decorated with it."""
        found: list[tuple[str | None, Function]] = []
        for function in self._statements:
            for decorator in function.decorator_list if isinstance(function, Function) else ():
                if _owner(decorator) == owner and isinstance(function, Function):
                    is_skill = isinstance(decorator, ast.Call)
                    found.append((_id_of(decorator) if is_skill else CHAT.id, function))
        if not found:
            return Sight(unseen=f"what '{owner}' is given elsewhere")
        # A skill of that name stands for the chat; else the chat comes first.
        return _skills(sorted(found, key=lambda each: each[0] != CHAT.id))


def _owner(decorator: ast.expr) -> str | None:
    """The agent that a decorator may be of: `@writer`, `@writer.skill(...)`."""
    match decorator:
        case ast.Name(id=name):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="skill")):
            return name
    return None


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds."""
    match statement:
        case ast.Import(names=names):
            yield from (each.asname or each.name.partition(".")[0] for each in names)
        case ast.ImportFrom(names=names):
            yield from (each.asname or each.name for each in names)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            for target in targets:
                yield from _names(target)
        case ast.AnnAssign(target=target):
            yield from _names(target)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, and those under its conditions."""
    for each in body:
        yield each
        if isinstance(each, ast.If | ast.Try | ast.With):
            yield from _statements(each.body)
            yield from _statements(getattr(each, "orelse", []))
            for handler in getattr(each, "handlers", []):
                yield from _statements(handler.body)


def _names(target: ast.expr) -> Iterator[str]:
    return (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def _id_of(decorator: ast.expr) -> str | None:
    """The name that a decorator gives, if it is written there."""
    given = decorator.args[:1] if isinstance(decorator, ast.Call) else []
    match given:
        case [ast.Constant(value=str() as id)]:
            return id
    return None


def _chat(function: Function, target: str) -> Sight:
    if not (given := function.args).posonlyargs and not given.args and given.vararg is None:
        raise _Wrong(NO_PARAMETER.format(target=target))
    return _skills([(CHAT.id, function)])


def _skills(found: list[tuple[str | None, Function]]) -> Sight:
    nameless = [function.name for id, function in found if id is None]
    return Sight(
        skills=tuple(dict.fromkeys(id for id, _ in found if id is not None)),
        functions=tuple(_written(function) for _, function in found),
        unseen=f"the name of the skill '{nameless[0]}'" if nameless else "",
    )


def _written(function: Function) -> str:
    """A function as it is written, without what its parameters default to."""
    given = function.args
    named = [each.arg for each in (*given.posonlyargs, *given.args)]
    named += [f"*{given.vararg.arg}"] if given.vararg else []
    named += [each.arg for each in given.kwonlyargs]
    named += [f"**{given.kwarg.arg}"] if given.kwarg else []
    word = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    return f"{word}{function.name}({', '.join(named)})"
