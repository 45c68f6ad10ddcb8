"""A key is shown before it signs, so that a rotation makes nobody refuse us (D11, G13, F33)."""

import pytest

from carnet.errors import UsageInvalid
from carnet.stores.open import Store
from carnet.stores.secrets import secrets_file
from carnet.stores.trust.own_keys import MOST_SHOWN
from tests.stores.support.scenes import NOW, SECOND, Place

LEAD = 600
OVERLAP = 3600


def states(store: Store, place: Place) -> dict[str, str]:
    """What cards show, by name."""
    return {key.kid: key.state for key in store.keys.published(place.clock.wall_us())}


async def rotate(store: Store, place: Place, lead: int = LEAD) -> str:
    now = place.clock.wall_us()
    new = await store.keys.rotate(now, overlap_seconds=OVERLAP, lead_seconds=lead)
    return new.kid


async def test_a_new_key_is_shown_at_once_and_signs_when_others_have_learned_it(
    store: Store, place: Place
) -> None:
    old = store.keys.signer()
    new = await rotate(store, place)
    assert states(store, place) == {new: "next", old.kid: "active"}
    begins, ends = NOW + LEAD * SECOND, NOW + (LEAD + OVERLAP) * SECOND
    shown = store.keys.published(NOW)
    assert [(key.signs_from, key.not_after) for key in shown] == [(begins, None), (NOW, ends)]
    place.clock.advance(LEAD - 1)
    assert store.keys.signer() is old
    place.clock.advance(1)
    assert store.keys.signer().kid == new
    assert states(store, place) == {new: "active", old.kid: "retiring"}
    place.clock.advance(OVERLAP)
    assert states(store, place) == {new: "active"}


async def test_gateways_that_start_before_and_after_the_switch_sign_with_the_same_key(
    place: Place,
) -> None:
    store = await place.start()
    old = store.keys.signer().kid
    new = await rotate(store, place)
    beside = await place.open(exclusive=False)
    assert beside.keys.signer().kid == old
    await store.close()
    store = await place.start()
    assert store.keys.signer().kid == old
    place.clock.advance(LEAD)
    assert store.keys.signer().kid == beside.keys.signer().kid == new
    await store.close()
    store = await place.start()
    assert store.keys.signer().kid == new
    await store.close()
    await beside.close()


async def test_a_second_rotation_waits_for_the_first(store: Store, place: Place) -> None:
    old, new = store.keys.signer().kid, await rotate(store, place)
    with pytest.raises(UsageInvalid, match=new) as refused:
        await rotate(store, place)
    assert "--at-once" in refused.value.next_step
    assert states(store, place) == {new: "next", old: "active"}
    place.clock.advance(LEAD)
    again = await rotate(store, place)
    assert states(store, place) == {again: "next", new: "active", old: "retiring"}


async def test_in_an_emergency_the_next_key_signs_at_once(store: Store, place: Place) -> None:
    old, new = store.keys.signer().kid, await rotate(store, place)
    place.clock.advance(30)
    assert await rotate(store, place, lead=0) == new
    assert store.keys.signer().kid == new
    (_, before) = await store.keys.list()
    assert (before.kid, before.state) == (old, "retiring")
    assert before.not_after == NOW + (30 + OVERLAP) * SECOND


async def test_a_key_that_signs_at_once_does_so_by_every_clock(store: Store, place: Place) -> None:
    old = store.keys.signer().kid
    new = await rotate(store, place, lead=0)
    place.clock.jump(-3600)  # a gateway whose clock is behind
    assert store.keys.signer().kid == new
    assert states(store, place) == {new: "active", old: "retiring"}


async def test_the_next_key_signs_at_once_when_the_one_that_signs_is_revoked(
    store: Store, place: Place
) -> None:
    first = store.keys.signer().kid
    second = await rotate(store, place, lead=0)  # the first is honoured, but signs no more
    third = await rotate(store, place)
    assert await store.keys.revoke(second, place.clock.wall_us())
    assert store.keys.signer().kid == third
    assert states(store, place) == {third: "active", first: "retiring", second: "revoked"}


async def test_nothing_is_replaced_when_the_next_key_is_revoked(store: Store, place: Place) -> None:
    old, new = store.keys.signer().kid, await rotate(store, place)
    assert await store.keys.revoke(new, place.clock.wall_us())
    assert states(store, place) == {old: "active", new: "revoked"}
    place.clock.advance(LEAD + OVERLAP)
    assert store.keys.signer().kid == old
    (key,) = [key for key in await store.keys.list() if key.kid == old]
    assert (key.state, key.not_after) == ("active", None)
    again = await rotate(store, place)
    assert states(store, place)[again] == "next"


async def test_a_new_key_is_drawn_when_the_one_that_has_taken_over_is_revoked(
    store: Store, place: Place
) -> None:
    old, new = store.keys.signer().kid, await rotate(store, place)
    place.clock.advance(LEAD)
    assert await store.keys.revoke(new, place.clock.wall_us())
    assert store.keys.signer().kid not in {old, new}


async def test_nobody_waits_for_a_key_that_cannot_be_opened(place: Place) -> None:
    store = await place.start()
    old, new = store.keys.signer().kid, await rotate(store, place)
    await store.close()
    place.secrets.unlink()
    secrets_file.create(place.secrets)
    store = await place.open()
    mended = await rotate(store, place)
    assert store.keys.signer().kid == mended
    assert states(store, place) == {mended: "active", new: "retiring", old: "retiring"}
    await store.close()


async def test_cards_show_what_is_honoured_before_what_was_revoked_and_no_more_than_is_read(
    store: Store, place: Place
) -> None:
    signing = store.keys.signer().kid
    for _ in range(MOST_SHOWN + 3):
        assert await store.keys.revoke(await rotate(store, place), NOW)
    shown = store.keys.published(NOW)
    assert [key.state for key in shown] == ["active", *["revoked"] * (MOST_SHOWN - 1)]
    assert shown[0].kid == signing
