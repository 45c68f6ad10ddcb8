"""What a refusal means for the words that were typed: the gateway knows the call, not the command.

Law. What happened is told as it was told to us; only the next step is our own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from carnet.cli.call.answers import approvals, denial
from carnet.cli.failures import GatewayError, error_object
from carnet.cli.reach.request import CallOptions
from carnet.errors import PeerRefused, SchemaInvalid

MOST_SHOWN: Final = 40  # characters of what was typed


@contextmanager
def explained(asked: CallOptions) -> Iterator[None]:
    """Give a refusal within the next step that can be typed, where there is one."""
    try:
        yield
    except GatewayError as error:
        raise GatewayError(_advised(asked, error.facts), error.status) from error
    except (SchemaInvalid, PeerRefused) as error:
        facts = _advised(asked, error_object(error))
        raise GatewayError(facts, error.status) from error


def _advised(asked: CallOptions, facts: dict[str, Any]) -> dict[str, Any]:
    question = facts.get("interrupt")
    if isinstance(question, dict) and question.get("id"):
        return {**facts, "hint": answer_advice(question, asked.token)}
    hint = _hint(asked, str(facts.get("peer_field") or facts.get("field") or ""))
    codes = {facts.get("code"), facts.get("peer_reason"), facts.get("peer_code")}
    is_about_field = bool(codes & {SchemaInvalid.code, "SCHEMA_INVALID"})
    return {**facts, "hint": hint} if hint and is_about_field else facts


def answer_advice(question: dict[str, Any], token: str | None) -> str:
    """What is asked for, and the commands that answer it."""
    amount = question.get("amount")
    money = f" ({amount} {question.get('currency') or ''})" if amount else ""
    options = question.get("options") or []
    others = f" (or another of: {', '.join(options[1:])})" if options[1:] else ""
    asked = f"{question.get('message')}{money}"
    stop = "" if asked.endswith((".", "?", "!")) else "."
    return (
        f"{question.get('origin')} asks: {asked}{stop}"
        f" Answer it: {approvals(question, token)[0]}{others}, or {denial(question, token)}."
    )


def _hint(asked: CallOptions, field: str) -> str | None:
    """What to type instead, for a field that is refused."""
    if field == "mode" and asked.task:
        return (
            "The skill cannot be a task: leave out --task and --callback. The modes of its skills: "
            f"carnet agents inspect {asked.address}"
        )
    name = field.partition(".")[0].partition("[")[0]
    value = asked.payload.get(name)
    if not isinstance(value, str) or isinstance(_as_json(value), str):
        return None
    shown = value if len(value) <= MOST_SHOWN else "JSON"
    return f"{name}={shown} is text; for a number, true or a list write {name}:={shown}"


def _as_json(text: str) -> object:
    """What a text is as JSON; the text itself if it is none."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
