"""What a refusal means for the words that were typed: the gateway knows the call, not the command.

Law. What happened is told as it was told to us; only the next step is our own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from carnet.cli.failures import GatewaySaid, error_object
from carnet.cli.reach.request import Asked
from carnet.errors import PeerRefused, SchemaInvalid

MOST_SHOWN: Final = 40  # characters of what was typed


@contextmanager
def explained(asked: Asked) -> Iterator[None]:
    """Give a refusal within the next step that can be typed, where there is one."""
    try:
        yield
    except GatewaySaid as error:
        raise GatewaySaid(_advised(asked, error.said), error.status) from error
    except (SchemaInvalid, PeerRefused) as error:
        said = _advised(asked, error_object(error))
        raise GatewaySaid(said, error.status) from error


def _advised(asked: Asked, said: dict[str, Any]) -> dict[str, Any]:
    hint = _hint(asked, str(said.get("peer_field") or said.get("field") or ""))
    is_about_field = _reads_schema(said)
    return {**said, "hint": hint} if hint and is_about_field else said


def _reads_schema(said: dict[str, Any]) -> bool:
    told = {said.get("code"), said.get("peer_reason"), said.get("peer_code")}
    return bool(told & {SchemaInvalid.code, "SCHEMA_INVALID"})


def _hint(asked: Asked, field: str) -> str | None:
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
    told = value if len(value) <= MOST_SHOWN else "JSON"
    return f"{name}={told} is text; for a number, true or a list write {name}:={told}"


def _as_json(text: str) -> object:
    """What a text is as JSON; the text itself if it is none."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
