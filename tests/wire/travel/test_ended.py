"""The list of delegations that were ended: read as it was written, or not at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.errors import PeerUnreachable
from carnet.wire import travel
from carnet.wire.crypto import ed25519, jws
from carnet.wire.grammar import json
from carnet.wire.travel.ended import TYPE
from tests.wire.travel.scene import KID, NOW, PUBLIC, sign

CLAIMS: dict[str, Any] = {"iss": "a.example", "iat": NOW, "exp": NOW + 60, "ids": ["x"]}
IDS = st.frozensets(st.text("abcdef0123456789-", min_size=1, max_size=36), max_size=20)


def a_list(*ids: str) -> travel.EndedList:
    return travel.EndedList(domain="a.example", issued=NOW, expires=NOW + 60, ids=frozenset(ids))


def page(claims: dict[str, Any], typ: str = TYPE) -> bytes:
    return json.write({"ended": jws.write(claims, kid=KID, typ=typ, sign=sign)})


@given(IDS)
def test_what_is_written_is_read_again_and_its_signature_holds(ids: frozenset[str]) -> None:
    written = a_list(*ids)
    found = travel.read_ended(travel.write_ended(written, kid=KID, sign=sign))
    assert found.keyid == KID
    assert ed25519.holds(PUBLIC, found.signed, found.signature)
    assert replace(found, keyid="", signed=b"", signature=b"") == written


def test_a_list_that_cannot_hold_all_says_so() -> None:
    many = a_list(*(f"id-{n}" for n in range(travel.MOST_ENDED + 1)))
    found = travel.read_ended(travel.write_ended(many, kid=KID, sign=sign))
    assert (len(found.ids), found.whole) == (travel.MOST_ENDED, False)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"{}", b'{"ended": 7}', b'{"ended": "x"}', b'{"ended": "a.b.c"}'),
        page(CLAIMS, typ="carnet-keys+jwt"),
        page({**CLAIMS, "iss": "localhost"}),
        page({**CLAIMS, "ids": [7]}),
        page({**CLAIMS, "ids": ["x" * 129]}),
        page({**CLAIMS, "ids": ["x"] * (travel.MOST_ENDED + 1)}),
        page({**CLAIMS, "exp": -1}),
        page({name: CLAIMS[name] for name in ("iss", "iat", "exp")}),
    ],
)
def test_what_is_no_list_is_not_read(body: bytes) -> None:
    with pytest.raises(PeerUnreachable):
        travel.read_ended(body)
