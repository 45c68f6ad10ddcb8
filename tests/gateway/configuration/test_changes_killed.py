"""A gateway that is killed while it changes a setting leaves a file that can be used."""

import os
from pathlib import Path

import pytest

from tests.console.pages import an_admin
from tests.gateway.configuration.test_changes import NOTED, change, file_of
from tests.support.federation import organisation

POINTS = frozenset({"config.written", "config.replaced"})


@pytest.mark.parametrize("at", sorted(POINTS))
def test_a_gateway_that_is_killed_leaves_a_whole_file(tmp_path: Path, at: str) -> None:
    acme = organisation(tmp_path / "acme", "acme.example")
    acme.configure(NOTED)
    admin = an_admin(acme)
    before = file_of(acme).read_text()
    acme.start(env={**os.environ, "CRASH_AT": at})
    browser = admin.browser()
    with pytest.raises(ConnectionError):
        change(browser, "sessions", "idle_hours", "6")
    after = before.replace("idle_hours = 12 ", "idle_hours = 6 ")
    assert file_of(acme).read_text() == (before if at == "config.written" else after)
    acme.carnet("config", "check")
