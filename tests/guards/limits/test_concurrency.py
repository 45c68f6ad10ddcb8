"""How many calls are open at once."""

import pytest

from carnet.errors import Overloaded, TooManyCalls, TooManyStreams
from carnet.guards.limits.concurrency import Crowd


def test_a_caller_may_have_only_so_many_calls_open() -> None:
    crowd = Crowd(per_caller=2, in_all=10)
    crowd.enter("a")
    crowd.enter("a")
    with pytest.raises(TooManyCalls) as refused:
        crowd.enter("a")
    assert refused.value.public_facts() == {"limit": 2}
    crowd.enter("b")
    crowd.leave("a")
    crowd.enter("a")
    assert crowd.total == 3


def test_all_callers_together_are_bounded() -> None:
    crowd = Crowd(per_caller=5, in_all=2)
    crowd.enter("a")
    crowd.enter("b")
    with pytest.raises(Overloaded):
        crowd.enter("c")
    crowd.leave("a")
    crowd.leave("b")
    assert crowd.total == 0


def test_a_caller_may_have_only_so_many_streams_among_its_calls() -> None:
    crowd = Crowd(per_caller=3, in_all=10, streams=1)
    crowd.enter("a", stream=True)
    with pytest.raises(TooManyStreams) as refused:
        crowd.enter("a", stream=True)
    assert refused.value.public_facts() == {"limit": 1}
    assert crowd.total == 1
    crowd.enter("a")
    crowd.enter("b", stream=True)
    crowd.leave("a", stream=True)
    crowd.enter("a", stream=True)
    assert crowd.total == 3


def test_whoever_follows_a_run_has_a_stream_open_and_no_call() -> None:
    crowd = Crowd(per_caller=1, in_all=1, streams=2)
    crowd.enter("a", stream=True)
    with crowd.watching("a"):
        assert crowd.total == 1
        with pytest.raises(TooManyStreams), crowd.watching("a"):
            pass
        with crowd.watching("b"):
            pass
    with pytest.raises(RuntimeError), crowd.watching("a"):
        raise RuntimeError
    crowd.leave("a", stream=True)
    with crowd.watching("a"), crowd.watching("a"):
        assert crowd.total == 0
