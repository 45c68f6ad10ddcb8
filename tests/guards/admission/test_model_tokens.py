"""What of its tokens a call has left: for which calls it is looked at, and what others use."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from carnet.core.call import Call
from carnet.core.chain.allowance import Allowance
from carnet.core.people.proof import Spending
from carnet.errors import BudgetExceeded
from carnet.guards.admission.model_tokens import MOST_LOOKS, ModelTokens
from carnet.ports.engine.loop import LoopTokens
from carnet.ports.money.budgets import BudgetRecord
from carnet.testing.clock import FakeClock
from tests.runtime.scene import make_call

LIMIT = 1000


class Set:
    """What an operator has set."""

    def __init__(self, **limits: Spending) -> None:
        named = {name.replace("_", ":"): limit for name, limit in limits.items()}
        self.known: Mapping[str, BudgetRecord] = {
            name: BudgetRecord(name=name, limits=limit) for name, limit in named.items()
        }

    def standing(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple([name for name in names if name in self.known])

    async def list(self) -> Sequence[BudgetRecord]:
        return list(self.known.values())

    async def find(self, name: str) -> BudgetRecord | None:
        return self.known.get(name)


def call_with(budget: Spending | None, key: bytes = b"1") -> Call:
    call = make_call()
    record = msgspec.structs.replace(call.record, key=key)
    allowance = None if budget is None else Allowance(budget)
    return msgspec.structs.replace(call, allowance=allowance, record=record)


def found(tokens: ModelTokens, call: Call) -> LoopTokens:
    known = tokens.of(call)
    assert known is not None
    return known


def test_a_call_whose_tokens_nothing_bounds_is_never_looked_at() -> None:
    tokens = ModelTokens(Set(token_alice=Spending(calls=9)), FakeClock())
    assert tokens.of(call_with(None)) is None
    assert tokens.of(call_with(Spending(money=5, currency="credits", calls=9))) is None


async def test_one_is_looked_at_that_it_has_that_one_above_it_has_or_an_operator_has_set() -> None:
    tokens, bounded = ModelTokens(Set(), FakeClock()), Spending(tokens=LIMIT)
    assert await found(tokens, call_with(bounded)).left(1) == LIMIT - 1
    share = Allowance(bounded).split(Spending(calls=2), "credits")
    below = msgspec.structs.replace(call_with(None), allowance=share)
    assert await found(tokens, below).left(1) == LIMIT - 1
    set_here = ModelTokens(Set(token_alice=bounded), FakeClock())
    assert await found(set_here, call_with(Spending(calls=9))).left(1) == LIMIT - 1


async def test_what_turns_under_way_have_noted_counts_until_their_tasks_have_ended() -> None:
    tokens = ModelTokens(Set(token_alice=Spending(tokens=LIMIT)), FakeClock())
    has_counted, may_end = asyncio.Event(), asyncio.Event()

    async def turn() -> None:
        found(tokens, call_with(None, b"other")).count(400)
        has_counted.set()
        await may_end.wait()

    other = asyncio.create_task(turn())
    await has_counted.wait()
    mine = found(tokens, call_with(None))
    mine.count(100)
    assert await mine.left(100) == LIMIT - 500
    assert tokens.noted("token:alice", b"") == 500
    may_end.set()
    await other
    assert await mine.left(100) == LIMIT - 100  # the store knows of the other's now


class Ending(Set):
    """A store that tells what it knew before a turn under way has ended, for so many looks."""

    def __init__(self, looks: int) -> None:
        super().__init__(token_alice=Spending(tokens=LIMIT))
        self.tokens = ModelTokens(self, FakeClock())
        self.looks = looks
        self.used = 400

    async def find(self, name: str) -> BudgetRecord | None:
        former = self.known[name]
        if self.looks:
            self.looks -= 1
            await asyncio.create_task(self.turn(b"other%d" % self.looks))
            await asyncio.sleep(0)  # who waits for the end of a task is told one after another
            self.known = {name: msgspec.structs.replace(former, spent=Spending(tokens=self.used))}
        return former

    async def turn(self, key: bytes) -> None:
        """One that begins and ends meanwhile, and has used nothing more."""
        found(self.tokens, call_with(None, key))
        await asyncio.sleep(0)


async def test_a_turn_that_ends_while_the_store_is_asked_is_not_lost() -> None:
    has = Ending(looks=1)
    assert await found(has.tokens, call_with(None)).left(0) == LIMIT - 400


async def test_a_budget_of_which_turns_end_all_the_time_is_looked_at_so_often() -> None:
    has = Ending(looks=1000)
    assert await found(has.tokens, call_with(None)).left(0) == LIMIT - 400
    assert has.looks == 1000 - MOST_LOOKS


async def test_turns_of_another_budget_that_end_make_nobody_look_again() -> None:
    """A87: what one caller's turns do costs no other a look at the store."""
    looks: list[str] = []

    class Both(Set):
        async def find(self, name: str) -> BudgetRecord | None:
            looks.append(name)
            await asyncio.create_task(bobs_turn())
            await asyncio.sleep(0)  # who waits for the end of a task is told one after another
            return self.known[name]

    has = Both(token_alice=Spending(tokens=LIMIT), token_bob=Spending(tokens=LIMIT))
    tokens = ModelTokens(has, FakeClock())

    async def bobs_turn() -> None:
        call = call_with(None, b"bobs")
        payer = msgspec.structs.replace(call.payer, quota="token:bob")
        found(tokens, msgspec.structs.replace(call, payer=payer))
        await asyncio.sleep(0)

    mine = found(tokens, call_with(None))
    assert await mine.left(0) == LIMIT
    assert looks == ["token:alice"]


class Gone(Set):
    """What was taken away a moment ago."""

    async def find(self, name: str) -> BudgetRecord | None:
        return None if name else self.known.get(name)


async def test_a_budget_that_is_gone_bounds_nothing() -> None:
    has = Gone(token_alice=Spending(tokens=LIMIT))
    assert await found(ModelTokens(has, FakeClock()), call_with(None)).left(10**12) is None


async def test_of_what_a_loop_elsewhere_says_nobody_is_asked_for_more() -> None:
    for has, budget in (
        (Set(), Spending(tokens=LIMIT)),
        (Set(token_alice=Spending(tokens=LIMIT)), None),
    ):
        known = found(ModelTokens(has, FakeClock()), call_with(budget))
        with pytest.raises(BudgetExceeded) as refused:
            await known.left(10**12)
        assert refused.value.facts["observed"] == 2 * LIMIT
