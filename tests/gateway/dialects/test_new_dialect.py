"""A dialect that no file of the package knows: one row, one folder, and it works end to end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from carnet.testing.wait import until_so
from carnet.wire.dialects import DIALECTS
from tests.gateway.dialects.plain_words import WORDS
from tests.support.house import Answer, House, housed

# The address of a callback must be one that peers may name; nobody listens there.
HOOK = "https://192.0.2.7:8443/in"
CONFIG = """
[egress]
allow = ["192.0.2.7:8443"]

[agents.asks]
kind = "python"
target = "house_agents:cautious"
"""
THIS_CALL = {"x-tangle-runid": "run-7", "x-tangle-turnid": "turn-7"}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with housed(tmp_path, CONFIG, dialects=(*DIALECTS, WORDS)) as house:
        yield house


async def say(
    house: House, text: str, to: str = "echo", path: str = "/words", **more: str
) -> Answer:
    return await house.ask("POST", path, {"to": to, "say": text, **more})


async def ended(house: House, ticket: str) -> Answer:
    """How a task was told when it had ended."""
    async with asyncio.timeout(30):
        while True:
            reply = await house.ask("GET", f"/words/later/{ticket}")
            if b" waits" not in reply.body:
                return reply
            await asyncio.sleep(0)


async def ticket_of(house: House, text: str, to: str = "echo", **more: str) -> str:
    reply = await say(house, text, to, "/words/later", **more)
    assert reply.status == 201
    word, ticket = reply.body.decode().split()
    assert word == "TICKET"
    return ticket


async def test_a_call_is_answered_and_refused_in_its_words(house: House) -> None:
    reply = await say(house, "hello")
    assert (reply.status, reply.body) == (200, b"SAID hello")
    assert reply.headers["x-words-stream"] == "no"
    assert (await say(house, "x", "broken")).body == b"NO agent_failed of broken"
    assert (await say(house, "x", "nobody")).body == b"NO agent_not_found"
    assert (await house.ask("POST", "/words", {})).body == b"NO invalid_request"


async def test_whatever_is_refused_below_its_root_is_refused_in_its_words(house: House) -> None:
    for method, path in (("GET", "/words"), ("GET", "/words/no/such"), ("GET", "/words/later/x")):
        reply = await house.ask(method, path)
        assert (reply.status, reply.body[:3]) == (418, b"NO ")
    assert (await house.ask("GET", "/words/who", token="ck_no")).body == b"NO token_invalid"
    assert (await house.ask("GET", "/wordsmith")).json()["code"] == "not_found"


async def test_its_chain_is_that_of_the_stamps(house: House) -> None:
    deep = {"x-tangle-forwarded-depth": "4", "x-tangle-runid": "run-1"}
    reply = await house.ask("POST", "/words", {"to": "echo", "say": "x"}, headers=deep)
    assert reply.body == b"NO bridge_depth_exceeded"


async def test_a_task_is_accepted_polled_listed_and_stopped_in_its_words(house: House) -> None:
    ticket = await ticket_of(house, "later")
    reply = await ended(house, ticket)
    assert reply.body == f"TICKET {ticket} ready\nSAID later".encode()
    lost = await ticket_of(house, "x", "broken")
    assert (await ended(house, lost)).body.startswith(f"TICKET {lost} lost".encode())
    listed = (await house.ask("GET", "/words/later")).body.decode().splitlines()
    assert listed == [f"TICKET {lost} lost", f"TICKET {ticket} ready"]
    stopped = await house.ask("POST", f"/words/later/{ticket}/stop")
    assert stopped.body == reply.body


async def test_its_task_is_called_back_in_its_words_and_that_of_a_chat_in_those_of_a_chat(
    house: House,
) -> None:
    ticket = await ticket_of(house, "call me", tell=HOOK)
    lost = await ticket_of(house, "x", "broken", tell=HOOK)
    chat = {"model": "echo", "messages": [{"role": "user", "content": "hi"}], "callback": HOOK}
    chatted = (await house.ask("POST", "/tasks", chat)).json()["taskId"]
    for each in (ticket, lost, chatted):
        await ended(house, each)
    stored = await house.gateway.store.outbox.list(state=None, limit=10)
    deliveries = {each.delivery.task: each.delivery.body for each in stored}
    assert deliveries[ticket] == b"SAID call me"
    assert deliveries[lost] == b"NO agent_failed of broken"
    assert b'"object":"chat.completion"' in deliveries[chatted]


async def test_what_an_agent_asks_for_is_told_in_its_words_and_its_answer_goes_on(
    house: House,
) -> None:
    asking = {"to": "asks", "say": "x"}
    first = await house.ask("POST", "/words", asking, headers=THIS_CALL)
    word, state, asked = first.body.decode().split(" ", 2)
    assert (first.status, word, asked) == (409, "ASKS", "approval May I?")
    again = await house.ask("POST", "/words", asking, headers=THIS_CALL)
    assert (again.status, again.body) == (409, first.body)
    answer = {"carnet-resolution": f"{state};outcome=accepted"}
    last = await house.ask("POST", "/words", asking, headers=THIS_CALL | answer)
    assert (last.status, last.body) == (200, b"SAID accepted")


async def test_what_a_task_asks_for_is_told_in_its_words_and_its_answer_goes_on(
    house: House,
) -> None:
    asking = {"to": "asks", "say": "x", "tell": HOOK}
    accepted = await house.ask("POST", "/words/later", asking, headers=THIS_CALL)
    ticket = accepted.body.decode().split()[1]
    shown = await until_so(
        lambda: house.ask("GET", f"/words/later/{ticket}"), lambda reply: b"ASKS" in reply.body
    )
    line, asked = shown.body.decode().splitlines()
    word, state, what = asked.split(" ", 2)
    assert (line, word, what) == (f"TICKET {ticket} waits", "ASKS", "approval May I?")
    answer = {"carnet-resolution": f"{state};outcome=accepted"}
    again = await house.ask("POST", "/words/later", asking, headers=THIS_CALL | answer)
    assert again.body.decode() == f"TICKET {ticket}"
    assert (await ended(house, ticket)).body.decode() == f"TICKET {ticket} ready\nSAID accepted"
    (stored,) = await house.gateway.store.outbox.list(state=None, limit=10)
    assert stored.delivery.body == b"SAID accepted"


async def test_its_agents_and_its_routes_are_told(house: House) -> None:
    assert b"echo" in (await house.ask("GET", "/words/who")).body.splitlines()
    paths = (await house.ask("GET", "/openapi.json")).json()["paths"]
    assert "post" in paths["/words"]
    assert paths["/words/later/{task}"]["parameters"][0]["name"] == "task"
    shown = (await house.ask("GET", "/.well-known/carnet.json")).json()
    assert "words" in shown["dialects"]
