"""Every recorded exchange, asked again: the same bytes, but for what no two runs share."""

import difflib
from pathlib import Path

import pytest

from tests.exchanges.areas import AREAS
from tests.exchanges.recording import Area, lines, read, recorded

pytestmark = pytest.mark.timeout(600)  # two hundred of them, one after another

SHOWN = 8  # differences that are shown in full


def differences(name: str, kept: Area, now: Area) -> list[str]:
    """What differs, exchange by exchange, as a diff that people can read."""
    found = []
    for before, after in zip(kept, now, strict=False):
        if before != after:
            title = f"{name}: {before['title']}"
            diff = difflib.unified_diff(
                lines(before), lines(after), "recorded", "now", n=4, lineterm=""
            )
            found.append("\n".join([title, *diff]))
    if len(kept) != len(now):
        found.append(f"{name}: {len(kept)} exchanges are recorded, {len(now)} were made")
    return found


def test_every_recorded_exchange_is_answered_with_the_same_bytes(tmp_path: Path) -> None:
    found = [
        difference
        for name, area in recorded(tmp_path)
        for difference in differences(name, read(name), area)
    ]
    assert not found, "\n\n".join([f"{len(found)} differ", *found[:SHOWN]])


def test_at_least_two_hundred_exchanges_are_recorded() -> None:
    assert sum(len(read(name)) for name in AREAS) >= 200
