"""The gate for claims that bring a proof: its order, its nonces, its rates, and who pays."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Ask, Call, Claim
from carnet.core.chain.carnet import Mark
from carnet.core.messages.events import Message
from carnet.core.people.identity import Account, Secret
from carnet.core.people.proof import SECOND_US, Spending
from carnet.errors import (
    AgentNotFound,
    BudgetExceeded,
    CarnetError,
    ChainMismatch,
    DepthExceeded,
    DestinationMismatch,
    InjectionDetected,
    KeyUnknown,
    LoopDetected,
    NonceReplayed,
    PaymentRequired,
    PermissionMissing,
    RateLimited,
    SchemaInvalid,
    SignatureInvalid,
    SkillForbidden,
    SkillNotFound,
    TimestampOutOfWindow,
)
from carnet.ports.calls.turns import Denied, TurnClaim, Verdict
from carnet.testing.turns import MemoryTurns
from tests.guards.admission.test_gate import Scene
from tests.guards.scene import DOMAIN
from tests.guards.scene import claim as token_claim
from tests.guards.signed_scene import (
    NOW,
    ONE_LABEL,
    PEER,
    PUBLIC,
    STRANGER,
    SignedScene,
    document,
    signed_claim,
    travelled,
)

FORGED = bytes(64)
INJECTION = {"text": "jailbreak"}


async def refused(scene: SignedScene, claim: Claim) -> type[CarnetError]:
    """The refusal of a claim, which leaves nothing behind."""
    turns, nonces = len(scene.turns.turns), len(scene.turns.nonces)
    with pytest.raises(CarnetError) as error:
        await scene.gate.admit(claim)
    assert (len(scene.turns.turns), len(scene.turns.nonces)) == (turns, nonces)
    assert scene.concurrency.total == 0
    assert scene.tokens.uses == []
    return type(error.value)


async def admit(scene: SignedScene, claim: Claim) -> Call:
    call = await scene.gate.admit(claim)
    scene.concurrency.leave(call.caller.actor.name, stream=claim.ask.stream)
    return call


async def test_a_signed_call_is_admitted_and_its_nonce_is_consumed() -> None:
    scene = SignedScene()
    call = await admit(scene, signed_claim())
    assert (call.agent, call.carnet.run, call.carnet.turn) == ("echo", "trace-1", "span-1")
    assert scene.turns.nonces == {(STRANGER, "nonce-00000001"): NOW + 305 * SECOND_US}
    assert scene.tokens.uses == []


async def test_the_same_nonce_again_is_a_replay_also_for_another_agent_or_span() -> None:
    scene = SignedScene()
    await admit(scene, signed_claim())
    for again in (signed_claim(), signed_claim(span="span-2"), signed_claim("raw")):
        assert await refused(scene, again) is NonceReplayed
    await admit(scene, signed_claim(nonce="nonce-00000002"))
    await admit(scene, signed_claim(sender=ONE_LABEL))  # the nonce of somebody else


async def test_a_nonce_that_the_store_knows_is_refused_whatever_is_remembered_here() -> None:
    scene = SignedScene()
    scene.turns.nonces[STRANGER, "nonce-00000001"] = NOW + SECOND_US
    assert await refused(scene, signed_claim()) is NonceReplayed
    scene.turns.nonces.clear()  # from now on what was learned of it answers
    assert await refused(scene, signed_claim()) is NonceReplayed


async def test_there_is_no_instant_at_which_a_replay_is_accepted() -> None:
    """A12: the window closes before the nonce is forgotten, for times behind and ahead."""
    for seconds in (-299, 0, 30, 60):
        scene = SignedScene()
        first = signed_claim(at=NOW + seconds * SECOND_US)
        await admit(scene, first)
        for _ in range(400):
            scene.clock.advance(1)
            assert await refused(scene, first) in {NonceReplayed, TimestampOutOfWindow}


async def test_a_forged_request_burns_nobodys_nonce() -> None:
    scene = SignedScene()
    assert await refused(scene, signed_claim(signature=FORGED)) is SignatureInvalid
    await admit(scene, signed_claim())


async def test_sixty_forged_requests_lock_nobody_out() -> None:
    scene = SignedScene(sender_calls=2, agent_calls=2)
    for number in range(60):
        forged = signed_claim(signature=FORGED, nonce=f"nonce-{number:08}")
        assert await refused(scene, forged) is SignatureInvalid
    await admit(scene, signed_claim())
    await admit(scene, signed_claim(nonce="nonce-00000002", span="span-2"))


# What is wrong with a request, each thing after those before it in the order of admission.
FAULTS: list[tuple[dict[str, Any], type[CarnetError]]] = [
    ({"at": NOW - 301 * SECOND_US}, TimestampOutOfWindow),
    ({"nonce": "nonce-consumed"}, NonceReplayed),
    ({"keyid": "unknown"}, KeyUnknown),
    ({"signature": FORGED}, SignatureInvalid),
    ({"recipient": "agent://other.example"}, DestinationMismatch),
    ({"payload": INJECTION}, InjectionDetected),
    ({"skill": "unknown"}, SkillNotFound),
]


@pytest.mark.parametrize("first", range(len(FAULTS)))
async def test_of_several_faults_the_first_in_the_order_is_told(first: int) -> None:
    scene = SignedScene()
    await admit(scene, signed_claim(nonce="nonce-consumed", span="before"))
    fields: dict[str, Any] = {}
    for fault, _ in FAULTS[first:]:
        fields |= fault
    assert await refused(scene, signed_claim(**fields)) is FAULTS[first][1]


async def test_a_skill_is_looked_for_before_trust_and_trust_before_shape() -> None:
    scene = SignedScene()
    assert await refused(scene, signed_claim("vault", skill="none")) is SkillNotFound
    assert await refused(scene, signed_claim("vault", payload={})) is SkillForbidden
    assert await refused(scene, signed_claim(payload={})) is SchemaInvalid
    assert await refused(scene, signed_claim("nobody")) is AgentNotFound


async def test_a_replay_is_told_before_a_rate_and_a_rate_before_a_signature() -> None:
    scene = SignedScene(sender_calls=1)
    await admit(scene, signed_claim())
    late = signed_claim(nonce="nonce-00000002", span="span-2")
    assert await refused(scene, late) is RateLimited
    assert await refused(scene, signed_claim()) is NonceReplayed
    assert await refused(scene, signed_claim(nonce="nonce-3", signature=FORGED)) is RateLimited


async def test_a_rate_is_each_senders_own_and_burns_no_nonce() -> None:
    scene = SignedScene(sender_calls=1, agent_calls=2)
    late = signed_claim(nonce="nonce-00000002", span="span-2")
    await admit(scene, signed_claim())
    assert await refused(scene, late) is RateLimited
    await admit(scene, signed_claim(sender=ONE_LABEL))
    assert await refused(scene, signed_claim(sender=PEER)) is RateLimited  # the agent's
    assert await refused(scene, signed_claim(sender=PEER)) is RateLimited


async def test_a_rate_is_forgotten_when_the_store_said() -> None:
    scene = SignedScene(sender_calls=1)
    await admit(scene, signed_claim())
    late = signed_claim(nonce="nonce-00000002", span="span-2")
    assert await refused(scene, late) is RateLimited
    scene.clock.advance(60)
    scene.turns.rates.clear()
    await admit(scene, late)


async def test_what_is_claimed_of_the_store_is_all_it_needs() -> None:
    turns = Noting()
    scene = SignedScene(turns=turns)
    await admit(scene, signed_claim(auth=Secret("ck_fast")))
    [claim] = turns.claims
    assert claim.nonce is not None
    assert [rate.bucket.partition(":")[0] for rate in claim.rates] == ["sender", "agent", "token"]
    assert not claim.wire_parent
    assert [name for name, _ in scene.tokens.uses] == ["fast"]


@pytest.mark.parametrize(
    ("marks", "compared"),
    [
        ((Mark(stamp="tangle", depth=1, last_depth=3, run="r", turn="t", parent_turn="p"),), True),
        ((Mark(stamp="tangle", depth=1, last_depth=3, run="r", turn="t"),), False),
        ((Mark(stamp="samvad", run="r", turn="t", parent_turn="p", counts=False),), False),
    ],
)
async def test_a_parent_is_compared_where_a_stamp_that_counts_names_it(
    marks: tuple[Mark, ...],
    compared: bool,  # noqa: FBT001  a row of the table
) -> None:
    scene = Scene()
    await scene.gate.admit(token_claim(marks=marks))
    assert scene.turns.claims[0].wire_parent is compared


@pytest.mark.parametrize(
    ("denied", "error"),
    [(Denied("chain"), ChainMismatch), (Denied("replayed"), NonceReplayed)],
)
async def test_what_the_transaction_says_of_chain_and_nonce_is_told(
    denied: Denied, error: type[CarnetError]
) -> None:
    scene = Scene()
    scene.turns.denial = denied
    with pytest.raises(error):
        await scene.gate.admit(token_claim())


async def test_a_gate_without_keys_believes_no_signature() -> None:
    with pytest.raises(SignatureInvalid):
        await Scene().gate.admit(signed_claim())


async def test_a_key_that_was_added_a_moment_ago_is_found() -> None:
    scene = SignedScene()
    unknown = signed_claim(sender="agent://new-client")
    assert await refused(scene, unknown) is KeyUnknown
    scene.learns = lambda: scene.ring.pin("agent://new-client", "k1", PUBLIC)
    await admit(scene, unknown)


# ------------------------------------------------------------------------------------ who pays


async def test_a_stranger_pays_nothing_and_so_calls_nothing_that_has_a_price() -> None:
    scene = SignedScene(turns=Broke())
    call = await admit(scene, signed_claim())
    assert call.payer.account == Account("stranger.example", STRANGER)
    assert (call.payer.quota, call.payer.limit) == (f"sender:{STRANGER}", 0)
    assert await refused(scene, signed_claim("paid", nonce="nonce-2")) is PaymentRequired


async def test_a_listed_peer_pays_up_to_its_credit() -> None:
    payer = (await admit(SignedScene(), signed_claim("paid", sender=PEER))).payer
    assert payer.account == Account("b.example", "b.example")
    assert (payer.quota, payer.limit, payer.own_issue) == ("peer:b.example", 300, False)


async def test_a_travel_document_names_the_account_that_its_issuer_answers_for() -> None:
    scene = SignedScene()
    proof = travelled(document=document(payer=Account("b.example", "token:ann")))
    call = await admit(scene, replace(signed_claim("paid", proof=proof), marks=()))
    assert call.payer.account == Account("b.example", "token:ann")
    assert call.document is not None


async def test_the_holder_of_a_token_pays_and_its_right_to_pay_counts() -> None:
    scene = SignedScene()
    payer = (await admit(scene, signed_claim("paid", auth=Secret("ck_alice")))).payer
    assert (payer.account, payer.limit) == (Account(DOMAIN, "alice"), 1000)
    broke = signed_claim("paid", auth=Secret("ck_broke"), nonce="nonce-2")
    with pytest.raises(PermissionMissing):
        await scene.gate.admit(broke)


async def test_a_token_is_forwarded_from_the_origin_if_it_may_be() -> None:
    call = await admit(SignedScene(), signed_claim(auth=Secret("ck_roaming")))
    assert call.credential is not None
    assert call.credential.reveal() == "Bearer ck_roaming"
    assert (await admit(SignedScene(), signed_claim(auth=Secret("ck_alice")))).credential is None


async def test_a_peer_vouches_for_a_credential_up_to_its_credit() -> None:
    proof = travelled(document=document())
    claim = signed_claim("paid", proof=proof, forwarded="Bearer sk-somebody")
    payer = (await admit(SignedScene(), replace(claim, marks=()))).payer
    assert (payer.account.issuer, payer.limit, payer.by_forwarding) == ("b.example", 300, True)


# ----------------------------------------------------------------------------------- the chain


async def test_a_document_narrows_and_a_loop_is_refused() -> None:
    scene = SignedScene()

    def came(**fields: Any) -> Claim:
        made = document(**fields)
        mark = Mark(
            stamp="travel",
            depth=made.depth,
            last_depth=made.last_depth,
            run=made.run,
            turn=made.turn,
        )
        return replace(signed_claim(proof=travelled(document=made)), marks=(mark,))

    assert await refused(scene, came(depth=4)) is DepthExceeded
    looped = replace(came(path=(f"@raw@{DOMAIN}",)), agent="raw")
    assert await refused(scene, looped) is LoopDetected
    tight = Spending(money=1, currency="credits")
    assert (await admit(scene, came(budget=tight))).agent == "echo"
    paid = replace(
        came(budget=tight),
        agent="paid",
        proof=travelled(document=document(budget=tight), nonce="nonce-2"),
    )
    assert await refused(scene, paid) is BudgetExceeded


# ---------------------------------------------------------- what an agent does for its caller


async def child(scene: SignedScene, parent: Call, name: str, skill: str | None = None) -> Call:
    payload = None if skill is None else {"text": "below"}
    ask = Ask(messages=(Message("user", ("below",)),), skill=skill, payload=payload)
    return await scene.gate.admit_child(parent, name, ask, index=0, auth="forward-user")


async def test_an_agent_calls_for_a_stranger_only_what_the_stranger_may_call() -> None:
    """A35: the gateway's own rights are never lent."""
    scene = SignedScene()
    parent = await admit(scene, signed_claim())
    assert (await child(scene, parent, "raw")).caller.standing == parent.caller.standing
    assert (await child(scene, parent, "desk", "open")).agent == "desk"
    for name, skill in (("desk", None), ("vault", "invited"), ("@critic@b.example", None)):
        with pytest.raises(SkillForbidden):
            await child(scene, parent, name, skill)


