"""Tokens, peers and the secrets file: what a thief of the database gets, and who wins."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

from carnet.core.people.identity import Secret
from carnet.errors import ConfigInvalid, UsageInvalid
from carnet.ports.trust.people import NewPerson
from carnet.ports.trust.trust import NewToken, Peer
from carnet.runtime.system import SystemIds
from carnet.stores.open import Store
from carnet.stores.secrets import secrets_file
from carnet.stores.secrets.seal import Seal, Unsealable, draw_key
from tests.stores.support.scenes import Place

CANARY = "sk-tan-canary-0123456789"
GLOBEX = Peer(domain="globex.example", url="https://gw.globex.example", token=Secret(CANARY))


def a_token(name: str = "alice") -> NewToken:
    return NewToken(
        name=name,
        scopes=frozenset({"call:*", "pay"}),
        peer="a.example",
        forwardable=True,
        may_forward=True,
        rate_calls=10,
        rate_seconds=30,
        spending_limit=5,
        expires=1_900_000_000_000_000,
    )


def stored_bytes(place: Place) -> bytes:
    if place.postgres:
        tables = ("token", "peer", "meta")
        return b"".join(
            value if isinstance(value, bytes) else str(value).encode()
            for table in tables
            for row in place.rows(f"SELECT * FROM {table}")  # noqa: S608
            for value in row
        )
    return b"".join(path.read_bytes() for path in sorted(place.folder.glob("carnet.db*")))


async def test_a_token_is_found_by_its_text_and_by_nothing_else(store: Store) -> None:
    token, secret = await store.tokens.create(a_token(), 7)
    assert store.tokens.find(secret) == token
    assert store.tokens.find(Secret(secret.reveal()[:-1])) is None
    assert store.tokens.find(Secret("")) is None
    assert (token.name, token.created, token.scopes) == ("alice", 7, frozenset({"call:*", "pay"}))
    assert (token.peer, token.forwardable, token.may_forward) == ("a.example", True, True)
    assert (token.rate_calls, token.rate_seconds, token.spending_limit) == (10, 30, 5)
    assert (token.expires, token.revoked, token.last_used) == (1_900_000_000_000_000, None, None)


async def test_a_token_is_43_random_characters_after_its_mark(place: Place) -> None:
    store = await place.open(ids=SystemIds())
    token, secret = await store.tokens.create(a_token(), 7)
    await store.close()
    assert secret.reveal().startswith("ck_")
    assert len(secret.reveal()) == 46
    assert token.prefix == secret.reveal()[:8]


async def test_the_database_holds_no_token_and_no_peers_token(store: Store, place: Place) -> None:
    token, secret = await store.tokens.create(a_token(), 7)
    await store.peers.put(GLOBEX)
    data = stored_bytes(place)
    assert token.name.encode() in data  # A71: what is looked for would be found
    assert secret.reveal().encode() not in data
    assert secret.reveal()[11:].encode() not in data
    assert CANARY.encode() not in data
    assert CANARY not in repr(store.peers.find("globex.example"))


async def test_the_name_of_a_live_token_is_taken(store: Store) -> None:
    await store.tokens.create(a_token(), 7)
    with pytest.raises(UsageInvalid) as caught:
        await store.tokens.create(a_token(), 8)
    assert caught.value.next_step.endswith("carnet tokens revoke alice")
    assert len(await store.tokens.list()) == 1


async def test_a_revoked_or_expired_token_gives_its_name_free(store: Store) -> None:
    first, secret = await store.tokens.create(a_token(), 7)
    assert await store.tokens.revoke("alice", 8)
    assert not await store.tokens.revoke("alice", 9)
    again, _ = await store.tokens.create(a_token(), 10)
    late, _ = await store.tokens.create(a_token(), 1_900_000_000_000_000)
    assert [token.n for token in await store.tokens.list()] == [late.n, again.n, first.n]
    found = store.tokens.find(secret)
    assert found is not None
    assert found.revoked == 8


async def test_a_name_that_was_anothers_is_given_to_nobody_else_while_records_may_be_kept(
    store: Store, place: Place
) -> None:
    """A41, A51: what was recorded is known by the name of the token."""
    alice, bob = [
        await store.people.add(NewPerson(name=name, roles=("operator",)), 7)
        for name in ("alice", "bob")
    ]
    hers, his, service = [
        NewToken(name="laptop", scopes=frozenset({"call:*"}), person=person)
        for person in (alice.n, bob.n, None)
    ]
    await store.tokens.create(hers, 7)
    await store.people.end("alice", 8)
    for other in (his, service):
        with pytest.raises(UsageInvalid, match="was another's"):
            await store.tokens.create(other, 9)
    peer = NewToken(name="laptop", scopes=frozenset({"call:*"}), peer="b.example")
    await store.tokens.create(peer, 9)  # which is known by its domain
    await store.tokens.revoke("laptop", 10)
    place.rows("DELETE FROM token WHERE person = ?", alice.n)  # as it is forgotten, with the turns
    found, _ = await store.tokens.create(his, 11)
    await store.tokens.revoke("laptop", 12)
    again, _ = await store.tokens.create(his, 13)
    assert (found.person, again.person) == (bob.n, bob.n)


async def test_when_a_token_was_used_is_written_later(store: Store, place: Place) -> None:
    token, _ = await store.tokens.create(a_token(), 7)
    store.tokens.used(token, 20)
    store.tokens.used(token, 30)
    assert place.rows("SELECT last_used FROM token") == [(None,)]
    place.clock.advance(5)
    await store.upkeep()
    assert place.rows("SELECT last_used FROM token") == [(30,)]


async def test_when_a_token_was_used_is_written_at_the_close(place: Place) -> None:
    store = await place.start()
    token, _ = await store.tokens.create(a_token(), 7)
    store.tokens.used(token, 20)
    await store.close()
    assert place.rows("SELECT last_used FROM token") == [(20,)]


async def test_what_the_command_line_writes_is_seen_by_the_gateway(
    store: Store, place: Place
) -> None:
    beside = await place.open(exclusive=False)
    _, secret = await beside.tokens.create(a_token(), 7)
    await beside.peers.put(GLOBEX)
    assert store.tokens.find(secret) is None
    await store.upkeep()
    found = store.tokens.find(secret)
    assert found is not None
    assert found.name == "alice"
    assert store.peers.find("globex.example") == GLOBEX
    await beside.tokens.revoke("alice", 8)
    await beside.close()
    await store.upkeep()
    found = store.tokens.find(secret)
    assert found is not None
    assert found.revoked == 8


async def test_a_fingerprint_is_stable_and_keyed(store: Store, tmp_path: Path) -> None:
    mine = store.tokens.fingerprint(Secret(CANARY))
    assert mine == store.tokens.fingerprint(Secret(CANARY))
    assert mine != store.tokens.fingerprint(Secret(CANARY + "x"))
    (tmp_path / "other").mkdir()
    other = await Place(tmp_path / "other").start()
    assert other.tokens.fingerprint(Secret(CANARY)) != mine
    await other.close()


async def test_a_peer_is_kept_replaced_and_forgotten(store: Store) -> None:
    await store.peers.put(GLOBEX)
    known = store.peers.find("globex.example")
    assert known is not None
    assert known.token == Secret(CANARY)
    plain = Peer(domain="globex.example", url="https://other.example", credit=5, may_forward=True)
    await store.peers.put(plain)
    assert await store.peers.list() == [plain]
    assert await store.peers.remove("globex.example")
    assert not await store.peers.remove("globex.example")
    assert store.peers.find("globex.example") is None


async def test_a_peer_of_the_file_wins_and_is_read_only(place: Place) -> None:
    store = await place.open()
    await store.peers.put(GLOBEX)
    await store.close()
    written = Peer(domain="globex.example", url="https://from.file", from_file=True)
    store = await place.open(file_peers=[written])
    assert store.peers.find("globex.example") == written
    assert await store.peers.list() == [written]
    with pytest.raises(UsageInvalid, match=r"carnet\.toml"):
        await store.peers.put(GLOBEX)
    await store.close()


async def test_a_peer_sealed_with_another_file_is_not_called_without_its_token(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    store = await place.open()
    await store.peers.put(GLOBEX)
    await store.close()
    place.secrets.unlink()
    secrets_file.create(place.secrets)
    with caplog.at_level(logging.WARNING):
        store = await place.open()
    assert store.peers.find("globex.example") is None
    assert "carnet peers add globex.example" in caplog.text
    await store.peers.put(GLOBEX)
    assert store.peers.find("globex.example") == GLOBEX
    await store.close()


def test_what_is_sealed_opens_under_its_label_only() -> None:
    seal = Seal(draw_key())
    sealed = seal.seal(CANARY, label="a.example")
    assert seal.open(sealed, label="a.example") == CANARY
    assert sealed != seal.seal(CANARY, label="a.example")
    for label in ("b.example", "a.exampl", ""):
        with pytest.raises(Unsealable):
            seal.open(sealed, label=label)
    with pytest.raises(Unsealable):
        Seal(draw_key()).open(sealed, label="a.example")
    with pytest.raises(Unsealable):
        seal.open(b"short", label="a.example")


def test_secrets_are_written_for_their_owner_alone_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "secrets.key"
    made = secrets_file.create(path)
    read = secrets_file.load(path)
    assert (made.key_id, made.pepper, made.seal, made.names) == (
        *(read.key_id, read.pepper, read.seal),
        read.names,
    )
    assert path.stat().st_mode & 0o777 == 0o600
    assert len({made.pepper, made.seal, made.names}) == 3
    assert repr(made) == f"Keys({made.key_id}, ***)"
    assert list(tmp_path.iterdir()) == [path]


def test_secrets_are_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "secrets.key"
    secrets_file.create(path)
    before = path.read_bytes()
    with pytest.raises(ConfigInvalid, match="exists already"):
        secrets_file.create(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_secrets_in_a_folder_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="cannot be written"):
        secrets_file.create(tmp_path / "none" / "secrets.key")
    with pytest.raises(ConfigInvalid, match="carnet init"):
        secrets_file.load(tmp_path / "none" / "secrets.key")
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        secrets_file.load(tmp_path)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_secrets_that_others_can_read_are_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secrets.key"
    secrets_file.create(path)
    path.chmod(mode)
    with pytest.raises(ConfigInvalid, match="chmod 600"):
        secrets_file.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"key_id": ""},
        {"pepper": "c2hvcnQ="},
        {"seal": "*"},
        {"names": 5},
        {"more": "x"},
        None,
    ],
)
def test_secrets_of_another_shape_are_refused_without_quoting_them(
    tmp_path: Path, change: dict[str, object] | None
) -> None:
    path = tmp_path / "secrets.key"
    secrets_file.create(path)
    content = json.loads(path.read_text())
    path.write_text("CANARY" if change is None else json.dumps(content | change))
    with pytest.raises(ConfigInvalid) as caught:
        secrets_file.load(path)
    assert "not a secrets file" in caught.value.safe_text
    assert "CANARY" not in str(caught.value)
    assert content["pepper"] not in str(caught.value)


async def test_a_token_made_elsewhere_is_found_though_a_look_is_under_way(
    place: Place, store: Store
) -> None:
    """Whoever looks again while upkeep reads the tokens is told when they are read, not before."""
    other = await place.open(exclusive=False)
    try:
        for number in range(10):
            _, secret = await other.tokens.create(a_token(f"young-{number}"), 7)
            place.clock.advance(1)
            upkeep = asyncio.create_task(store.look())
            for _ in range(number):  # each time a little further into that look
                await asyncio.sleep(0)
            if store.tokens.find(secret) is None:
                assert await store.look_again()
            assert store.tokens.find(secret) is not None
            await upkeep
    finally:
        await other.close()


async def test_a_token_made_right_after_somebody_asked_for_another_is_found(
    place: Place, store: Store
) -> None:
    """A look that was made before it existed is no answer to whoever shows it."""
    other = await place.open(exclusive=False)
    try:
        await store.look_again()
        _, secret = await other.tokens.create(a_token("young"), 7)
        assert await store.look_again()
        assert store.tokens.find(secret) is not None
    finally:
        await other.close()


async def test_what_is_lent_for_a_token_is_that_token_for_a_while_and_goes_nowhere(
    store: Store,
) -> None:
    token, _ = await store.tokens.create(a_token(), 7)
    with store.tokens.lent(token.n) as lent, store.tokens.lent(token.n + 1) as nobodys:
        found = store.tokens.find(lent)
        assert found is not None
        assert (found.n, found.scopes, found.forwardable) == (token.n, token.scopes, False)
        assert store.tokens.find(nobodys) is None
        await store.tokens.revoke("alice", 9)
        found = store.tokens.find(lent)
        assert found is not None
        assert not found.is_live(10)
    assert store.tokens.find(lent) is None
