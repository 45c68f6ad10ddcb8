"""What a card of ours tells."""

import hashlib
from base64 import b64encode

from msgspec.structs import replace

from carnet.wire.dialects.a2a.card import ORIGIN_URI, TERMS_URI, OriginCard, Reach, read_card
from carnet.wire.dialects.a2a.card.facts import MOST_ORIGIN_BYTES
from carnet.wire.grammar import json
from tests.wire.dialects.a2a.card.scene import FACTS, signed

BODY = b'{ "name": "origin",\n"version":"1", "empty": [], "n": 1.0 }'


def test_the_card_behind_an_agent_is_embedded_untouched_with_its_digest() -> None:
    """R22: its own signatures hold over what is embedded, and ours over all of it."""
    facts = replace(FACTS, origin=OriginCard(url="https://origin.example/card", body=BODY))
    card = read_card(json.write(signed(facts)))
    (found,) = [each for each in card.extensions if each.uri == ORIGIN_URI]
    assert found.params["card"].encode() == BODY
    digest = b64encode(hashlib.sha256(BODY).digest()).decode()
    assert found.params["digest"] == f"sha-256=:{digest}:"
    assert found.params["url"] == "https://origin.example/card"


def test_one_that_is_too_long_to_be_embedded_is_named_by_its_digest() -> None:
    long = OriginCard(url="https://origin.example", body=b" " * (MOST_ORIGIN_BYTES + 1))
    assert long.extension().params.keys() == {"url", "digest"}


def test_an_extended_card_names_what_its_reader_may_call() -> None:
    reach = Reach(name="echo", card="https://gw.acme.example/agents/echo/c")
    card = read_card(json.write(signed(replace(FACTS, may_call=(reach,)))))
    (terms,) = [each for each in card.extensions if each.uri == TERMS_URI]
    assert terms.params["agents"] == [{"name": "echo", "card": reach.card}]
    plain = read_card(json.write(signed()))
    (public,) = [each for each in plain.extensions if each.uri == TERMS_URI]
    assert "agents" not in public.params
