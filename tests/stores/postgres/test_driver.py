"""PostgreSQL that is down, slow, locked or killed: what is said, and that it heals by itself."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from carnet.errors import ConfigInvalid, OutcomeUnknown, Overloaded, StorageUnavailable
from carnet.ports.calls.turns import Claimed, Known
from carnet.ports.trust.trust import NewToken
from carnet.stores.migration import migrations
from carnet.stores.open import Store, migrate_store, start_store
from carnet.stores.postgres import writer
from carnet.stores.postgres.sessions import MOST
from carnet.stores.postgres.writer import CONNECT_SECONDS
from carnet.testing.wait import until_so
from tests.stores.support import servers
from tests.stores.support.proxies import Proxy
from tests.stores.support.scenes import Place, a_claim, a_finish, claimed, end_upkeep, finished

BUSY_SECONDS = 20.0  # a guard against waiting for ever, on a machine that is busy
WAITING = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'SyncRep'"
)
SLOW = (
    "CREATE FUNCTION slow() RETURNS TRIGGER LANGUAGE plpgsql AS"
    " $$ BEGIN PERFORM pg_sleep(30); RETURN NULL; END $$"
)
SLOW_COMMIT = (
    "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON journal DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION slow()"
)


@asynccontextmanager
async def outside(place: Place) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(place.postgres)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def waiting_commits(place: Place) -> AsyncIterator[None]:
    """Meanwhile every commit waits for a standby that does not come.

    The server takes a moment to heed its settings, so a commit of ours shows that it has.
    """
    async with outside(place) as connection:
        await connection.execute("CREATE TABLE probe (n BIGINT)")
        try:
            await connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            await connection.execute("SELECT pg_reload_conf()")

            async def is_in_force() -> bool:
                async with outside(place) as probing:
                    probe = asyncio.ensure_future(probing.execute("INSERT INTO probe VALUES (1)"))
                    await asyncio.wait([probe], timeout=0.1)
                    found = await connection.fetch(WAITING)
                    for (pid,) in found:
                        await connection.execute("SELECT pg_terminate_backend($1)", pid)
                    await asyncio.gather(probe, return_exceptions=True)
                return bool(found)

            await until_so(is_in_force)
            yield
        finally:
            await connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            await connection.execute("SELECT pg_reload_conf()")
        async with asyncio.timeout(30):  # it waits until waiting is over
            await connection.execute("DROP TABLE probe")


async def kill_who_waits_for(killer: "asyncpg.Connection[Any]", event: str) -> None:
    """Terminate the one connection of the store that waits in the server for this.

    The server does not let it wait for long, so the connection that kills it is there before.
    """

    async def is_killed() -> bool:
        killed = await killer.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event = $1",
            event,
        )
        return bool(killed)

    await until_so(is_killed)


async def test_a_postgres_connection_killed_between_statements_wrote_nothing(
    store: Store, place: Place
) -> None:
    end_upkeep(store)
    before = place.counts()
    async with outside(place) as connection, outside(place) as killer:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("LOCK TABLE turn IN EXCLUSIVE MODE")
        waiting = asyncio.ensure_future(store.turns.claim(a_claim()))
        await kill_who_waits_for(killer, "relation")
        with pytest.raises(StorageUnavailable):
            await waiting
        await transaction.rollback()
    assert place.counts() == before
    assert isinstance(await store.turns.claim(a_claim()), Claimed)
    assert store.is_writable()


async def test_a_postgres_connection_killed_during_a_commit_that_fails_is_unknown(
    store: Store, place: Place
) -> None:
    try:
        place.rows(SLOW)
        place.rows(SLOW_COMMIT)
        async with outside(place) as killer:
            waiting = asyncio.gather(
                *[store.turns.claim(a_claim(f"r{i}")) for i in range(3)], return_exceptions=True
            )
            await kill_who_waits_for(killer, "PgSleep")
            assert [type(answer) for answer in await waiting] == [OutcomeUnknown] * 3
    finally:
        place.rows("DROP TRIGGER IF EXISTS slow ON journal")
        place.rows("DROP FUNCTION IF EXISTS slow")
    assert not store.is_writable()
    assert not store.is_broken()  # the next batch connects anew
    assert place.counts()["turn"] == 0
    assert isinstance(await store.turns.claim(a_claim("r0")), Claimed)


async def test_a_postgres_connection_killed_during_a_commit_that_succeeds_is_unknown(
    store: Store, place: Place
) -> None:
    end_upkeep(store)
    turn = claimed(await store.turns.claim(a_claim()))
    async with waiting_commits(place), outside(place) as killer:
        waiting = asyncio.ensure_future(store.turns.finish(a_finish(turn)))
        await kill_who_waits_for(killer, "SyncRep")
        with pytest.raises(OutcomeUnknown):
            await waiting
    known = await store.turns.claim(a_claim())
    assert isinstance(known, Known)
    assert known.turn.state == "done"  # who repeats it gets the answer, and is not billed again
    assert place.rows("SELECT COUNT(*), SUM(amount) FROM ledger") == [(1, 200)]


async def test_postgres_connections_killed_while_idle_are_not_noticed(
    store: Store, place: Place
) -> None:
    ended = await finished(store)
    for _ in range(2):
        place.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert await store.turns.claim(a_claim()) == Known(ended)
        assert await store.turns.reload(ended) == ended


async def test_a_lock_that_is_held_in_postgres_is_overload_at_the_deadline(
    store: Store, place: Place
) -> None:
    async with outside(place) as connection, connection.transaction():
        await connection.execute("LOCK TABLE run IN ACCESS EXCLUSIVE MODE")
        rounds = 0
        async with asyncio.timeout(BUSY_SECONDS):
            waiting = asyncio.ensure_future(store.turns.claim(a_claim()))
            while not waiting.done():
                await asyncio.sleep(0.001)
                rounds += 1
            with pytest.raises(Overloaded):
                await waiting
        assert rounds > 10  # F15: the loop goes on meanwhile
    assert isinstance(await store.turns.claim(a_claim()), Claimed)


@pytest.fixture
async def proxy(place: Place) -> AsyncIterator[Proxy]:
    made = Proxy(place.postgres, place.folder)
    await made.up()
    yield made
    made.speaking.set()
    await made.down()


async def test_a_postgres_that_is_down_refuses_all_who_wait_and_heals_by_itself(
    place: Place, proxy: Proxy
) -> None:
    store = await place.open(url=proxy.url)
    await store.start()
    ended = await finished(store)
    await proxy.down()
    async with asyncio.timeout(BUSY_SECONDS):  # it does not wait for what does not come
        answers = await asyncio.gather(
            *[store.turns.claim(a_claim(f"r{i}")) for i in range(5)],
            store.turns.reload(ended),
            return_exceptions=True,
        )
    assert [type(answer) for answer in answers] == [StorageUnavailable] * 6  # F14
    assert not store.is_writable()
    assert not store.is_broken()
    await proxy.up()
    await store.upkeep()  # nobody is sent to a gateway that is not ready: it looks by itself
    assert store.is_writable()
    assert await store.turns.claim(a_claim()) == Known(ended)
    await store.close()


async def test_a_postgres_that_is_down_is_noticed_by_a_store_that_nobody_uses(
    place: Place, proxy: Proxy
) -> None:
    store = await place.open(url=proxy.url)
    await store.start()
    assert store.is_writable()
    await proxy.down()
    with pytest.raises(StorageUnavailable):
        await store.upkeep()
    assert not store.is_writable()
    await proxy.up()
    await store.upkeep()
    assert store.is_writable()
    await store.close()


async def test_who_starts_waits_for_a_postgres_that_answers_late(
    place: Place, proxy: Proxy
) -> None:
    store = await place.open(url=proxy.url)
    await proxy.down()
    starting = asyncio.create_task(start_store(store, proxy.url))
    done, _ = await asyncio.wait({starting}, timeout=1)
    assert not done
    await proxy.up()
    async with asyncio.timeout(BUSY_SECONDS):
        await starting
    assert store.is_writable()
    await proxy.down()
    with pytest.raises(ConfigInvalid, match="does not answer in time"):  # and not for ever
        await start_store(store, proxy.url, seconds=0.5)
    await store.close()


async def test_a_postgres_that_says_nothing_is_given_up_by_a_timer_of_less_than_a_second(
    place: Place, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await place.open(url=proxy.url)
    await store.start()
    end_upkeep(store)
    await finished(store)
    proxy.speaking.clear()
    with monkeypatch.context() as usual:
        usual.setattr(writer, "CONNECT_SECONDS", CONNECT_SECONDS)
        async with asyncio.timeout(BUSY_SECONDS):
            with pytest.raises(StorageUnavailable, match="TimeoutError"):  # and by nothing else
                await store.turns.claim(a_claim("r2"))
    assert CONNECT_SECONDS < 1
    proxy.speaking.set()
    assert isinstance(await store.turns.claim(a_claim("r2")), Claimed)
    await store.close()


async def test_a_postgres_that_takes_its_time_to_connect_is_waited_for_by_who_reads(
    place: Place, proxy: Proxy
) -> None:
    store = await place.open(url=proxy.url)
    await store.start()
    ended = await finished(store)
    proxy.speaking.clear()
    reads = [asyncio.ensure_future(store.turns.reload(ended)) for _ in range(MOST)]
    done, _ = await asyncio.wait(reads, timeout=1.1 * CONNECT_SECONDS)
    assert not done
    proxy.speaking.set()
    assert await asyncio.gather(*reads) == [ended] * MOST
    await store.close()


@pytest.fixture
def empty(driver: str, server: servers.Server) -> Iterator[str]:
    assert driver == "postgres"
    url = server.empty()
    yield url
    server.drop(url)


async def test_a_postgres_without_its_layout_says_which_command_makes_it(
    place: Place, empty: str
) -> None:
    for exclusive in (True, False):
        with pytest.raises(ConfigInvalid, match="run: carnet migrate"):
            await place.open(url=empty, exclusive=exclusive)
    assert servers.rows(empty, "SELECT to_regclass('run')") == [(None,)]


async def test_a_postgres_layout_is_made_once_however_many_make_it(
    place: Place, empty: str
) -> None:
    made = await asyncio.gather(*[migrate_store(empty, clock=place.clock) for _ in range(4)])
    assert sorted(made) == [0, 0, 0, len(migrations("postgres"))]
    assert await migrate_store(empty, clock=place.clock) == 0
    await (await place.open(url=empty)).close()


async def test_a_postgres_layout_that_cannot_be_made_is_not_made_by_half(
    place: Place, empty: str
) -> None:
    servers.rows(empty, "CREATE TABLE ledger (n BIGINT)")
    with pytest.raises(ConfigInvalid, match='"ledger" already exists'):
        await migrate_store(empty, clock=place.clock)
    assert servers.rows(empty, "SELECT to_regclass('run'), to_regclass('migration')") == [
        (None, None)
    ]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://nobody@127.0.0.1:1/db", "127.0.0.1/db: nobody answers there"),
        ("postgresql://x@/db?host=/nowhere", "the local socket/db: nobody answers there"),
        ("postgresql://x:sesame@127.0.0.1:1/db", "start PostgreSQL"),
    ],
)
async def test_an_address_where_no_postgres_answers_is_named(
    place: Place, url: str, message: str
) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        await place.open(url=url)
    assert message in caught.value.safe_text
    assert "sesame" not in str(caught.value)


async def test_a_postgres_database_that_does_not_exist_is_named(place: Place) -> None:
    with pytest.raises(ConfigInvalid, match="createdb"):
        await place.open(url=place.postgres.replace("/carnet_", "/none_"))


async def test_a_change_of_tokens_is_noticed_in_postgres_and_their_use_is_not(
    store: Store, place: Place
) -> None:
    token, _ = await store.tokens.create(NewToken(name="a", scopes=frozenset()), 7)
    await store.look()
    place.rows("UPDATE token SET last_used = 9")
    assert not await store.look()
    place.rows("UPDATE token SET revoked = 9")
    assert await store.look()
    assert (await store.tokens.list())[0].revoked == 9
    assert token.revoked is None


WITHOUT_DRIVER = """
import asyncio, sys
sys.modules["asyncpg"] = None
from pathlib import Path
from carnet.errors import ConfigInvalid
from carnet.runtime.system import SystemClock, SystemIds
from carnet.stores.open import open_store

async def main(folder):
    for url in ("sqlite:carnet.db", "postgresql://u@h/d"):
        store = await open_store(url, base=folder, secrets=folder / "secrets.key",
                                 clock=SystemClock(), ids=SystemIds(), exclusive=True)
        await store.close()

try:
    asyncio.run(main(Path(sys.argv[1])))
except ConfigInvalid as error:
    print(error.safe_text)
"""


def test_sqlite_needs_no_driver_and_whoever_needs_one_is_told(place: Place) -> None:
    done = subprocess.run(  # noqa: S603  a process of its own: the driver is imported here
        [sys.executable, "-c", WITHOUT_DRIVER, str(place.folder)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).parents[3] / "src",
    )
    assert "-m pip install 'asyncpg>=0.31,<1'" in done.stdout
    assert place.database.exists()
