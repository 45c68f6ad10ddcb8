"""Messages as they come and as they are told."""

import pytest

from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.members import snake
from carnet.wire.dialects.a2a.message import read_message, write_message
from tests.wire.dialects.a2a.scene import MESSAGE


def test_a_message_is_read_and_kept_as_it_came() -> None:
    sent = {
        **MESSAGE,
        "taskId": "t1",
        "context_id": "c1",
        "metadata": {"a": 1},
        "extensions": ["urn:x"],
        "referenceTaskIds": ["t0"],
    }
    read = read_message(sent)
    assert (read.id, read.task, read.context, read.extensions) == ("m1", "t1", "c1", ("urn:x",))
    assert read.message.text == "hello"
    assert read.message.metadata == {"a": 1, "referenceTaskIds": ["t0"]}
    assert read.written is sent
    assert read_message(MESSAGE).message.metadata is None


def test_a_message_in_snake_case_is_the_same() -> None:
    sent = {**MESSAGE, "taskId": "t1", "contextId": "c1", "referenceTaskIds": ["t0"]}
    read, same = read_message(sent), read_message({snake(name): sent[name] for name in sent})
    assert (same.id, same.task, same.context, same.message) == (
        (read.id, read.task, read.context, read.message)
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"role": "user"}, "message.role"),
        ({"role": None}, "message.role"),
        ({"messageId": ""}, "message.messageId"),
        ({"messageId": "x" * 300}, "message.messageId"),
        ({"parts": []}, "message.parts"),
        ({"metadata": []}, "message.metadata"),
        ({"taskId": 7}, "message.taskId"),
        ({"extensions": [7]}, "message.extensions"),
        ({"referenceTaskIds": ["x"] * 65}, "message.referenceTaskIds"),
        ({"referenceTaskIds": ""}, "message.referenceTaskIds"),
    ],
)
def test_a_message_that_is_none_is_refused_by_its_place(
    change: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_message({**MESSAGE, **change})
    assert refused.value.facts["field"] == field


def test_what_is_empty_is_not_written() -> None:
    written = write_message("m", [{"text": "a"}], taskId="t", contextId="", metadata={})
    assert written == {
        "messageId": "m",
        "role": "ROLE_AGENT",
        "parts": [{"text": "a"}],
        "taskId": "t",
    }
