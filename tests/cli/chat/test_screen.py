"""What agents write is data: nothing of it steers a terminal."""

from carnet.cli.chat.history import YOU
from carnet.cli.chat.screen import MOST_ROW, short
from tests.cli.chat.conftest import Chatter


def test_nothing_that_an_agent_writes_steers_the_terminal(alice: Chatter) -> None:
    with alice.chats("sly", NO_COLOR="") as seat:
        assert "\x1b[2m" in seat.screen  # ours may be coloured
        seat.types("hello")
        answer = seat.shows("end\n")
        seat.shows(YOU)
    assert "before\ufffd[2Jafter\ufffd\ufffd31m\ufffdend\n" in answer


def test_there_is_no_colour_where_nobody_wants_it(alice: Chatter) -> None:
    with alice.chats("sly", NO_COLOR="1") as seat:
        seat.types("/history")
        seat.shows(YOU)
    assert "\x1b" not in seat.screen


def test_a_row_is_one_short_line() -> None:
    row = short("name\n\x1b[2J" + "x" * 1_000_000)
    assert (len(row), row.startswith("name \ufffd[2Jxx")) == (MOST_ROW, True)
