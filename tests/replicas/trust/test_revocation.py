"""What is revoked at one gateway is so at all: tokens, one or many at once, and hosts' keys."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from functools import partial

import pytest

from carnet.testing.wait import until, until_so
from tests.replicas.scene import Callers, House, Reader, Replica, a_house, callers
from tests.stores.support import servers
from tests.support.http import Reply, chat_body, request

ENDED = (401, "token_invalid")
MAY = ("--scope", "call:*", "--scope", "pay", "--scope", "run:read")
HOST = "x-agents-api-caller-host"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, server: servers.Server) -> Iterator[House]:
    """Two gateways."""
    with a_house(tmp_path_factory.mktemp("revoked"), server) as house:
        house.open(2)
        yield house


@pytest.fixture
async def clients(pair: House) -> AsyncIterator[Callers]:
    async with callers(pair.token) as clients:
        yield clients


def fresh(name: str) -> str:
    return f"{name}-{secrets.token_hex(4)}"


def looks(replica: Replica, token: str) -> Reply:
    return request("GET", f"{replica.url}/runs", [("authorization", f"Bearer {token}")])


def is_refused(replica: Replica, token: str) -> bool:
    return looks(replica, token).status == 401


class Held:
    """Tokens that are revoked together, each with a stream that runs, and one that is not."""

    def __init__(self, house: House, whose: str) -> None:
        operator, name = house.operator, fresh(whose)
        self.name, self.house = name, house
        options = {
            "name": (),
            "agent": ("--agent", "stepwise"),
            "client": ("--client", name),
            "person": ("--person", name),
        }[whose]
        if whose == "person":
            operator.carnet("people", "add", name)
        count = 1 if whose == "name" else 2
        names = [name if whose == "name" else f"{name}-{n}" for n in range(count)]
        self.tokens = [operator.new_token(each, *MAY, *options) for each in names]
        self.other = operator.new_token(fresh("other"), *MAY)
        self.revoke = {
            "name": (name,),
            "agent": ("--agent", "stepwise"),
            "client": ("--client", name),
            "person": ("--person", name),
        }[whose]

    def run_of(self, token: str) -> str:
        return f"conv_{self.name}_{[*self.tokens, self.other].index(token)}"


@pytest.mark.parametrize("whose", ["name", "agent", "client", "person"])
async def test_tokens_end_on_every_gateway_and_what_runs_by_them_too(
    pair: House, clients: Callers, whose: str
) -> None:
    house = pair
    first, second = house.replicas
    held = await asyncio.to_thread(Held, house, whose)
    everybody = [*held.tokens, held.other]
    for each in everybody:
        for replica in (first, second):
            assert looks(replica, each).status == 200
    async with AsyncExitStack() as open_streams:
        readers: dict[str, Reader] = {}
        for number, token in enumerate(everybody):
            run = held.run_of(token)
            house.allow(run, "0")
            reading = clients.reading((first, second)[number % 2], run, token=token)
            readers[token] = await open_streams.enter_async_context(reading)
            await readers[token].until(b'"0 "')
        await asyncio.to_thread(house.operator.carnet, "tokens", "revoke", *held.revoke)
        for token in held.tokens:
            for replica in (first, second):
                await until_so(partial(is_refused, replica, token))
                refused = looks(replica, token)
                assert (refused.status, refused.code) == ENDED
            assert b"cancelled" in await readers[token].rest()
            ((state, code, _),) = house.turns(held.run_of(token))
            assert (state, code) == ("failed", "cancelled")
        # Nobody else has noticed.
        assert [looks(replica, held.other).status for replica in (first, second)] == [200, 200]
        run = held.run_of(held.other)
        house.allow(run, "1", "end")
        assert b'"1 "' in await readers[held.other].rest()
    assert house.turns(run)[0][0] == "done"


def with_key(house: House, replica: Replica, url: str, key: str | None) -> tuple[int, str]:
    """What becomes of a call of a host, with its key or with its word alone."""
    fields = [
        ("authorization", f"Bearer {house.token}"),
        ("content-type", "application/json"),
        ("x-agents-api-caller-agent", "source"),
        (HOST, url),
        ("x-agents-api-chain-depth", "1"),
        ("x-agents-api-chain-root", fresh("root")),
    ]
    if key is not None:
        fields.append(("x-agents-api-caller-key", key))
    path = f"{replica.url}/v1/chat/completions"
    reply = request("POST", path, fields, chat_body("hi", "echo"))
    return reply.status, "" if reply.status == 200 else reply.code


def is_disbelieved(house: House, replica: Replica, url: str, key: str) -> bool:
    return with_key(house, replica, url, key) == (401, "caller_not_verified")


def test_the_key_of_a_host_is_rotated_and_ended_on_every_gateway(
    pair: House,
) -> None:
    url, house, both = f"https://{fresh('host')}.example", pair, pair.replicas
    key = str(house.operator.json("callers", "add", url)["key"])
    for replica in both:  # at once, by a look out of turn
        assert with_key(house, replica, url, key) == (200, "")
    second = str(house.operator.json("callers", "rotate", url)["key"])
    for replica in both:
        assert with_key(house, replica, url, second) == (200, "")
        assert with_key(house, replica, url, key) == (200, "")  # the one before holds for an hour
    third = str(house.operator.json("callers", "rotate", url, "--overlap", "0s")["key"])
    for replica in both:
        assert with_key(house, replica, url, third) == (200, "")
        for former in (key, second):
            until(partial(is_disbelieved, house, replica, url, former))
    house.operator.carnet("callers", "end", url)
    for replica in both:
        until(partial(is_disbelieved, house, replica, url, third))
        assert with_key(house, replica, url, None) == (200, "")  # a claim, as of anybody
