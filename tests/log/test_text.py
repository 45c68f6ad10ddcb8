"""Log lines for people: as text, and on the terminal of a real gateway."""

import io
import json
import logging
import os
import pty
import re
import select
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import pytest

from carnet.log.text import TextLines, lines_for
from carnet.telemetry import CallNote, JsonLines
from carnet.testing import stage
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG

PATIENCE_SECONDS = 60.0
COLOR = re.compile("\x1b\\[[0-9]*m")


def a_note(**changed: Any) -> CallNote:
    fields: dict[str, Any] = {
        "at": 1_800_000_000_500_000,
        "correlation_id": "0af7",
        "message": "call answered",
        "run": "conv_1",
        "turn": "t",
        "client": "192.0.2.7",
        "agent": "echo",
        "actor": "token:a",
        "depth": 0,
        "state": "done",
        "seconds": 0.0124,
    }
    return CallNote(**(fields | changed))


def text_of(message: str, level: int = logging.INFO, **fields: object) -> str:
    record = logging.LogRecord("carnet.gateway", level, __file__, 1, message, None, None)
    record.__dict__.update(fields)
    return TextLines(in_color=False).format(record)


def test_a_call_is_one_line_that_says_who_asked_whom_and_how_it_ended() -> None:
    line = TextLines(in_color=False).note(a_note())
    assert re.match(r"\d\d:\d\d:\d\d\.500  info     call answered  ", line)
    for part in ("agent=echo", "actor=token:a", "state=done", 'seconds="12 ms"', "run=conv_1"):
        assert part in line
    assert "warning" in TextLines(in_color=False).note(a_note(state="agent_failed"))


def test_a_record_shows_its_fields_and_what_its_request_is_called() -> None:
    line = text_of("refused", code="token_invalid", correlation_id="abc", password="p")
    assert line.endswith("refused  code=token_invalid request=abc")
    assert "request=" not in text_of("refused", run="conv_1", correlation_id="conv_1")


def test_nothing_in_a_value_moves_the_cursor_or_begins_a_line() -> None:
    evil = "a\x1b[31m\r\n12:00:00.000  info  b\x9b\u2028"
    for line in (text_of(evil, detail=evil), TextLines(in_color=False).note(a_note(turn=evil))):
        assert len(line.splitlines()) == 1
        assert line.isprintable()


def test_the_lines_of_a_traceback_are_indented_and_secrets_blanked_out() -> None:
    lines: list[str] = []
    try:
        int("one\ntwo sk-tan-user-123")
    except ValueError:
        lines = text_of("failed", logging.ERROR, exc_info=sys.exc_info()).split("\n")
    assert len(lines) > 3
    assert all(line.startswith("    ") for line in lines[1:])
    assert "sk-tan" not in "".join(lines)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_lines_are_text_on_a_terminal_and_json_elsewhere_unless_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    file, screen = io.StringIO(), Screen()
    assert isinstance(lines_for("auto", file), JsonLines)
    assert isinstance(lines_for("json", screen), JsonLines)
    assert isinstance(lines_for("auto", screen), TextLines)
    assert COLOR.search(lines_for("auto", screen).note(a_note()))
    assert not COLOR.search(lines_for("text", file).note(a_note()))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not COLOR.search(lines_for("auto", screen).note(a_note()))


class OnTerminal(Organisation):
    """A gateway whose stdout is a terminal."""

    screen = -1

    def begin(self, out: IO[bytes], err: IO[bytes], env: dict[str, str]) -> stage.ChildProcess:
        del out
        self.screen, other = pty.openpty()
        with os.fdopen(other, "wb") as terminal:
            return super().begin(terminal, err, env)

    def seen(self, word: str) -> str:
        """What has been on the screen, once a word has."""
        text = ""
        while word not in text:
            assert select.select([self.screen], [], [], PATIENCE_SECONDS)[0], text
            text += os.read(self.screen, 65_536).decode()
        return text


def on_terminal(folder: Path, log: str, env: Mapping[str, str] | None = None) -> OnTerminal:
    gateway = OnTerminal(folder, "screen.example")
    gateway.configure(CONFIG + log, agents=AGENTS)
    gateway.start(env=env)
    return gateway


def test_on_a_terminal_a_gateway_writes_one_coloured_line_a_call(tmp_path: Path) -> None:
    gateway = on_terminal(tmp_path, "")
    try:
        reply = gateway.chat("hi")
        seen = gateway.seen(reply.headers["x-tangle-runid"])
        (line,) = [line for line in seen.splitlines() if "call answered" in line]
        assert COLOR.search(line)
        assert "agent=echo" in COLOR.sub("", line)
    finally:
        assert gateway.stop() == 0
        os.close(gateway.screen)


def test_the_format_and_the_level_can_be_set(tmp_path: Path) -> None:
    gateway = on_terminal(tmp_path, '\n[log]\nformat = "json"\nlevel = "warning"\n')
    try:
        gateway.chat("hi")
        gateway.chat("hi", "broken")
        lines = gateway.seen("agent raised").splitlines()
        assert [json.loads(line)["level"] for line in lines if line] == ["error"]
    finally:
        assert gateway.stop() == 0
        os.close(gateway.screen)
