"""Many copies of one signed request, spread over gateways: one is accepted (A10, I6).

`make replay` does it a thousand times.
"""

import asyncio
import json
import os
from collections import Counter

import pytest

from carnet.stores.store import LOOK_SECONDS
from carnet.testing.wait import until, until_so
from tests.replicas.scene import Callers, House, Replica, spread
from tests.support.signing.delegations import ours
from tests.support.signing.signed import Line, Sender, Signed, message

COPIES = 64
ROUNDS = int(os.environ.get("REPLAY_ROUNDS", "25"))
REVOKED_SECONDS = 5.0
ME = "agent://acme.example"


@pytest.fixture(scope="module")
def sender(house: House) -> Sender:
    """Somebody whom the operator has admitted, at all gateways."""
    sender = Sender("agent://client-copies")
    house.operator.carnet("peers", "add", sender.identity, "--key", sender.public)
    until(lambda: all(answers(replica, sender) for replica in house.replicas[:4]))
    return sender


def answers(replica: Replica, sender: Sender) -> bool:
    with Line(replica.port) as line:
        return line.send(message(sender, ME)).status == 200


def code(body: bytes) -> str:
    return str(json.loads(body)["error"]["code"])


async def at_once(people: Callers, four: list[Replica], request: Signed) -> list[bytes]:
    """Send the copies; what those were told that came too late."""
    answers = await asyncio.gather(*[people.send(one, request) for one in spread(four, COPIES)])
    assert Counter(answer.status for answer in answers) == {200: 1, 401: COPIES - 1}
    return [answer.body for answer in answers if answer.status == 401]


async def test_of_copies_sent_to_all_gateways_at_once_exactly_one_is_accepted(
    house: House, four: list[Replica], people: Callers, sender: Sender
) -> None:
    ((before,),) = house.rows("SELECT COUNT(*) FROM nonce")
    for number in range(ROUNDS):
        run = f"replay_{number}"
        late = await at_once(people, four, message(sender, ME, traceId=run))
        assert {code(body) for body in late} == {"REPLAY_DETECTED"}
        assert house.ran(run) == 1
        assert house.turns(run) == [("done", None, 1)]
    assert house.rows("SELECT COUNT(*) FROM nonce") == [(before + ROUNDS,)]


async def test_different_requests_with_one_nonce_are_accepted_once_over_all_gateways(
    house: House, four: list[Replica], people: Callers, sender: Sender
) -> None:
    """It is the nonce that counts, and not the bytes around it."""
    requests = [
        message(sender, ME, nonce="one-for-all", traceId=f"one_{n}", payload={"text": str(n)})
        for n in range(16)
    ]
    answers = await asyncio.gather(
        *[people.send(*pair) for pair in zip(spread(four, 16), requests, strict=True)]
    )
    assert Counter(answer.status for answer in answers) == {200: 1, 401: 15}
    assert sum(house.ran(f"one_{n}") for n in range(16)) == 1


async def test_a_delegation_for_one_call_is_used_up_at_one_gateway_for_all(
    house: House, four: list[Replica], people: Callers, sender: Sender
) -> None:
    """A32: different calls at once, under one token."""
    token = ours(sender, sender.identity, ME, once=True)
    requests = [
        message(sender, ME, traceId=f"granted_{n}", delegationToken=token) for n in range(16)
    ]
    answers = await asyncio.gather(
        *[people.send(*pair) for pair in zip(spread(four, 16), requests, strict=True)]
    )
    assert Counter(answer.status for answer in answers) == {200: 1, 401: 15}
    late = [answer.body for answer in answers if answer.status == 401]
    assert all(b"good for one call, which was made" in body for body in late)
    assert sum(house.ran(f"granted_{n}") for n in range(16)) == 1


async def test_a_nonce_that_one_gateway_has_taken_is_known_to_a_gateway_that_starts_later(
    house: House, four: list[Replica], people: Callers, sender: Sender
) -> None:
    """A11: what is durable is not the memory of a process."""
    request = message(sender, ME)
    assert (await people.send(four[0], request)).status == 200
    (late,) = house.open(1)
    try:
        answer = await people.send(late, request)
        assert (answer.status, code(answer.body)) == (401, "REPLAY_DETECTED")
        assert (await people.send(late, message(sender, ME))).status == 200
    finally:
        house.replicas.remove(late)
        assert late.stop() == 0


async def test_a_key_is_admitted_and_revoked_for_all_gateways(
    house: House, four: list[Replica], people: Callers
) -> None:
    """A23: within five seconds, by a look that each takes more often."""
    passing = Sender("agent://client-passing")

    async def all_say(status: int) -> bool:
        asking = [people.send(replica, message(passing, ME)) for replica in four]
        return {answer.status for answer in await asyncio.gather(*asking)} == {status}

    assert await all_say(401)
    house.operator.carnet("peers", "add", passing.identity, "--key", passing.public)
    await until_so(lambda: all_say(200), pause=0.5)
    house.operator.carnet("peers", "revoke-key", passing.identity)
    await until_so(lambda: all_say(401), pause=0.5)
    assert LOOK_SECONDS < REVOKED_SECONDS  # it is seen at the next look
    before = house.rows("SELECT COUNT(*) FROM turn")
    assert await all_say(401)
    assert house.rows("SELECT COUNT(*) FROM turn") == before
