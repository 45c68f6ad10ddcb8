"""What was recorded of the protocol's own implementations, where the files are at hand.

Signatures, digests and the scan are met in the tests of their own grammars.
"""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from msgspec.structs import replace

from carnet.core.events import RESULT, Done, Event, Extension
from carnet.core.skill import CHAT
from carnet.errors import leaves
from carnet.wire import samvad
from carnet.wire.samvad.envelope import canonical
from tests.requirements.rows import Divergence
from tests.wire.samvad.scene import TURN, fields
from tests.wire.samvad.test_card import FACTS
from tests.wire.samvad.test_refusals import made

VECTORS = os.environ.get("CARNET_VECTORS")

pytestmark = pytest.mark.skipif(VECTORS is None, reason="CARNET_VECTORS names no folder")

# Where we depart from what was recorded.
DIVERGENCES = {
    "status-08": Divergence("R12", "AGENT_UNAVAILABLE is 500 in the text; the SDK says 503."),
    "status-10": Divergence("R12", "A code that is none of the nine is never written."),
}


def load(name: str) -> Any:
    return json.loads((Path(VECTORS or "") / name).read_text())


def facts(area: str) -> list[dict[str, Any]]:
    return [fact for fact in load("samvad_facts.json") if fact["area"] == area]


def valid(schema: str, body: bytes) -> bool:
    return jsonschema_rs.validator_for(load(f"samvad_{schema}.schema.json")).is_valid(
        json.loads(body)
    )


def test_the_recorded_json_is_ours() -> None:
    assert len(facts("canonical_json")) == 8
    for fact in facts("canonical_json"):
        assert canonical(fact["input"]).decode() == fact["expected"], fact["id"]


def test_the_recorded_cards_are_ours() -> None:
    assert len(facts("card")) == 4
    for fact in facts("card"):
        expected = fact["expected"]
        # Which identity an agent has is our configuration's to say, not the URL's.
        told = replace(FACTS, id=expected["id"], url=fact["input"]["url"], skills=(CHAT,))
        card = json.loads(samvad.write_card(told))
        assert {name: card[name] for name in expected} == expected, fact["id"]


def test_the_recorded_statuses_are_ours_or_a_named_divergence() -> None:
    assert len(facts("status")) == 10
    other = {
        fact["id"]
        for fact in facts("status")
        if samvad.STATUSES.get(fact["input"]) != fact["expected"]
    }
    assert other == DIVERGENCES.keys()


def test_our_card_is_valid_against_the_schema() -> None:
    assert valid("agent-card", samvad.write_card(FACTS))
    assert not valid("agent-card", samvad.write_card(replace(FACTS, skills=())))


def test_our_requests_are_valid_against_the_schema() -> None:
    body = json.dumps(fields(payload={"a": 1}, auth={"scheme": "bearer", "token": "t"})).encode()
    envelope = samvad.read_envelope(body, mode="sync")
    assert valid("request-envelope", samvad.write_request(envelope))


def test_our_answers_and_all_our_refusals_are_valid_against_the_schema() -> None:
    events: list[Event] = [Extension(RESULT, {"n": 1}), Done()]
    assert valid("response-envelope", samvad.write_answer(TURN, events, trace_id="t"))
    for leaf in leaves():
        if leaf.__module__ == "carnet.errors":
            assert valid("response-envelope", samvad.write_error(made(leaf))[2])
