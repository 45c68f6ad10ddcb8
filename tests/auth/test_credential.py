"""What a request shows of who sends it, and what of that is believed or passed on."""

import pytest

from carnet.auth.credential import read_credential, without_credentials, without_identity
from carnet.errors import TokenInvalid
from carnet.wire.grammar.headers import Headers

Fields = list[tuple[bytes, bytes]]


def shown(*fields: tuple[bytes, bytes]) -> str | None:
    credential = read_credential(Headers(list(fields)))
    return None if credential is None else credential.reveal()


def test_a_bearer_and_an_api_key_are_the_same_credential() -> None:
    assert shown((b"authorization", b"Bearer ck_1")) == "Bearer ck_1"
    assert shown((b"x-api-key", b"ck_1")) == "Bearer ck_1"
    assert shown((b"host", b"x")) is None


def test_a_cookie_is_read_elsewhere() -> None:
    assert shown((b"cookie", b"carnet_session=ck_1")) is None


def test_a_session_and_another_credential_are_two() -> None:
    for field in ((b"authorization", b"Bearer a"), (b"x-api-key", b"a")):
        with pytest.raises(TokenInvalid):
            read_credential(Headers([field]), is_signed_in=True)
    assert read_credential(Headers([]), is_signed_in=True) is None


@pytest.mark.parametrize(
    "fields",
    [
        [(b"authorization", b"Bearer a"), (b"x-api-key", b"a")],
        [(b"authorization", b"Bearer a"), (b"authorization", b"Bearer a")],
        [(b"x-api-key", b"a"), (b"x-api-key", b"b")],
    ],
)
def test_two_credentials_are_nobodys(fields: Fields) -> None:
    with pytest.raises(TokenInvalid):
        shown(*fields)


def test_what_says_who_acts_is_removed_in_every_spelling() -> None:
    kept = [(b"host", b"x"), (b"x-actor-name", b"kept")]
    forged = [
        (b"x-actor-id", b"root"),
        (b"x_actor_id", b"root"),
        (b"X-Actor_Permissions", b"*"),
        (b"x-actor-permissions", b"*"),
    ]
    assert without_identity([*forged, *kept]) == kept


def test_a_credential_stays_behind() -> None:
    fields = [(b"authorization", b"a"), (b"x_api_key", b"b"), (b"cookie", b"c"), (b"host", b"x")]
    assert without_credentials(fields) == [(b"host", b"x")]
