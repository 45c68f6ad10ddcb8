"""The nonces of signed requests: each is accepted once while it lives, and then forgotten."""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Coroutine
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from carnet.core.people.identity import Payer
from carnet.ports.calls.turns import Claimed, Denied, Known, Nonce, Rate, TurnClaim
from carnet.stores.open import Store
from carnet.stores.upkeep import retention
from tests.stores.support import servers
from tests.stores.support.scenes import (
    ALICE,
    NOW,
    SECOND,
    Place,
    a_claim,
    a_finish,
    a_nonce,
    claimed,
    end_upkeep,
    finished,
)

T = TypeVar("T")
REPLAYED = Denied("replayed")
ONE_A_MINUTE = Rate(bucket="b", calls=1, seconds=60)
POOR = Payer(account=ALICE.account, quota="token:poor", limit=10)
LIVE_NONCES = int(os.environ.get("CARNET_NONCES", "6000"))


def kept(place: Place) -> list[str]:
    return [name for (name,) in place.rows("SELECT nonce FROM nonce ORDER BY n")]


async def test_a_nonce_is_accepted_once(store: Store) -> None:
    first = a_claim("r1", nonce=a_nonce())
    turn = claimed(await store.turns.claim(first))
    assert await store.turns.claim(first) == REPLAYED  # A09: the exact copy
    assert await store.turns.claim(a_claim("r2", nonce=a_nonce())) == REPLAYED
    ended = await store.turns.finish(a_finish(turn))
    assert await store.turns.claim(first) == REPLAYED
    assert await store.turns.claim(a_claim("r1")) == Known(ended)  # the first is as it was


async def test_a_nonce_is_the_senders_own_and_its_case_counts(store: Store) -> None:
    nonces = [
        a_nonce("n1"),
        a_nonce("N1"),
        a_nonce("n1 "),
        a_nonce("n1", sender="agent://c.example"),  # A14
    ]
    for i, nonce in enumerate(nonces):
        claimed(await store.turns.claim(a_claim(f"r{i}", nonce=nonce)))


async def test_a_repeat_of_a_known_turn_uses_up_its_own_nonce(store: Store, place: Place) -> None:
    ended = await finished(store, nonce=a_nonce("n1"))
    again = a_claim(nonce=a_nonce("n2"))
    assert await store.turns.claim(again) == Known(ended)
    assert await store.turns.claim(again) == REPLAYED
    assert kept(place) == ["n1", "n2"]


async def test_a_turn_that_runs_again_uses_up_its_own_nonce(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim(nonce=a_nonce("n1"))))
    await store.turns.finish(a_finish(turn, state="failed", retryable=True, debits=()))
    assert claimed(await store.turns.claim(a_claim(nonce=a_nonce("n2")))).attempt == 2
    assert kept(place) == ["n1", "n2"]


async def test_the_nonce_is_answered_before_everything_else(store: Store, place: Place) -> None:
    await finished(store, nonce=a_nonce(), rates=(ONE_A_MINUTE,))
    before = place.counts()
    for claim in (
        a_claim(digest=b"other", nonce=a_nonce()),
        a_claim("r2", rates=(ONE_A_MINUTE,), nonce=a_nonce()),
        a_claim("r3", payer=POOR, reserve=11, nonce=a_nonce()),
        a_claim("r4", most_run_calls=0, nonce=a_nonce()),
    ):
        assert await store.turns.claim(claim) == REPLAYED
    assert place.counts() == before


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (a_claim("r1", digest=b"other"), "mismatch"),
        (a_claim("r1", turn="c", parent_turn="r1.t0.echo", wire_parent=True), "chain"),
        (a_claim("r2", rates=(ONE_A_MINUTE,)), "rate"),
        (a_claim("r2", payer=POOR, reserve=11), "spending"),
        (a_claim("r2", most_run_calls=0), "run_calls"),
    ],
    ids=["mismatch", "chain", "rate", "spending", "run_calls"],
)
async def test_a_claim_that_is_refused_for_another_reason_burns_no_nonce(
    store: Store, place: Place, refused: TurnClaim, reason: str
) -> None:
    await finished(store, rates=(ONE_A_MINUTE,))
    before = place.counts()
    verdict = await store.turns.claim(replace(refused, nonce=a_nonce()))
    assert isinstance(verdict, Denied)
    assert verdict.reason == reason
    assert (place.counts(), kept(place)) == (before, [])
    claimed(await store.turns.claim(a_claim("later", nonce=a_nonce())))


