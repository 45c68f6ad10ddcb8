"""Whose key verifies a card."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.ports.trust.keys import PinnedKey
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.peers.a2a.verification import CardVerification, JudgedCard
from carnet.runtime.peers.cards import Fetching, Site
from carnet.runtime.system import SystemClock
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.crypto.jwks import write_keys
from carnet.wire.dialects.a2a.card import read_card, sign_card, write_members
from carnet.wire.grammar import json
from tests.support.a2a.pages import PageHost
from tests.wire.dialects.a2a.card.scene import FACTS, KID, PUBLIC, SEED

OTHER = ed25519.public_of(b"\x09" * 32)
CARNET = "/.well-known/carnet.json"
JWKS = "/.well-known/jwks.json"


@pytest.fixture
def host() -> Iterator[PageHost]:
    with PageHost().serving() as serving:
        yield serving


async def judged(host: PageHost, jku: str, *pins: PinnedKey) -> JudgedCard:
    """What a card at the host is worth whose key is said to lie at `jku`."""
    members: dict[str, Any] = sign_card(
        write_members(FACTS), kid=KID, jku=jku, sign=ed25519.signer(SEED)
    )
    card, http = read_card(json.write(members)), EgressClient()
    pinned = {"agent://127.0.0.1": pins}
    try:
        verification = CardVerification(
            Fetching(http), lambda identity: pinned[identity], SystemClock()
        )
        return await verification.judge(card, Site(host.url + "/agents/critic"))
    finally:
        await http.close()


def shown(*keys: travel.PublishedKey) -> bytes:
    page = travel.WellKnown(domain="acme.example", version=1, keys=keys)
    return travel.write_well_known(page, kid="own", sign=ed25519.signer(b"\x09" * 32))


OWN = travel.PublishedKey(kid="own", key=OTHER)
SIGNING = travel.PublishedKey(kid=KID, key=PUBLIC)


async def test_a_key_that_the_host_shows_as_a_carnet_is_its_own(host: PageHost) -> None:
    host.pages[CARNET] = shown(OWN, SIGNING)
    found = await judged(host, "https://elsewhere.example/keys")
    assert (found.verdict.state, found.source) == ("verified", "carnet.json")


@pytest.mark.parametrize("ended", [{"active": False}, {"not_after": 1_000_000}])
async def test_a_key_that_has_ended_verifies_nothing(host: PageHost, ended: dict[str, Any]) -> None:
    host.pages[CARNET] = shown(OWN, replace(SIGNING, **ended))
    assert (await judged(host, "https://elsewhere.example/keys")).verdict.state == "key-unknown"


async def test_a_set_of_keys_at_the_very_same_origin_is_read(host: PageHost) -> None:
    host.pages[JWKS] = write_keys({KID: PUBLIC})
    found = await judged(host, host.url + JWKS)
    assert (found.verdict.state, found.source) == ("verified", "jku")
    host.pages[JWKS] = write_keys({KID: OTHER})
    assert (await judged(host, host.url + JWKS)).verdict.state == "broken"
    host.pages[JWKS] = b"[]"
    assert (await judged(host, host.url + JWKS)).verdict.state == "key-unknown"


async def test_a_key_that_lies_elsewhere_is_never_fetched(host: PageHost) -> None:
    with PageHost().serving() as elsewhere:
        elsewhere.pages[JWKS] = write_keys({KID: PUBLIC})
        for jku in (elsewhere.url + JWKS, f"{host.url}@{elsewhere.url[7:]}{JWKS}"):
            assert (await judged(host, jku)).verdict.state == "key-unknown"
        assert elsewhere.asked == []
    assert host.asked == [CARNET] * 2


async def test_a_pinned_key_wins_and_nobody_is_asked(host: PageHost) -> None:
    host.pages[CARNET] = shown(OWN, SIGNING)
    who = "agent://127.0.0.1"
    for kid in (KID, None):
        found = await judged(host, host.url + JWKS, PinnedKey(sender=who, public=PUBLIC, kid=kid))
        assert (found.verdict.state, found.source) == ("verified", "pinned")
    wrong = await judged(host, host.url + JWKS, PinnedKey(sender=who, public=OTHER))
    assert (wrong.verdict.state, wrong.source) == ("broken", "pinned")
    ended = PinnedKey(sender=who, public=PUBLIC, revoked=1)
    assert (await judged(host, host.url + JWKS, ended)).verdict.state == "key-unknown"
    assert host.asked == []
