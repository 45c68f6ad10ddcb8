"""A gate's surroundings for tests: two agents, two peers, some tokens."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from carnet.core.call import Ask, Call, Claim, Price
from carnet.core.chain.carnet import Mark
from carnet.core.messages.events import Done, Event, Message, Text
from carnet.core.people.identity import Secret
from carnet.errors import AgentNotFound
from carnet.guards.caller.authentication import KnownCaller
from carnet.guards.candidate import Candidate
from carnet.guards.target.target import KnownAgent, WithinChain
from carnet.ports.calls.agent import Target
from carnet.ports.trust.trust import NewToken, Peer
from carnet.testing.trust import MemoryPeers, MemoryTokens

NOW = 1_000_000
DOMAIN = "acme.example"
PLAIN = frozenset({"call:*", "call:remote", "pay", "run:read"})


async def answer(call: Call, /) -> AsyncIterator[Event]:
    yield Text(call.ask.text)
    yield Done()


def target(name: str, *, price: int = 0, **more: Any) -> Target:
    fields: dict[str, Any] = {
        "name": name,
        "speaker": name.removeprefix("@").partition("@")[0],
        "agent": answer,
        "credit": f"agent:{name}",
        "needs": f"call:{name}",
        "price": Price(per_call=price),
        **more,
    }
    return Target(**fields)


REMOTE: dict[str, Any] = {"is_remote": True, "needs": "call:remote", "credit": "peer:b.example"}


class Directory:
    """A Router over a few targets."""

    def __init__(self, *targets: Target) -> None:
        self._targets = {found.name: found for found in targets}
        self._default = next((found for found in targets if found.default), None)

    def find(self, name: str) -> Target:
        if not name and self._default is not None:
            return self._default
        if name not in self._targets:
            raise AgentNotFound
        return self._targets[name]

    def own(self, name: str) -> Target:
        return self.find(name)

    def local(self) -> Sequence[Target]:
        return list(self._targets.values())


def directory() -> Directory:
    return Directory(
        target("echo", reentry=True),  # it calls itself
        target("paid", price=200),
        target("shallow", last_depth=1),
        target("@critic@b.example", **REMOTE, takes_credential=True),
        target("@critic@c.example", **REMOTE),
        target("own", **REMOTE, auth_source="agent-owned"),
    )


def known_tokens() -> MemoryTokens:
    tokens = MemoryTokens()
    for text, new in {
        "ck_alice": NewToken(name="alice", scopes=PLAIN, spending_limit=1000),
        "ck_roaming": NewToken(name="roaming", scopes=PLAIN, forwardable=True),
        "ck_broke": NewToken(name="broke", scopes=frozenset({"call:*"})),
        "ck_old": NewToken(name="old", scopes=PLAIN, expires=1),
        "ck_narrow": NewToken(name="narrow", scopes=frozenset({"call:echo"})),
        "ck_b": NewToken(name="b", scopes=PLAIN, peer="b.example"),
        "ck_c": NewToken(name="c", scopes=PLAIN, peer="c.example"),
        "ck_listed": NewToken(name="listed", scopes=PLAIN, may_forward=True, spending_limit=50),
        "ck_fast": NewToken(name="fast", scopes=PLAIN, rate_calls=1),
    }.items():
        tokens.add(text, new)
    return tokens


def known_peers() -> MemoryPeers:
    return MemoryPeers(
        Peer(domain="b.example", url="http://127.0.0.1:1", may_forward=True, credit=300),
    )


def claim(
    agent: str = "echo",
    *,
    token: str = "ck_alice",  # noqa: S107  a made-up token
    forwarded: str | None = None,
    marks: tuple[Mark, ...] = (),
    text: str = "hi",
    digest: bytes = b"d",
) -> Claim:
    return Claim(
        dialect="openai",
        agent=agent,
        ask=Ask(messages=(Message("user", (text,)),)),
        digest=digest,
        request=b"{}",
        marks=marks,
        authorization=Secret(f"Bearer {token}"),
        forwarded=Secret(forwarded) if forwarded else None,
    )


def proved(claim_: Claim, tokens: MemoryTokens | None = None) -> Candidate:
    """A candidate that has passed the guards before the payer's."""
    candidate = Candidate(claim_, NOW)
    tokens = tokens or known_tokens()
    peers = known_peers()

    def listed(domain: str) -> bool:
        peer = peers.find(domain)
        return peer is not None and peer.may_forward

    KnownCaller(tokens, listed)(candidate)
    WithinChain()(candidate)
    KnownAgent(directory())(candidate)
    return candidate
