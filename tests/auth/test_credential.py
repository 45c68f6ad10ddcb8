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


def test_a_session_is_the_token_in_its_cookie() -> None:
    assert shown((b"cookie", b"theme=dark; carnet_session=ck_1; a=b")) == "Bearer ck_1"
    for other in (b"theme=dark", b"Carnet_Session=ck_1", b"xcarnet_session=ck_1", b";;="):
        assert shown((b"cookie", other)) is None


OWN = (b"host", b"127.0.0.1:8701")
COOKIE = (b"cookie", b"carnet_session=ck_1")


@pytest.mark.parametrize(
    ("field", "believed"),
    [
        ((b"origin", b"http://127.0.0.1:8701"), "Bearer ck_1"),
        ((b"origin", b"https://127.0.0.1:8701"), "Bearer ck_1"),
        ((b"sec-fetch-site", b"same-origin"), "Bearer ck_1"),
        ((b"sec-fetch-site", b"none"), "Bearer ck_1"),
        ((b"origin", b"http://127.0.0.1"), None),
        ((b"origin", b"https://evil.example"), None),
        ((b"origin", b"null"), None),
        ((b"sec-fetch-site", b"same-site"), None),
        ((b"sec-fetch-site", b"cross-site"), None),
    ],
)
def test_a_cookie_that_the_page_of_another_site_had_sent_is_nobodys(
    field: tuple[bytes, bytes], believed: str | None
) -> None:
    assert shown(OWN, COOKIE, field) == believed
    # What a page cannot have a browser send by itself is believed wherever it comes from.
    assert shown(OWN, (b"authorization", b"Bearer a"), field) == "Bearer a"


@pytest.mark.parametrize(
    "fields",
    [
        [(b"authorization", b"Bearer a"), (b"x-api-key", b"a")],
        [(b"authorization", b"Bearer a"), (b"authorization", b"Bearer a")],
        [(b"x-api-key", b"a"), (b"x-api-key", b"b")],
        [(b"authorization", b"Bearer a"), (b"cookie", b"carnet_session=a")],
        [(b"cookie", b"carnet_session=a; carnet_session=b")],
        [(b"cookie", b"carnet_session=a"), (b"cookie", b"x=y")],
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
