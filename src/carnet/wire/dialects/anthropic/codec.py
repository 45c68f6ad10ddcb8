"""The requests of this interface and their answers, and how we are known there."""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.messages.events import Event, joined_text
from carnet.wire.dialects.anthropic.answer import read_answer
from carnet.wire.dialects.anthropic.reports import read_refusal
from carnet.wire.dialects.anthropic.request import write_request
from carnet.wire.dialects.anthropic.stream import MessageReader
from carnet.wire.dialects.outbound import Codec

MESSAGES: Final = "/messages"  # after a URL that names the version
KEY_HEADER: Final = "x-api-key"
HEADERS: Final = {"anthropic-version": "2026-10-21"}


def _digested(events: Sequence[Event]) -> dict[str, Any]:
    return {"text": joined_text(events)}


MODEL: Final = Codec(
    dialect="anthropic",
    path=lambda _: f"/v1{MESSAGES}",
    write=write_request,
    read=read_answer,
    follow=MessageReader,
    refusal=read_refusal,
    result=_digested,
)
