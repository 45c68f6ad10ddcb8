"""What a bare status of a peer stands for."""

import pytest

from carnet.errors import PeerBusy, PeerRefused, ProviderTimeout, ProviderUnavailable
from carnet.wire.dialects.refusal import BY_STATUS, UNRECOGNISED, unexplained


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
