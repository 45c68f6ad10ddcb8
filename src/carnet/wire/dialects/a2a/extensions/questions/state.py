"""What we must remember of a question in a foreign form to answer it in that form.

It takes the place of the secret state that an interrupt of a Carnet has: whoever called keeps it
sealed until there is an answer, and hands it back with it.

Law 1. `read_state(name, write_state(name, values)) == values`, or the state is empty: then the
       question is answered in plain words.
Law 2. A state that was not written so is None, never an error: other states are other agents'.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

from carnet.errors import InvalidJson
from carnet.wire.grammar import json

MOST_STATE: Final = 768  # with what a caller adds to it, it must stay within a state of ours


def write_state(name: str, values: list[Any]) -> str:
    """The state of a question; empty where it would be too long."""
    encoded = urlsafe_b64encode(json.write(values)).rstrip(b"=").decode()
    state = f"{name}.{encoded}"
    return state if len(state) <= MOST_STATE else ""


def read_state(name: str, state: str, *kinds: type) -> list[Any] | None:
    """What a state of this name holds, if it has these kinds of values in this order.

    A single kind stands for one value of it or more. None for every other state.
    """
    begin, _, encoded = state.partition(".")
    if begin != name or not encoded.isascii() or len(state) > MOST_STATE:
        return None
    try:
        values = json.read(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except (ValueError, InvalidJson):
        return None
    return values if isinstance(values, list) and _fits(values, kinds) else None


def _fits(values: list[Any], kinds: tuple[type, ...]) -> bool:
    if len(kinds) == 1:
        return bool(values) and all(type(value) is kinds[0] for value in values)
    return [type(value) for value in values] == list(kinds)
