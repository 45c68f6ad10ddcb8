"""Is a signed request meant for the agent that it came to?"""

from typing import Any

import pytest

from carnet.errors import DestinationMismatch
from carnet.guards.proof.destination import Addressed
from tests.guards.scene import DOMAIN
from tests.guards.signed_scene import (
    candidate,
    document,
    identities,
    proof,
    signed_claim,
    travelled,
)

ADDRESSED = Addressed(identities(), DOMAIN)


@pytest.mark.parametrize(
    ("agent", "recipient"),
    [
        ("", f"agent://{DOMAIN}"),
        ("echo", f"agent://{DOMAIN}"),
        ("desk", f"agent://desk.{DOMAIN}"),
        ("nobody", f"agent://nobody.{DOMAIN}"),  # that there is none is told later
    ],
)
def test_a_request_names_the_agent_that_it_was_sent_to(agent: str, recipient: str) -> None:
    ADDRESSED(candidate(signed_claim(agent, recipient=recipient)))


@pytest.mark.parametrize(
    ("agent", "recipient"),
    [
        ("", "agent://other.example"),
        ("", f"agent://desk.{DOMAIN}"),
        ("desk", f"agent://{DOMAIN}"),
        ("desk", f"agent://vault.{DOMAIN}"),
        ("@critic@b.example", f"agent://{DOMAIN}"),
        ("a b", f"agent://{DOMAIN}"),
    ],
)
def test_signed_bytes_are_good_for_one_recipient(agent: str, recipient: str) -> None:
    with pytest.raises(DestinationMismatch):
        ADDRESSED(candidate(signed_claim(agent, recipient=recipient)))


def test_a_travel_document_is_good_for_one_organisation() -> None:
    ADDRESSED(candidate(signed_claim(proof=travelled(document=document()))))
    with pytest.raises(DestinationMismatch):
        ADDRESSED(candidate(signed_claim(proof=travelled(document=document(audience="b.example")))))


@pytest.mark.parametrize(
    "fields",
    [
        {"recipient": None},
        {"recipient": None, "profile": "carnet"},
        {"document": document(audience="b.example")},
        {"document": document(), "recipient": "agent://other.example"},
    ],
)
def test_what_names_nobody_or_somebody_else_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(DestinationMismatch):
        ADDRESSED(candidate(signed_claim(proof=proof(**fields))))
