"""Whose users may exchange an assertion of their platform for an access token of ours.

Mentionable OAuth federation 0.1: a connector is known by its name and key (`did:web`), and says for
whom of its platform it asks. What is exchanged is good for one agent, some minutes and some scopes.

Law 1. A rule names an issuer, the methods by which it knows its users, and who they are. What no
       rule admits is refused, before anything is fetched for it.
Law 2. A scope permits what it stands for, at one agent, and nothing else.
Law 3. Scopes of messages need a fresh word of the platform. Who goes on with a task it has begun
       may do no more than that, with that task alone.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from carnet.core.people.evidence import fits

URI: Final = "https://mentionable.dev/ns/oauth-federation/v0.1"
TOKEN_PATH: Final = "/oauth/token"  # noqa: S105  where tokens are given, and none
METADATA_PATH: Final = "/.well-known/oauth-authorization-server"

SEND: Final = "a2a:message.send"
STREAM: Final = "a2a:message.stream"
READ: Final = "a2a:task.read"
CANCEL: Final = "a2a:task.cancel"
RESUBSCRIBE: Final = "a2a:task.resubscribe"
PUSH_CONFIG: Final = "a2a:task.push-config"
MESSAGE_SCOPES: Final = (SEND, STREAM)
TASK_SCOPES: Final = (READ, CANCEL, RESUBSCRIBE, PUSH_CONFIG)
SCOPES: Final = (*MESSAGE_SCOPES, *TASK_SCOPES)

_PERMIT: Final = {
    READ: "run:read",
    RESUBSCRIBE: "run:read",
    PUSH_CONFIG: "run:read",
    CANCEL: "run:cancel",
}


class FederationRule(Struct, frozen=True, kw_only=True):
    """One connector, and which of its users are known here."""

    issuer: str
    methods: tuple[str, ...]
    subjects: tuple[str, ...]  # names, or the beginnings of such with a star
    agents: tuple[str, ...] = ()  # that they may call; none: all
    credit: int = 0  # what all of them may owe together, micro-units

    def admits(self, issuer: str, method: str | None, subject: str, agent: str) -> bool:
        """Whether it is for this user of this connector; without a method: known before."""
        return (
            issuer == self.issuer
            and (method is None or method in self.methods)
            and (not self.agents or agent in self.agents)
            and any(fits(each, subject) for each in self.subjects)
        )


def admitting(
    rules: Sequence[FederationRule], issuer: str, method: str | None, subject: str, agent: str
) -> FederationRule | None:
    """The first rule that admits somebody."""
    return next((each for each in rules if each.admits(issuer, method, subject, agent)), None)


_FOR: Final = {
    "subscribe": RESUBSCRIBE,
    "cancel": CANCEL,
    "callbacks": PUSH_CONFIG,
    "callback": PUSH_CONFIG,
    "add_callback": PUSH_CONFIG,
    "remove_callback": PUSH_CONFIG,
}


def scope_for(about: str) -> str:
    """The scope that a question about a task is for."""
    return _FOR.get(about, READ)


def lacks(scopes: frozenset[str], needed: str) -> bool:
    """Whether somebody whom scopes of the profile bind has not this one of them.

    Several stand for one permission of ours, which alone would let each do what the others are for.
    """
    return needed not in scopes and not scopes.isdisjoint(SCOPES)


def permissions_of(scopes: Iterable[str], agent: str, *, pays: bool) -> frozenset[str]:
    """What scopes permit at one agent, and the scopes themselves: they bind as well."""
    scopes = [each for each in scopes if each in SCOPES]
    found = set[str](scopes)
    for scope in scopes:
        if scope in MESSAGE_SCOPES:
            found |= {f"call:{agent}"} | ({"pay"} if pays else set())
        elif scope in _PERMIT:
            found.add(_PERMIT[scope])
    return frozenset(found)


def resource_of(public_url: str, agent: str) -> str:
    """What an agent is called where a token for it is asked for."""
    return f"{public_url.rstrip('/')}/agents/{agent}/a2a"
