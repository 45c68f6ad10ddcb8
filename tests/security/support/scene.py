"""What an attack leaves behind: executions, bills, records, and every place a secret could be."""

import json
import shutil
import socket
import sqlite3
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from carnet.testing.wait import until
from tests.security.support.hostile import FORWARDED, Hostile
from tests.support.http import HeaderList, Reply, request
from tests.support.organisation import Organisation

UPSTREAM_TOKEN = "upstream.canary.5d20"  # what acme calls the hostile upstream with

RUN, TURN, PARENT = "x-tangle-runid", "x-tangle-turnid", "x-tangle-parent-turnid"
DEPTH = "x-tangle-forwarded-depth"

WAIT_SECONDS = 10.0
LOG = "log.jsonl"

_numbers = count()


class Scene(Struct, frozen=True):
    """Two organisations, a hostile upstream, and the tokens of those who meet at acme."""

    acme: Organisation
    globex: Organisation
    hostile: Hostile
    alice: str  # a customer of acme
    mallory: str  # another one
    bridge: str  # listed: may forward other people's credentials
    peer: str  # what globex calls acme with; listed as well
    lowly: str  # may call echo and nothing else

    def secrets(self) -> dict[str, str]:
        """Every token, by who holds it."""
        names = ("alice", "mallory", "bridge", "peer", "lowly")
        return {"starter": self.acme.token, **{name: getattr(self, name) for name in names}}


def fresh(word: str) -> str:
    """A name that no other test uses."""
    return f"{word}-{next(_numbers)}"


def canary() -> str:
    """A credential that no pattern knows: neither sk-, nor ck_, nor a JWT."""
    return f"x402.canary.{next(_numbers):04}.7c1e"


def ids(run: str, turn: str = "t0.echo") -> list[tuple[str, str]]:
    """The headers that name a turn."""
    return [(RUN, run), (TURN, f"{run}.{turn}")]


def forwarding(credential: str) -> tuple[str, str]:
    """The header that names who pays."""
    return (FORWARDED, f"Bearer {credential}")


def notice(gateway: Organisation) -> None:
    """Make the gateway look at its tokens and peers: an unknown token has it look again."""
    assert gateway.chat(token="ck_nobody").status == 401


# ---------------------------------------------------------------------- what was done


def query(gateway: Organisation, sql: str, *args: object) -> list[Any]:
    """Ask the database itself, past all of our code."""
    database = gateway.folder / "var" / "carnet.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return connection.execute(sql, args).fetchall()


def postings(gateway: Organisation, run: str) -> list[tuple[str, str, int]]:
    """All that the ledger has of a run: debit, credit and micro-units, oldest first."""
    sql = "SELECT account || '@' || issuer, credit, amount FROM ledger WHERE run = ? ORDER BY n"
    return query(gateway, sql, run)


def bills(gateway: Organisation, run: str) -> list[tuple[str, str, int]]:
    """Who was debited, who was credited and how much: what is disputed or unpaid left out."""
    aside = ("disputed:", "unpaid:")
    return [row for row in postings(gateway, run) if not row[1].startswith(aside)]


def ran(gateway: Organisation) -> list[str]:
    """Every execution of an agent: its name, turn and depth."""
    trace = gateway.folder / "ran.txt"
    return trace.read_text().splitlines() if trace.exists() else []


def runs_of(gateway: Organisation, agent: str, run: str) -> int:
    """How often an agent was executed in a run."""
    return sum(line.startswith(f"{agent} {run}.") for line in ran(gateway))


def _done(gateway: Organisation) -> list[object]:
    tables = ("run", "turn", "journal", "ledger")
    counts = [query(gateway, f"SELECT COUNT(*) FROM {table}")[0] for table in tables]  # noqa: S608
    nonces = query(gateway, "SELECT MAX(n) FROM nonce")
    return [ran(gateway), *counts, nonces, query(gateway, "SELECT * FROM purse ORDER BY name")]


@contextmanager
def nothing_done(scene: Scene) -> Iterator[None]:
    """Nothing is executed, recorded, reserved or billed; no nonce is taken, and nothing leaves."""
    before = [_done(scene.acme), _done(scene.globex), len(scene.hostile.received)]
    yield
    assert [_done(scene.acme), _done(scene.globex), len(scene.hostile.received)] == before


# ---------------------------------------------------------------------- what was told


def spellings(secret: str) -> set[bytes]:
    """A secret as it is, and as it would be found encoded."""
    raw = secret.encode()
    encoded = {b64encode(raw), urlsafe_b64encode(raw), raw.hex().encode(), quote(secret).encode()}
    return {raw, raw[::-1], raw.hex().upper().encode(), json.dumps(secret).encode()[1:-1]} | {
        text.rstrip(b"=") for text in encoded
    }


