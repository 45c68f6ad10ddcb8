"""How a question is answered: the commands that can be typed, and what is wrong with an answer.

Law 1. What an agent has written is quoted for the shell and shown on one line.
Law 2. A token is never printed; a file that holds one is.
"""

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any, Final

from carnet.cli.invocation import in_line, to_json
from carnet.errors import UsageInvalid

Question = Mapping[str, Any]

MOST_OPTIONS: Final = 8  # that have a command of their own
MOST_LEVELS: Final = 3  # of an example
ANY_TEXT: Final = "..."
_EXAMPLES: Final[dict[str, Any]] = {
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}


def approvals(question: Question, token: str | None) -> list[str]:
    """The commands that give what is asked for."""
    command = f"carnet inbox approve {question['id']}"
    return [f"{command}{value}{as_whom(token)}" for value in _values(question)]


def denial(question: Question, token: str | None) -> str:
    """The command that refuses it."""
    return f"carnet inbox deny {question['id']}{as_whom(token)}"


def without(question: Question, token: str | None) -> list[str]:
    """The command that lets the others go on without whoever asks, where they can."""
    command = f"carnet inbox deny {question['id']} --value without{as_whom(token)}"
    return [command] if question.get("without") else []


def as_whom(token: str | None) -> str:
    """The option that says with which token."""
    if token is None:
        return ""
    return f" --as {quote(token) if token.startswith('@') else 'TOKEN'}"


def _values(question: Question) -> Iterator[str]:
    options, schema = question.get("options") or (), question.get("schema")
    budget = question.get("budget")
    if budget:  # as much as is asked for, or what is said
        yield ""
        yield f" --value {budget['more']}"
    elif options[MOST_OPTIONS:]:
        yield " --value OPTION"
    elif options:
        yield from (f" --value {in_line(quote(option))}" for option in options)
    elif schema:
        yield _typed(schema)
    else:
        yield ""
        if question.get("arguments"):
            yield f" --json {in_line(quote(to_json(question['arguments'])))}"


def _typed(schema: dict[str, Any]) -> str:
    found = example(schema)
    if isinstance(found, str):
        return f" --value {'TEXT' if found == ANY_TEXT else in_line(quote(found))}"
    return f" --json {in_line(quote(to_json(found)))}"


def example(schema: object, level: int = 0) -> Any:
    """Something of the shape that is asked for, to be changed."""
    if not isinstance(schema, dict) or level > MOST_LEVELS:
        return ANY_TEXT
    match schema:
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"properties": dict() as members}:
            return {name: example(each, level + 1) for name, each in members.items()}
        case {"type": str() as kind}:
            return _EXAMPLES.get(kind, ANY_TEXT)
    return ANY_TEXT


def check(question: Question, answer: Mapping[str, Any], token: str | None) -> None:
    """Refuse an answer that the gateway would refuse, and say what to type."""
    if question["status"] != "open" or answer["outcome"] != "accepted":
        return
    options, value = question.get("options") or [], answer.get("value")
    if options and value not in options:
        listed = in_line(", ".join(options))
        _refuse(f"It asks for one of: {listed}.", question, token)
    if question.get("schema") and value is None and not question.get("budget"):
        _refuse("It asks for a value.", question, token)
    if question["kind"] == "payment" and answer.get("remember") == {"ceiling": None}:
        raise UsageInvalid(
            reason="A rule for payments says how much they may cost in all.",
            fix="Give --up-to AMOUNT beside --remember.",
        )


def _refuse(reason: str, question: Question, token: str | None) -> None:
    raise UsageInvalid(reason=reason, fix=" or ".join(approvals(question, token)))
