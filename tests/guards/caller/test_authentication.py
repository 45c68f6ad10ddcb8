"""Who is calling: tokens at the gate."""

import pytest

from carnet.core.call import Ask, Claim
from carnet.core.messages.events import Message
from carnet.core.people.identity import Secret
from carnet.errors import Internal, TokenInvalid, TokenMissing
from carnet.guards.caller.authentication import KnownCaller, bearer
from carnet.guards.candidate import Candidate
from carnet.ports.trust.trust import NewToken
from carnet.testing.trust import MemoryTokens

NOW = 1_000_000


def claim(authorization: str | None) -> Claim:
    return Claim(
        dialect="openai",
        agent="echo",
        ask=Ask(messages=(Message("user", ("hi",)),)),
        digest=b"",
        request=b"",
        authorization=Secret(authorization) if authorization else None,
    )


def examine(
    authorization: str | None, *, expires: int | None = None, peer: str | None = None
) -> Candidate:
    tokens = MemoryTokens()
    new = NewToken(name="alice", scopes=frozenset({"call:*"}), expires=expires, peer=peer)
    tokens.add("ck_good", new)
    candidate = Candidate(claim(authorization), NOW)
    KnownCaller(tokens, lambda domain: domain == "listed.example")(candidate)
    return candidate


def test_a_claim_without_a_token_is_refused() -> None:
    with pytest.raises(TokenMissing):
        examine(None)


@pytest.mark.parametrize(
    "value", ["Bearer ck_bad", "Basic ck_good", "ck_good", "Bearer ", "Bearer ck_good extra"]
)
def test_anything_but_a_known_bearer_is_refused_alike(value: str) -> None:
    with pytest.raises(TokenInvalid):
        examine(value)


def test_an_expired_token_is_refused_like_an_unknown_one() -> None:
    with pytest.raises(TokenInvalid):
        examine("Bearer ck_good", expires=NOW)


def test_a_known_token_names_its_actor() -> None:
    caller = examine("bearer ck_good").caller
    assert caller.actor.name == "token:alice"
    assert caller.may("call:echo")
    assert not caller.actor.may_forward


@pytest.mark.parametrize("peer", ["listed.example", "other.example"])
def test_a_peer_token_speaks_for_its_organisation(peer: str) -> None:
    actor = examine("Bearer ck_good", peer=peer).caller.actor
    assert (actor.name, actor.domain) == (f"peer:{peer}", peer)
    assert actor.may_forward == (peer == "listed.example")


def test_a_bearer_is_read_whatever_the_case_of_its_scheme() -> None:
    found = bearer(Secret("BEARER abc"))
    assert found is not None
    assert found.reveal() == "abc"
    assert bearer(None) is None


@pytest.mark.parametrize("fact", ["token", "caller", "target", "payer"])
def test_a_candidate_gives_nothing_that_no_guard_has_proved(fact: str) -> None:
    with pytest.raises(Internal):
        getattr(Candidate(claim(None), NOW), fact)


def test_a_caller_has_what_its_token_was_made_with() -> None:
    tokens = MemoryTokens()
    new = NewToken(
        name="bot",
        scopes=frozenset({"call:*"}),
        agent="echo",
        client="bridge",
        workspace="north",
        deny=frozenset({"pay"}),
    )
    tokens.add("ck_good", new)
    candidate = Candidate(claim("Bearer ck_good"), NOW)
    KnownCaller(tokens, lambda _: False)(candidate)
    caller = candidate.caller
    assert (caller.agent, caller.client, caller.workspace) == ("echo", "bridge", "north")
    assert (caller.may("call:echo"), caller.may("pay")) == (True, False)
