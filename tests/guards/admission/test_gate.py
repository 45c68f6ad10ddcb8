"""The gate: what passes, what is refused, and what the transaction is given."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from carnet.core.call import Ask, Call, Price, quote
from carnet.core.chain.carnet import DepthLimits, Mark
from carnet.core.messages.events import Message
from carnet.core.people.identity import Account
from carnet.errors import (
    Cancelled,
    CarnetError,
    DefinitionChanged,
    DepthExceeded,
    IdempotencyMismatch,
    PaymentRequired,
    PeerUnknown,
    PermissionMissing,
    RateLimited,
    RunCallsExceeded,
    SpendingLimitReached,
    TokenInvalid,
    TooManyCalls,
)
from carnet.guards.admission.gate import Gate
from carnet.guards.admission.order import GateParts
from carnet.guards.limits import Concurrency
from carnet.ports.calls.agent import Target
from carnet.ports.calls.turns import Denied, TurnClaim, Verdict
from carnet.ports.trust.trust import NewToken, Peer
from carnet.stores.turn.row import parent_of
from carnet.testing.clock import FakeClock, FakeIds
from carnet.testing.trust import MemoryPeers, MemoryTokens
from carnet.testing.turns import MemoryTurns
from tests.guards.scene import DOMAIN, PLAIN, Directory, claim, directory, known_tokens, target


class Turns(MemoryTurns):
    """Turns that note their claims and can refuse one."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[TurnClaim] = []
        self.denial: Denied | None = None

    async def claim(self, claim: TurnClaim) -> Verdict:
        self.claims.append(claim)
        return self.denial or await super().claim(claim)


class Nowhere(Directory):
    """A router that knows no peer."""

    def find(self, name: str) -> Target:
        raise PeerUnknown(name)


class Scene:
    """A gate over the usual agents."""

    def __init__(
        self, *more: Target, concurrency: int = 100, router: Directory | None = None
    ) -> None:
        self.turns = Turns()
        self.tokens: MemoryTokens = known_tokens()
        self.peers = MemoryPeers(
            Peer(domain="b.example", url="http://127.0.0.1:1", may_forward=True, credit=300)
        )
        self.learns: Callable[[], object] | None = None
        self.ended: set[str] = set()  # whose calls were let in by what has ended since
        self.concurrency = Concurrency(per_caller=concurrency, in_all=100)
        self.gate = Gate(
            GateParts(
                router=router or Directory(*directory().local(), *more),
                tokens=self.tokens,
                peers=self.peers,
                clock=FakeClock(),
                ids=FakeIds(),
                domain=DOMAIN,
                depths=DepthLimits(),
                has_ended=lambda call: call.caller.actor.name in self.ended,
            ),
            turns=self.turns,
            concurrency=self.concurrency,
            most_run_calls=7,
            look_again=self._look_again,
        )

    async def _look_again(self) -> bool:
        if self.learns is None:
            return False
        self.learns()
        self.learns = None
        return True

    async def child(self, parent: Call, name: str = "echo", *, auth: str = "forward-user") -> Call:
        ask = Ask(messages=(Message("user", ("below",)),))
        return await self.gate.admit_child(parent, name, ask, index=0, auth=auth)


def in_run(depth: int = 1, turn: str | None = "conv_1.t0.x") -> tuple[Mark, ...]:
    return (Mark(stamp="tangle", depth=depth, last_depth=3, run="conv_1", turn=turn),)


async def test_a_call_at_the_origin_gets_a_run_and_a_turn_of_ours() -> None:
    call = await Scene().gate.admit(claim())
    assert call.carnet.run.startswith("conv_")
    assert call.carnet.turn.startswith("turn_")
    assert call.carnet.run_is_ours
    assert not call.known


async def test_ids_that_came_are_kept() -> None:
    call = await Scene().gate.admit(claim(marks=in_run()))
    assert (call.carnet.run, call.carnet.turn, call.carnet.depth) == ("conv_1", "conv_1.t0.x", 1)
    assert not call.carnet.run_is_ours


async def test_a_repeat_is_known() -> None:
    scene = Scene()
    first = await scene.gate.admit(claim(marks=in_run()))
    again = await scene.gate.admit(claim(marks=in_run()))
    assert again.known
    assert again.record.n == first.record.n


