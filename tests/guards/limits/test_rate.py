"""What is remembered of rates: it can refuse, and never longer than the store said."""

import pytest

from carnet.core.people.proof import SECOND_US
from carnet.errors import RateLimited
from carnet.guards.limits import WithinRate
from tests.guards.signed_scene import NOW, STRANGER, candidate, signed_claim


def test_a_sender_that_was_never_refused_passes() -> None:
    WithinRate()(candidate())


def test_a_sender_that_was_told_to_wait_is_refused_until_then() -> None:
    rates = WithinRate()
    rates.remember(STRANGER, NOW, 3)
    with pytest.raises(RateLimited) as refused:
        rates(candidate(now=NOW + 2 * SECOND_US))
    assert refused.value.retry_after == 1
    rates(candidate(now=NOW + 3 * SECOND_US))
    assert len(rates) == 0


def test_another_sender_is_unaffected() -> None:
    rates = WithinRate()
    rates.remember(STRANGER, NOW, 3)
    rates(candidate(signed_claim(sender="agent://other.example")))


def test_the_memory_is_bounded_and_forgets_the_first() -> None:
    rates = WithinRate(most=2)
    for sender in ("agent://a.example", "agent://b.example", "agent://b.example", STRANGER):
        rates.remember(sender, NOW, 3)
    assert len(rates) == 2
    rates(candidate(signed_claim(sender="agent://a.example")))
    with pytest.raises(RateLimited):
        rates(candidate())
