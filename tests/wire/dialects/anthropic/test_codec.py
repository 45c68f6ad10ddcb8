"""The codec of Anthropic's messages, all of it together."""

from carnet.core.messages.events import Done, Text
from carnet.wire.dialects.anthropic import HEADERS, KEY_HEADER, MESSAGES, MODEL
from carnet.wire.dialects.anthropic.stream import MessageReader


def test_it_has_a_path_a_key_of_its_own_and_a_version() -> None:
    assert (MESSAGES, MODEL.path("x")) == ("/messages", "/v1/messages")
    assert KEY_HEADER == "x-api-key"
    assert HEADERS == {"anthropic-version": "2026-10-21"}
    assert MODEL.follow is MessageReader
    assert MODEL.result([Text("a"), Text("b"), Done()]) == {"text": "ab"}
