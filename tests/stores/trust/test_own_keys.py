"""Our keys and those of others: sealed, one that signs, and a revocation that is seen at once."""

import asyncio
import json
import logging
from base64 import b64decode

import pytest

from carnet.errors import ConfigInvalid, KeyInvalid, StorageUnavailable, UsageInvalid
from carnet.ports.trust.keys import PinnedKey
from carnet.stores.open import Store
from carnet.stores.secrets import secrets_file
from carnet.wire.crypto.ed25519 import holds, public_of
from tests.stores.support.scenes import NOW, SECOND, Place, finished

MESSAGE = b"what is signed"
GLOBEX = "agent://globex.example"
PUBLIC = public_of(b"\x01" * 32)
OTHER = public_of(b"\x02" * 32)
# The identity, the point of order two, one of order eight, and a y beyond the field.
WEAK = [
    (1).to_bytes(32, "little"),
    (2**255 - 20).to_bytes(32, "little"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    (2**255 - 19).to_bytes(32, "little"),
    b"\x00" * 32,
    b"short",
]


def stored_bytes(place: Place) -> bytes:
    if place.postgres:
        rows = place.rows("SELECT kid, public, sealed, key_id FROM own_key")
        return b"".join(v if isinstance(v, bytes) else v.encode() for row in rows for v in row)
    return b"".join(path.read_bytes() for path in sorted(place.folder.glob("carnet.db*")))


def public_key(store: Store, kid: str) -> bytes:
    (found,) = [key.public for key in store.keys.published(NOW) if key.kid == kid]
    return found


# --------------------------------------------------------------------------------------- ours


async def test_a_gateway_that_starts_has_a_key_and_keeps_it(place: Place) -> None:
    store = await place.start()
    signer = store.keys.signer()
    assert holds(public_key(store, signer.kid), MESSAGE, signer.sign(MESSAGE))
    assert "***" in repr(signer)
    await store.close()
    store = await place.start()
    assert store.keys.signer().kid == signer.kid
    assert store.keys.signer().sign(MESSAGE) == signer.sign(MESSAGE)
    await store.close()


async def test_many_that_start_at_once_make_one_key(place: Place) -> None:
    stores = [await place.open(exclusive=False) for _ in range(4)]
    await asyncio.gather(*[store.keys.ensure(NOW) for store in stores])
    assert len({store.keys.signer().kid for store in stores}) == 1
    assert place.rows("SELECT COUNT(*) FROM own_key") == [(1,)]
    for store in stores:
        await store.close()


async def test_a_command_beside_it_makes_none(place: Place) -> None:
    store = await place.open(exclusive=False)
    with pytest.raises(StorageUnavailable):
        store.keys.signer()
    made = await store.keys.create(NOW, kid="first")
    assert (made.kid, made.state, made.created, made.not_after) == ("first", "active", NOW, None)
    await store.close()


async def test_a_second_key_is_made_by_rotating_alone(store: Store) -> None:
    with pytest.raises(UsageInvalid) as caught:
        await store.keys.create(NOW)
    assert caught.value.next_step.endswith("carnet keys rotate")
    assert len(await store.keys.list()) == 1


@pytest.mark.parametrize("kid", ["", "a b", 'a"b', "a;b", "é", "x" * 65, "a\n"])
async def test_a_key_has_a_name_that_every_header_can_carry(store: Store, kid: str) -> None:
    with pytest.raises(UsageInvalid):
        await store.keys.create(NOW, kid=kid)


async def test_a_key_that_was_replaced_is_honoured_until_the_overlap_has_passed(
    store: Store,
) -> None:
    old = store.keys.signer()
    new = await store.keys.rotate(NOW, overlap_seconds=60)
    assert store.keys.signer().kid == new.kid != old.kid
    shown = store.keys.published(NOW + 59 * SECOND)
    assert [(key.kid, key.state) for key in shown] == [(new.kid, "active"), (old.kid, "retiring")]
    assert shown[1].not_after == NOW + 60 * SECOND
    assert holds(shown[1].public, MESSAGE, old.sign(MESSAGE))  # what was sent a moment ago
    assert [key.kid for key in store.keys.published(NOW + 60 * SECOND)] == [new.kid]
    assert len(await store.keys.list()) == 2


async def test_of_two_that_rotate_at_once_one_does(place: Place, store: Store) -> None:
    other = await place.open(exclusive=False)
    outcomes = await asyncio.gather(
        *[one.keys.rotate(NOW, overlap_seconds=60) for one in (store, other) for _ in range(3)],
        return_exceptions=True,
    )
    assert all(not isinstance(one, Exception) or isinstance(one, UsageInvalid) for one in outcomes)
    keys = await store.keys.list()
    assert [key.state for key in keys].count("active") == 1
    assert len(keys) == 1 + sum(not isinstance(one, Exception) for one in outcomes)
    await other.keys.refresh()
    assert other.keys.signer().kid == store.keys.signer().kid
    await other.close()


async def test_the_active_key_is_replaced_when_it_is_revoked(store: Store) -> None:
    old = store.keys.signer()
    assert await store.keys.revoke(old.kid, NOW)
    assert store.keys.signer().kid != old.kid
    states = {key.kid: key.state for key in store.keys.published(NOW)}
    assert states == {old.kid: "revoked", store.keys.signer().kid: "active"}
    assert not await store.keys.revoke(old.kid, NOW)
    assert not await store.keys.revoke("nobody", NOW)
    assert len(await store.keys.list()) == 2


async def test_a_retiring_key_that_is_revoked_leaves_the_signer_as_it_is(store: Store) -> None:
    old = store.keys.signer()
    new = await store.keys.rotate(NOW, overlap_seconds=60)
    assert await store.keys.revoke(old.kid, NOW)
    assert store.keys.signer().kid == new.kid
    assert [key.state for key in await store.keys.list()] == ["active", "revoked"]


async def test_the_database_holds_no_private_key(store: Store, place: Place) -> None:
    signer = store.keys.signer()
    secrets = json.loads(place.secrets.read_text())
    seed = b64decode(
        store.keys._seal.open(  # noqa: SLF001  what a thief must not find
            place.rows("SELECT sealed FROM own_key")[0][0], label=f"key:{signer.kid}"
        )
    )
    assert public_of(seed) == public_key(store, signer.kid)
    data = stored_bytes(place)
    assert signer.kid.encode() in data
    assert secrets["key_id"].encode() in data
    assert seed not in data
    assert seed.hex().encode() not in data


async def test_keys_cannot_be_exchanged_in_the_database(
    place: Place, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await store.keys.rotate(NOW, overlap_seconds=60)
    (old,) = place.rows("SELECT sealed FROM own_key WHERE active = 0")[0]
    await store.close()
    place.rows("UPDATE own_key SET sealed = ? WHERE active = 1", old)
    with caplog.at_level(logging.WARNING):
        beside = await place.open(exclusive=False)
    with pytest.raises(StorageUnavailable):
        beside.keys.signer()
    assert "carnet keys rotate" in caplog.text
    await beside.close()


async def test_f33_with_another_secrets_file_nothing_is_signed_and_rotating_mends_it(
    place: Place,
) -> None:
    store = await place.start()
    old = store.keys.signer().kid
    await store.close()
    place.secrets.unlink()
    secrets_file.create(place.secrets)
    store = await place.open()
    with pytest.raises(ConfigInvalid, match="carnet keys rotate"):
        await store.start()
    with pytest.raises(StorageUnavailable):
        store.keys.signer()
    await store.keys.rotate(NOW, overlap_seconds=0)
    assert store.keys.signer().kid != old
    await store.close()
    store = await place.start()
    await store.close()


async def test_f33_a_gateway_signs_on_when_the_secrets_file_cannot_be_read_any_more(
    store: Store, place: Place
) -> None:
    signer = store.keys.signer()
    place.secrets.chmod(0)
    await store.refresh()
    assert store.keys.signer().sign(MESSAGE) == signer.sign(MESSAGE)
    place.secrets.chmod(0o600)


# ------------------------------------------------------------------------------------- theirs


async def test_a_key_is_pinned_replaced_revoked_and_forgotten(store: Store) -> None:
    await store.pinned.pin(PinnedKey(sender=GLOBEX, public=PUBLIC, kid="a", added=1))
    await store.pinned.pin(PinnedKey(sender=GLOBEX, public=PUBLIC, added=2))
    assert [(key.kid, key.added) for key in store.pinned.of(GLOBEX)] == [(None, 2), ("a", 1)]
    await store.pinned.pin(PinnedKey(sender=GLOBEX, public=OTHER, kid="a", added=3))
    assert [key.public for key in store.pinned.of(GLOBEX)] == [PUBLIC, OTHER]
    assert await store.pinned.revoke(GLOBEX, "a", 9) == 1
    assert await store.pinned.revoke(GLOBEX, "a", 10) == 0
    assert [key.revoked for key in store.pinned.of(GLOBEX)] == [None, 9]
    assert await store.pinned.revoke(GLOBEX, None, 11) == 1
    assert [key.revoked for key in store.pinned.of(GLOBEX)] == [11, 9]
    await store.pinned.pin(PinnedKey(sender=GLOBEX, public=OTHER, kid="a", added=12))
    assert [key.revoked for key in store.pinned.of(GLOBEX)] == [11, None]  # admitted again
    assert await store.pinned.remove(GLOBEX) == 2
    assert (list(store.pinned.of(GLOBEX)), await store.pinned.list()) == ([], [])
    assert await store.pinned.remove(GLOBEX) == 0


@pytest.mark.parametrize("public", WEAK, ids=range(len(WEAK)))
async def test_a_key_that_would_verify_forgeries_is_not_pinned(store: Store, public: bytes) -> None:
    with pytest.raises(KeyInvalid):  # A21
        await store.pinned.pin(PinnedKey(sender=GLOBEX, public=public))
    assert await store.pinned.list() == []


async def test_keys_of_the_file_win_and_are_read_only(place: Place) -> None:
    store = await place.open()
    await store.pinned.pin(PinnedKey(sender=GLOBEX, public=OTHER))
    await store.close()
    written = PinnedKey(sender=GLOBEX, public=PUBLIC, from_file=True)
    store = await place.open(file_keys=[written])
    assert list(store.pinned.of(GLOBEX)) == await store.pinned.list() == [written]
    for act in (
        store.pinned.pin(PinnedKey(sender=GLOBEX, public=OTHER)),
        store.pinned.revoke(GLOBEX, None, NOW),
        store.pinned.remove(GLOBEX),
    ):
        with pytest.raises(UsageInvalid, match=r"carnet\.toml"):
            await act
    await store.close()


async def test_what_a_command_does_with_keys_is_seen_by_a_gateway_at_its_next_look(
    store: Store, place: Place
) -> None:
    beside = await place.open(exclusive=False)
    await beside.pinned.pin(PinnedKey(sender=GLOBEX, public=PUBLIC))
    assert not store.pinned.of(GLOBEX)
    assert await store.look()
    assert store.pinned.of(GLOBEX)[0].revoked is None
    await beside.pinned.revoke(GLOBEX, None, NOW)  # A23
    assert await store.look()
    assert store.pinned.of(GLOBEX)[0].revoked == NOW
    new = await beside.keys.rotate(NOW, overlap_seconds=60)
    assert store.keys.signer().kid != new.kid
    assert await store.look()
    assert store.keys.signer().kid == new.kid
    await beside.keys.revoke(new.kid, NOW)
    assert await store.look()
    assert store.keys.signer().kid not in {new.kid, ""}
    assert not await store.look()
    await beside.close()


# ----------------------------------------------------------------------------------- receipts


async def test_the_receipt_of_an_attempt_is_kept_as_it_was_given(store: Store) -> None:
    turn = await finished(store)
    assert await store.receipts.get(turn) is None
    assert await store.receipts.put(turn, "first.of.all") == "first.of.all"
    assert await store.receipts.put(turn, "another.one.later") == "first.of.all"
    assert await store.receipts.get(turn) == "first.of.all"


@pytest.mark.parametrize("days", [(1, 1), (9, 1)], ids=["turns", "events"])
async def test_a_receipt_goes_with_its_turn(
    store: Store, place: Place, days: tuple[int, int]
) -> None:
    turns = [await finished(store, f"r{i}") for i in range(3)]
    for turn in turns:
        await store.receipts.put(turn, "a.b.c")
    place.clock.advance(2 * 86_400)
    await store.prune(turn_days=days[0], event_days=days[1])
    assert place.rows("SELECT turn FROM receipt") == [(turns[-1].n,)]  # the newest turn stays
