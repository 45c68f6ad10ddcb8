"""Where log lines go: nothing is kept back, and nothing runs into the next line."""

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from carnet.log.file import LogFile


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[TextIO]:
    """As stdout of a process: what is printed waits until it is flushed."""
    with (tmp_path / "log.jsonl").open("w") as stream:
        yield stream


@contextlib.contextmanager
def pipe() -> Iterator[tuple[int, TextIO]]:
    """One that never waits for its reader, and what is written to it."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with os.fdopen(reading, "rb", buffering=0), os.fdopen(writing, "w") as stream:
        yield reading, stream


def test_a_line_is_in_the_file_when_it_was_written(stream: TextIO) -> None:
    LogFile(stream).write("one\n")
    assert Path(stream.name).read_text() == "one\n"


def test_what_others_printed_before_stands_before_it(stream: TextIO) -> None:
    stream.write("printed\n")
    LogFile(stream).write("one\n")
    assert Path(stream.name).read_text() == "printed\none\n"


def test_a_line_that_nobody_reads_is_refused_and_not_kept() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        file = LogFile(stream)
        os.close(reading)
        with pytest.raises(OSError, match="Broken pipe"):
            file.write("one\n")
        stream.flush()  # nothing is tried again


def test_a_line_that_was_written_in_part_does_not_run_into_the_next_one() -> None:
    with pipe() as (reading, stream):
        file = LogFile(stream)
        with pytest.raises(BlockingIOError):
            file.write("x" * 10_000_000)
        first = os.read(reading, 10_000_000)
        assert set(first) == {ord("x")}
        file.write("one\n")
        file.write("two\n")
        assert os.read(reading, 100) == b"\none\ntwo\n"


def test_a_line_of_which_nothing_was_written_leaves_the_next_one_whole() -> None:
    with pipe() as (reading, stream):
        file = LogFile(stream)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(stream.fileno(), b"x")
        with pytest.raises(BlockingIOError):
            file.write("lost\n")
        os.read(reading, 1_000_000)
        file.write("one\n")
        assert os.read(reading, 100) == b"one\n"


def test_a_stream_without_a_file_is_written_to() -> None:
    stream = io.StringIO()
    file = LogFile(stream)
    assert file.write("one\n") == len("one\n")
    file.flush()
    assert stream.getvalue() == "one\n"
    assert not file.isatty()


def test_a_process_that_was_given_no_output_writes_nothing() -> None:
    file = LogFile(None)
    file.flush()
    assert not file.isatty()
    with pytest.raises(OSError, match="no output"):
        file.write("one\n")
