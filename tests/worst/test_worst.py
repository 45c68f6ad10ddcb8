"""A tenant's worst for ten seconds, in which no other tenant loses anything (A99).

`make worst` goes on for sixty, and measures what the other notices; how fast anything is says
nothing here.
"""

from pathlib import Path

import pytest

from tests.worst.attacks import ATTACKS
from tests.worst.figures import MOST_BYTES
from tests.worst.other import EVERY
from tests.worst.scene import staged

SECONDS = 10


@pytest.mark.timeout(360)
def test_whatever_one_caller_does_at_its_limits_no_call_of_another_fails(tmp_path: Path) -> None:
    with staged(tmp_path) as scene:
        outcome = scene.attacked(SECONDS, list(ATTACKS))
        assert outcome.noticed.faults == []
        assert len(outcome.noticed.took) == SECONDS
        assert len(outcome.noticed.also) == 4 * (SECONDS // EVERY)
        assert outcome.peak_bytes < MOST_BYTES
        assert outcome.seen  # it did something
        scene.wait_for_the_end()
        assert scene.quiet(1).faults == []
