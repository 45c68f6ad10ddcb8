"""The command line as a test types it: in this process, with a clean environment."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from carnet.cli.main import run
from carnet.testing.address import HOST, REUSE


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def page(self) -> Any:
        """Its result, if that is JSON."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """Its error, if that is JSON."""
        return json.loads(self.err)


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Type a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("CARNET", "CLI_BRIDGE")):
            monkeypatch.delenv(name)

    def typed(*words: str) -> Ran:
        capsys.readouterr()
        code = run(words)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return typed


@pytest.fixture
def port() -> Iterator[int]:
    """One where nobody listens, and where a gateway could: it allows reuse."""
    with socket.socket() as held:
        held.setsockopt(*REUSE, 1)
        held.bind((HOST, 0))
        yield held.getsockname()[1]


@pytest.fixture
def home(cli: Cli, tmp_path: Path, port: int) -> Path:
    """A folder in which `carnet init` was run."""
    assert cli("init", ".", "--domain", "acme.example", "--port", str(port)).code == 0
    return tmp_path