def seen(reply: Reply) -> bytes:
    """All that a caller is told."""
    fields = "\n".join(f"{name}: {value}" for name, value in reply.headers.items())
    return fields.encode("latin-1") + b"\n" + reply.body


def files(gateway: Organisation) -> dict[str, bytes]:
    """Everything the organisation wrote, but the files that are there to hold a token."""
    return {
        f"{gateway.domain}: {path.relative_to(gateway.folder)}": path.read_bytes()
        for path in gateway.folder.rglob("*")
        if path.is_file() and path.suffix != ".token"
    }


def settle(gateway: Organisation) -> None:
    """Wait until the log has everything: its lines are written in their order."""
    run = fresh("settled")
    assert gateway.chat("hi", headers=[(RUN, run)]).status == 200
    until(lambda: run.encode() in (gateway.folder / LOG).read_bytes())


def places(secrets: Iterable[str], texts: dict[str, bytes]) -> list[str]:
    """Where any of the secrets stands."""
    wanted = [spelling for secret in secrets for spelling in spellings(secret)]
    return [name for name, text in texts.items() if any(each in text for each in wanted)]


_not_to_be_logged: list[str] = []


def leaks(scene: Scene, secret: str, *replies: Reply) -> list[str]:
    """Where a secret can be read that was sent to acme: in answers, database, files.

    The log is written by the clock; it is searched when the tests of a module are done.
    """
    _not_to_be_logged.append(secret)
    answers = {f"answer {n}": seen(reply) for n, reply in enumerate(replies)}
    kept = {name: data for name, data in files(scene.acme).items() if not name.endswith(LOG)}
    return places([secret], kept | answers)


def logged(scene: Scene, *more: str) -> list[str]:
    """Which of the secrets that `leaks` looked for, and of these, stand in the log."""
    settle(scene.acme)
    secrets = [*_not_to_be_logged, *more]
    _not_to_be_logged.clear()
    log = {"log": (scene.acme.folder / LOG).read_bytes()}
    return [secret for secret in secrets if places([secret], log)]


def pages_of(gateway: Organisation, run: str, token: str) -> list[Reply]:
    """What can be read of a run afterwards."""
    path = f"/runs/{quote(run, safe='')}"
    return [gateway.get(page, token=token) for page in (path, f"{path}/events", "/runs")]


def post(gateway: Organisation, path: str, token: str, headers: HeaderList = ()) -> Reply:
    """A request without a body."""
    fields = [("authorization", f"Bearer {token}"), *headers]
    return request("POST", gateway.url + path, fields, b"")


def send_raw(gateway: Organisation, token: str, lines: bytes, body: bytes) -> bytes:
    """Send a chat request with header lines that no client library would write."""
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: acme\r\nconnection: close\r\n"
        b"content-type: application/json\r\nauthorization: Bearer %b\r\ncontent-length: %d\r\n"
    ) % (token.encode(), len(body))
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as connection:
        connection.sendall(head + lines + b"\r\n\r\n" + body)
        return b"".join(iter(lambda: connection.recv(65536), b""))


OWN = frozenset({"date", "x-correlation-id", "x-request-id"})  # of one answer


def undated(replies: Iterable[Reply]) -> list[tuple[int, dict[str, str], bytes]]:
    """Answers without what changes from one to the next by itself."""
    return [
        (reply.status, {k: v for k, v in reply.headers.items() if k not in OWN}, reply.body)
        for reply in replies
    ]


class Running:
    """A call of somebody's that is going on in another thread, until its answer is wanted."""

    def __init__(self, gateway: Organisation, token: str, run: str) -> None:
        """Wait until its agent runs; it is asked with the name of the run."""
        self._replies: list[Reply] = []
        self._gate = gateway.folder / run

        def ask() -> None:
            self._replies.append(gateway.chat(run, "held", token=token, headers=ids(run)))

        before = runs_of(gateway, "held", run)
        self._thread = threading.Thread(target=ask)
        self._thread.start()
        until(lambda: runs_of(gateway, "held", run) > before)

    def reply(self) -> Reply:
        """Let it end; its answer."""
        self._gate.touch()
        self._thread.join()
        return self._replies[0]


def steal_database(victim: Organisation, thief: Organisation) -> None:
    """Copy the database of one organisation over that of another, which keeps its own keys."""
    for path in (victim.folder / "var").glob("carnet.db*"):
        if path.suffix != ".lock":
            shutil.copy(path, thief.folder / "var" / path.name)


def mode(path: Path) -> int:
    """Who may do what with a file."""
    return path.stat().st_mode & 0o777
