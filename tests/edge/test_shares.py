"""However many requests of one caller come at once, those of others begin between them (A99)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from carnet.http.protocol import HardProtocol
from carnet.http.shares import STEPS
from carnet.testing.wait import until_so
from tests.edge.test_overload import Place, get, served
from tests.edge.wire import HEAD

MANY = 4 * STEPS


def asking(path: str, caller: str) -> bytes:
    fields = HEAD + f"authorization: Bearer {caller}\r\n".encode()
    return f"GET {path} HTTP/1.1\r\n".encode() + fields + b"\r\n"


@asynccontextmanager
async def busy_place(connections: int) -> AsyncIterator[tuple[Place, list[HardProtocol]]]:
    """A server with as many open requests as need no shares, and so many silent connections."""
    async with served(requests=1000, connections=1000) as place:
        for _ in range(STEPS):
            await place.say(get(b"/held"))
        await until_so(lambda: len(place.app.begun) == STEPS)
        busy = place.connections()
        for _ in range(connections):
            await place.say(b"")
        await until_so(lambda: len(place.connections()) == STEPS + connections)
        place.app.begun.clear()
        yield place, [one for one in place.connections() if one not in busy]


async def test_a_request_of_another_begins_between_those_of_one_caller() -> None:
    async with busy_place(MANY + 1) as (place, connections):
        for connection in connections[:-1]:
            connection.data_received(asking("/greedy", "greedy"))
        connections[-1].data_received(asking("/modest", "modest"))
        await until_so(lambda: len(place.app.begun) == MANY + 1)
        assert place.app.begun.index("/modest") <= STEPS


async def test_who_leaves_before_its_turn_is_never_begun() -> None:
    async with busy_place(MANY) as (place, connections):
        for connection in connections[:-1]:
            connection.data_received(asking("/greedy", "greedy"))
        connections[-1].data_received(asking("/gone", "greedy"))
        connections[-1].transport.abort()
        await until_so(lambda: len(place.app.begun) == MANY - 1)
        await until_so(lambda: len(place.connections()) == STEPS + MANY - 1)
        assert place.app.begun == ["/greedy"] * (MANY - 1)