@pytest.mark.parametrize(
    ("denied", "token", "error"),
    [
        (Denied("mismatch"), "ck_alice", IdempotencyMismatch),
        (Denied("rate", 9), "ck_alice", RateLimited),
        (Denied("run_calls"), "ck_alice", RunCallsExceeded),
        (Denied("spending"), "ck_alice", SpendingLimitReached),
        (Denied("spending"), "ck_b", PaymentRequired),
    ],
)
async def test_what_the_transaction_refuses_is_told_and_no_longer_counts_as_open(
    denied: Denied, token: str, error: type[CarnetError]
) -> None:
    scene = Scene()
    scene.turns.denial = denied
    with pytest.raises(error):
        await scene.gate.admit(claim("paid", token=token))
    assert scene.concurrency.total == 0
    assert scene.tokens.uses == []


async def test_a_call_is_counted_until_whoever_answers_it_leaves() -> None:
    scene = Scene(concurrency=1)
    await scene.gate.admit(claim())
    with pytest.raises(TooManyCalls):
        await scene.gate.admit(claim())
    assert [name for name, _ in scene.tokens.uses] == ["alice"]


async def test_only_a_payer_with_a_limit_has_something_reserved() -> None:
    scene = Scene()
    await scene.gate.admit(claim("paid"))
    await scene.gate.admit(claim("paid", token="ck_roaming"))
    assert [found.admitted.reserve for found in scene.turns.claims] == [200, 0]


async def test_a_token_with_a_rate_is_counted_in_a_bucket_of_its_own() -> None:
    scene = Scene()
    await scene.gate.admit(claim(token="ck_fast"))
    (rate,) = scene.turns.claims[0].rates
    assert (rate.calls, rate.seconds) == (1, 60)
    assert rate.bucket.startswith("token:")


async def test_a_token_and_a_peer_made_a_moment_ago_are_found() -> None:
    scene = Scene()
    new = NewToken(name="fresh", scopes=PLAIN)
    scene.learns = lambda: scene.tokens.add("ck_fresh", new)
    assert (await scene.gate.admit(claim(token="ck_fresh"))).payer.account.id == "fresh"
    with pytest.raises(TokenInvalid):
        await scene.gate.admit(claim(token="ck_never"))


async def test_a_forwarded_token_of_ours_made_a_moment_ago_pays_itself() -> None:
    scene = Scene()
    new = NewToken(name="fresh", scopes=PLAIN)
    scene.learns = lambda: scene.tokens.add("ck_fresh", new)
    call = await scene.gate.admit(claim("paid", token="ck_b", forwarded="Bearer ck_fresh"))
    assert call.payer.account == Account(DOMAIN, "fresh")
    other = await scene.gate.admit(claim("paid", token="ck_b", forwarded="Bearer somebody"))
    assert other.payer.account.issuer == "b.example"


async def test_an_unknown_peer_is_looked_for_once_more() -> None:
    scene = Scene(router=Nowhere())
    looked: list[bool] = []
    scene.learns = lambda: looked.append(True)
    with pytest.raises(PeerUnknown):
        await scene.gate.admit(claim("@x@y.example"))
    assert looked == [True]


async def test_the_time_of_an_agent_bounds_the_call_and_what_it_calls() -> None:
    scene = Scene(target("quick", seconds=5.0), target("patient", seconds=50.0))
    call = await scene.gate.admit(claim("quick"))
    now = FakeClock().wall_us() / 1_000_000
    assert call.carnet.deadline == now + 5
    child = await scene.child(call, "patient")
    assert child.carnet.deadline == now + 5


async def test_a_child_inherits_run_payer_and_rights_one_hop_deeper() -> None:
    scene = Scene()
    parent = await scene.gate.admit(claim(marks=in_run()))
    child = await scene.child(parent)
    assert child.is_child
    assert (child.carnet.run, child.carnet.depth) == ("conv_1", 2)
    assert child.carnet.parent_turn == "conv_1.t0.x"
    assert child.payer == parent.payer
    assert child.caller.actor.name == "agent:echo"
    assert parent_of(scene.turns.claims[1]) == "conv_1.t0.x"


async def test_the_record_of_a_first_level_child_names_its_parent_though_no_header_does() -> None:
    scene = Scene()
    parent = await scene.gate.admit(claim())
    child = await scene.child(parent)
    assert child.carnet.parent_turn is None
    assert parent_of(scene.turns.claims[1]) == parent.carnet.turn