async def test_of_many_copies_in_one_batch_one_is_accepted(store: Store, place: Place) -> None:
    claims = [a_claim(f"r{i}", nonce=a_nonce()) for i in range(64)]
    verdicts = await asyncio.gather(*map(store.turns.claim, claims))
    assert isinstance(verdicts[0], Claimed)
    assert verdicts[1:] == [REPLAYED] * 63
    assert place.counts()["turn"] == 1


async def test_of_two_in_one_batch_the_second_is_accepted_if_the_first_is_refused(
    store: Store,
) -> None:
    first = a_claim("r1", most_run_calls=0, nonce=a_nonce())
    second = a_claim("r2", nonce=a_nonce())
    verdicts = await asyncio.gather(store.turns.claim(first), store.turns.claim(second))
    assert verdicts[0] == Denied("run_calls")
    claimed(verdicts[1])


async def test_one_broken_nonce_changes_nothing_for_its_neighbours(store: Store) -> None:
    broken = Nonce("agent://b.example", "n\ud800", NOW)  # no text that a database can hold
    claims = [a_claim(f"r{i}", nonce=a_nonce(f"n{i}")) for i in range(8)]
    claims.insert(3, a_claim("broken", nonce=broken))
    verdicts = await asyncio.gather(*map(store.turns.claim, claims), return_exceptions=True)
    assert sum(isinstance(verdict, Claimed) for verdict in verdicts) == 8
    assert isinstance(verdicts[3], Exception)


@pytest.mark.parametrize("seconds", [0, 1, 299, 300, 304.999999])
async def test_a_nonce_is_refused_until_it_expires(store: Store, seconds: float) -> None:
    claimed(await store.turns.claim(a_claim(nonce=a_nonce(life=305))))
    late = a_claim("late", nonce=a_nonce(life=600), now=NOW + round(seconds * SECOND))
    assert await store.turns.claim(late) == REPLAYED


async def test_a_nonce_that_has_expired_may_be_used_again_and_lives_anew(
    store: Store, place: Place
) -> None:
    for i in range(3):
        claimed(await store.turns.claim(a_claim(f"r{i}", nonce=a_nonce(f"n{i}", life=305))))
    at = NOW + 305 * SECOND
    claimed(await store.turns.claim(a_claim("late", nonce=a_nonce("n1", life=610), now=at)))
    again = a_claim("again", nonce=a_nonce("n1", life=900), now=at + 304 * SECOND)
    assert await store.turns.claim(again) == REPLAYED
    assert kept(place) == ["n0", "n2", "n1"]  # in the order of arrival


async def test_a_refused_use_of_an_expired_nonce_leaves_it_free(store: Store) -> None:
    claimed(await store.turns.claim(a_claim(nonce=a_nonce(life=10))))
    at = NOW + 11 * SECOND
    refused = a_claim("r2", nonce=a_nonce(life=400), most_run_calls=0, now=at)
    assert await store.turns.claim(refused) == Denied("run_calls")
    claimed(await store.turns.claim(a_claim("r3", nonce=a_nonce(life=400), now=at)))


async def test_a_nonce_is_refused_after_a_restart(place: Place) -> None:
    store = await place.start()
    await finished(store, nonce=a_nonce())
    await store.close()
    store = await place.start()  # A11
    assert await store.turns.claim(a_claim("r2", nonce=a_nonce())) == REPLAYED
    claimed(await store.turns.claim(a_claim("r3", nonce=a_nonce("n3"))))
    await store.close()


# -------------------------------------------------------------------------------- forgetting


