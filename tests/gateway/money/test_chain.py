"""Whether the ledger is whole is found on request, one walk at a time, within a bound."""

import asyncio
from collections.abc import Iterator

import pytest

from carnet.gateway.money.chain import ChainPages
from carnet.http.exchange import Message
from carnet.stores.ledger.verification import Progress, Verified
from carnet.testing.clock import FakeClock
from carnet.wire.grammar import json
from tests.console.pages import an_admin
from tests.console.test_live import caller_named, exchange_of
from tests.gateway.people.browser import Somebody
from tests.support.federation import organisation
from tests.support.organisation import Organisation


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    acme = organisation(tmp_path_factory.mktemp("chain") / "acme", "acme.example")
    acme.start()
    yield acme
    assert acme.stop() == 0


def test_a_ledger_is_verified_on_request_and_what_was_found_is_told(acme: Organisation) -> None:
    admin = an_admin(acme).browser()
    assert admin.send("GET", "/ledger/chain").json == {"state": "never"}
    assert admin.chat("x", "paid").status == 200
    found = admin.send("POST", "/ledger/chain", b"").json
    assert (found["state"], found["fault_count"]) == ("whole", 0)
    assert found["postings"] >= 1
    assert admin.send("GET", "/ledger/chain").json == found
    operator = Somebody(acme).browser()
    for method in ("GET", "POST"):
        assert operator.send(method, "/ledger/chain", b"").status == 403


class Answered:
    """Keeps what is answered."""

    def __init__(self) -> None:
        self.body = b""

    async def __call__(self, message: Message) -> None:
        self.body += message.get("body", b"")


async def ask(pages: ChainPages, what: str) -> dict[str, object]:
    answered = Answered()
    exchange = exchange_of("/ledger/chain", send=answered)
    await getattr(pages, what)(exchange, caller_named("alice"))
    return json.read_object(answered.body)


async def test_one_walk_at_a_time_and_who_asks_meanwhile_is_told_how_far_it_is() -> None:
    go, walks = asyncio.Event(), 0

    async def verify(progress: Progress) -> Verified:
        nonlocal walks
        walks += 1
        progress(5)
        await go.wait()
        return Verified(postings=9, fault_count=1)

    pages = ChainPages(verify, FakeClock(), currency="credits")
    walk = asyncio.create_task(ask(pages, "walk"))
    await asyncio.sleep(0)
    for what in ("walk", "show"):
        so_far = await ask(pages, what)
        assert (so_far["state"], so_far["postings"]) == ("running", 5)
    go.set()
    found = await walk
    assert (found["state"], found["postings"], walks) == ("broken", 9, 1)
    assert await ask(pages, "show") == found


async def test_a_walk_that_takes_too_long_is_ended() -> None:
    async def verify(progress: Progress) -> Verified:
        progress(3)
        await asyncio.Event().wait()
        raise AssertionError

    pages = ChainPages(verify, FakeClock(), currency="credits", seconds=0.01)
    found = await ask(pages, "walk")
    assert (found["state"], found["postings"]) == ("too_long", 3)
    assert (await ask(pages, "show"))["state"] == "too_long"
