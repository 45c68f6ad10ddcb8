"""`carnet agents lint`, against a real gateway and against cards with a fault."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.security.support.cards import CardHost, card, key_of, says, shows
from tests.support.organisation import Organisation
from tests.support.served import AGENTS
from tests.support.signing.signed import Sender

WHO = Sender("agent://127.0.0.1")


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("lint"), "acme.example")
    gateway.configure("", agents=AGENTS)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture(scope="module")
def card_host() -> Iterator[CardHost]:
    with CardHost().serving() as host:
        yield host


def judged(acme: Organisation, url: str) -> tuple[int, list[str]]:
    """How it ends, and what it says of the card."""
    ran = acme.try_carnet("agents", "lint", url)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout.splitlines()


def test_our_own_card_has_no_fault(acme: Organisation) -> None:
    """R50: but that this one is on a machine of its own."""
    code, lines = judged(acme, acme.url + "/agents/echo")
    assert code == 0
    assert not any(line.startswith("fail") for line in lines)
    of_samvad = [line for line in lines if "A2A" not in line]
    assert judged(acme, acme.url + "/agents/echo/.well-known/agent.json") == (code, of_samvad)


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "version": ({"protocolVersion": 1}, "Field 'protocolVersion' must be of type string"),
    "skills": ({"skills": "none"}, "Field 'skills' must be of type array"),
    "more": ({"canary": 1}, "Field 'canary' is not allowed"),
    "key": ({"publicKeys": [key_of(WHO, active=False)]}, "has no key that is active"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_by_field_and_constraint(
    acme: Organisation, card_host: CardHost, name: str
) -> None:
    """R50."""
    changed, words = FAULTS[name]
    card_host.answers["bad"] = shows({**card(WHO.identity, key_of(WHO)), **changed})
    code, lines = judged(acme, card_host.url + "/bad")
    assert code == 2
    assert any(line.startswith("fail") and words in line for line in lines), lines


def test_what_is_no_card_is_told_as_such(acme: Organisation, card_host: CardHost) -> None:
    """R50."""
    card_host.answers["bad"] = says(b"no JSON")
    assert judged(acme, card_host.url + "/bad")[0] == 2
    assert "Nothing is published" in judged(acme, card_host.url + "/nobody")[1][0]
