"""A gateway whose log goes nowhere answers, and ends with its own exit code."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from carnet.testing import stage
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG

BUFFERED = {"PYTHONUNBUFFERED": ""}  # as Python writes unless it is told otherwise
PIPE_BYTES = 4096  # the least that Linux gives a pipe
LINE_BYTES = 300  # of an answered call, at the least


class Piped(Organisation):
    """One whose log is a pipe, which a test reads or does not."""

    reader: IO[bytes]

    def begin(
        self,
        out: IO[bytes],  # noqa: ARG002  a file, which takes whatever is written
        err: IO[bytes],
        env: dict[str, str],
    ) -> stage.ChildProcess:
        reading, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.reader = os.fdopen(reading, "rb", buffering=0)
        with os.fdopen(writing, "wb") as log:
            return super().begin(log, err, env)


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Piped]:
    gateway = Piped(tmp_path, "acme.example")
    gateway.configure(CONFIG, agents=AGENTS)
    gateway.start(env=BUFFERED)
    yield gateway
    gateway.kill()
    gateway.reader.close()


def test_f38_a_gateway_whose_log_is_closed_ends_with_its_own_code(acme: Piped) -> None:
    acme.reader.close()
    for _ in range(3):
        assert acme.chat("hello").status == 200
    assert acme.stop() == 0
    assert "Broken pipe" not in acme.errors.read_text()


def test_f38_a_gateway_whose_log_is_not_read_ends_with_its_own_code(acme: Piped) -> None:
    for _ in range(3 * PIPE_BYTES // LINE_BYTES):
        assert acme.chat("hello").status == 200
    assert acme.stop() == 0
    assert "most recent call first" not in acme.errors.read_text()
