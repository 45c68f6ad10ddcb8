"""The page that shows our keys: signed by one of them, believed as a whole or not at all."""

from base64 import urlsafe_b64decode
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.errors import PeerUnreachable
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.grammar import jcs, json
from tests.wire.travel.scene import KID, PUBLIC, sign

OTHER = ed25519.public_of(bytes(32))
SHOWN = travel.WellKnown(
    domain="a.example",
    version=7,
    keys=(
        travel.PublishedKey(kid=KID, key=PUBLIC),
        travel.PublishedKey(kid="k-0", key=OTHER, not_after=2_000_000),
        travel.PublishedKey(kid="k-x", key=OTHER, active=False),
    ),
    dialects=("openai", "samvad"),
)


def page(shown: travel.WellKnown = SHOWN, kid: str = KID) -> bytes:
    return travel.write_well_known(shown, kid=kid, sign=sign)


def changed(**members: Any) -> bytes:
    return json.write(json.read_object(page()) | members)


def test_what_is_written_is_read_again() -> None:
    assert travel.read_well_known(page()) == SHOWN


def test_what_is_signed_is_the_canonical_form_of_the_rest() -> None:
    whole = json.read_object(page())
    signature = str(whole.pop("signature"))
    payload = signature.split(".")[1]
    assert urlsafe_b64decode(payload + "=" * (-len(payload) % 4)) == jcs.canonical(whole)


KEYS: Any = json.read_object(page())["keys"]


@pytest.mark.parametrize(
    "members",
    [
        *({"domain": "c.example"}, {"version": 8}, {"dialects": []}, {"more": 1}),  # not signed
        *({"domain": "localhost"}, {"version": -1}, {"keys": []}, {"keys": KEYS[:1] * 33}),
        *({"signature": "x"}, {"signature": None}, {"profiles": "carnet"}),
        {"keys": [KEYS[0] | {"key": ed25519.write_public_key(bytes(32))}]},
        {"keys": [KEYS[0] | {"kid": "k-2"}]},
        {"keys": [KEYS[0] | {"active": False}]},
    ],
)
def test_a_page_that_was_changed_is_not_believed(members: dict[str, Any]) -> None:
    with pytest.raises(PeerUnreachable):
        travel.read_well_known(changed(**members))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"<html>", b'{"domain":1,"domain":2}'])
def test_what_is_no_page_is_refused(body: bytes) -> None:
    with pytest.raises(PeerUnreachable):
        travel.read_well_known(body)


def test_a_page_is_signed_by_a_key_that_it_shows_as_active() -> None:
    ended = replace(SHOWN, keys=(travel.PublishedKey(kid=KID, key=PUBLIC, active=False),))
    twice = replace(SHOWN, keys=(SHOWN.keys[0], SHOWN.keys[0]))
    for wrong in (page(ended), page(twice), page(kid="k-0"), page(kid="nobody")):
        with pytest.raises(PeerUnreachable):
            travel.read_well_known(wrong)
