"""What is remembered of nonces: it can refuse, and nothing else."""

import pytest

from carnet.core.people.proof import SECOND_US
from carnet.errors import NonceReplayed
from carnet.guards.proof.replay import Unrepeated, nonce_of
from carnet.ports.calls.turns import Nonce
from tests.guards.signed_scene import NOW, STRANGER, candidate, signed_claim


def test_a_nonce_is_refused_for_five_minutes_after_it_came_and_a_little() -> None:
    old = candidate(signed_claim(at=NOW - 200 * SECOND_US))
    assert nonce_of(old).expires == NOW + 305 * SECOND_US


def test_a_nonce_from_the_future_is_refused_until_its_time_has_left_the_window() -> None:
    ahead = candidate(signed_claim(at=NOW + 60 * SECOND_US))
    assert nonce_of(ahead).expires == NOW + 365 * SECOND_US


def test_a_nonce_that_nobody_remembers_passes() -> None:
    Unrepeated()(candidate())


def test_a_nonce_that_was_consumed_is_refused_while_it_lives() -> None:
    seen = Unrepeated()
    first = candidate()
    seen.remember(nonce_of(first))
    with pytest.raises(NonceReplayed):
        seen(first)
    with pytest.raises(NonceReplayed):
        seen(candidate(now=NOW + 304 * SECOND_US))
    seen(candidate(now=NOW + 305 * SECOND_US))
    assert len(seen) == 0


def test_a_nonce_belongs_to_its_sender_and_is_read_letter_by_letter() -> None:
    seen = Unrepeated()
    seen.remember(nonce_of(candidate()))
    seen(candidate(signed_claim(sender="agent://other.example")))
    seen(candidate(signed_claim(nonce="NONCE-00000001")))


def test_the_memory_is_bounded_and_forgets_the_first() -> None:
    seen = Unrepeated(most=2)
    for number in (1, 2, 3):
        seen.remember(Nonce(STRANGER, f"nonce-0000000{number}", NOW + SECOND_US))
    assert len(seen) == 2
    seen(candidate(signed_claim(nonce="nonce-00000001")))
    with pytest.raises(NonceReplayed):
        seen(candidate(signed_claim(nonce="nonce-00000003")))
