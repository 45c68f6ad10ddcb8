"""Delegations before the gate: whose they are, what they leave, and what nobody is asked for."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Ask, Claim
from carnet.core.messages.events import Message
from carnet.core.people.proof import SECOND_US, Spending
from carnet.errors import (
    BudgetExceeded,
    CarnetError,
    DelegationExceeded,
    DelegationInvalid,
    DelegationReplayed,
    DelegationWidened,
    DepthExceeded,
    LoopDetected,
    PeerUnreachable,
)
from carnet.guards.caller import delegation as guard
from carnet.guards.caller.delegation import Delegated, InScope, once_of
from carnet.guards.candidate import Candidate
from carnet.ports.trust.trust import Peer
from carnet.testing.clock import FakeClock
from carnet.testing.keys import MemoryRing
from carnet.testing.trust import MemoryPeers
from carnet.wire.crypto import ed25519
from carnet.wire.crypto.delegation import read
from tests.guards.scene import DOMAIN, target
from tests.guards.signed_scene import NOW, PEER, SignedScene, identities, signed_claim
from tests.support.signing.delegations import ours, sdk
from tests.support.signing.signed import Sender

ACME = f"agent://{DOMAIN}"
SECONDS = NOW // SECOND_US
ALICE, BOB, CAROL = (Sender(f"agent://client-{name}") for name in ("alice", "bob", "carol"))
GLOBEX = Sender(PEER)
IN_SCOPE = InScope(DOMAIN)
TIMES = {"iat": SECONDS, "exp": SECONDS + 300}


def grant(issuer: Sender = ALICE, subject: Sender = BOB, to: str = ACME, **more: Any) -> str:
    return ours(issuer, subject.identity, to, **{**TIMES, **more})


def plain(issuer: Sender = ALICE, subject: Sender = BOB, **more: Any) -> str:
    return sdk(issuer, subject.identity, **{**TIMES, **more})


class Scene:
    """A guard that knows alice, bob and carol, and lists a peer whose card it has not seen."""

    def __init__(self, last_depth: int = 3) -> None:
        self.clock = FakeClock()
        self.ring = MemoryRing()
        for sender in (ALICE, BOB, CAROL):
            self.ring.pin(sender.identity, sender.kid, sender.public_raw)
        self.ring.publish(GLOBEX.identity, GLOBEX.kid, GLOBEX.public_raw)
        peers = MemoryPeers(Peer(domain="b.example", url="http://127.0.0.1:1"))
        self.guard = Delegated(self.ring, peers, self.clock, identities(), DOMAIN, last_depth)

    def candidate(
        self, token: str | None, sender: Sender = BOB, agent: str = "", **more: Any
    ) -> Candidate:
        claim = signed_claim(agent, sender=sender.identity, **more)
        return Candidate(replace(claim, delegation=token), self.clock.wall_us())

    async def judge(self, token: str | None, sender: Sender = BOB, **more: Any) -> Candidate:
        return await self.shown(self.candidate(token, sender, **more))

    async def shown(self, candidate: Candidate) -> Candidate:
        waiting = self.guard(candidate)
        if waiting is not None:
            await waiting
        return candidate

    async def refuses(
        self, token: str, why: type[CarnetError] = DelegationInvalid, **more: Any
    ) -> CarnetError:
        with pytest.raises(why) as refused:
            await self.judge(token, **more)
        return refused.value


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_without_a_token_nothing_is_judged(scene: Scene) -> None:
    found = await scene.judge(None)
    IN_SCOPE(found)
    assert found.delegation is None
    assert once_of(found.delegation) is None


@pytest.mark.parametrize("make", [grant, plain])
async def test_a_token_that_holds_is_kept_with_the_call(scene: Scene, make: Any) -> None:
    found = await scene.judge(make())
    assert found.delegation is not None
    assert found.delegation.issuer == ALICE.identity
    assert found.on_behalf_of == (ALICE.identity,)
    assert found.deadline == SECONDS + 300
    assert scene.ring.learns == []


async def test_a_token_that_names_no_key_holds_under_any_key_of_its_issuer(scene: Scene) -> None:
    """R13: one of the SDKs writes none."""
    another = Sender(ALICE.identity, "k2")
    scene.ring.pin(another.identity, "k2", another.public_raw)
    bare = {"kid": None, "typ": None}
    for issuer in (ALICE, another):
        await scene.judge(plain(issuer, header=bare))
    forged = plain(Sender(ALICE.identity), header=bare)
    assert (await scene.refuses(forged)).facts["reason"] == "its signature does not hold"


# ---------------------------------------------------------------------------- who, and for whom


async def test_a_token_is_good_for_whom_it_was_given_to(scene: Scene) -> None:
    """A29."""
    error = await scene.refuses(grant(), sender=CAROL)
    assert error.public_facts() == {"link": 1, "reason": "it was given to somebody else"}


@pytest.mark.parametrize("make", [grant, plain])
async def test_a_token_is_good_at_whom_it_was_made_for(scene: Scene, make: Any) -> None:
    """A29: an audience is honoured in tokens of the SDKs as well."""
    error = await scene.refuses(make(aud="agent://globex.example"))
    assert error.facts["reason"] == "it is for another agent"
    await scene.judge(make(aud=ACME), agent="desk")
    await scene.judge(make(aud=f"agent://desk.{DOMAIN}"), agent="desk")
    await scene.refuses(make(aud=f"agent://desk.{DOMAIN}"), agent="vault")


async def test_an_expired_token_is_refused_also_when_it_held_before(scene: Scene) -> None:
    token = grant()
    await scene.judge(token)
    scene.clock.advance(300)
    assert (await scene.refuses(token)).facts["reason"] == "it has expired"


# ---------------------------------------------------------------------------- keys


async def test_an_issuer_that_nobody_knows_is_not_looked_for(scene: Scene) -> None:
    """A28: no fetch, and the command that would admit it."""
    stranger = Sender("agent://attacker.example")
    error = await scene.refuses(grant(stranger))
    assert error.public_facts() == {"link": 1, "reason": "its issuer is not known here"}
    assert error.next_step.endswith("carnet peers add agent://attacker.example --key BASE64")
    assert scene.ring.learns == []


async def test_the_card_of_a_configured_peer_is_looked_for_once(scene: Scene) -> None:
    await scene.judge(grant(GLOBEX))
    await scene.judge(grant(GLOBEX))
    assert scene.ring.learns == [GLOBEX.identity]


async def test_an_agent_of_a_configured_peer_is_looked_for(scene: Scene) -> None:
    agent = Sender("agent://critic.b.example")
    scene.ring.publish(agent.identity, agent.kid, agent.public_raw)
    await scene.judge(grant(agent))
    assert scene.ring.learns == [agent.identity]


async def test_the_card_of_the_sender_itself_is_looked_for(scene: Scene) -> None:
    dave = Sender("agent://dave.example")
    scene.ring.publish(dave.identity, dave.kid, dave.public_raw)
    await scene.judge(grant(dave, dave), dave)
    assert scene.ring.learns == [dave.identity]


async def test_a_sender_of_one_label_has_no_card(scene: Scene) -> None:
    erin = Sender("agent://erin")
    await scene.refuses(grant(erin, erin), sender=erin)
    assert scene.ring.learns == []


async def test_a_card_that_does_not_show_the_key_is_not_enough(scene: Scene) -> None:
    other = Sender(PEER, "k9")
    assert (await scene.refuses(grant(other))).facts["reason"] == "its issuer is not known here"
    assert scene.ring.learns == [PEER]


async def test_a_key_that_cannot_be_had_is_no_key(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object) -> bytes:
        raise PeerUnreachable

    monkeypatch.setattr(scene.ring, "find", down)
    reason = "the key of its issuer cannot be fetched now"
    assert (await scene.refuses(grant())).facts["reason"] == reason


async def test_what_is_never_learned_is_refused_after_all(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(_: str) -> None:
        return None

    monkeypatch.setattr(scene.ring, "learn", nothing)
    assert (await scene.refuses(grant(GLOBEX))).facts["reason"] == "its issuer is not known here"


async def test_with_a_key_ends_what_it_has_signed(scene: Scene) -> None:
    """Also what was verified before."""
    token, other = grant(), plain(header={"kid": None})
    await scene.judge(token)
    await scene.judge(other)
    scene.ring.revoke(ALICE.identity, ALICE.kid)
    reason = "the key of its issuer is no longer valid"
    assert (await scene.refuses(token)).facts["reason"] == reason
    assert (await scene.refuses(other)).facts["reason"] == "its signature does not hold"


async def test_another_key_of_the_same_name_is_another_key(scene: Scene) -> None:
    token = grant()
    await scene.judge(token)
    scene.ring.pin(ALICE.identity, ALICE.kid, BOB.public_raw)
    assert (await scene.refuses(token)).facts["reason"] == "its signature does not hold"


async def test_a_token_is_verified_once_and_remembered(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = grant()
    await scene.judge(token)
    monkeypatch.setattr(ed25519, "holds", lambda *_: False)
    await scene.judge(token)
    await scene.refuses(grant())


async def test_what_is_remembered_is_bounded(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST_REMEMBERED", 2)
    first, *others = (grant() for _ in range(3))
    for token in (first, *others):
        await scene.judge(token)
    monkeypatch.setattr(ed25519, "holds", lambda *_: False)
    for token in others:
        await scene.judge(token)
    await scene.refuses(first)


async def test_what_is_remembered_is_bounded_in_its_length(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = grant(), grant()
    monkeypatch.setattr(guard, "MOST_CHARACTERS", len(first) + len(second) - 1)
    await scene.judge(first)
    await scene.judge(second)
    monkeypatch.setattr(ed25519, "holds", lambda *_: False)
    await scene.judge(second)
    await scene.refuses(first)


# ---------------------------------------------------------------------------- chains


async def test_every_link_of_a_chain_is_verified(scene: Scene) -> None:
    first = grant(ALICE, BOB)
    last = grant(BOB, CAROL, parent=first, maxDepth=1)
    found = await scene.judge(last, CAROL)
    assert found.on_behalf_of == (BOB.identity, ALICE.identity)
    forged = grant(Sender(ALICE.identity), BOB)
    error = await scene.refuses(grant(BOB, CAROL, parent=forged, maxDepth=1), sender=CAROL)
    assert error.public_facts() == {"link": 1, "reason": "its signature does not hold"}
    error = await scene.refuses(
        grant(Sender(BOB.identity), CAROL, parent=first, maxDepth=1), sender=CAROL
    )
    assert error.facts["link"] == 2


async def test_a_child_that_is_wider_than_its_parent_is_refused_by_name(scene: Scene) -> None:
    """A30."""
    first = grant(ALICE, BOB)
    wider = grant(BOB, CAROL, parent=first, maxDepth=2)
    error = await scene.refuses(wider, DelegationWidened, sender=CAROL)
    assert error.public_facts() == {"link": 2, "claim": "maxDepth"}


@pytest.mark.parametrize("depth", [0, -1])
async def test_a_token_without_a_hop_left_is_refused(scene: Scene, depth: int) -> None:
    await scene.refuses(plain(maxDepth=depth), DelegationExceeded)


async def test_a_chain_that_is_longer_than_chains_may_be_is_refused(scene: Scene) -> None:
    """A31."""
    acts = {"sub": "agent://x", "act": {"sub": "agent://y", "act": {"sub": "agent://z"}}}
    assert (await scene.judge(plain(act=acts))).delegation is not None
    with pytest.raises(DepthExceeded) as refused:
        await Scene(last_depth=2).judge(plain(act=acts))
    assert refused.value.public_facts() == {"observed": 3, "limit": 3}


# ---------------------------------------------------------------------------- what is left


@pytest.mark.parametrize(
    ("depth", "last_depth", "hops", "left"),
    [
        (0, None, 1, 0),
        (0, None, 2, 1),
        (0, None, 9, None),
        (1, 3, 2, 2),
        (1, 2, 9, 2),
        (0, 3, 4, 3),
    ],
)
async def test_the_last_depth_is_lowered_and_never_raised(
    scene: Scene, depth: int, last_depth: int | None, hops: int, left: int | None
) -> None:
    """U10, U12: one hop at depth 0 is the last."""
    candidate = scene.candidate(plain(maxDepth=hops))
    candidate.position = replace(candidate.position, depth=depth, last_depth=last_depth)
    found = await scene.shown(candidate)
    assert found.position.last_depth == left
    is_lowered = left != last_depth
    assert found.position.bound_by == ("delegation" if is_lowered else None)


async def test_the_budget_and_the_time_are_the_smaller_ones(scene: Scene) -> None:
    candidate = scene.candidate(grant(bud={"money": "1", "currency": "credits", "calls": 9}))
    candidate.budget = Spending(calls=4, tokens=7)
    candidate.deadline = SECONDS + 10.0
    candidate.on_behalf_of = ("token:x", ALICE.identity, BOB.identity)
    found = await scene.shown(candidate)
    assert found.budget == Spending(money=SECOND_US, currency="credits", calls=4, tokens=7)
    assert found.deadline == SECONDS + 10.0
    assert found.on_behalf_of == (ALICE.identity, "token:x")


async def test_the_scope_is_of_skills_and_talking_is_one(scene: Scene) -> None:
    found = await scene.judge(grant(scope=["chat"]))
    found.target = target("echo")
    IN_SCOPE(found)
    for ask in (Ask(messages=(Message("user", ("hi",)),)), Ask(messages=(), skill="chat")):
        found.claim = replace(found.claim, ask=ask)
        IN_SCOPE(found)
    found.claim = replace(found.claim, ask=Ask(messages=(), skill="pay"))
    with pytest.raises(DelegationExceeded) as refused:
        IN_SCOPE(found)
    assert refused.value.facts["reason"] == "the skill is not in its scope"


async def test_a_chain_that_comes_back_is_a_loop_unless_the_agent_allows_it(scene: Scene) -> None:
    """A31."""
    ring = Sender(ACME)
    scene.ring.pin(ACME, ring.kid, ring.public_raw)
    first = grant(ALICE, CAROL, maxDepth=3)
    passed = grant(ring, ring, BOB.identity, parent=first, maxDepth=2)
    found = await scene.judge(grant(BOB, BOB, parent=passed, maxDepth=1))
    found.target = target("echo")
    with pytest.raises(LoopDetected):
        IN_SCOPE(found)
    found.target = target("echo", reentry=True)
    IN_SCOPE(found)


async def test_what_we_granted_comes_home(scene: Scene) -> None:
    own = Sender(ACME)
    scene.ring.pin(ACME, own.kid, own.public_raw)
    found = await scene.judge(grant(own))
    found.target = target("echo")
    IN_SCOPE(found)


def test_one_use_is_that_of_the_first_link_that_says_so() -> None:
    first = grant(ALICE, BOB, once=True, jti="one")
    last = read(grant(BOB, CAROL, parent=first, once=True, jti="two", maxDepth=1))
    spent = once_of(last)
    assert spent is not None
    assert (spent.sender, spent.nonce) == (f"jti:{ALICE.identity}", "one")
    assert spent.expires == (SECONDS + 305) * SECOND_US


# ---------------------------------------------------------------------------- through the gate


def with_token(
    token: str, span: str = "span-1", nonce: str = "nonce-00000001", **more: Any
) -> Claim:
    claim = signed_claim(span=span, nonce=nonce, sender=PEER, **more)
    return replace(claim, delegation=token)


@pytest.fixture
def gate() -> SignedScene:
    scene = SignedScene()
    scene.ring.pin(ALICE.identity, ALICE.kid, ALICE.public_raw)
    return scene


async def test_a_call_carries_its_delegation_and_so_do_its_children(gate: SignedScene) -> None:
    token = grant(ALICE, GLOBEX, maxDepth=2, scope=["chat"])
    call = await gate.gate.admit(with_token(token))
    assert call.delegation is not None
    assert call.carnet.last_depth == 1
    assert call.carnet.on_behalf_of == (ALICE.identity,)
    assert call.carnet.deadline is not None
    ask = Ask(messages=(Message("user", ("hi",)),), skill="open", payload={"text": "hi"})
    child = await gate.gate.admit_child(call, "desk", ask, index=0, auth="forward-user")
    assert child.delegation == call.delegation  # in process the scope of what is presented is met
    with pytest.raises(DelegationExceeded) as refused:
        await gate.gate.admit_child(child, "echo", ask, index=0, auth="forward-user")
    assert refused.value.facts["reason"] == "no hop is left"
    assert "--depth" in refused.value.next_step


async def test_tokens_that_a_delegation_grants_bound_what_follows_their_use(
    gate: SignedScene,
) -> None:
    """They are known when they are used: the call that used them is answered, and makes none."""
    token = grant(ALICE, GLOBEX, maxDepth=3, bud={"tokens": 100})
    call = await gate.gate.admit(with_token(token))
    ask = Ask(messages=(Message("user", ("hi",)),), skill="open", payload={"text": "hi"})
    assert call.allowance is not None
    call.allowance.use(99)
    child = await gate.gate.admit_child(call, "desk", ask, index=0, auth="forward-user")
    assert child.allowance is call.allowance
    call.allowance.use(51)
    for parent in (call, child):
        with pytest.raises(BudgetExceeded):
            await gate.gate.admit_child(parent, "desk", ask, index=1, auth="forward-user")


async def test_a_skill_outside_of_the_scope_is_refused_at_the_gate(gate: SignedScene) -> None:
    with pytest.raises(DelegationExceeded):
        await gate.gate.admit(with_token(grant(ALICE, GLOBEX, scope=["pay"])))
    assert gate.turns.turns == {}


async def test_a_token_for_one_call_is_used_once_and_repeats_are_answered(
    gate: SignedScene,
) -> None:
    """A32."""
    token = grant(ALICE, GLOBEX, once=True)
    first = await gate.gate.admit(with_token(token))
    again = await gate.gate.admit(with_token(token, nonce="nonce-00000002"))
    assert (first.known, again.known) == (False, True)
    with pytest.raises(DelegationReplayed):
        await gate.gate.admit(with_token(token, span="span-2", nonce="nonce-00000003"))


async def test_a_link_that_was_ended_ends_the_chain(scene: Scene) -> None:
    """R59: whoever derived what is below it."""
    await scene.judge(grant())
    peers = MemoryPeers(Peer(domain="b.example", url="http://127.0.0.1:1"))
    parts = (scene.ring, peers, scene.clock, identities(), DOMAIN, 3)
    scene.guard = Delegated(*parts, lambda delegation: len(delegation.chain()))
    error = await scene.refuses(grant())
    assert error.public_facts() == {"link": 1, "reason": "it was ended"}