async def upkept(store: Store, place: Place, seconds: float) -> None:
    """Let time pass, with a look each half minute."""
    for _ in range(round(seconds / 30)):
        place.clock.advance(30)
        await store.upkeep()


async def test_what_has_expired_is_forgotten_and_nothing_else(store: Store, place: Place) -> None:
    await store.upkeep()
    await store.turns.claim(a_claim("r1", nonce=a_nonce("short", life=305)))
    await store.turns.claim(a_claim("r2", nonce=a_nonce("long", life=5000)))
    await upkept(store, place, 480)
    assert kept(place) == ["short", "long"]  # nothing is looked for before its time
    await upkept(store, place, 90)
    assert kept(place) == ["long"]
    await store.turns.claim(a_claim("r3", nonce=a_nonce("later", life=5000)))
    await upkept(store, place, 4000)
    assert kept(place) == ["long", "later"]
    await upkept(store, place, 600)
    assert kept(place) == []


async def test_a_clock_that_is_set_forward_frees_no_nonce(store: Store, place: Place) -> None:
    await store.upkeep()
    await store.turns.claim(a_claim("r1", nonce=a_nonce()))
    place.clock.jump(86_400 * 365)
    await upkept(store, place, 420)
    place.clock.jump(-86_400 * 365)
    assert kept(place) == ["n1"]


async def test_what_an_earlier_gateway_left_is_forgotten_after_a_day(place: Place) -> None:
    for day in range(3):
        store = await place.start()
        nonce = Nonce("agent://b.example", f"n{day}", place.clock.wall_us() + 300 * SECOND)
        await store.turns.claim(a_claim(f"r{day}", nonce=nonce, now=place.clock.wall_us()))
        place.clock.advance(400)
        await store.upkeep()
        await store.close()
        place.clock.advance(86_000)
    assert kept(place) == ["n2"]


async def test_forgetting_goes_in_small_steps_and_stops_for_others(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "NONCES_AT_A_TIME", 10)
    await asyncio.gather(
        *[store.turns.claim(a_claim(f"r{i}", nonce=a_nonce(f"n{i:03}"))) for i in range(95)]
    )
    await store.upkeep()
    end_upkeep(store)
    place.clock.advance(481)
    execute = store._database.execute  # noqa: SLF001  each step takes a second
    steps: list[int] = []

    async def slowly(sql: str, args: Any = ()) -> int:  # noqa: ANN401, RUF100
        place.clock.advance(1)
        steps.append(gone := await execute(sql, args))
        return gone

    monkeypatch.setattr(store._database, "execute", slowly)  # noqa: SLF001
    keeper = store._nonces  # noqa: SLF001
    await keeper.keep()
    assert sum(steps) == 20
    for _ in range(5):
        await keeper.keep()
    assert (sum(steps), max(steps), kept(place)) == (95, 10, [])


def a_random_nonce(i: int) -> Nonce:
    """The i-th of many, as random as those of callers."""
    return a_nonce(blake2b(i.to_bytes(8), digest_size=16).hexdigest(), sender=f"agent://s{i % 7}")


