"""A test that fails takes no other with it: what it left open is gone before the next begins."""

import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.tree import ROOT

# Each test that fails is followed by one that would be told of what was left open.
SUITE = """
import gc
import socket

import pytest


def opened():
    return socket.socket(), open(__file__)


def test_fails():
    line, file = opened()
    assert line is file


def test_passes():
    gc.collect()


async def never_awaited():
    pass


async def test_fails_in_a_loop():
    line, file = opened()
    waiting = never_awaited()
    assert line is file


async def test_passes_in_a_loop():
    gc.collect()


def test_fails_in_a_circle():
    line, circle = opened(), []
    circle.append(circle)
    try:
        assert line is circle
    except AssertionError as caught:
        circle.append(caught)
        raise ValueError("for another reason") from caught


def test_passes_after_a_circle():
    gc.collect()


@pytest.fixture
def broken():
    line, file = opened()
    yield line
    assert line is file


def test_fails_at_its_end(broken):
    line, file = opened()
    raise ExceptionGroup("two", [ValueError("one"), ValueError("two")])


def test_passes_after_an_end():
    gc.collect()
"""
CONFIG = """[pytest]
addopts = -p tests.failures
filterwarnings = error
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""
WELL = {f"test_passes{more}" for more in ("", "_in_a_loop", "_after_a_circle", "_after_an_end")}


def test_a_test_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text(CONFIG)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-rA", "--tb=short", "-p", "no:cacheprovider"]
    done = subprocess.run(  # noqa: S603  our own suite
        command,
        cwd=tmp_path,
        env=kept | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    passed = {words[1].partition("::")[2] for words in lines if words[:1] == ["PASSED"]}
    failed = {words[1].partition("::")[2] for words in lines if words[:1] == ["FAILED"]}
    assert passed == WELL, done.stdout + done.stderr
    assert len(failed) == len(WELL)
    assert "warnings summary" not in done.stdout
