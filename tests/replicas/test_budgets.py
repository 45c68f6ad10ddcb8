"""What the card of an agent grants a sender is counted over all gateways, and no more is given."""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import pytest

from carnet.testing.wait import until
from tests.replicas.scene import BUDGET, Answer, Callers, House, Replica, spread
from tests.support.http import request
from tests.support.signing.signed import Line, Sender, Signed, message, now

ME = "agent://acme.example"
COUNTED = "agent://counted.acme.example"
PATH = "/agents/counted"
SENDER_CALLS, AGENT_CALLS = 12, 20  # a minute
DAY_SECONDS = 86_400
Outcome = tuple[int, str]
T = TypeVar("T")

OVER: Outcome = (429, "TOKEN_BUDGET_EXCEEDED")


def admitted(house: House, replicas: Sequence[Replica], name: str) -> Sender:
    """A sender that all of these gateways know."""
    sender = Sender(f"agent://client-{name}")
    house.operator.carnet("peers", "add", sender.identity, "--key", sender.public)
    until(lambda: all(is_known(replica, sender) for replica in replicas))
    return sender


def is_known(replica: Replica, sender: Sender) -> bool:
    """Ask for what nobody has, so that nothing is counted."""
    nothing = message(sender, COUNTED, target=f"{PATH}/agent/message", skill="nothing")
    with Line(replica.port) as line:
        return line.send(nothing).status == 404


def using(sender: Sender, tokens: int) -> Signed:
    payload = {"text": str(tokens)}
    return message(sender, COUNTED, target=f"{PATH}/agent/message", payload=payload)


def today() -> str:
    return datetime.fromtimestamp(now(), UTC).date().isoformat()


def outcome(answer: Answer) -> Outcome:
    body = json.loads(answer.body)
    return answer.status, "" if answer.status == 200 else str(body["error"]["code"])


async def on_one_day(scenario: Callable[[str], Awaitable[T]]) -> T:
    """Play it, and once more, with another sender, if midnight came between."""
    day = today()
    result = await scenario(f"one-{day}")
    return result if today() == day else await scenario(f"two-{day}")


async def test_tokens_are_counted_over_all_gateways_until_the_day_ends(
    house: House, four: list[Replica], people: Callers
) -> None:
    asked = (300, 300, -300, 300)  # one fails; 900 are used before the last is asked

    async def ask(name: str) -> tuple[list[Outcome], list[Outcome], int]:
        sender = admitted(house, four, f"frugal-{name}")
        first = [
            outcome(await people.send(one, using(sender, tokens)))
            for one, tokens in zip(four, asked, strict=True)
        ]
        then = [outcome(await people.send(one, using(sender, 300))) for one in spread(four, 8)]
        with Line(four[0].port) as line:
            return first, then, int(line.send(using(sender, 300)).headers["retry-after"])

    first, then, waits = await on_one_day(ask)
    assert first == [(200, ""), (200, ""), (500, "AGENT_UNAVAILABLE"), (200, "")]
    assert then == [OVER] * 8
    assert 0 < waits <= DAY_SECONDS
    other = admitted(house, four[:1], "frugal-other")
    assert outcome(await people.send(four[0], using(other, 300))) == (200, "")


async def test_what_runs_at_once_at_all_gateways_is_counted_whole(
    house: House, four: list[Replica], people: Callers
) -> None:
    """Nothing is lost when many ends are written at once: the last token decides."""

    async def ask(name: str) -> tuple[list[Outcome], list[Outcome]]:
        sender = admitted(house, four, f"many-{name}")
        eighth = BUDGET // 8
        sent = [people.send(one, using(sender, eighth)) for one in spread(four, 7)]
        first = [outcome(answer) for answer in await asyncio.gather(*sent)]
        then = [outcome(await people.send(one, using(sender, eighth))) for one in spread(four, 5)]
        return first, then

    first, then = await on_one_day(ask)
    assert first == [(200, "")] * 7
    assert then == [(200, ""), OVER, OVER, OVER, OVER]


def limits_on_card(replica: Replica, path: str) -> object:
    return request("GET", f"{replica.url}{path}/.well-known/agent.json").json["rateLimit"]


def test_the_card_says_what_a_sender_may_use(four: list[Replica]) -> None:
    calls = {"requestsPerMinute": 60_000, "requestsPerSender": 1_000_000}
    assert limits_on_card(four[0], PATH) == {**calls, "tokensPerSenderPerDay": BUDGET}
    assert limits_on_card(four[0], "/agents/echo") == calls


@pytest.fixture(scope="module")
def strict(house: House) -> Iterator[list[Replica]]:
    """Two more gateways, where little may be asked."""
    limits = {
        "SENDER_CALLS_PER_MINUTE": SENDER_CALLS,
        "AGENT_CALLS_PER_MINUTE": AGENT_CALLS,
        "SENDER_TOKENS_PER_DAY": BUDGET - 1,
    }
    env = {f"CARNET__LIMITS__{name}": str(most) for name, most in limits.items()}
    two = house.open(2, env)
    yield two
    for replica in two:
        house.replicas.remove(replica)
        assert replica.stop() == 0


async def test_the_calls_of_a_minute_are_counted_over_all_gateways(
    house: House, strict: list[Replica], people: Callers
) -> None:
    """What becomes free while the test runs is known: one call each so many seconds."""
    senders = [admitted(house, strict, f"hurried-{n}") for n in range(3)]
    began = time.monotonic()
    asking = [
        people.send(one, message(sender, ME))
        for one in spread(strict, 2 * SENDER_CALLS)
        for sender in senders
    ]
    answers = [outcome(answer) for answer in await asyncio.gather(*asking)]
    took = time.monotonic() - began
    assert set(answers) == {(200, ""), (429, "RATE_LIMITED")}
    of_each = [answers[n :: len(senders)].count((200, "")) for n in range(len(senders))]
    free = math.ceil(took / (60 / AGENT_CALLS))
    assert AGENT_CALLS <= sum(of_each) <= AGENT_CALLS + free
    assert max(of_each) <= SENDER_CALLS + math.ceil(took / (60 / SENDER_CALLS))


def test_what_an_agent_sets_comes_before_what_is_set_for_all(strict: list[Replica]) -> None:
    calls = {"requestsPerMinute": AGENT_CALLS, "requestsPerSender": SENDER_CALLS}
    assert limits_on_card(strict[0], PATH) == {**calls, "tokensPerSenderPerDay": BUDGET}
    assert limits_on_card(strict[0], "/agents/echo") == {
        **calls,
        "tokensPerSenderPerDay": BUDGET - 1,
    }
