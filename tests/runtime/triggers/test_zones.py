"""Time zones by their names."""

from datetime import UTC, datetime, timedelta

import pytest

from carnet.errors import InvalidRequest
from carnet.runtime.triggers.zones import find_zone


def test_a_zone_is_found_by_its_name() -> None:
    assert find_zone("UTC") is UTC
    summer = datetime(2026, 7, 1, tzinfo=find_zone("Europe/Berlin"))
    assert summer.utcoffset() == timedelta(hours=2)


@pytest.mark.parametrize("name", ["", "Nowhere/Land", "../../etc/passwd", "Europe", "UTC\n"])
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        find_zone(name)
    assert refusal.value.facts["field"] == "zone"
