"""The function behind a skill: which of its parameters is what, and how it is called.

A parameter that is named `visit`, or annotated as one, is given the visit. The other one is given
the input. Where there are several others, or the only one is no object (`name: str`), each is a
field of the input.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from carnet.runtime.skills.types import Free, Shape, shape_of
from carnet.runtime.visit.visit import Visit

VISIT = "visit"
EMPTY = inspect.Parameter.empty

# A function, a coroutine function, an asynchronous generator, a generator.
Kind = Literal["plain", "async", "stream", "plain stream"]

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class SkillFunction:
    """A user's function, and the shapes of what goes in and comes out.

    Raises TypeError for a function that cannot be one, in words for whoever wrote it.
    """

    def __init__(self, function: Callable[..., Any], given: Any, returned: Any) -> None:
        """`given` and `returned` are types or JSON Schemas; None takes them from annotations."""
        self.function = function
        self.kind = kind_of(function)
        hints = _hints(function, is_needed=given is None or returned is None)
        self._visit, others = _parameters(function, hints)
        self.input, self._read = _reading(function, others, hints, given)
        if returned is None and self.kind not in {"stream", "plain stream"}:
            returned = hints.get("return")
        self.output = shape_of(returned, returned=True)

    @property
    def takes_visit(self) -> bool:
        """Whether it wants to be given one."""
        return self._visit is not None

    def fields(self, payload: dict[str, Any]) -> dict[str, Any]:
        """What it is called with where there is no visit; SchemaInvalid as below."""
        return self._read(payload)

    def check(self, payload: dict[str, Any]) -> None:
        """Refuse a payload that the function could not be called with: SchemaInvalid."""
        self._read(payload)

    def arguments(self, visit: Visit, payload: dict[str, Any]) -> dict[str, Any]:
        """What the function is called with. Raises SchemaInvalid for what does not convert."""
        arguments = self._read(payload)
        if self._visit is not None:
            arguments[self._visit] = visit
        return arguments


def kind_of(function: Callable[..., Any]) -> Kind:
    """How a function is called: the plain ones in a thread."""
    if inspect.isasyncgenfunction(function):
        return "stream"
    if inspect.iscoroutinefunction(function):
        return "async"
    if inspect.isgeneratorfunction(function):
        return "plain stream"
    return "plain"


def _hints(function: Callable[..., Any], *, is_needed: bool) -> dict[str, Any]:
    """Its annotations, resolved where that is possible or necessary."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:  # noqa: BLE001  an annotation is code, and may raise anything
        if is_needed:
            reason = f"the annotations of {_name(function)} cannot be read: {error}"
            raise TypeError(f"{reason}; give input= and output=") from None
    return dict(getattr(function, "__annotations__", {}))


def _parameters(
    function: Callable[..., Any], hints: Mapping[str, Any]
) -> tuple[str | None, list[inspect.Parameter]]:
    """The parameter for the visit, and the others."""
    visit, others = None, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _BY_NAME:
            raise TypeError(f"{_name(function)} must name its parameters: no '/', no '*'")
        if parameter.name == VISIT or _is_visit(hints.get(parameter.name)):
            visit = parameter.name
        else:
            others.append(parameter)
    return visit, others


def _is_visit(annotation: Any) -> bool:
    if isinstance(annotation, str):  # one that could not be resolved, and did not need to be
        return annotation.rpartition(".")[2] == Visit.__name__
    return annotation is Visit


Reading = Callable[[dict[str, Any]], dict[str, Any]]


def _reading(
    function: Callable[..., Any],
    others: list[inspect.Parameter],
    hints: Mapping[str, Any],
    given: Any,
) -> tuple[Shape, Reading]:
    """The shape of the input, and how its payload becomes arguments."""
    if not others:
        return _object(function, given), lambda _: {}
    only, annotation = others[0].name, hints.get(others[0].name)
    is_typed = given is not None and not isinstance(given, dict)
    if len(others) == 1 and (is_typed or _takes_object(annotation)):
        shape = _object(function, annotation if given is None else given)
        # A JSON Schema says what may come in; what becomes of it is the function's business.
        is_read_otherwise = isinstance(given, dict) and not isinstance(annotation, str)
        reader = shape_of(annotation) if is_read_otherwise else shape
        return shape, lambda payload: {only: reader.read(payload)}
    if is_typed:
        raise TypeError(f"{_name(function)} takes several inputs; give it one for {given!r}")
    fields = shape_of(_fields(function, others, hints))
    shape = fields if given is None else Free(given)
    return shape, lambda payload: msgspec.structs.asdict(fields.read(payload))


def _object(function: Callable[..., Any], given: Any) -> Shape:
    shape = shape_of(given)
    if shape.is_wrapped:
        raise TypeError(f"the input of {_name(function)} is no object: {given!r}")
    return shape


def _takes_object(annotation: Any) -> bool:
    """Whether the whole input is meant: an object of some kind, or whatever comes."""
    return isinstance(annotation, str) or not shape_of(annotation).is_wrapped


def _fields(
    function: Callable[..., Any], parameters: list[inspect.Parameter], hints: Mapping[str, Any]
) -> type[msgspec.Struct]:
    """A Struct whose fields are the parameters."""
    fields: list[Any] = [
        (name, hints.get(name, Any))
        if parameter.default is EMPTY
        else (name, hints.get(name, Any), _default(parameter.default))
        for name, parameter in ((parameter.name, parameter) for parameter in parameters)
    ]
    return msgspec.defstruct(getattr(function, "__name__", "Input"), fields, kw_only=True)


def _default(value: Any) -> Any:
    """A default as a Struct takes it: one that can be changed is made anew each time."""
    if isinstance(value, list | dict | set):
        return msgspec.field(default_factory=value.copy)
    return value


def _name(function: object) -> str:
    return f"'{getattr(function, '__name__', function)}'"
