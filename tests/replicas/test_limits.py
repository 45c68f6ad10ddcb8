"""What a token may do is one number, and one decision, over all gateways (A23)."""

import asyncio
from collections import Counter

from carnet.stores.store import LOOK_SECONDS
from carnet.testing.wait import until_so
from tests.replicas.scene import PRICE, Callers, House, Replica, spread

SENT = 80
REVOKED_SECONDS = 5.0


async def statuses(
    people: Callers, four: list[Replica], name: str, agent: str, token: str
) -> Counter[int]:
    asking = [
        people.ask(replica, f"{name}_{number}", agent, token=token)
        for number, replica in enumerate(spread(four, SENT))
    ]
    return Counter(answer.status for answer in await asyncio.gather(*asking))


async def test_a_rate_is_counted_over_all_gateways(
    house: House, four: list[Replica], people: Callers
) -> None:
    token = house.operator.new_token("hurried", "--rate", "17/h")
    assert await statuses(people, four, "rate", "echo", token) == {200: 17, 429: SENT - 17}
    assert sum(house.ran(f"rate_{number}") for number in range(SENT)) == 17


async def test_a_spending_limit_holds_over_all_gateways(
    house: House, four: list[Replica], people: Callers
) -> None:
    token = house.operator.new_token("thrifty", "--limit", "0.0027")  # thirteen calls and a half
    assert await statuses(people, four, "spend", "words", token) == {200: 13, 402: SENT - 13}
    assert sum(house.ran(f"spend_{number}") for number in range(SENT)) == 13
    billed = [amount for n in range(SENT) for amount in house.billed(f"spend_{n}")]
    assert billed == [PRICE] * 13
    assert house.rows("SELECT spent, reserved FROM purse WHERE name LIKE '%thrifty%'") == [
        (13 * PRICE, 0)
    ]


async def test_a_token_is_made_and_revoked_for_all_gateways(
    house: House, four: list[Replica], people: Callers
) -> None:
    token = house.operator.new_token("passing")
    calls = iter(range(10_000))

    async def all_say(status: int) -> bool:
        asking = [
            people.ask(replica, f"passing_{next(calls)}", "echo", token=token) for replica in four
        ]
        return {answer.status for answer in await asyncio.gather(*asking)} == {status}

    await until_so(lambda: all_say(200), pause=0.5)
    house.operator.carnet("tokens", "revoke", "passing")
    await until_so(lambda: all_say(401), pause=0.5)
    assert LOOK_SECONDS < REVOKED_SECONDS  # it is seen at the next look
    before = house.rows("SELECT COUNT(*) FROM turn")
    assert await all_say(401)
    assert house.rows("SELECT COUNT(*) FROM turn") == before
