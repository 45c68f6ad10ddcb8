"""The processes that are compared: how each is set up, started and asked.

Law. All get the same load from the same place: bodies of 2 KB, answers of 2 KB, and for those that
forward, the same upstream. Each runs as its authors would run it in production: no access log.
"""

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from samvad.keys import Keypair

from bench import a2a_peer, samvad_peer
from bench.bodies import CHAT_PATH, COMPLETION_ID, chat_request, post
from bench.cpu import Cores
from bench.postgres import Database, database
from bench.process import run, serving
from bench.upstream import BURST_EVENTS
from carnet.testing.address import Address

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
CARNET = str(BIN / "carnet")
CONNECTIONS = 64
A2A_FILE = "BENCH_A2A_FILE"  # where the package of A2A keeps its tasks, if on the disk
WARM_UP_SECONDS = 1.0
# It sweeps its whole nonce table on each call and slows down with every request it has answered:
# this many are a fresh process, and the figure is the best it gives.
SAMVAD_REQUESTS = 3000
SAMVAD_WARM_UP_SECONDS = 0.2
TRICKLE_RATE = 50
# What a Carnet calls itself when nobody says otherwise, and its agents for signed callers.
CARNET_IDENTITY = "agent://carnet.localhost"
HOP, HOP_IDENTITY = "signed", "agent://signed.carnet.localhost"
# One client stands for many: what a sender and an agent may have in a minute never acts.
UNLIMITED = {
    "CARNET__LIMITS__SENDER_CALLS_PER_MINUTE": "1000000000",
    "CARNET__LIMITS__AGENT_CALLS_PER_MINUTE": "1000000000",
}
# A trickling stream lasts longer than it is measured; this many events are enough for any setting.
TRICKLE_EVENTS = 30_000

_UPSTREAM_MARK = COMPLETION_ID.encode()
# The gateway gives its completions ids of its own.
_CARNET_MARK = b'"chat.completion"'
_SIGNED_SETTINGS = """
[agents.{name}]
kind = "samvad"
url = "{url}"
trust = "public"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where subjects are set up."""

    folder: Path
    upstream: int  # its port
    cores: Cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A subject that runs and can be asked."""

    pid: int
    port: int
    requests: Iterator[bytes]
    mark: bytes  # in every right answer
    warm_up: float = WARM_UP_SECONDS
    about: str = ""  # the database server it uses, if it uses one


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A running Carnet and the token to call it with."""

    pid: int
    port: int
    token: str

    def request(self, agent: str, *, stream: bool = False) -> bytes:
        body = chat_request(agent, stream=stream)
        return post(CHAT_PATH, body, {"authorization": f"Bearer {self.token}"})

    def target(self, agent: str) -> Target:
        requests = itertools.repeat(self.request(agent))
        return Target(pid=self.pid, port=self.port, requests=requests, mark=_CARNET_MARK)


@contextmanager
def upstream(folder: Path, cores: Cores) -> Iterator[int]:
    """The model behind every hop; its port."""
    with Address() as at:
        command = [sys.executable, "-m", "bench.upstream", str(at.fd)]
        with serving(command, at=at, core=cores.load, folder=folder, env=importable()):
            yield at.port


def importable() -> dict[str, str]:
    """The environment of a process that runs a module of this package."""
    return {"PYTHONPATH": str(ROOT)}


# ------------------------------------------------------------------------------------ Carnet


def _signed_agents(site: Site) -> str:
    return _SIGNED_SETTINGS.format(name=HOP, url=f"http://127.0.0.1:{site.upstream}")


def _agents(site: Site) -> str:
    base = f"http://127.0.0.1:{site.upstream}"
    urls = {
        "up": ("openai", f"{base}/v1"),
        "hop": ("tangle", f"{base}/v1"),
        "burst": ("openai", f"{base}/{BURST_EVENTS}x0/v1"),
        "trickle": ("openai", f"{base}/{TRICKLE_EVENTS}x{TRICKLE_RATE}/v1"),
        "hold": ("openai", f"{base}/hold/v1"),
    }
    return "".join(
        f'\n[agents.{name}]\nkind = "{kind}"\nurl = "{url}"\nmodel = "m"\n'
        for name, (kind, url) in urls.items()
    )


def initialised(site: Site, port: int) -> Path:
    """The folder of a Carnet as a person sets one up, with agents at the upstream added."""
    folder = site.folder / f"carnet-{port}"
    folder.mkdir()
    run([CARNET, "init", str(folder), "--port", str(port)], folder=folder)
    with (folder / "carnet.toml").open("a") as settings:
        settings.write(_agents(site) + _signed_agents(site))
    return folder


def admit(folder: Path, keys: Keypair) -> None:
    """Let a client of the signed dialect in, as its operator would."""
    command = [CARNET, "peers", "add", samvad_peer.SENDER, "--key", keys.public_key_b64]
    run(command, folder=folder)