async def test_an_agent_calls_for_a_principal_only_what_the_principal_may_call() -> None:
    scene = SignedScene()
    parent = await admit(scene, signed_claim(auth=Secret("ck_narrow")))
    assert (await child(scene, parent, "echo")).caller.principal == "token:narrow"
    with pytest.raises(SkillForbidden):
        await child(scene, parent, "raw")


async def test_what_an_agent_calls_is_within_what_its_caller_has_left() -> None:
    scene = SignedScene()
    left = Spending(money=150, currency="credits")
    proof = travelled(document=document(budget=left))
    parent = await admit(scene, replace(signed_claim(proof=proof), marks=()))
    assert (await child(scene, parent, "echo")).carnet.budget == left
    with pytest.raises(BudgetExceeded):
        await child(scene, parent, "paid")


async def test_what_an_agent_asks_another_for_has_a_skill_and_its_shape() -> None:
    scene = SignedScene()
    parent = await admit(scene, signed_claim())
    with pytest.raises(SkillNotFound):
        await child(scene, parent, "raw", "unknown")
    ask = Ask(messages=(), skill="chat", payload={"text": 3})
    with pytest.raises(SchemaInvalid):
        await scene.gate.admit_child(parent, "raw", ask, index=0, auth="forward-user")


class Noting(MemoryTurns):
    """Turns that note their claims."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[TurnClaim] = []

    async def claim(self, claim: TurnClaim) -> Verdict:
        self.claims.append(claim)
        return await super().claim(claim)


class Broke(MemoryTurns):
    """Turns of a payer that has nothing left."""

    async def claim(self, claim: TurnClaim) -> Verdict:
        return Denied("spending") if claim.admitted.reserve else await super().claim(claim)
