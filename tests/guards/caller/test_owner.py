"""Who may ask about a task: whoever signed for it, just now, with a key of its own."""

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.people.proof import SECOND_US, Asking
from carnet.errors import SignatureExpired, TimestampOutOfWindow
from carnet.guards.caller.owner import Owners, check_time
from carnet.testing.keys import MemoryRing
from carnet.wire.crypto import ed25519
from tests.guards.signed_scene import BASE, NOW, ONE_LABEL, PUBLIC, SEED, STRANGER

ASKING = Asking(
    profile="samvad",
    keyid="k1",
    signature=ed25519.sign(SEED, BASE),
    bases=(b"another form", BASE),
    at=NOW,
    expires=None,
)


@pytest.mark.parametrize(
    "given", [{"at": NOW - 301 * SECOND_US}, {"at": NOW + 61 * SECOND_US}, {"profile": "carnet"}]
)
def test_a_signature_is_made_just_now(given: dict[str, Any]) -> None:
    late = {"at": NOW - 61 * SECOND_US} | given
    with pytest.raises(TimestampOutOfWindow):
        check_time(replace(ASKING, **late), NOW)


def test_one_that_has_ended_is_refused() -> None:
    check_time(ASKING, NOW)
    check_time(replace(ASKING, expires=NOW // SECOND_US + 1), NOW)
    with pytest.raises(SignatureExpired):
        check_time(replace(ASKING, expires=NOW // SECOND_US), NOW)


async def test_the_key_is_one_of_the_sender() -> None:
    ring = MemoryRing()
    ring.pin(STRANGER, "k1", PUBLIC)
    owners = Owners(ring)
    assert await owners.is_signed_by(STRANGER, ASKING, NOW)
    assert not await owners.is_signed_by(STRANGER, replace(ASKING, keyid="k2"), NOW)
    assert not await owners.is_signed_by(STRANGER, replace(ASKING, bases=(b"other",)), NOW)


async def test_a_key_may_be_learned_where_there_is_a_card() -> None:
    ring = MemoryRing()
    ring.publish(STRANGER, "k1", PUBLIC)
    owners = Owners(ring)
    assert await owners.is_signed_by(STRANGER, ASKING, NOW)
    assert not await owners.is_signed_by(ONE_LABEL, ASKING, NOW)
    assert ring.learns == [STRANGER]


async def test_a_signature_is_judged_whether_there_is_a_sender_or_not() -> None:
    """A67: for each text that it may cover, whoever's key it is, and if it held for the first."""
    ring = MemoryRing()
    ring.pin(STRANGER, "k1", PUBLIC)
    owners, judged = Owners(ring), Counter[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        judged[frame.f_code.co_name] += event == "call"

    found = []
    for sender, keyid in ((STRANGER, "k1"), (STRANGER, "k2"), (ONE_LABEL, "k1"), (None, "k1")):
        judged.clear()
        sys.setprofile(note)
        try:
            is_theirs = await owners.is_signed_by(sender, replace(ASKING, keyid=keyid), NOW)
        finally:
            sys.setprofile(None)
        found.append((is_theirs, judged[ed25519.holds.__name__]))
    assert found == [(True, 2), (False, 2), (False, 2), (False, 2)]