@contextmanager
def gateway(
    site: Site,
    *,
    under: tuple[str, ...] = (),
    store: Database | None = None,
    env: Mapping[str, str] | None = None,
    signed: Keypair | None = None,
    prepare: Callable[[Path], None] | None = None,
) -> Iterator[Gateway]:
    """A running Carnet.

    `under` replaces the console script, for a launcher that does the same and watches it. `store`
    is a database to move to before it starts; `env` holds settings beside those of the file;
    `signed` is the key of a client that it admits; `prepare` is given its folder before it starts.
    """
    at = Address()
    folder = initialised(site, at.port)
    if prepare is not None:
        prepare(folder)
    limits = {} if signed is None else UNLIMITED
    if signed is not None:
        admit(folder, signed)
    command = [*(under or (CARNET,)), "serve", "--fd", str(at.fd)]
    settings = {**importable(), "CARNET__GATEWAY__DRAIN_SECONDS": "2", **limits, **(env or {})}
    if store is not None:
        run([CARNET, "migrate", "--to", store.url], folder=folder, env=store.env)
        settings |= {"CARNET__STORE__URL": store.url, **store.env}
    core = site.cores.subject
    with serving(command, at=at, core=core, folder=folder, env=settings) as pid:
        token = (folder / "var" / "starter.token").read_text().strip()
        yield Gateway(pid=pid, port=at.port, token=token)


@contextmanager
def carnet_openai(site: Site) -> Iterator[Target]:
    """A hop to an OpenAI-compatible model."""
    with gateway(site) as running:
        yield running.target("up")


@contextmanager
def carnet_postgres(site: Site) -> Iterator[Target]:
    """The same hop on PostgreSQL, whose server runs with the load."""
    with database() as store, gateway(site, store=store) as running:
        yield replace(running.target("up"), about=store.about)


@contextmanager
def carnet_tangle(site: Site) -> Iterator[Target]:
    """A hop to another gateway: one deeper in the chain, with the headers that say so."""
    with gateway(site) as running:
        yield running.target("hop")


@contextmanager
def carnet_signed(site: Site, *, under: tuple[str, ...] = ()) -> Iterator[Target]:
    """The starter's echo agent, asked by the client of another package."""
    keys = samvad_peer.client_keys(site.folder / "signed-keys")
    requests = samvad_peer.requests(keys, to=CARNET_IDENTITY, skill="chat")
    with gateway(site, under=under, signed=keys) as running:
        yield _signed_target(running, requests)


@contextmanager
def carnet_signed_hop(site: Site, *, under: tuple[str, ...] = ()) -> Iterator[Target]:
    """A hop in the signed dialect: what comes in signed goes out signed anew."""
    keys = samvad_peer.client_keys(site.folder / "signed-keys")
    prefix = f"/agents/{HOP}"
    requests = samvad_peer.requests(keys, to=HOP_IDENTITY, skill="chat", prefix=prefix)
    with gateway(site, under=under, signed=keys) as running:
        yield _signed_target(running, requests)


@contextmanager
def carnet_a2a(site: Site, *, under: tuple[str, ...] = ()) -> Iterator[Target]:
    """The starter's echo agent, asked as the package of A2A is; its tasks are kept on disk."""
    with gateway(site, under=under) as running:
        requests = a2a_peer.requests(authorization=f"Bearer {running.token}")
        yield Target(pid=running.pid, port=running.port, requests=requests, mark=a2a_peer.TASK_MARK)


def _signed_target(running: Gateway, requests: Iterator[bytes]) -> Target:
    return Target(pid=running.pid, port=running.port, requests=requests, mark=samvad_peer.MARK)


# ------------------------------------------------------------------------------------ others


def _plain(pid: int, port: int) -> Target:
    requests = itertools.repeat(post(CHAT_PATH, chat_request("m")))
    return Target(pid=pid, port=port, requests=requests, mark=_UPSTREAM_MARK)


@contextmanager
def caddy(site: Site) -> Iterator[Target]:
    """A reverse proxy that only forwards, on one Go processor."""
    at = Address()
    at.listen()  # it takes a socket that listens
    settings = site.folder / "Caddyfile"
    # By default it keeps 32 idle connections upstream and would redial for the other half.
    settings.write_text(
        "{\n\tadmin off\n\tauto_https off\n\tpersist_config off\n}\n"
        f"http://127.0.0.1:{at.port} {{\n\tbind fd/{at.fd}\n"
        f"\treverse_proxy 127.0.0.1:{site.upstream} {{\n"
        f"\t\ttransport http {{\n\t\t\tkeepalive_idle_conns_per_host {CONNECTIONS}\n\t\t}}\n"
        "\t}\n}\n"
    )
    command = [str(BIN / "caddy"), "run", "--config", str(settings), "--adapter", "caddyfile"]
    env = {"GOMAXPROCS": "1", "HOME": str(site.folder), "XDG_DATA_HOME": str(site.folder)}
    core = site.cores.subject
    with serving(command, at=at, core=core, folder=site.folder, env=env) as pid:
        yield _plain(pid, at.port)


