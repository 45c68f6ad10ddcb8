"""How many calls are open at once."""

import pytest

from carnet.errors import Overloaded, TooManyCalls, TooManyStreams
from carnet.guards.limits import Concurrency


def test_a_caller_may_have_only_so_many_calls_open() -> None:
    concurrency = Concurrency(per_caller=2, in_all=10)
    concurrency.enter("a")
    concurrency.enter("a")
    with pytest.raises(TooManyCalls) as refused:
        concurrency.enter("a")
    assert refused.value.public_facts() == {"limit": 2}
    concurrency.enter("b")
    concurrency.leave("a")
    concurrency.enter("a")
    assert concurrency.total == 3


def test_all_callers_together_are_bounded() -> None:
    concurrency = Concurrency(per_caller=5, in_all=2)
    concurrency.enter("a")
    concurrency.enter("b")
    with pytest.raises(Overloaded):
        concurrency.enter("c")
    concurrency.leave("a")
    concurrency.leave("b")
    assert concurrency.total == 0


def test_a_caller_may_have_only_so_many_streams_among_its_calls() -> None:
    concurrency = Concurrency(per_caller=3, in_all=10, streams=1)
    concurrency.enter("a", stream=True)
    with pytest.raises(TooManyStreams) as refused:
        concurrency.enter("a", stream=True)
    assert refused.value.public_facts() == {"limit": 1}
    assert concurrency.total == 1
    concurrency.enter("a")
    concurrency.enter("b", stream=True)
    concurrency.leave("a", stream=True)
    concurrency.enter("a", stream=True)
    assert concurrency.total == 3


def test_whoever_follows_a_run_has_a_stream_open_and_no_call() -> None:
    concurrency = Concurrency(per_caller=1, in_all=1, streams=2)
    concurrency.enter("a", stream=True)
    with concurrency.watching("a"):
        assert concurrency.total == 1
        with pytest.raises(TooManyStreams), concurrency.watching("a"):
            pass
        with concurrency.watching("b"):
            pass
    with pytest.raises(RuntimeError), concurrency.watching("a"):
        raise RuntimeError
    concurrency.leave("a", stream=True)
    with concurrency.watching("a"), concurrency.watching("a"):
        assert concurrency.total == 0
