"""What a bare status of a peer stands for."""

import pytest

from carnet.errors import PeerBusy, PeerRefused, ProviderTimeout, ProviderUnavailable
from carnet.wire.dialects.refusal import BY_STATUS, STAMP, UNRECOGNISED, limit_of, unexplained
from carnet.wire.stamps import ROWS


@pytest.mark.parametrize(
    ("status", "wait", "kind"),
    [
        (408, None, ProviderTimeout),
        (504, 3, ProviderTimeout),
        (429, None, PeerBusy),
        (503, 3, PeerBusy),
        (503, None, ProviderUnavailable),
        (425, None, ProviderUnavailable),
        (500, None, ProviderUnavailable),
        (404, None, PeerRefused),
    ],
)
def test_each_status_has_one_meaning(status: int, wait: int | None, kind: type[object]) -> None:
    error = unexplained(status, wait)
    assert type(error) is kind
    reason = error.facts.get("peer_code") or error.facts.get("by")
    assert reason in {UNRECOGNISED, BY_STATUS}
    assert error.retry_after == wait


BOUNDING = [stamp.name for stamp in ROWS if stamp.read is not None]  # others say nothing of depth


@pytest.mark.parametrize("word", [*BOUNDING, "travel", "chain", "ca2a", "datalayer"])
def test_whatever_can_bound_a_chain_is_told_on_as_the_limit_of_a_peer(word: str) -> None:
    assert limit_of(word) == {STAMP: word}


@pytest.mark.parametrize("word", ["no such stamp", "<b>", "", None, 7])
def test_no_other_word_of_a_peer_is_told_on(word: object) -> None:
    assert limit_of(word) == {}
