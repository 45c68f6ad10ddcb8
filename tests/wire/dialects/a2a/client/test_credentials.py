"""By what an agent wants to know its callers."""

from typing import Any

import pytest

from carnet.wire.dialects.a2a.card import A2aCard, AuthScheme
from carnet.wire.dialects.a2a.client.credentials import WantedCredential, schemes_of, wanted

BOTH = frozenset({"bearer", "key"})
BEARER, KEY = WantedCredential("bearer"), WantedCredential("key", "x-key")
SCHEMES = {
    "bearer": AuthScheme(kind="http", given={"scheme": "Bearer"}),
    "oauth": AuthScheme(kind="oauth2", given={"flows": {}}),
    "oidc": AuthScheme(kind="openIdConnect"),
    "key": AuthScheme(kind="apiKey", given={"location": "header", "name": "X-Key"}),
    "old key": AuthScheme(kind="apiKey", given={"in": "header", "name": "X-Key"}),
    "basic": AuthScheme(kind="http", given={"scheme": "Basic"}),
    "query": AuthScheme(kind="apiKey", given={"location": "query", "name": "k"}),
    "host": AuthScheme(kind="apiKey", given={"location": "header", "name": "Host"}),
    "split": AuthScheme(kind="apiKey", given={"location": "header", "name": "a: b\r\nc"}),
    "number": AuthScheme(kind="apiKey", given={"location": "header", "name": 1}),
    "mutual": AuthScheme(kind="mutualTLS"),
    "new": AuthScheme(kind=""),
}


def card(*needs: tuple[str, ...], schemes: dict[str, Any] | None = None) -> A2aCard:
    requirements = tuple({name: tuple[str, ...]() for name in need} for need in needs)
    given = SCHEMES if schemes is None else schemes
    return A2aCard(
        name="a", description="", version="1", interfaces=(), schemes=given,
        requirements=requirements,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("needs", "held", "found"),
    [
        ([("bearer",)], BOTH, (BEARER,)),
        ([("oauth",)], BOTH, (BEARER,)),
        ([("oidc",)], BOTH, (BEARER,)),
        ([("key",)], BOTH, (KEY,)),
        ([("old key",)], BOTH, (KEY,)),
        ([("bearer", "key")], BOTH, (BEARER, KEY)),
        ([("mutual",), ("key",)], BOTH, (KEY,)),
        ([("bearer", "key")], frozenset({"key"}), None),
        ([("bearer",)], frozenset[str](), None),
        ([()], frozenset[str](), ()),  # anybody may call
        *(
            ([(name,)], BOTH, None)
            for name in ("basic", "query", "host", "split", "number", "mutual", "new", "absent")
        ),
    ],
)
def test_one_requirement_is_enough_and_all_of_it_is_needed(
    needs: list[tuple[str, ...]], held: frozenset[str], found: tuple[WantedCredential, ...] | None
) -> None:
    assert wanted(card(*needs), held) == found


def test_who_asks_for_nothing_is_sent_what_we_have() -> None:
    assert wanted(card(), BOTH) == (BEARER, KEY)
    assert wanted(card(), frozenset()) == ()
    assert wanted(card(schemes={}), BOTH) == (BEARER,)


def test_what_is_asked_for_has_a_name() -> None:
    needs = [("bearer",), ("key", "basic"), ("mutual",), ("query",), ("new",), ("absent",)]
    assert schemes_of(card(*needs)) == (
        "a bearer token, a key in a header, another scheme of HTTP, mutual TLS, "
        "a key elsewhere than in a header, another scheme"
    )
