"""An agent is hardened by its policy, whenever that is: what calls share is in the policy."""

import asyncio
from typing import Any

import pytest

from carnet.core.call import Call
from carnet.core.messages.events import Done, End, Text
from carnet.core.messages.output import Output
from carnet.errors import AgentFailed, CircuitOpen, Overloaded, ProviderTimeout, ProviderUnavailable
from carnet.runtime.wrappers.breaker import Breaker
from carnet.runtime.wrappers.hardened import Policy, harden
from carnet.runtime.wrappers.limited import Places
from carnet.testing.clock import FakeClock, FakeIds
from tests.runtime.scene import GOOD, collect, fail, in_turn, make_call, saying

CLOCK = FakeClock()
BARE: Any = {"clock": CLOCK, "ids": FakeIds(), "seconds": 60.0}


async def test_a_policy_of_nothing_but_time_changes_nothing_else() -> None:
    assert await collect(harden(GOOD, Policy(**BARE)), make_call()) == [Text("well"), Done()]


async def test_what_calls_share_is_shared_by_agents_that_are_hardened_for_each() -> None:
    breaker, places = Breaker(failures_to_open=1, clock=CLOCK), Places(1, queue=1)
    policy = Policy(**BARE, breaker=breaker, places=places)
    with pytest.raises(ProviderUnavailable):
        await collect(harden(saying(then=ProviderUnavailable()), policy), make_call())
    with pytest.raises(CircuitOpen):
        await collect(harden(GOOD, policy), make_call())
    busy = Policy(**BARE, places=Places(1, queue=1, seconds=0.01))
    go_on = asyncio.Event()

    async def slow(_: Call, __: Output, /) -> End:
        await go_on.wait()
        return Done()

    first = asyncio.create_task(collect(harden(slow, busy), make_call()))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await collect(harden(GOOD, busy), make_call())
    go_on.set()
    assert await first == [Done()]


async def test_every_attempt_is_told_to_the_breaker_and_a_timeout_is_the_last_one() -> None:
    async def endless(_: Call, __: Output, /) -> End:
        await asyncio.sleep(60)
        return Done()

    broken = saying(then=ProviderUnavailable())
    agent, calls = in_turn(broken, broken, endless, GOOD)
    breaker = Breaker(failures_to_open=4, clock=CLOCK)
    policy = Policy(clock=CLOCK, ids=FakeIds(), seconds=0.01, breaker=breaker, retries=3)
    error, _ = await fail(harden(agent, policy), make_call())
    assert isinstance(error, ProviderTimeout)
    assert (len(calls), breaker.most_failures) == (3, 3)


async def test_a_detached_agent_that_cancels_itself_has_failed() -> None:
    cancelled = saying(then=asyncio.CancelledError())
    error, _ = await fail(harden(cancelled, Policy(**BARE, is_detached=True)), make_call())
    assert isinstance(error, AgentFailed)
