"""Who takes part in a conversation, as a configuration says it.

    participants = ["writer", { agent = "@critic@globex.example", timeout = 30, retries = 2 }]

Law. A participant is a name or an address, or a table with one and more: what is wrong is told with
     its place in the list.
"""

import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal

from msgspec import Struct

from carnet.config import readers as read
from carnet.config.readers import ValueReader, Wrong
from carnet.core.people.address import is_agent_uri, is_handle

MOST_PARTICIPANTS: Final = 64
MOST_TURNS: Final = 10_000
MOST_RETRIES: Final = 10
_EXPECTS: Final = 'a list of two or more agents, such as ["writer", "@critic@globex.example"]'
_LEAST: Final = 2


class ParticipantSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One who takes part, and how it is called."""

    agent: str  # a name of one here, or an address
    name: str = ""  # in the conversation; by default that of the agent
    timeout: float | None = None  # seconds of one attempt
    retries: int = 0
    on_failure: str = "halt"  # | "skip", or the agent that speaks for it
    auth: Literal["forward-user", "agent-owned"] | None = None  # who pays, where it may choose
    max_cost: int | None = None  # of one turn


_KEYS: Final[Mapping[str, ValueReader]] = {
    "agent": read.text(),
    "name": read.text(),
    "timeout": read.seconds(),
    "retries": read.whole(0, MOST_RETRIES),
    "on_failure": read.text(),
    "auth": read.one_of("forward-user", "agent-owned"),
    "max_cost": read.amount(),
}


def taking_part() -> ValueReader:
    """Agents by name or address, each alone or in a table that says more."""

    def given(value: Any) -> tuple[ParticipantSettings, ...]:
        if not isinstance(value, list) or not _LEAST <= len(value) <= MOST_PARTICIPANTS:
            raise Wrong(f"should be {_EXPECTS}")
        return tuple([_participant(each, place) for place, each in enumerate(value, 1)])

    def read_text(value: str) -> tuple[ParticipantSettings, ...]:
        try:
            return given(tomllib.loads(f"value = {value}")["value"])
        except tomllib.TOMLDecodeError:
            raise Wrong(f"should be {_EXPECTS}") from None

    return ValueReader(_EXPECTS, given, read_text)


def _participant(value: Any, place: int) -> ParticipantSettings:
    table = {"agent": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise Wrong(f"should be {_EXPECTS}; the one in place {place} names no 'agent'")
    for key in table:
        if key not in _KEYS:
            raise Wrong(f"has '{key}' in place {place}, which is no key: {_near(key, _KEYS)}")
    if "agent" not in table:
        raise Wrong(f"should be {_EXPECTS}; the one in place {place} names no 'agent'")
    found: dict[str, Any] = {}
    for key, each in table.items():
        try:
            found[key] = _KEYS[key].read(each)
        except Wrong as wrong:
            raise Wrong(f"has '{key}' in place {place}, which {wrong}") from None
    return ParticipantSettings(**found)


def _near(key: str, known: Iterable[str]) -> str:
    """The nearest key, or all of them, in a sentence."""
    names = list(known)
    near = get_close_matches(key, names, n=1)
    return f"did you mean '{near[0]}'?" if near else f"there are {', '.join(names)}"


def leads_elsewhere(agent: str) -> bool:
    """Whether this is an address, and no name of an agent here."""
    return is_handle(agent) or is_agent_uri(agent)


class ConversationSettings(Struct, frozen=True, kw_only=True):
    """A conversation in a file of its own."""

    participants: tuple[ParticipantSettings, ...]
    max_turns: int
    order: Literal["alternate", "round-robin"] | None = None
    max_spend: int | None = None
    deadline: float | None = None  # seconds, for all of it
    seed: str | None = None


_CONVERSATION: Final[Mapping[str, ValueReader]] = {
    "participants": taking_part(),
    "max_turns": read.whole(1, MOST_TURNS),
    "order": read.one_of("alternate", "round-robin"),
    "max_spend": read.amount(),
    "deadline": read.seconds(),
    "seed": read.text(),
}


def read_conversation(tree: Mapping[str, Any]) -> ConversationSettings:
    """What a file says; Wrong with the key of what cannot be used."""
    if "agents" in tree:
        raise Wrong("it is a configuration: call its agents with 'carnet call NAME'")
    for key in tree:
        if key not in _CONVERSATION:
            raise Wrong(f"'{key}' is no key of a conversation: {_near(key, _CONVERSATION)}")
    for key in ("participants", "max_turns"):
        if key not in tree:
            raise Wrong(f"a conversation needs '{key}'")
    found: dict[str, Any] = {}
    for key, value in tree.items():
        try:
            found[key] = _CONVERSATION[key].read(value)
        except Wrong as wrong:
            raise Wrong(f"'{key}' {wrong}") from None
    return ConversationSettings(**found)
