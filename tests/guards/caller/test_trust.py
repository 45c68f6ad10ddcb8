"""How far a signed caller is trusted, and what it may do for whom."""

from typing import Any

import pytest

from carnet.core.people.identity import Caller, Secret
from carnet.errors import SkillForbidden, TokenInvalid
from carnet.guards.caller.trust import Trusted
from carnet.guards.candidate import Candidate
from carnet.guards.target.target import known_skill
from carnet.ports.trust.trust import NewToken, Peer
from tests.guards.scene import Directory, known_tokens
from tests.guards.signed_scene import (
    ONE_LABEL,
    PEER,
    STRANGER,
    candidate,
    proof,
    signed_claim,
    targets,
    travelled,
)

ROUTER = Directory(*targets())
LISTED = Peer(domain="b.example", url="http://127.0.0.1:1", may_forward=True)


def trusted(agent: str, *, skill: str = "chat", peer: Peer | None = None, **more: Any) -> Candidate:
    tokens = known_tokens()
    tokens.add("ck_only_desk", NewToken(name="desk-only", scopes=frozenset({"call:desk"})))
    found = candidate(signed_claim(agent, skill=skill, **more))
    found.target = ROUTER.find(agent)
    found.peer = peer
    known_skill(found)
    Trusted(tokens, ROUTER)(found)
    return found


def forbidden(agent: str, **more: Any) -> str:
    with pytest.raises(SkillForbidden) as refused:
        trusted(agent, **more)
    return str(refused.value.public_facts()["trust"])


def auth(token: str) -> dict[str, Any]:
    return {"auth": Secret(token), "auth_scheme": "bearer"}


def test_anybody_whose_signature_holds_may_call_what_is_public() -> None:
    caller = trusted("echo").caller
    assert (caller.actor.name, caller.actor.how) == (f"sender:{STRANGER}", "signature")
    assert caller.actor.domain == "stranger.example"
    names = ("echo", "paid", "raw", "bridge", "counted")
    assert caller.scopes == {"pay", *(f"call:{name}" for name in names)}
    assert (caller.principal, caller.actor.may_forward) == (None, False)


def test_a_stranger_calls_nothing_else() -> None:
    assert forbidden("desk") == "authenticated"
    assert forbidden("vault") == "trusted-peers"
    assert forbidden("@critic@b.example") == "trusted-peers"


def test_a_skill_may_ask_for_less_trust_than_its_agent_or_for_more() -> None:
    trusted("desk", skill="open")
    assert forbidden("desk", skill="chat") == "authenticated"
    assert forbidden("vault", skill="invited") == "trusted-peers"
    trusted("vault", skill="invited", sender=ONE_LABEL)


def test_a_list_of_a_skill_is_the_whole_list() -> None:
    assert forbidden("vault", skill="invited", sender=PEER, peer=LISTED) == "trusted-peers"


def test_a_token_of_ours_authenticates_and_its_holder_is_the_principal() -> None:
    found = trusted("desk", **auth("ck_alice"))
    assert found.caller.principal == "token:alice"
    assert found.principal is not None
    assert found.shown is found.principal
    assert trusted("desk", **auth("ck_b")).caller.principal == "peer:b.example"
    assert trusted("desk", auth=Secret("ck_alice")).caller.principal == "token:alice"


def test_a_token_does_not_make_a_trusted_peer_of_a_stranger() -> None:
    assert forbidden("vault", **auth("ck_alice")) == "trusted-peers"
    assert forbidden("@critic@b.example", **auth("ck_alice")) == "trusted-peers"


@pytest.mark.parametrize("agent", ["echo", "desk"])
@pytest.mark.parametrize("token", ["ck_nobody", "ck_old", "x" * 9000])
def test_a_wrong_token_is_never_overlooked(agent: str, token: str) -> None:
    with pytest.raises(TokenInvalid):
        trusted(agent, **auth(token))


def test_another_scheme_shows_nothing() -> None:
    assert trusted("echo", auth=Secret("ck_nobody"), auth_scheme="none").principal is None
    assert forbidden("desk", auth=Secret("ck_alice"), auth_scheme="none") == "authenticated"


def test_rights_are_those_of_the_sender_and_of_its_principal_together() -> None:
    """A35: neither lends the other what it has not itself."""
    caller = trusted("desk", **auth("ck_only_desk")).caller
    assert may(caller) == {"desk"}
    assert forbidden("echo", **auth("ck_only_desk")) == "public"
    assert may(trusted("desk", **auth("ck_alice")).caller) >= {"echo", "desk"}
    assert "vault" not in may(trusted("desk", **auth("ck_alice")).caller)


def may(caller: Caller) -> set[str]:
    return {found.name for found in targets() if caller.may(found.needs)}


def test_a_listed_peer_is_trusted_and_may_call_on() -> None:
    caller = trusted("vault", sender=PEER, peer=LISTED).caller
    assert (caller.actor.name, caller.actor.may_forward) == ("peer:b.example", True)
    assert caller.may("call:remote")
    trusted("@critic@b.example", sender=PEER, peer=LISTED)


def test_a_listed_peer_that_signs_as_a_carnet_needs_no_token() -> None:
    trusted("desk", peer=LISTED, proof=travelled())
    assert forbidden("desk", peer=LISTED, proof=proof(sender=PEER)) == "authenticated"
    assert forbidden("desk", proof=travelled()) == "authenticated"
