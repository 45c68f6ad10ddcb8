"""Any order of calls, copies, departures and kills over two gateways keeps I1-I5 and I7.

Both are real processes on one database. `CARNET_REPLICA_EXAMPLES=50` searches for longer.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from itertools import count
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from carnet.testing.wait import until, until_so
from tests.replicas.scene import PATIENCE, PRICE, Answer, Callers, House, Replica, a_house, callers
from tests.stores.support import servers

T = TypeVar("T")
Key = tuple[str, str, int]  # agent, run, whose token

EXAMPLES = int(os.environ.get("CARNET_REPLICA_EXAMPLES", "4"))
STEPS = 8
LAST_DEPTH = 3
LIVES = "SELECT id FROM worker"

agents = st.sampled_from(["words", "words", "family", "deep", "broken"])
runs = st.sampled_from(["a", "b"])
tokens = st.sampled_from([0, 1])  # without a limit, and with one
sides = st.sampled_from([0, 1])
any_number = st.integers(0, 1000)


class Calls(RuleBasedStateMachine):
    """What callers and fate may do, in any order."""

    house: ClassVar[House]
    secrets: ClassVar[list[str]]
    lives: ClassVar[list[str]]  # the workers that the two gateways are at the moment
    examples: ClassVar[Iterator[int]] = count()

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._open = AsyncExitStack()
        self._callers: Callers = self._do(self._open.enter_async_context(callers("")))
        self._prefix = f"x{next(self.examples)}_"
        self._acknowledged: dict[Key, str] = {}  # what was acknowledged
        self._done: dict[int, tuple[int, int]] = {}  # executions and cost when first seen done

    def _do(self, act: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(act, 4 * PATIENCE))

    def _side(self, number: int) -> Replica:
        return self.house.replicas[number]

    async def _ask(self, key: Key, side: int, *, stream: bool, text: str = "") -> Answer:
        agent, run, whose = key
        token = self.secrets[whose]
        text = text or ("go" if agent == "stepwise" else "a b c")
        return await self._callers.ask(
            self._side(side), self._prefix + run, agent, text, token=token, stream=stream
        )

    def _receive(self, key: Key, answer: Answer, *, stream: bool) -> None:
        """I7: one end, and it is the last. I1: what was acknowledged is told again unchanged."""
        if stream and answer.status == 200:
            ends = answer.body.count(b"[DONE]") + answer.body.count(b'data: {"error"')
            assert ends == 1, answer
            assert answer.is_whole or b'data: {"error"' in answer.body.split(b"\n\n")[-2], answer
        if is_good(answer, stream=stream):
            text = text_of(answer, stream=stream)
            assert self._acknowledged.setdefault(key, text) == text
        else:
            assert answer.status in {200, 409, 500, 502, 503}, answer
            assert key not in self._acknowledged, (key, answer)

    @rule(agent=agents, run=runs, whose=tokens, side=sides, stream=st.booleans())
    def call(self, agent: str, run: str, whose: int, side: int, *, stream: bool) -> None:
        key = (agent, run, whose)
        self._receive(key, self._do(self._ask(key, side, stream=stream)), stream=stream)

    @rule(agent=agents, run=runs, whose=tokens, stream=st.booleans())
    def send_copies_to_both(self, agent: str, run: str, whose: int, *, stream: bool) -> None:
        key = (agent, run, whose)

        async def copies() -> list[Answer]:
            asking = [self._ask(key, number % 2, stream=stream) for number in range(6)]
            return await asyncio.gather(*asking)

        received = self._do(copies())
        for answer in sorted(received, key=lambda answer: is_good(answer, stream=stream)):
            self._receive(
                key, answer, stream=stream
            )  # a failure may come before a success, not after

    def _acknowledged_before(self, number: int) -> Key | None:
        known = sorted(self._acknowledged)
        return known[number % len(known)] if known else None

    @rule(number=any_number, side=sides, stream=st.booleans())
    def repeat(self, number: int, side: int, *, stream: bool) -> None:
        if (key := self._acknowledged_before(number)) is not None:
            self._receive(key, self._do(self._ask(key, side, stream=stream)), stream=stream)

    @rule(number=any_number, side=sides)
    def repeat_with_another_body(self, number: int, side: int) -> None:
        if (key := self._acknowledged_before(number)) is not None:
            before = self._records()
            answer = self._do(self._ask(key, side, stream=False, text="else"))
            assert answer.status == 422
            assert self._records() == before

    @rule(run=runs, side=sides, elsewhere=st.booleans())
    def leave_midway(self, run: str, side: int, *, elsewhere: bool) -> None:
        """Hang up in the midst of a stream; perhaps it is read at the other gateway too."""

        async def leave() -> None:
            name = f"{self._prefix}{run}"
            self.house.allow(name, "0")
            async with AsyncExitStack() as open_streams:
                for number in (side, 1 - side) if elsewhere else (side,):
                    reading = self._callers.reading(self._side(number), name, token=self.secrets[0])
                    reader = await open_streams.enter_async_context(reading)
                    await reader.until(b'"0 "')
            await until_so(self._is_quiet)

        self._do(leave())

    @rule(run=runs, side=sides, agent=st.sampled_from(["stepwise", "family"]), whose=tokens)
    def kill_during(self, run: str, side: int, agent: str, whose: int) -> None:
        """Kill a gateway in the midst of a turn, and start it again."""
        key = (agent, run, whose)
        name = f"{self._prefix}{run}"
        self.house.allow(name, "0")
        before = self.house.ran(name)

        async def die() -> Answer:
            asking = asyncio.create_task(self._ask(key, side, stream=True))

            async def has_begun() -> bool:
                return self.house.ran(name) > before or asking.done()

            await until_so(has_begun, pause=0.005)
            self._kill(side)
            self.house.allow(name, "end")
            return await asking

        answer = self._do(die())
        if answer.is_whole:
            self._receive(key, answer, stream=True)

    def _kill(self, side: int) -> None:
        """A crash. What its lease would take to run out is spared."""
        victim = self._side(side)
        victim.kill()
        self.house.rows("UPDATE worker SET until = 0 WHERE id = ?", self.lives[side])
        before = set(self.house.rows(LIVES))
        victim.start()
        until(lambda: bool(set(self.house.rows(LIVES)) - before))
        ((self.lives[side],),) = set(self.house.rows(LIVES)) - before

    async def _is_quiet(self) -> bool:
        sql = "SELECT COUNT(*) FROM turn WHERE state = 'running'"
        return self.house.rows(sql) == [(0,)]

    def _records(self) -> list[tuple[Any, ...]]:
        return self.house.rows(
            "SELECT t.n, t.agent, r.id, t.turn, t.parent, t.depth, t.state, t.attempt, t.cost"
            " FROM turn t JOIN run r ON r.n = t.run WHERE r.id LIKE ? ORDER BY t.n",
            f"{self._prefix}%",
        )

    @invariant()
    def i1_i2_what_is_done_stays_as_it_is_and_never_runs_again(self) -> None:
        self._do(until_so(self._is_quiet))
        ran = Counter(n for what, _, n in self.house.trace() if what == "began")
        for n, _, _, _, _, _, state, attempt, cost in self._records():
            assert ran[n] <= attempt
            if n in self._done:
                assert state == "done"
            if state == "done":
                assert self._done.setdefault(n, (ran[n], cost)) == (ran[n], cost)

    @invariant()
    def i3_what_is_billed_is_what_was_done(self) -> None:
        done = [row for row in self._records() if row[6] == "done"]
        billed = self.house.rows(
            "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE run LIKE ?", f"{self._prefix}%"
        )
        assert billed == [(PRICE * sum(agent != "echo" for _, agent, *_ in done),)]
        assert self.house.rows("SELECT name FROM purse WHERE reserved <> 0") == []

    @invariant()
    def i4_i5_depth_grows_along_every_edge_and_the_run_stays(self) -> None:
        records = self._records()
        depths: dict[tuple[str, str], set[int]] = {}
        for _, _, run, turn, _, depth, *_ in records:
            depths.setdefault((run, turn), set()).add(depth)
            assert 0 <= depth <= LAST_DEPTH
        for _, _, run, _, parent, depth, *_ in records:
            if parent is not None:
                assert depths[run, parent] == {depth - 1}

    def teardown(self) -> None:
        """Everything that was acknowledged is still told the same, by both; then let go."""
        try:
            for key in self._acknowledged:
                for side in (0, 1):
                    self._receive(key, self._do(self._ask(key, side, stream=False)), stream=False)
        finally:
            self._do(self._open.aclose())
            self._loop.close()


def is_good(answer: Answer, *, stream: bool) -> bool:
    """Whether it acknowledges the turn."""
    return answer.status == 200 and (not stream or answer.is_whole)


def text_of(answer: Answer, *, stream: bool) -> str:
    """The text of an answer, however it came."""
    if not stream:
        return str(json.loads(answer.body)["choices"][0]["message"]["content"])
    lines = [line for line in answer.body.splitlines() if line.startswith(b"data: {")]
    frames = [json.loads(line.removeprefix(b"data: ")) for line in lines]
    choices = [choice for frame in frames for choice in frame["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@pytest.mark.timeout(120 + 60 * EXAMPLES)
def test_calls_over_two_gateways_keep_the_invariants(
    tmp_path_factory: pytest.TempPathFactory, server: servers.Server
) -> None:
    with a_house(tmp_path_factory.mktemp("invariants"), server) as house:
        Calls.house = house
        Calls.secrets = [house.token, house.operator.new_token("limited", "--limit", "1000")]
        Calls.lives = []
        for _ in range(2):
            house.open(1)
            ((life,),) = set(house.rows(LIVES)) - {(known,) for known in Calls.lives}
            Calls.lives.append(life)
        run_state_machine_as_test(
            Calls,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes for ever
                suppress_health_check=list(HealthCheck),
            ),
        )
