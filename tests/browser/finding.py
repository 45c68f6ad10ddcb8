"""Finds a browser for the tests, or installs one, or says what to do.

Law. Files of tests run at once, and one of them looks at a time: what it installs, the others find
     whole.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WHAT_TO_DO = (
    "The tests of the console need Chromium, and none could be found or installed. Install it "
    "(Debian, Ubuntu: apt-get install chromium), or name one: CARNET_BROWSER=/path/to/chromium"
)
INSTALL_SECONDS = 500
# Whatever else of this machine installs something just now has time to end.
APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300")


def launch(playwright: Playwright) -> Browser:
    """A browser: the one that is named, one of this machine, or one that is installed now."""
    with one_at_a_time():
        return _launch(playwright)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait for whoever else looks for a browser for tests of this user."""
    with Path(tempfile.gettempdir(), f"carnet-browser-{os.geteuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _launch(playwright: Playwright) -> Browser:
    for path in _found():
        return _start(playwright, path)
    if _install_package():
        for path in _found():
            return _start(playwright, path)
    try:  # Playwright's own, which it may have
        return _start(playwright, None)
    except Error:
        _run([sys.executable, "-m", "playwright", "install", "chromium"])
    try:
        return _start(playwright, None)
    except Error:
        pytest.exit(WHAT_TO_DO, returncode=1)


def _found() -> list[str]:
    named = os.environ.get("CARNET_BROWSER")
    found = [named] if named else [shutil.which(name) for name in NAMES]
    return [path for path in found if path is not None]


def _start(playwright: Playwright, path: str | None) -> Browser:
    # Root has no sandbox in Chromium; the pages are our own.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=path, args=arguments)


def _install_package() -> bool:
    """The package of the distribution, where that may be installed."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run([*APT, "update"], env)
    return _run([*APT, "-y", "--no-install-recommends", "install", "chromium"], env)


def _run(command: list[str], env: dict[str, str] | None = None) -> bool:
    try:
        done = subprocess.run(  # noqa: S603  commands of ours
            command, env=env, capture_output=True, timeout=INSTALL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
