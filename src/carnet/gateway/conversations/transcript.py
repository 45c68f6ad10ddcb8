"""What was said in a conversation: as it is kept of a turn, and as an agent is told it again.

Law 1. What is kept of an answer is what its client saw: text, tool calls, results. Text that came
       in pieces is one.
Law 2. An answer of which something was said and that has no end is partial; one of which nothing
       was is unanswered if it may be tried again, and else failed (R48).
Law 3. An agent is told what it has said itself as that, with its tools, and what others have said
       as theirs. A tool call without a result is left out: it could be taken for one to be run.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    RELAYED,
    Data,
    Event,
    Extension,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Waiting,
    joined_text,
    write_events,
)
from carnet.errors import BY_CODE, Internal
from carnet.ports.calls.conversations import AnswerState, KeptMessage, RelayedAnswer, Settled
from carnet.wire.dialects.engine_chat.transcript import messages_of
from carnet.wire.dialects.engine_chat.writer import words_of
from carnet.wire.grammar import json

MOST_BYTES: Final = 1024 * 1024  # of an answer that are kept
MOST_OUTPUT: Final = 16_384  # characters of what a tool gave
MOST_HISTORY: Final = 1_000  # messages that an agent is told
LEFT_OUT: Final = " [...]"

_ENDED: Final = frozenset({"done", "failed", "unknown", "waiting"})


def has_ended(turn: Turn) -> bool:
    """Whether nothing more is said in a turn, for now."""
    return turn.state in _ENDED


def settled_by(turn: Turn, events: Sequence[Event], *, is_seen: bool, now: int) -> Settled:
    """What an answer is by the turn that it was given in."""
    own, relayed = _parted(events)
    shown = _kept(own)
    text = "\n".join([joined_text(shown), *[joined_text(each) for _, each in relayed]])
    last = events[-1] if events else None
    code = turn.code
    if turn.state == "waiting":
        code = last.error().code if isinstance(last, Waiting) else "input_required"
    return Settled(
        state=_state(turn, has_content=bool(shown)),
        parts=write_events(shown),
        text=text,
        waits=turn.state == "waiting",
        code=code,
        tokens_in=turn.tokens_in,
        tokens_out=turn.tokens_out,
        cost=turn.cost,
        is_seen=is_seen,
        relayed=tuple(
            [
                RelayedAnswer(author=mark["author"], code=mark["code"], parts=write_events(each))
                for mark, each in relayed
            ]
        ),
        now=now,
    )


def _parted(
    events: Sequence[Event],
) -> tuple[list[Event], list[tuple[dict[str, Any], list[Event]]]]:
    """What the agent itself has said, and what each has who was mentioned."""
    own: list[Event] = []
    relayed: list[tuple[dict[str, Any], list[Event]]] = []
    for event in events:
        if isinstance(event, Extension) and event.name == RELAYED:
            relayed.append((event.payload, []))
        else:
            (relayed[-1][1] if relayed else own).append(event)
    return own, [(mark, _kept(each)) for mark, each in relayed]


def _state(turn: Turn, *, has_content: bool) -> AnswerState:
    if turn.state == "done":
        return "whole"
    if has_content or turn.state == "waiting":
        return "partial"
    return "unanswered" if is_retryable(turn) else "failed"


def is_retryable(turn: Turn) -> bool:
    """Whether the same turn may run again."""
    if turn.state == "unknown":
        return True
    return turn.state == "failed" and BY_CODE.get(turn.code or "", Internal).retryable


def _kept(events: Sequence[Event]) -> list[Event]:
    found: list[Event] = []
    texts: list[str] = []
    room = MOST_BYTES
    for event in events:
        if room <= 0:
            break
        match event:
            case Text():
                texts.append(event.text[:room])
                room -= len(texts[-1].encode())
                continue
            case Data():
                texts.append(json.write_text(event.value)[:room])
                room -= len(texts[-1].encode())
                continue
            case ToolResult():
                kept: Event = _short(event)
            case ToolCall():
                kept = event
            case _:
                continue
        _join(texts, found)
        room -= len(write_events([kept]))
        found.append(kept)
    _join(texts, found)
    return found


def _join(texts: list[str], found: list[Event]) -> None:
    text = "".join(texts)
    texts.clear()
    if text:
        found.append(Text(text))


def _short(result: ToolResult) -> ToolResult:
    words = words_of(result.output)
    if len(words) <= MOST_OUTPUT:
        return result
    return ToolResult(result.id, result.status, words[:MOST_OUTPUT] + LEFT_OUT)


# ------------------------------------------------------------------ as an agent is told it


def history_of(
    branch: Sequence[KeptMessage], agent: str, *, with_tools: bool
) -> tuple[Message, ...]:
    """The messages of a branch, the newest first, as an agent is told them, the oldest first."""
    found: list[tuple[Message, ...]] = []
    count = 0
    for kept in branch:
        messages = _messages_in(kept, agent, with_tools=with_tools)
        count += len(messages)
        if found and count > MOST_HISTORY:
            break
        found.append(messages)
    return tuple([message for messages in reversed(found) for message in messages])


def _messages_in(kept: KeptMessage, agent: str, *, with_tools: bool) -> tuple[Message, ...]:
    events = kept.events()
    if kept.role == "user":
        return (Message.user(joined_text(events)),)
    if kept.author == agent and with_tools:
        return messages_of(_with_results(events))
    text = joined_text(events)
    if not text:
        return ()
    return (Message.assistant(text if kept.author == agent else f"{kept.author} said: {text}"),)


def _with_results(events: Sequence[Event]) -> list[Event]:
    """The events without the calls that have no result."""
    answered = {event.id for event in events if isinstance(event, ToolResult)}
    return [event for event in events if not isinstance(event, ToolCall) or event.id in answered]
