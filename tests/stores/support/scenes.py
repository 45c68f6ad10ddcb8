"""A place for a store, and the claims and finishes that the scenes are made of.

The tests that take a `store` know nothing of SQLite or PostgreSQL.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from carnet.core.call import Admitted, Ask, CallbackWish
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Done, Event, Text, write_events
from carnet.core.messages.interrupt import Interrupt, hash_state
from carnet.core.people.identity import Account, Actor, Caller, Payer
from carnet.ports.calls.tasks import StoredTask, TaskClaim
from carnet.ports.calls.turns import Answer, Claimed, Debit, Nonce, TurnClaim, TurnFinish, Verdict
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.trust.trust import Peer
from carnet.ports.world.clock import Ids
from carnet.ports.world.outbox import Delivery
from carnet.runtime.system import SystemIds
from carnet.stores.open import Store, open_store
from carnet.stores.secrets import secrets_file
from carnet.testing.clock import FakeClock, FakeIds
from tests.stores.support import servers

ALICE = Payer(account=Account("token:alice", "alice"), quota="token:alice")
BOB = Payer(account=Account("token:bob", "bob"), quota="token:bob")
LIMITED = Payer(account=ALICE.account, quota="token:alice", limit=10**9)
NOW = 1_800_000_000_000_000  # where the clock stands, in microseconds
SECOND = 1_000_000
ANSWER: tuple[Event, ...] = (Text("hello"), Done())


class Place:
    """A folder with a database and its secrets, a clock and a source of ids.

    The database is a file of the folder, or what the file `url` in it names.
    """

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.database = folder / "carnet.db"
        self.secrets = folder / "secrets.key"
        self.clock = FakeClock()
        if not self.secrets.exists():
            secrets_file.create(self.secrets)
        if url:
            (folder / "url").write_text(url)
        named = folder / "url"
        self.postgres = named.read_text() if named.exists() else ""
        # Where several stores are open, each has a name of its own.
        self.ids: Ids = SystemIds() if self.postgres else FakeIds()

    async def open(
        self,
        *,
        exclusive: bool = True,
        file_peers: Sequence[Peer] = (),
        file_keys: Sequence[PinnedKey] = (),
        url: str = "",
        lease_seconds: float = 30,
        ids: Ids | None = None,
        task_hours: int = 24,
        wait_hours: int = 24,
    ) -> Store:
        return await open_store(
            url or self.postgres or "sqlite:carnet.db",
            base=self.folder,
            secrets=self.secrets,
            clock=self.clock,
            ids=ids or self.ids,
            file_peers=file_peers,
            file_keys=file_keys,
            exclusive=exclusive,
            lease_seconds=lease_seconds,
            task_hours=task_hours,
            wait_hours=wait_hours,
        )

    async def start(self) -> Store:
        store = await self.open()
        await store.start()
        return store

    def rows(self, sql: str, *args: object) -> list[tuple[Any, ...]]:
        """Look into the database from outside, or change it there."""
        if self.postgres:
            return servers.rows(self.postgres, sql, args)
        with closing(sqlite3.connect(self.database, timeout=5)) as connection:
            found = connection.execute(sql, args).fetchall()
            connection.commit()
            return found

    def damage(self, n: int, old: bytes, new: bytes) -> None:
        """Change the data of a row of the journal."""
        ((data,),) = self.rows("SELECT data FROM journal WHERE n = ?", n)
        assert old in data
        self.rows("UPDATE journal SET data = ? WHERE n = ?", data.replace(old, new), n)

    def end_leases(self) -> None:
        """As if all workers had been silent for a minute."""
        self.rows("UPDATE worker SET until = until - 60000000")

    def counts(self) -> dict[str, int]:
        """How many rows each table of turns has."""
        tables = ("run", "turn", "journal", "ledger", "purse", "rate")
        return {name: self.rows(f"SELECT COUNT(*) FROM {name}")[0][0] for name in tables}  # noqa: S608


def end_upkeep(store: Store) -> None:
    """From now on nobody but the test asks the database of a store."""
    task = store._upkeep  # noqa: SLF001  else it is ended with the store alone
    assert task is not None
    task.cancel()


def a_claim(name: str = "r1", **changes: Any) -> TurnClaim:  # noqa: ANN401, RUF100
    """A claim of the only turn of run `name`; `changes` replace its fields, also inner ones."""
    payer: Payer = changes.pop("payer", ALICE)
    actor = changes.pop("actor", "token:alice")
    carnet = Carnet(
        run=name,
        turn=changes.pop("turn", f"{name}.t0.echo"),
        parent_turn=changes.pop("parent_turn", None),
        speaker=changes.pop("speaker", "echo"),
        depth=changes.pop("depth", 0),
        last_depth=changes.pop("last_depth", None),
        bound_by=changes.pop("bound_by", None),
    )
    claim = TurnClaim(
        admitted=Admitted(
            agent=changes.pop("agent", "echo"),
            ask=Ask(messages=()),
            carnet=carnet,
            caller=Caller(actor=Actor(name=actor), scopes=frozenset()),
            payer=payer,
            reserve=changes.pop("reserve", 0),
            dialect=changes.pop("dialect", ""),
            correlation=changes.pop("correlation", None),
        ),
        key=f"{payer.account}|{actor}|{carnet.turn}".encode(),
        digest=b"digest",
        most_run_calls=256,
        now=NOW,
        request=b'{"ask":"hello"}',
    )
    return msgspec.structs.replace(claim, **changes)


def a_nonce(nonce: str = "n1", *, sender: str = "agent://b.example", life: int = 305) -> Nonce:
    """A nonce that is refused for so many seconds."""
    return Nonce(sender, nonce, NOW + life * SECOND)


def a_task(name: str = "r1", **changes: Any) -> TurnClaim:  # noqa: ANN401, RUF100
    """A claim of a task; `changes` replace fields of the claim, and its sender."""
    task = TaskClaim(
        id=f"task-{name}",
        sender=changes.pop("sender", "agent://b.example"),
        skill="echo",
        callback=CallbackWish(url="https://b.example/hook"),
        call_bytes=f"the call of {name}".encode(),
    )
    return a_claim(name, **({"task": task} | changes))


async def leased(store: Store, *, most: int = 8) -> list[StoredTask]:
    """Take what waits for the agent of these scenes."""
    return list(await store.tasks.lease([("echo", most)]))


def a_delivery(name: str = "1", **changes: Any) -> Delivery:  # noqa: ANN401, RUF100
    """A delivery to a receiver; `changes` replace its fields."""
    delivery = Delivery(
        id=f"msg_{name}",
        kind="callback",
        url="https://b.example/hook",
        receiver="https://b.example:443",
        body=b'{"status":"success"}',
        task=f"task-{name}",
        secret_of="agent://b.example",
    )
    return msgspec.structs.replace(delivery, **changes)


def a_finish(turn: Turn, **changes: Any) -> TurnFinish:  # noqa: ANN401, RUF100
    """The end of a turn that answered; `changes` replace its fields."""
    finish = TurnFinish(
        turn=turn,
        state="done",
        payer=ALICE,
        events=write_events(ANSWER),
        first=0,
        last=1,
        debits=(Debit("agent:echo", 200),),
        children_cost=0,
        reserve=0,
        now=turn.created + 1000,
        tokens_in=3,
        tokens_out=5,
    )
    return msgspec.structs.replace(finish, **changes)


def an_interrupt(name: str = "int_1", **changes: Any) -> Interrupt:  # noqa: ANN401, RUF100
    """Something that a turn needs; `changes` replace its fields."""
    asked = Interrupt(
        id=name,
        state=f"secret of {name}",
        kind="payment",
        message="Five credits are needed.",
        amount=5_000_000,
        currency="credits",
        origin="echo",
    )
    return msgspec.structs.replace(asked, **changes)


def an_answer(name: str = "int_1", **changes: Any) -> Answer:  # noqa: ANN401, RUF100
    """What resolves `an_interrupt`; `changes` replace its fields."""
    answer = Answer(state_hash=hash_state(f"secret of {name}"), outcome="accepted")
    return msgspec.structs.replace(answer, **changes)


def a_wait(turn: Turn, **changes: Any) -> TurnFinish:  # noqa: ANN401, RUF100
    """The end of a turn that waits for an answer, an hour long; `changes` replace its fields."""
    waits: dict[str, Any] = {
        "state": "waiting",
        "debits": (),
        "interrupts": (an_interrupt(),),
        "waits_until": turn.created + 3600 * SECOND,
        "call_bytes": b"the call",
    }
    return a_finish(turn, **(waits | changes))


def claimed(verdict: Verdict) -> Turn:
    """The turn of a claim that was admitted."""
    assert isinstance(verdict, Claimed), verdict
    return verdict.turn


async def finished(store: Store, name: str = "r1", **changes: Any) -> Turn:  # noqa: ANN401, RUF100
    """Claim and end a turn."""
    turn = claimed(await store.turns.claim(a_claim(name, **changes)))
    payer = changes.get("payer", ALICE)
    return await store.turns.finish(a_finish(turn, payer=payer))
