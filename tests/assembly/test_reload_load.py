"""A reload under load: no call fails, and none meets half of two configurations."""

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from operator import contains
from pathlib import Path

import pytest

from carnet.http.server import room_for
from carnet.testing.wait import until_so
from tests.support.http import chat_body
from tests.support.organisation import Organisation

HELD = 1000  # calls in flight while the configuration changes
PASSING = 8  # that come and go meanwhile
AGENTS = """
import asyncio
from pathlib import Path

import carnet
import parts

GO = Path(__file__).parent / "go"
STAMP = f"module @ part {parts.NUMBER}"


async def version(visit: carnet.Visit) -> str:
    return STAMP


class Latch:
    opened = asyncio.Event()
    looking = None


async def look():
    while not GO.exists():
        await asyncio.sleep(0.05)
    Latch.opened.set()


async def held(visit: carnet.Visit):
    '''Begin with one configuration, and go on when others have come.'''
    yield STAMP + " "
    if Latch.looking is None:
        Latch.looking = asyncio.create_task(look())
    await Latch.opened.wait()
    yield await visit.peer("version").ask("hi")
"""
CONFIG = """
[agents.version]
target = "agents:version"
version = "@.0.0"
price = "@"
default = true
[agents.held]
target = "agents:held"
price = "@"
[limits]
calls_per_caller = 2000
streams_per_caller = 2000
sender_calls_per_minute = 100@
"""
BAD = {
    "carnet.toml": "[limits]\ncalls = 0\n",
    "agents.py": "async def held(visit:\n",
    "parts.py": "raise RuntimeError('half done')\n",
}


class Versioned(Organisation):
    """An organisation whose agents, prices and limits all tell one number."""

    _head = ""  # of carnet.toml

    def write(self, number: int) -> None:
        config = self.folder / "carnet.toml"
        self._head = self._head or config.read_text().partition("\n[agents")[0]
        config.write_text(self._head + CONFIG.replace("@", str(number)))
        (self.folder / "agents.py").write_text(AGENTS.replace("@", str(number)))
        (self.folder / "parts.py").write_text(f"NUMBER = {number}\n")

    async def send(self, method: str, path: str, body: bytes = b"", token: str = "") -> bytes:
        """The whole answer to one request, on a connection of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: acme.example\r\nconnection: close\r\n"
            f"authorization: Bearer {token or self.token}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        try:
            return await reader.read(-1)
        finally:
            writer.close()

    def page_of_metrics(self, token: str) -> str:
        return self.get("/metrics", token=token).body.decode()

    async def answer_of(self, agent: str, *, stream: bool) -> str:
        """What one call tells of the configuration that it met, in its text and its cost."""
        path = "/v1/chat/completions"
        answer = await self.send("POST", path, chat_body("hi", agent, stream=stream))
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        return read_stream(answer) if stream else read_whole(answer)


def read_whole(answer: bytes) -> str:
    page = json.loads(answer.partition(b"\r\n\r\n")[2])
    return f"{page['choices'][0]['message']['content']} cost {page['usage']['cost']}"


def read_stream(answer: bytes) -> str:
    lines = [line for line in answer.splitlines() if line.startswith(b"data: {")]
    chunks = [json.loads(line.removeprefix(b"data: ")) for line in lines]
    assert b"data: [DONE]" in answer, answer
    assert not [chunk for chunk in chunks if "error" in chunk], answer
    text = "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
    )
    (usage,) = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    return f"{text} cost {usage['cost']}"


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Versioned]:
    assert room_for(HELD) == HELD
    gateway = Versioned(tmp_path / "acme", "acme.example")
    gateway.write(1)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


class Passing:
    """Calls and cards that come and go while the configuration changes."""

    def __init__(self, acme: Versioned) -> None:
        self._acme = acme
        self._is_over = False
        self.calls: list[str] = []
        self.cards: list[tuple[str, int, str]] = []

    async def __aenter__(self) -> "Passing":
        self._tasks = [asyncio.create_task(self._pass(each % 2 == 0)) for each in range(PASSING)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def _pass(self, is_stream: bool) -> None:  # noqa: FBT001  one of two kinds
        while not self._is_over:
            self.calls.append(await self._acme.answer_of("version", stream=is_stream))
            answer = await self._acme.send("GET", "/.well-known/agent.json")
            card = json.loads(answer.partition(b"\r\n\r\n")[2])
            rate = card["rateLimit"]["requestsPerSender"]
            self.cards.append((card["version"], rate, card["carnet"]["price"]))


async def test_a_reload_under_load_fails_no_call_and_no_call_meets_half_of_each(
    acme: Versioned,
) -> None:
    held = [asyncio.create_task(acme.answer_of("held", stream=n % 2 == 0)) for n in range(HELD)]
    token = acme.new_token("ops", "--scope", "metrics", "--scope", "admin:reload")
    opened = f"carnet_open_calls {float(HELD)}"
    await until_so(lambda: asyncio.to_thread(acme.page_of_metrics, token), lambda p: opened in p)
    async with Passing(acme) as passing:
        for number, (name, bad) in enumerate(BAD.items(), 2):
            acme.write(number)
            assert b" 200 " in (await acme.send("POST", "/-/reload", token=token))[:20]
            expected = f"module {number} part {number} cost {number}"
            assert await acme.answer_of("version", stream=False) == expected
            (acme.folder / name).write_text(bad)
            assert b" 409 " in (await acme.send("POST", "/-/reload", token=token))[:20]
            assert await acme.answer_of("version", stream=True) == expected
            await until_so(partial(contains, passing.calls, expected))
    assert not [task for task in held if task.done()]
    (acme.folder / "go").touch()
    answers = set(await asyncio.gather(*held))
    assert answers == {"module 1 part 1 module 1 part 1 cost 2"}  # its own, and its neighbour's
    whole = {f"module {n} part {n} cost {n}" for n in range(1, 5)}
    assert set(passing.calls) <= whole
    assert set(passing.cards) <= {(f"{n}.0.0", 1000 + n, str(n)) for n in range(1, 5)}
