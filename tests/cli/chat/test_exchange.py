"""A connection that is lost loses nothing: the same message is asked for again."""

import asyncio
from typing import Any

import pytest

from carnet.cli.chat import exchange
from carnet.cli.chat.answer import ShownAnswer
from carnet.cli.chat.exchange import AnswerReading, new_message
from carnet.cli.chat.history import YOU
from carnet.errors import Unreachable
from carnet.testing.toxic import ToxicProxy
from tests.cli.chat.conftest import Chatter


def test_a_lost_connection_loses_nothing(alice: Chatter) -> None:
    with ToxicProxy(alice.home.port) as line, alice.chats("slow", "--url", line.url) as seat:
        seat.types("wait for it")
        seat.shows("half ")
        alice.opens_gate()
        line.down()
        line.up()
        shown = seat.shows("whole")
        assert ("The connection was lost." in shown, "half" in shown) == (True, False)
        seat.shows(YOU)
        alice.closes_gate()
        seat.types("are you there?")
        seat.shows("half ")
        line.down()
        seat.shows("Nothing is lost: /retry asks for it again.\n")
        seat.shows("carnet chat --resume ")
        resumed = seat.shows("\n").strip()
        seat.shows(YOU)
        line.up()
        alice.opens_gate()
        seat.types("/retry")
        assert "half" not in seat.shows("whole")
        seat.shows(YOU)
    (listed,) = alice.get("/conversations").json["conversations"]
    assert (listed["id"], listed["size"]) == (resumed, 4)


class Nobody:
    """A gateway that is not there."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def stream(self, path: str, content: dict[str, Any], conversation: str | None) -> Any:
        self.asked.append(content | {"path": path, "conversation": conversation})
        raise Unreachable(url="http://127.0.0.1:9")


def test_the_same_message_is_asked_for_again_until_somebody_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange, "PAUSES", (0.0, 0.0))
    nobody = Nobody()
    notes: list[Any] = []
    reading = AnswerReading(nobody, notes.append, notes.append)  # type: ignore[arg-type]
    with pytest.raises(Unreachable):
        asyncio.run(reading.read(new_message("hello", None, None), ShownAnswer()))
    first, *others = nobody.asked
    assert others == [first, first]
    assert first["client_message_id"].startswith("chat-")
    assert notes == ["The connection was lost. It is tried again ..."]
