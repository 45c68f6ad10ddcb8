"""Was a signed request made just now?"""

import pytest

from carnet.core.people.proof import SECOND_US
from carnet.errors import SignatureExpired, TimestampOutOfWindow
from carnet.guards.proof.window import in_time
from tests.guards.signed_scene import NOW, candidate, signed_claim


@pytest.mark.parametrize(
    ("profile", "seconds"),
    [("samvad", -300), ("samvad", 59), ("samvad", 60), ("carnet", -60), ("carnet", 30)],
)
def test_a_time_within_the_window_is_taken(profile: str, seconds: int) -> None:
    in_time(candidate(signed_claim(profile=profile, at=NOW + seconds * SECOND_US)))


@pytest.mark.parametrize(
    ("profile", "seconds"),
    [("samvad", -301), ("samvad", 61), ("samvad", 360), ("carnet", -61), ("carnet", 31)],
)
def test_a_time_outside_the_window_is_refused(profile: str, seconds: int) -> None:
    with pytest.raises(TimestampOutOfWindow):
        in_time(candidate(signed_claim(profile=profile, at=NOW + seconds * SECOND_US)))


def test_a_signature_holds_until_the_end_that_it_names() -> None:
    in_time(candidate(signed_claim(expires=NOW // SECOND_US + 1)))
    with pytest.raises(SignatureExpired):
        in_time(candidate(signed_claim(expires=NOW // SECOND_US)))


def test_a_signature_cannot_end_before_the_request_was_made() -> None:
    with pytest.raises(SignatureExpired):
        in_time(
            candidate(signed_claim(at=NOW + 20 * SECOND_US, expires=NOW // SECOND_US + 10)),
        )