@contextmanager
def _uvicorn(
    site: Site, app: str, *, factory: bool = False, env: dict[str, str] | None = None
) -> Iterator[tuple[int, int]]:
    at = Address()
    options = ["--http", "httptools", "--loop", "uvloop", "--lifespan", "off"]
    options += ["--no-access-log", "--log-level", "warning", "--fd", str(at.fd)]
    command = [str(BIN / "uvicorn"), app, *options, *(["--factory"] if factory else [])]
    core, all_env = site.cores.subject, importable() | (env or {})
    with serving(command, at=at, core=core, folder=site.folder, env=all_env) as pid:
        yield pid, at.port


@contextmanager
def echo(site: Site) -> Iterator[Target]:
    """The server below Carnet, doing nothing."""
    with _uvicorn(site, "bench.echo:app") as (pid, port):
        yield _plain(pid, port)


@contextmanager
def samvad(site: Site) -> Iterator[Target]:
    """A signed message endpoint, fresh."""
    keys = site.folder / "samvad-keys"
    requests = iter(samvad_peer.signed_requests(keys, SAMVAD_REQUESTS))
    with _samvad(site, keys) as (pid, port):
        yield Target(
            pid=pid,
            port=port,
            requests=requests,
            mark=samvad_peer.MARK,
            warm_up=SAMVAD_WARM_UP_SECONDS,
        )


@contextmanager
def samvad_for_long(site: Site) -> Iterator[Target]:
    """The same endpoint, asked as long as anybody likes."""
    keys = site.folder / "samvad-keys"
    requests = samvad_peer.requests(samvad_peer.client_keys(keys))
    with _samvad(site, keys) as (pid, port):
        yield Target(pid=pid, port=port, requests=requests, mark=samvad_peer.MARK)


def _samvad(site: Site, keys: Path) -> AbstractContextManager[tuple[int, int]]:
    env = {samvad_peer.KEYS: str(keys)}
    return _uvicorn(site, "bench.samvad_peer:build", factory=True, env=env)


@contextmanager
def a2a_tasks(site: Site) -> Iterator[Target]:
    """The endpoint of the A2A package before an agent that answers with tasks."""
    with _uvicorn(site, "bench.a2a_peer:build_tasks", factory=True) as (pid, port):
        yield Target(pid=pid, port=port, requests=a2a_peer.requests(), mark=a2a_peer.TASK_MARK)


@contextmanager
def a2a_durable(site: Site) -> Iterator[Target]:
    """The same with its tasks on the disk, as ours are; without a caller, a journal or a ledger."""
    env = {A2A_FILE: str(site.folder / "a2a-tasks.db")}
    with _uvicorn(site, "bench.a2a_store:build_durable", factory=True, env=env) as (pid, port):
        yield Target(pid=pid, port=port, requests=a2a_peer.requests(), mark=a2a_peer.TASK_MARK)


@contextmanager
def a2a(site: Site) -> Iterator[Target]:
    """A JSON-RPC message endpoint."""
    with _uvicorn(site, "bench.a2a_peer:build", factory=True) as (pid, port):
        yield Target(pid=pid, port=port, requests=a2a_peer.requests(), mark=a2a_peer.MARK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A row of the table."""

    name: str
    does: str
    run: Callable[[Site], AbstractContextManager[Target]]


REFERENCE = "caddy"
SIGNED, SIGNED_HOP, SAMVAD = "carnet-signed", "carnet-signed-hop", "samvad"
# The package does the same: a task to be asked for later, in memory and in a database.
A2A, A2A_PACKAGE, A2A_DURABLE = "carnet-a2a", "a2a-sdk-tasks", "a2a-sdk-durable"
A2A_SUBJECTS = (A2A, A2A_PACKAGE, A2A_DURABLE)
SUBJECTS = (
    Subject(name="carnet", does="token, journal, ledger, forward (openai)", run=carnet_openai),
    Subject(name="carnet-postgres", does="the same, on PostgreSQL", run=carnet_postgres),
    Subject(name="carnet-tangle", does="on SQLite, as a Tangle hop", run=carnet_tangle),
    Subject(name=SIGNED, does="verify, nonce, journal, ledger, echo", run=carnet_signed),
    Subject(name=SIGNED_HOP, does="the same, signed anew, forward", run=carnet_signed_hop),
    Subject(name=REFERENCE, does="forward, nothing else (GOMAXPROCS=1)", run=caddy),
    Subject(name="uvicorn", does="read the body, answer; no forward", run=echo),
    Subject(name=SAMVAD, does="verify a signature, answer; no store", run=samvad),
    Subject(name=A2A, does="SendMessage, a durable task, ledger, echo", run=carnet_a2a),
    Subject(name=A2A_PACKAGE, does="SendMessage, a task in memory, answer", run=a2a_tasks),
    Subject(name=A2A_DURABLE, does="SendMessage, a task in SQLite, answer", run=a2a_durable),
    Subject(name="a2a-sdk", does="JSON-RPC message send, answer; no store", run=a2a),
)
