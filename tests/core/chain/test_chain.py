"""Where a call stands in its chain."""

import pytest

from carnet.core.chain.chain import Chain


@pytest.mark.parametrize(("hop", "left", "is_final"), [(0, 3, False), (2, 1, False), (3, 0, True)])
def test_a_hop_knows_how_many_may_follow(hop: int, left: int, is_final: bool) -> None:  # noqa: FBT001
    chain = Chain(hop=hop, cap=3)
    assert (chain.hops_left, chain.is_final) == (left, is_final)
