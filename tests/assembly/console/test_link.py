"""What `carnet serve` says of the console: its address, and on a terminal a link that signs in."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.gateway.people.browser import Browser
from tests.support.organisation import Organisation, environment

MOST_SECONDS = 120


@pytest.fixture
def acme(tmp_path: Path) -> Organisation:
    return Organisation(tmp_path, "acme.example")


@contextmanager
def on_a_terminal(acme: Organisation) -> Iterator[str]:
    """Serve with a terminal to write to; gives what is written until it listens."""
    ours, theirs = pty.openpty()
    fd = acme.address.fd
    process = subprocess.Popen(  # noqa: S603  our own command
        [sys.executable, "-m", "carnet", "serve", "--fd", str(fd)],
        cwd=acme.folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        pass_fds=[fd],
    )
    os.close(theirs)
    try:
        seen = ""
        while "Try it" not in seen:
            seen += os.read(ours, 4096).decode()  # which fails once nobody writes any more
        yield seen
    finally:
        process.terminate()
        process.wait(MOST_SECONDS)
        os.close(ours)


def test_the_only_administrator_signs_in_by_the_link_on_the_terminal(acme: Organisation) -> None:
    """Who has just made a configuration is the only one there is."""
    acme.carnet("people", "add", "bob")
    with on_a_terminal(acme) as seen:
        assert f"console  {acme.url}/console/" in seen
        link = re.search(r"sign in as owner, once and within 10 min: (\S+)", seen)
        assert link is not None, seen
        browser = Browser(acme)
        assert browser.press(link[1]).status == 303
        assert browser.send("GET", "/session").json["person"] == "owner"
        assert Browser(acme).press(link[1]).status == 401


def test_where_there_is_a_doubt_the_command_is_named(acme: Organisation) -> None:
    acme.new_token("owner-phone", "--person", "owner")
    with on_a_terminal(acme) as seen:
        assert "people sign-in NAME" in seen
        assert "code=" not in seen


def test_a_log_is_shown_no_link(acme: Organisation) -> None:
    acme.start()
    assert acme.stop() == 0
    written = acme.errors.read_text() + acme.log.read_text()
    assert "/console/" in written
    assert "code=" not in written
