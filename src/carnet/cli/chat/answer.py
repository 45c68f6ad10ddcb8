"""One answer as it is read, perhaps more than once: what of it is new.

A client that asks again, because the connection was lost or because somebody has answered a
question, is shown the answer from its beginning.

Law 1. What was shown is not shown again.
Law 2. An answer that is not as it was before is shown whole, and it is said that it is another one.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal

from msgspec import Struct

from carnet.wire.dialects.engine_chat.client_stream import (
    APPROVAL_REQUEST,
    APPROVAL_RESULT,
    RELAY,
)
from carnet.wire.dialects.engine_chat.refusals import APPROVAL_REQUIRED
from carnet.wire.dialects.engine_chat.writer import (
    DONE,
    ERROR,
    TEXT_DELTA,
    TOOL_CALL,
    TOOL_RESULT,
)

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_MARK: Final = "\0"  # between what was said and who says what follows

PieceKind = Literal["text", "anew", "relay", "call", "result", "decision"]


class AnswerPiece(Struct, frozen=True):
    """Something that is new to whoever reads along."""

    kind: PieceKind
    text: str = ""
    data: dict[str, Any] = {}


def handle(author: str) -> str:
    """How somebody is mentioned who is known by an address, or by a name of this gateway."""
    return author if author.startswith("@") else f"@{author}"


class ShownAnswer:
    """What is known of one answer."""

    def __init__(self) -> None:
        self.conversation: str | None = None
        self.message: str | None = None
        self.tools: dict[str, dict[str, Any]] = {}
        self.questions: list[dict[str, Any]] = []
        self.end: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.was_lost = False  # the connection that it came by
        self._shown = ""  # all that was said, with marks
        self._at = 0  # how much of it this reading has seen
        self._decided: set[str] = set()

    @property
    def has_ended(self) -> bool:
        """Whether it was read to an end."""
        return self.end is not None or self.error is not None

    @property
    def waits(self) -> bool:
        """Whether it waits for somebody."""
        return self.end is not None and self.end.get("finish_reason") == APPROVAL_REQUIRED

    @property
    def text(self) -> str:
        """What the agent has said, and those whom it has mentioned."""
        parts = self._shown.split(_MARK)
        named = [
            f"\n\n{handle(who)}: {words}"
            for who, words in zip(parts[1::2], parts[2::2], strict=True)
        ]
        return "".join([parts[0], *named]).strip("\n")

    def read_again(self) -> None:
        """Begin to read it from its beginning."""
        self._at = 0
        self.questions.clear()
        self.end = self.error = None

    def take(self, event: str, data: dict[str, Any]) -> Iterator[AnswerPiece]:
        """What is new in an event."""
        if event == DONE:
            self.end = data
        elif event == ERROR:
            self.error = data
        elif event == APPROVAL_REQUEST:
            self.questions.append(data)
        elif event == TEXT_DELTA:
            yield from self._grow(str(data.get("delta", "")).replace(_MARK, REPLACEMENT))
        elif event == RELAY:
            yield from self._relay(data)
        else:
            yield from self._event(event, data)

    def _event(self, event: str, data: dict[str, Any]) -> Iterator[AnswerPiece]:
        """What has an id, and is new once."""
        id = str(data.get("id"))
        if event == TOOL_CALL and id not in self.tools:
            self.tools[id] = {**data, "status": None, "output": None}
            yield AnswerPiece("call", data=data)
        elif event == TOOL_RESULT:
            yield from self._result(data)
        elif event == APPROVAL_RESULT and data.get("request_id") not in self._decided:
            self._decided.add(str(data.get("request_id")))
            yield AnswerPiece("decision", data=data)

    def _result(self, data: dict[str, Any]) -> Iterator[AnswerPiece]:
        call = self.tools.get(str(data.get("id")))
        if call is not None and call["status"] is None:
            call |= {"status": data.get("status"), "output": data.get("output")}
            yield AnswerPiece("result", data=call)

    def _relay(self, data: dict[str, Any]) -> Iterator[AnswerPiece]:
        who = str(data.get("author")).replace(_MARK, "")
        for piece in self._grow(f"{_MARK}{who}{_MARK}"):
            yield piece if piece.kind == "anew" else AnswerPiece("relay", who, data)

    def _grow(self, text: str) -> Iterator[AnswerPiece]:
        before, left = self._shown[: self._at], self._shown[self._at :]
        self._at += len(text)
        if left.startswith(text):
            return
        self._shown = before + text
        if text.startswith(left):
            yield AnswerPiece("text", text[len(left) :])
        else:
            yield AnswerPiece("anew", before.replace(_MARK, "\n"))
            yield AnswerPiece("text", text)
