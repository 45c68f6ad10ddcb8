"""What was asked and answered, turn by turn, as people read it.

Law. What is shown is text, however it was sent: nothing of it is taken for a page.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from carnet.console.runs.hops import organisation_of

Page = dict[str, Any]


def transcript(page: Page, domain: str) -> list[Page]:
    """The turns of a full page of a run, each with what was asked and what was answered."""
    return [_turn(turn, level, domain) for root in page["turns"] for turn, level in _walk(root, 0)]


def _walk(turn: Page, level: int) -> Iterator[tuple[Page, int]]:
    yield turn, level
    for child in turn["children"]:
        yield from _walk(child, level + 1)


def _turn(turn: Page, level: int, domain: str) -> Page:
    answered = turn.get("answered") or {}
    return {
        "turn": turn["turn"],
        "agent": turn["agent"],
        "organisation": organisation_of(turn["agent"], domain),
        "speaker": turn["speaker"],
        "level": level,
        "state": turn["state"],
        "code": turn["code"],
        "asked": asked_text(turn.get("asked")),
        "answered": answered.get("text") or "",
        "tools": answered.get("tool_calls") or [],
        "result": {
            name: value for name, value in answered.items() if name not in {"text", "tool_calls"}
        },
        "waits": turn.get("waits", []),
        "answers": turn.get("answers", []),
        "is_cut": turn.get("is_cut", False),
    }


def asked_text(asked: Any) -> str:
    """The last message of what was asked, as text, in whichever dialect; of a skill its payload."""
    if not isinstance(asked, dict):
        return ""
    messages, message, given = asked.get("messages"), asked.get("message"), asked.get("input")
    text = ""
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        text = _content(messages[-1].get("content"))
    elif isinstance(message, dict):  # A2A
        text = _content(message.get("parts"))
    elif isinstance(given, dict):  # agents-api
        text = _content(given.get("message"))
    return text or _payload(asked.get("payload"))


def _payload(payload: Any) -> str:
    if not isinstance(payload, dict):
        return ""
    text = payload.get("text")
    return text if isinstance(text, str) else msgspec.json.encode(payload).decode()


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))
