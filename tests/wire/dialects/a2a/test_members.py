"""Members of A2A objects, in both spellings."""

from collections.abc import Callable
from typing import Any

import pytest

from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a import members


@pytest.mark.parametrize(
    ("name", "other"),
    [("contextId", "context_id"), ("referenceTaskIds", "reference_task_ids"), ("url", "url")],
)
def test_a_member_is_found_in_either_spelling(name: str, other: str) -> None:
    assert members.snake(name) == other
    assert members.member({name: 1}, name) == members.member({other: 1}, name) == 1
    assert members.member({name: None, other: 2}, name) in {2, None}
    assert members.member({}, name) is None


def test_many_members_are_found_in_camel_case_however_they_are_spelled() -> None:
    usual = {"messageId": "m", "parts": []}
    assert members.in_camel(usual) is usual
    given = {
        "message_id": "m",
        "reference_task_ids": [],
        "reference_taskIds": 1,
        "_x": 2,
        "a__b": 3,
    }
    found = members.in_camel(given)
    assert (found["messageId"], found["referenceTaskIds"]) == ("m", [])
    assert {*found} == {*given, "messageId", "referenceTaskIds"}
    assert members.in_camel({"taskId": "t", "task_id": "u"})["taskId"] == "t"


READERS: list[tuple[Callable[[dict[str, Any]], object], list[object], list[object]]] = [
    (lambda value: members.read_object(value["x"], "p"), [{}], [[], "a", 1]),
    (lambda value: members.read_optional(value, "x", "p"), [{}, None], [[], "a"]),
    (lambda value: members.read_text(value, "x", "p", 3), ["abc", "", None], ["abcd", 1, "a\n"]),
    (lambda value: members.read_id(value, "x", ""), ["a" * 256], ["a" * 257, {}]),
    (lambda value: members.need_id(value, "x", ""), ["a"], [None, "", 7]),
    (lambda value: members.read_url(value, "x", "p"), ["https://a/"], ["", "a b", None, "é"]),
    (lambda value: members.read_flag(value, "x", "p"), [True, False, None], [1, "true"]),
    (
        lambda value: members.read_count(value, "x", "p", least=1, most=9),
        [1, 9, None],
        [0, 10, True, 1.0, "1"],
    ),
    (lambda value: members.read_list(value, "x", "p", 2), [[], [1, 2], None], [[1, 2, 3], {}]),
    (lambda value: members.read_texts(value, "x", "p", 2), [["a"], None], [[1], ["a" * 1025]]),
]


@pytest.mark.parametrize(("read", "good", "bad"), READERS)
def test_a_member_has_its_type_and_size_or_is_refused_by_its_place(
    read: Callable[[dict[str, Any]], object], good: list[object], bad: list[object]
) -> None:
    for value in good:
        read({"x": value})
    for value in bad:
        with pytest.raises(InvalidRequest) as refused:
            read({"x": value})
        assert refused.value.facts["field"] in {"p", "x", "p.x"}


def test_what_is_absent_is_nothing() -> None:
    assert members.read_optional({}, "x", "") == {}
    assert members.read_list({}, "x", "", 1) == []
    assert members.read_texts({}, "x", "", 1) == ()
    assert members.read_flag({}, "x", "") is False
