"""Gateway A, a toxic proxy and gateway B; and waiting for things that take a moment."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from carnet.testing.toxic import Toxic, ToxicProxy
from tests.faults.stores import move_to, number, rows
from tests.support.federation import introduce, organisation
from tests.support.http import HeaderList, Reply, chat_body, stream
from tests.support.organisation import Organisation

PRICE = 200  # micro-units
SECONDS = 60.0  # what a call from A to B may take ...
BRIEF_SECONDS = 1.0  # ... and one of `brief`
LATE_SECONDS = 10.0  # on top of that, for a machine that is busy
THERE = """
[agents.spoken]
kind = "python"
target = "agents:words"
price = "0.0002"

[agents.drip]
kind = "python"
target = "agents:slow"
price = "0.0002"
"""
# An agent that a test holds: it says half of its answer, and the rest when a file of the name that
# it was asked with is there.
HELD = """

async def held(visit: carnet.Visit) -> AsyncIterator[str]:
    note(visit)
    yield "half "
    while not RAN.with_name(visit.text).exists():
        await asyncio.sleep(0.1)
    yield "whole "
"""
HELD_CONFIG = """
[agents.held]
kind = "python"
target = "agents:held"
price = "0.0002"
"""
# One breaker an endpoint: `fragile` is the only one that is allowed to open its own.
HERE = (("spoken", "spoken"), ("drip", "drip"), ("fragile", "echo"), ("brief", "spoken"))


class Pair(NamedTuple):
    """A calls B through the proxy."""

    a: Organisation
    b: Organisation
    proxy: ToxicProxy

    def ask(
        self,
        run: str,
        agent: str = "spoken",
        text: str = "one two three",
        *,
        more: HeaderList = (),
    ) -> Reply:
        """Call B's agent through A; the whole answer."""
        return self.a.chat(text, agent, headers=[*ids(run), *more])

    def stream(
        self,
        run: str,
        agent: str = "spoken",
        text: str = "one two three",
        *,
        more: HeaderList = (),
    ) -> Iterator[bytes]:
        """The same as a stream, line by line."""
        fields = [("authorization", f"Bearer {self.a.token}"), *ids(run), *more]
        fields.append(("content-type", "application/json"))
        body = chat_body(text, agent, stream=True, stream_options={"include_usage": True})
        return stream("POST", self.a.url + "/v1/chat/completions", fields, body)

    def heal(self) -> None:
        """Take the toxic away, and let a good answer clear what the breakers have counted."""
        self.proxy.toxic = Toxic()
        for agent, text in (("spoken", "well"), ("drip", "0")):
            assert self.a.chat(text, agent).status == 200


def ids(run: str) -> list[tuple[str, str]]:
    return [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0.x")]


def frames(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """The JSON of a stream's data lines."""
    data = [line.removeprefix(b"data: ").strip() for line in lines if line.startswith(b"data: ")]
    return [json.loads(text) for text in data if text != b"[DONE]"]


def streamed_text(lines: Iterable[bytes]) -> str:
    """The text of a stream."""
    choices = [choice for frame in frames(lines) for choice in frame.get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def billed(gateway: Organisation, run: str) -> int:
    """What a run has cost there, in micro-units."""
    return number(gateway, "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE run = ?", run)


def turns(gateway: Organisation, run: str) -> list[tuple[str, str | None]]:
    """The state and code of every turn of a run."""
    sql = "SELECT t.state, t.code FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ? ORDER BY t.n"
    return rows(gateway, sql, run)


def open_calls(gateway: Organisation, scraper: str) -> int:
    """How many calls it is answering: it tells so only while its loop goes on."""
    lines = gateway.get("/metrics", token=scraper).body.decode().splitlines()
    (line,) = [line for line in lines if line.startswith("carnet_open_calls ")]
    return int(float(line.split()[1]))


@contextmanager
def two_gateways(folder: Path, database: str = "") -> Iterator[Pair]:
    """Both running, with A's calls to B bounded by SECONDS; A's records in a given database."""
    a, b = organisation(folder / "a", "a.example"), organisation(folder / "b", "b.example")
    if database:
        move_to(a, database)
    b.configure(THERE)
    with ToxicProxy(b.port) as proxy:
        introduce(a, b, url=proxy.url, credit="1000")
        for name, there in HERE:
            seconds = BRIEF_SECONDS if name == "brief" else SECONDS
            a.configure(
                f'[agents.{name}]\nkind = "tangle"\nurl = "{proxy.url}/agents/{there}/v1"\n'
                f'model = "{there}"\ntoken = {{file = "var/b.example.token"}}\n'
                f"timeout = {seconds}\nretries = 0\n"
            )
        b.start()
        a.start()
        try:
            yield Pair(a, b, proxy)
        finally:
            codes = a.stop(), b.stop()
    assert codes == (0, 0)
