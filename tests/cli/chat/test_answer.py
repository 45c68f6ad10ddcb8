"""An answer that is read again shows what is new of it."""

from typing import Any

from carnet.cli.chat.answer import ShownAnswer


def read(answer: ShownAnswer, *events: tuple[str, dict[str, Any]]) -> list[tuple[str, str]]:
    answer.read_again()
    pieces = [piece for event, data in events for piece in answer.take(event, data)]
    return [(piece.kind, piece.text) for piece in pieces]


def says(text: str) -> tuple[str, dict[str, Any]]:
    return "text-delta", {"delta": text}


def test_what_was_shown_is_not_shown_again() -> None:
    answer = ShownAnswer()
    call = ("tool-call", {"id": "1", "name": "look_up"})
    result = ("tool-result", {"id": "1", "status": "ok", "output": "x"})
    assert read(answer, says("one "), call) == [("text", "one "), ("call", "")]
    again = read(answer, says("o"), says("ne two"), call, result, says(" three"), result)
    assert again == [("text", "two"), ("result", ""), ("text", " three")]
    assert answer.text == "one two three"


def test_another_answer_is_shown_whole() -> None:
    answer = ShownAnswer()
    read(answer, says("one "), says("two"))
    anew = read(answer, says("one "), says("three"))
    assert anew == [("anew", "one "), ("text", "three")]
    assert answer.text == "one three"


def test_what_others_say_is_theirs() -> None:
    answer = ShownAnswer()
    relay = ("relay", {"author": "critic"})
    assert read(answer, says("ask\0"), relay, says("weak")) == [
        ("text", "ask\ufffd"),
        ("relay", "critic"),
        ("text", "weak"),
    ]
    assert read(answer, says("ask\0"), relay, says("weak")) == []
    assert answer.text == "ask\ufffd\n\n@critic: weak"


def test_it_waits_until_it_is_read_to_another_end() -> None:
    answer = ShownAnswer()
    asked = ("approval-request", {"request_id": "int_1"})
    read(answer, asked, ("done", {"finish_reason": "approval_required"}))
    assert (answer.waits, answer.has_ended, len(answer.questions)) == (True, True, 1)
    read(answer, ("error", {"code": "cancelled"}))
    assert (answer.waits, answer.has_ended, answer.questions) == (False, True, [])