async def test_many_live_nonces_are_each_refused_and_then_forgotten(
    store: Store, place: Place
) -> None:
    """CARNET_NONCES=1000000 shows that the last costs what the first did; see -s."""
    spent: list[float] = []
    await store.upkeep()

    async def use(i: int) -> None:
        nonce = a_random_nonce(i)
        claimed(await store.turns.claim(a_claim(f"r{i}", nonce=nonce, is_first=True)))

    step = 2000
    for first in range(0, LIVE_NONCES, step):
        began = time.process_time()
        await asyncio.gather(*map(use, range(first, min(first + step, LIVE_NONCES))))
        spent.append(time.process_time() - began)
    some = [spent[len(spent) * i // 10] / step * 1e6 for i in range(10)] + [spent[-1] / step * 1e6]
    sys.stderr.write(f"\nCPU microseconds a claim: {' '.join(f'{one:.0f}' for one in some)}\n")
    assert place.rows("SELECT COUNT(*) FROM nonce") == [(LIVE_NONCES,)]
    dice = random.Random(1)  # noqa: S311  the same on every run
    for i in dice.sample(range(LIVE_NONCES), 200):
        copy = a_claim(f"copy{i}", nonce=a_random_nonce(i))
        assert await store.turns.claim(copy) == REPLAYED
    began = time.monotonic()
    await upkept(store, place, 600)
    sys.stderr.write(f"forgotten in {time.monotonic() - began:.1f} s\n")
    assert kept(place) == []


# ----------------------------------------------------------------------------- any order (I6)

names = st.sampled_from(["n1", "n2", "n3"])
senders = st.sampled_from(["agent://b.example", "agent://c.example"])
uses = st.tuples(senders, names, st.integers(1, 400), st.sampled_from(["new", "same", "refused"]))


class Uses(RuleBasedStateMachine):
    """Any order of uses, alone and together, time, upkeep, restarts and clocks that are set."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._place = Place(Path(self._folder.name), self.url())
        self._loop = asyncio.new_event_loop()
        self._store = self._run(self._place.start())
        self._live: dict[tuple[str, str], int] = {}  # until when it must be refused
        self._made = 0

    def url(self) -> str:
        """Of an empty database; none for a file of its own."""
        return ""

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    @rule(batch=st.lists(uses, min_size=1, max_size=6))
    def use(self, batch: list[tuple[str, str, int, str]]) -> None:
        now = self._place.clock.wall_us()
        claims = [self._claim(*one, now=now) for one in batch]
        found = self._run(self._all(claims))
        for claim, verdict in zip(claims, found, strict=True):
            assert claim.nonce is not None
            key = (claim.nonce.sender, claim.nonce.nonce)
            if isinstance(verdict, Denied):
                if verdict.reason != "replayed":
                    continue
                assert self._live.get(key, 0) > now or self._used_in(claims, found, key)
                continue
            assert self._live.get(key, 0) <= now, f"{key} was accepted twice"
            self._live[key] = claim.nonce.expires

    async def _all(self, claims: list[TurnClaim]) -> list[Any]:
        return await asyncio.gather(*map(self._store.turns.claim, claims))

    def _used_in(self, claims: list[TurnClaim], found: list[Any], key: tuple[str, str]) -> bool:
        return any(
            not isinstance(verdict, Denied) and (claim.nonce.sender, claim.nonce.nonce) == key
            for claim, verdict in zip(claims, found, strict=True)
            if claim.nonce is not None
        )

    def _claim(self, sender: str, name: str, life: int, kind: str, *, now: int) -> TurnClaim:
        self._made += kind != "same"
        nonce = Nonce(sender, name, now + life * SECOND)
        most = 0 if kind == "refused" else 256
        return a_claim(f"r{self._made}", nonce=nonce, now=now, most_run_calls=most)

    @rule(seconds=st.integers(1, 200))
    def wait(self, seconds: int) -> None:
        self._place.clock.advance(seconds)
        self._run(self._store.upkeep())

    @rule()
    def wait_long(self) -> None:
        for _ in range(5):
            self.wait(120)

    @rule()
    def start_again(self) -> None:
        self._run(self._store.close())
        self._store = self._run(self._place.start())

    @invariant()
    def what_is_refused_is_kept(self) -> None:
        now = self._place.clock.wall_us()
        found = set(self._place.rows("SELECT sender, nonce FROM nonce"))
        assert {key for key, expires in self._live.items() if expires > now} <= found

    def teardown(self) -> None:
        self._run(self._store.close())
        self._loop.close()
        self._folder.cleanup()


def test_i6_in_any_order_no_nonce_is_accepted_twice_while_it_lives(
    driver: str, request: pytest.FixtureRequest
) -> None:
    class Here(Uses):
        def url(self) -> str:
            if driver == "sqlite":
                return ""
            server: servers.Server = request.getfixturevalue("server")
            return server.fresh()

    examples = 12 if driver == "sqlite" else 5
    run_state_machine_as_test(
        Here, settings=settings(max_examples=examples, stateful_step_count=20, deadline=None)
    )
