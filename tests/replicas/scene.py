"""Several gateway processes on one PostgreSQL, and callers that use them as one.

All are started in one folder, with one configuration and one set of keys, as several machines would
be: they know nothing of one another but the database.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit, urlunsplit

import aiohttp

from carnet.testing.toxic import ToxicProxy
from tests.faults.stores import move_to
from tests.stores.support import servers
from tests.support.http import chat_body, request
from tests.support.organisation import Launched, Organisation
from tests.support.signing.signed import Signed

PATIENCE = 30.0  # seconds, for what takes a moment; never a measure of speed
PRICE = 200  # micro-units
AGENTS = Path(__file__).with_name("agents_module.py").read_text()
NAMES = ("stepwise", "asking", "words", "family", "deep", "broken")

CONFIG = "\n".join(
    f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\nprice = "0.0002"\n'
    for name in NAMES
)
BUDGET = 1000  # tokens
CONFIG += f"""
[agents.counted]
kind = "python"
target = "agents:counted"
trust = "public"
tokens_per_sender_per_day = {BUDGET}
"""
MODEL = '[agents.model]\nkind = "openai"\nurl = "{url}"\nmodel = "m"\nprice = "0.0002"\n'

LOOPED = """
[agents.looped]
kind = "engine"

[models.small]
url = "{url}"

