"""The body of POST /message."""

import json
from typing import Any

import pytest

from carnet.errors import InvalidRequest
from carnet.wire.dialects.engine_chat.client_request import MOST_METADATA_BYTES, read_sent


def read(most_bytes: int = 100, **body: Any) -> Any:  # noqa: ANN401, RUF100
    return read_sent(json.dumps(body).encode(), most_bytes=most_bytes)


def test_what_is_said_and_all_that_may_stand_beside_it() -> None:
    sent = read(
        content="hi\0🦊",
        metadata={"client": "web", "client_context": {"path": "/x"}},
        client_message_id="c1",
        agent="@critic@acme.example",
        edits="msg_1",
    )
    assert (sent.content, sent.client_id, sent.agent, sent.edits) == (
        "hi\0🦊",
        "c1",
        "@critic@acme.example",
        "msg_1",
    )
    assert (sent.metadata["client"], sent.client_context) == ("web", {"path": "/x"})
    assert read(content="hi").client_context == {}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": None}, "content"),
        ({"content": " \n"}, "content"),
        ({"content": "ü" * 51}, "content"),
        ({"content": "x", "metadata": None}, "metadata"),
        ({"content": "x", "metadata": {"client_context": []}}, "metadata.client_context"),
        ({"content": "x", "metadata": {"Api-Key": "k"}}, "metadata.Api-Key"),
        ({"content": "x", "metadata": {"a": "b" * MOST_METADATA_BYTES}}, "metadata"),
        ({"content": "x", "client_message_id": "a b"}, "client_message_id"),
        ({"content": "x", "client_message_id": "a" * 129}, "client_message_id"),
        ({"content": "x", "agent": 1}, "agent"),
        ({"content": "x", "edits": ""}, "edits"),
        ({"content": "x", "tools": []}, "tools"),
    ],
)
def test_what_is_not_in_its_form_is_refused_by_its_place(body: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(**body)
    assert refused.value.facts["field"] == field