async def test_children_of_two_callers_with_the_same_ids_are_two_turns() -> None:
    scene = Scene()
    mine = await scene.gate.admit(claim(marks=in_run()))
    theirs = await scene.gate.admit(claim(marks=in_run(), token="ck_roaming"))
    first = await scene.child(mine, auth="agent-owned")
    second = await scene.child(theirs, auth="agent-owned")
    assert first.record.n != second.record.n
    assert first.payer.account == Account(DOMAIN, "agent:echo")
    assert first.credential is None


async def test_a_child_may_not_do_what_its_caller_may_not() -> None:
    scene = Scene()
    narrow = await scene.gate.admit(claim(token="ck_narrow"))
    with pytest.raises(PermissionMissing):
        await scene.child(narrow, "paid")
    broke = await scene.gate.admit(claim(token="ck_broke"))
    with pytest.raises(PermissionMissing):
        await scene.child(broke, "paid")
    assert (await scene.child(broke, "paid", auth="agent-owned")).is_child


async def test_no_child_below_the_last_depth() -> None:
    scene = Scene()
    final = await scene.gate.admit(claim(marks=in_run(depth=3)))
    with pytest.raises(DepthExceeded) as refused:
        await scene.child(final)
    assert refused.value.public_facts() == {"observed": 4, "limit": 4, "stamp": "tangle"}
    assert "would be at depth 4" in refused.value.safe_text


async def test_a_child_that_asks_differently_has_changed_its_definition() -> None:
    scene = Scene()
    parent = await scene.gate.admit(claim(marks=in_run()))
    await scene.child(parent)
    other = Ask(messages=(Message("user", ("else",)),))
    with pytest.raises(DefinitionChanged):
        await scene.gate.admit_child(parent, "echo", other, index=0, auth="forward-user")
    scene.turns.denial = Denied("run_calls")
    with pytest.raises(RunCallsExceeded):
        await scene.child(parent)


async def test_a_child_with_a_body_of_its_own_is_recognised_by_it() -> None:
    scene = Scene()
    parent = await scene.gate.admit(claim(marks=in_run()))
    ask = Ask(messages=(Message("user", ("x",)),), body={"messages": [], "temperature": 0})
    await scene.gate.admit_child(parent, "echo", ask, index=0, auth="forward-user")
    assert scene.turns.claims[1].request == b'{"messages":[],"temperature":0}'


def test_a_quote_covers_every_byte_as_a_token_and_what_a_peer_may_charge() -> None:
    price = Price(per_call=1, per_million_in=1_000_000, per_million_out=2_000_000)
    priced = replace(target("x"), price=price, most_cost=5)
    ask = Ask(messages=(), max_tokens=10)
    assert quote(priced, ask, 100) == 1 + 100 + 20 + 5
    assert quote(priced, replace(ask, max_tokens=None), 0) == 1 + 8192 + 5


async def test_one_caller_may_not_run_away_in_a_run_by_naming_new_payers() -> None:
    scene = Scene()
    for number in range(7):
        marks = in_run(turn=f"conv_1.t{number}.x")
        await scene.gate.admit(claim(token="ck_b", forwarded=f"Bearer p{number}", marks=marks))
    with pytest.raises(RunCallsExceeded):
        await scene.gate.admit(
            claim(token="ck_b", forwarded="Bearer p8", marks=in_run(turn="conv_1.t8.x"))
        )
    known = claim(token="ck_b", forwarded="Bearer p1", marks=in_run(turn="conv_1.t1.x"))
    assert (await scene.gate.admit(known)).known


async def test_nothing_more_is_called_for_a_call_whose_token_has_ended_meanwhile() -> None:
    scene = Scene()
    parent = await scene.gate.admit(claim())
    other = await scene.gate.admit(claim(token="ck_roaming"))
    scene.ended = {"token:alice"}
    with pytest.raises(Cancelled):
        await scene.child(parent)
    assert len(scene.turns.claims) == 2
    assert (await scene.child(other)).is_child


async def test_the_rate_of_a_token_is_asked_of_the_store_each_time() -> None:
    scene = Scene()
    scene.turns.denial = Denied("rate", 9)
    with pytest.raises(RateLimited) as refused:
        await scene.gate.admit(claim(marks=in_run()))
    assert refused.value.retry_after == 9
    scene.turns.denial = None
    assert not (await scene.gate.admit(claim(marks=in_run()))).known