[engine]
listen = "{listen}"
"""

Fields = list[tuple[str, str]]


class Replica(Launched):
    """One gateway process of the house."""

    def __init__(self, folder: Path, name: str, env: dict[str, str] | None = None) -> None:
        super().__init__(folder, name=name)
        self._env = env

    def launch(self, *, env: Mapping[str, str] | None = None) -> None:
        """Start it with the environment that it always has."""
        super().launch(env=env or self._env)

    @property
    def is_ready(self) -> bool:
        return request("GET", self.url + "/readyz").status == 200


class House:
    """The database, the folder, and the gateways."""

    def __init__(self, folder: Path, database: str, more: str = "") -> None:
        self.operator = Organisation(folder, "acme.example")  # its own gateway is never started
        self.folder = folder
        self.database = database
        move_to(self.operator, database)
        self.operator.configure(CONFIG + more, agents=AGENTS)
        self.token = self.operator.token
        self.replicas: list[Replica] = []

    def open(self, count: int, env: dict[str, str] | None = None) -> list[Replica]:
        """Start so many gateways, all at once."""
        known = len(self.replicas)
        new = [Replica(self.folder, f"g{known + i}", env) for i in range(count)]
        self.replicas += new
        for replica in new:
            replica.launch()
        for replica in new:
            replica.wait()
        return new

    def close(self) -> list[int]:
        return [replica.stop() for replica in self.replicas]

    def rows(self, sql: str, *args: object) -> list[tuple[Any, ...]]:
        return servers.rows(self.database, sql, args)

    def turns(self, run: str) -> list[tuple[str, str | None, int]]:
        """State, code and attempt of every turn of a run."""
        return self.rows(
            "SELECT t.state, t.code, t.attempt FROM turn t JOIN run r ON r.n = t.run"
            " WHERE r.id = ? ORDER BY t.n",
            run,
        )

    def billed(self, run: str) -> list[int]:
        """The amounts that were posted for a run."""
        return [n for (n,) in self.rows("SELECT amount FROM ledger WHERE run = ? ORDER BY n", run)]

    def end_lease(self, run: str) -> None:
        """As if the gateway that runs a turn of a run had been silent for a minute."""
        self.rows(
            "UPDATE worker SET until = until - 60000000 WHERE id IN (SELECT t.worker FROM turn t"
            " JOIN run r ON r.n = t.run WHERE r.id = ? AND t.state = 'running')",
            run,
        )

    def ran(self, run: str, what: str = "began") -> int:
        """How many executions of a run began, or were left, in all processes together."""
        return sum(line[:2] == (what, run) for line in self.trace())

    def trace(self) -> list[tuple[str, str, int]]:
        """What agents noted: that one began or was left, in which run, and the row of its turn."""
        trace = self.folder / "ran.txt"
        lines = trace.read_text().splitlines() if trace.exists() else []
        return [(what, run, int(n)) for what, run, n in map(str.split, lines)]

    def allow(self, run: str, *steps: str) -> None:
        """Let the agent `stepwise` take steps in a run."""
        folder = self.folder / "steps" / run
        folder.mkdir(parents=True, exist_ok=True)
        for step in steps:
            (folder / step).touch()


@contextmanager
def a_house(folder: Path, server: servers.Server, more: str = "") -> Iterator[House]:
    """A folder and a database of its own; who opens gateways in it need not close them."""
    database = server.create()
    house = House(folder, database, more)
    try:
        yield house
        assert set(house.close()) <= {0}
    finally:
        house.close()
        server.drop(database)


def through(proxy: ToxicProxy, database: str) -> str:
    """The URL of a database behind a proxy."""
    parts = urlsplit(database)
    user = parts.netloc.rpartition("@")[0].partition(":")[0] or "postgres"
    return urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{proxy.port}", query=""))


def far_side(database: str) -> int | str:
    """Where a proxy reaches the server of a database on this machine."""
    parts = urlsplit(database)
    sockets = parse_qs(parts.query).get("host")
    return f"{sockets[0]}/.s.PGSQL.{parts.port or 5432}" if sockets else (parts.port or 5432)


class Answer(NamedTuple):
    """What a caller got."""

    status: int
    body: bytes

    @property
    def is_whole(self) -> bool:
        """Whether a stream came to its good end."""
        return self.body.endswith(b"data: [DONE]\n\n")


def ids(run: str, agent: str) -> Fields:
    return [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0.{agent}")]


class Callers:
    """Clients of the house. A connection is used once, as behind a load balancer."""

    def __init__(self, session: aiohttp.ClientSession, token: str) -> None:
        self._session = session
        self._token = token

    def _post(
        self, replica: Replica, run: str, agent: str, text: str, token: str | None, **more: Any
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        headers = [
            ("authorization", f"Bearer {token or self._token}"),
            ("content-type", "application/json"),
            *ids(run, agent),
        ]
        body = chat_body(text, agent, **more)
        url = replica.url + "/v1/chat/completions"
        return self._session.post(url, data=body, headers=headers)

    async def ask(
        self,
        replica: Replica,
        run: str,
        agent: str,
        text: str = "hi",
        *,
        token: str | None = None,
        stream: bool = False,
    ) -> Answer:
        """Ask and read to the end. A connection that breaks gives status 0 and what had come."""
        more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        body, status = b"", 0
        try:
            async with self._post(replica, run, agent, text, token, **more) as response:
                status = response.status
                async for part in response.content.iter_any():
                    body += part
        except (aiohttp.ClientError, OSError):
            status = 0
        return Answer(status, body)

    async def send(self, replica: Replica, request: Signed) -> Answer:
        """Send a request that was signed before, exactly as it is."""
        url, headers = replica.url + request.target, list(request.headers)
        async with self._session.post(url, data=request.body, headers=headers) as response:
            return Answer(response.status, await response.read())

    @asynccontextmanager
    async def reading(
        self, replica: Replica, run: str, *, token: str | None = None
    ) -> "AsyncIterator[Reader]":
        """A stream of `stepwise` that is read as it comes; leaving it disconnects."""
        more = {"stream": True, "stream_options": {"include_usage": True}}
        async with self._post(replica, run, "stepwise", "go", token, **more) as response:
            yield Reader(response)

    @asynccontextmanager
    async def watching(
        self, replica: Replica, run: str, last: str | None = None
    ) -> "AsyncIterator[Reader]":
        """The events of a run as they come."""
        headers = {"authorization": f"Bearer {self._token}"}
        if last is not None:
            headers["last-event-id"] = last
        url = f"{replica.url}/runs/{run}/events"
        async with self._session.get(url, headers=headers) as response:
            yield Reader(response)

    async def cancel(self, replica: Replica, run: str) -> Any:
        headers = {"authorization": f"Bearer {self._token}"}
        url = f"{replica.url}/runs/{run}/cancel"
        async with self._session.post(url, headers=headers) as response:
            return await response.json()


class Reader:
    """A stream on its way."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.body = b""

    async def until(self, text: bytes) -> None:
        """Read on until a text has come."""
        async with asyncio.timeout(PATIENCE):
            while text not in self.body:
                part = await self._response.content.readany()
                assert part, (text, self.body)
                self.body += part

    def leave(self) -> None:
        """Hang up."""
        self._response.close()

    async def rest(self) -> bytes:
        """Read to the end; everything that came."""
        async with asyncio.timeout(PATIENCE):
            while part := await self._response.content.readany():
                self.body += part
        return self.body


@asynccontextmanager
async def callers(token: str) -> AsyncIterator[Callers]:
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield Callers(session, token)


def spread(replicas: Sequence[Replica], count: int) -> list[Replica]:
    """So many callers' choices, one gateway after the other."""
    return [replicas[i % len(replicas)] for i in range(count)]
