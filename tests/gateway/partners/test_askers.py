"""How many walks one caller may have going on at a time."""

from contextlib import ExitStack

import pytest

from carnet.errors import TooManyCalls
from carnet.gateway.partners.askers import MOST_WALKS, Walks


def test_one_caller_has_its_own_places_and_gives_them_back() -> None:
    walks = Walks()
    for _ in range(2):
        with ExitStack() as held:
            for _ in range(MOST_WALKS):
                held.enter_context(walks.one("token:alice"))
            with pytest.raises(TooManyCalls), walks.one("token:alice"):
                raise AssertionError("it was refused")
            with walks.one("token:bob"):
                pass
