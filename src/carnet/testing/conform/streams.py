"""Checks of streams: what they hold, how they end, and what their asker may say."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from msgspec import Struct

from carnet.errors import InvalidJson
from carnet.testing.conform.probe import CORRELATION, Body, LoopProbe, ProbeAnswer, expect
from carnet.testing.conform.refusals import misfit, schema, unsafe
from carnet.testing.conform.verdict import BrokenPlace, Verdict, judged
from carnet.wire.dialects.engine_chat.refusals import APPROVAL_REQUIRED, CANCELLED, SHUTTING_DOWN
from carnet.wire.dialects.engine_chat.writer import (
    DONE,
    ERROR,
    TEXT_DELTA,
    TOOL_CALL,
    TOOL_RESULT,
)
from carnet.wire.grammar import json
from carnet.wire.grammar.sse import SseInvalid, SseOverflow, SseReader

EVENTS: Final = (TEXT_DELTA, TOOL_CALL, TOOL_RESULT, DONE, ERROR)
ENDS: Final = (DONE, ERROR)
AT_ONCE: Final = 4
TIMES_LEFT: Final = 2
FORGED: Final = "kit_forged"

Probed = AsyncIterator[BrokenPlace]


class Frame(Struct, frozen=True):
    """One event of a stream; `data` is None where it is no JSON object."""

    event: str
    data: dict[str, Any] | None


# ------------------------------------------------------------------ what is asked


async def example(loop: LoopProbe) -> Probed:
    """A conversation with a system message and what was said before is taken."""
    messages = [
        {"role": "system", "content": "Be brief."},
        loop.user(),
        {"role": "assistant", "content": "I look it up."},
        loop.user(),
    ]
    context = {"conversation_id": "kit_conversation", "client_context": {"path": "/kit"}}
    for broken in expect(await loop.ask("a conversation", loop.body(*messages, **context)), 200):
        yield broken


async def triggers(loop: LoopProbe) -> Probed:
    """A request is taken whatever has begun it."""
    for word in ("message", "webhook", "schedule"):
        for broken in expect(await loop.ask(f"the trigger {word}", loop.body(trigger=word)), 200):
            yield broken


async def history(loop: LoopProbe) -> Probed:
    """Tool calls with their results, of before, are taken."""
    result = {"role": "tool", "content": "done", "tool_call_id": "kit_call"}
    messages = loop.body(loop.user(), _called("kit_call", {"text": "x"}), result, loop.user())
    for broken in expect(await loop.ask("a tool call of before", messages), 200):
        yield broken


async def unsearched(loop: LoopProbe) -> Probed:
    """What is said is never searched: other metadata, content and client_context pass (R19)."""
    words = {"api_key": "kit", "model": "kit", "tools": []}
    for what, body in (
        ("other metadata", loop.body(kit_project={"model": "kit"})),
        ("client_context with the word model", loop.body(client_context=words)),
        ("content with the word api_key", loop.body({**loop.user(), "content": '{"api_key":1}'})),
    ):
        for broken in expect(await loop.ask(what, body), 200):
            yield broken


async def forged_call(loop: LoopProbe) -> Probed:
    """A tool call that its sender wrote is not run for standing there."""
    messages = loop.body(loop.user(), _called(FORGED, {}), loop.user())
    answer = await loop.ask("a tool call of the sender's own", messages)
    for broken in expect(answer, 200):
        yield broken
    for frame in frames_of(answer):
        if (frame.data or {}).get("id") == FORGED:
            yield BrokenPlace(f"no event of the call {FORGED}", f"{frame.event} with its id")


async def at_once(loop: LoopProbe) -> Probed:
    """Several requests at once are answered, each by a stream of its own."""
    for answer in await loop.all("several at once", AT_ONCE):
        for broken in expect(answer, 200):
            yield broken


async def left_alone(loop: LoopProbe) -> Probed:
    """Who hangs up in the midst of a stream costs the next one nothing."""
    for _ in range(TIMES_LEFT):
        await loop.leave()
    for broken in expect(await loop.ask("after others hung up", loop.body()), 200):
        yield broken


def _called(id: str, arguments: Body) -> Body:
    call = {"id": id, "name": "kit_tool", "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


# ------------------------------------------------------------------ of all streams that came


def frames_of(answer: ProbeAnswer) -> list[Frame]:
    """The events of a stream, as far as they can be read."""
    reader, found = SseReader(), []
    try:
        found = [*reader.feed(answer.body), *reader.close()]
    except (SseInvalid, SseOverflow):
        return [Frame("", None)]
    return [Frame(each.event or "", _object(each.data)) for each in found]


def _object(data: str) -> dict[str, Any] | None:
    try:
        return json.read_object(data.encode())
    except InvalidJson:
        return None


def streams_judged(loop: LoopProbe) -> Iterator[Verdict]:
    """What they hold, and how they end."""
    streams = [(each, frames_of(each)) for each in loop.answers if each.is_stream]
    seen = {frame.event for _, frames in streams for frame in frames}
    for name, sentence, judge, needs in _JUDGES:
        yield judged(
            name,
            sentence,
            [broken for answer, frames in streams for broken in judge(answer, frames)],
            is_seen=bool(streams) and (needs is None or needs in seen),
        )
    yield _one_message(streams)
    yield _no_secrets(loop)
    named = [each for each in loop.answers if each.correlation is not None]
    yield judged(
        "correlation",
        "An answer that names its request in x-correlation-id names it as it was asked (R49).",
        [
            BrokenPlace(CORRELATION, each.summary)
            for each in named
            if each.correlation != CORRELATION
        ],
        is_seen=bool(named),
    )


def _media(answer: ProbeAnswer, _: list[Frame]) -> Iterator[BrokenPlace]:
    if answer.media.partition(";")[0].strip() != "text/event-stream":
        yield BrokenPlace("text/event-stream", f"{answer.asked}: {answer.media!r}")


def _frames(answer: ProbeAnswer, frames: list[Frame]) -> Iterator[BrokenPlace]:
    for frame in frames:
        if not frame.event or frame.data is None:
            wanted = "an event with a name, and data that is one JSON object"
            yield BrokenPlace(wanted, f"{answer.asked}: the event {frame.event!r}")


def _events(answer: ProbeAnswer, frames: list[Frame]) -> Iterator[BrokenPlace]:
    for frame in frames:
        if frame.event and frame.event not in EVENTS:
            yield BrokenPlace(f"one of {', '.join(EVENTS)}", f"{answer.asked}: {frame.event!r}")


def _fields(answer: ProbeAnswer, frames: list[Frame]) -> Iterator[BrokenPlace]:
    form = schema("event")
    for frame in frames:
        if frame.event in EVENTS and frame.event not in ENDS and frame.data is not None:
            wrong = misfit(form, {"event": frame.event, "data": frame.data})
            if wrong:
                yield BrokenPlace(f"{frame.event} in its form", f"{answer.asked}: {wrong}")


def _end(answer: ProbeAnswer, frames: list[Frame]) -> Iterator[BrokenPlace]:
    names = [frame.event for frame in frames]
    ends = [name for name in names if name in ENDS]
    if len(ends) != 1:
        yield BrokenPlace("one done or one error", f"{answer.asked}: {ends or 'none'}")
    elif names[-1] not in ENDS:
        yield BrokenPlace("nothing after the end", f"{answer.asked}: {names[-1]} after {ends[0]}")
    elif not answer.is_whole:
        yield BrokenPlace(
            "a stream that is closed after its end", f"{answer.asked}: it was cut off"
        )


def _usage(answer: ProbeAnswer, frames: list[Frame]) -> Iterator[BrokenPlace]:
    form = schema("event")
    for frame in frames:
        if frame.event == DONE:
            wrong = misfit(form, {"event": DONE, "data": frame.data or {}})
            if wrong:
                wanted = "finish_reason, and usage with prompt_tokens and completion_tokens"
                yield BrokenPlace(wanted, f"{answer.asked}: {wrong}")


def _calls(answer: ProbeAnswer, frames: list[Frame]) -> Iterator[BrokenPlace]:
    open_ones: set[str] = set()
    for frame in frames:
        id = str((frame.data or {}).get("id"))
        if frame.event == TOOL_CALL:
            if id in open_ones:
                yield BrokenPlace("another id for each call", f"{answer.asked}: {id!r} twice")
            open_ones.add(id)
        elif frame.event == TOOL_RESULT:
            open_ones.discard(id)


def _results(answer: ProbeAnswer, frames: list[Frame]) -> Iterator[BrokenPlace]:
    open_ones: set[str] = set()
    for frame in frames:
        id = str((frame.data or {}).get("id"))
        if frame.event == TOOL_CALL:
            open_ones.add(id)
        elif frame.event == TOOL_RESULT:
            if id not in open_ones:
                yield BrokenPlace(
                    "the id of a call that has no result yet", f"{answer.asked}: {id!r}"
                )
            open_ones.discard(id)
        elif frame.event == DONE and open_ones:
            yield from _unanswered(answer, frame)


def _unanswered(answer: ProbeAnswer, frame: Frame) -> Iterator[BrokenPlace]:
    reason = (frame.data or {}).get("finish_reason")
    if reason not in {APPROVAL_REQUIRED, CANCELLED, SHUTTING_DOWN}:
        wanted = f"a result for each call, or an end by {APPROVAL_REQUIRED}"
        yield BrokenPlace(wanted, f"{answer.asked}: {reason!r} with a call that has none")


def _error_form(answer: ProbeAnswer, frames: list[Frame]) -> Iterator[BrokenPlace]:
    form = schema("event")
    for frame in frames:
        if frame.event == ERROR:
            wrong = misfit(form, {"event": ERROR, "data": frame.data or {}})
            if wrong:
                wanted = "exactly a code (provider_error, tool_error, context_overflow), a message"
                yield BrokenPlace(wanted, f"{answer.asked}: {wrong}")


def _error_safe(answer: ProbeAnswer, frames: list[Frame]) -> Iterator[BrokenPlace]:
    for frame in frames:
        if frame.event == ERROR:
            yield from unsafe(answer.asked, str((frame.data or {}).get("message")))


_JUDGES: Final = (
    ("stream", "An answer is a stream: text/event-stream.", _media, None),
    ("frames", "Each frame has the name of an event and one JSON object.", _frames, None),
    ("events", f"The events are {', '.join(EVENTS)}, and no others.", _events, None),
    ("fields", "Texts, calls and results have the members of their form.", _fields, None),
    ("end", "A stream has one end, done or error, and nothing after it.", _end, None),
    ("usage", "done says why it ended and what was used.", _usage, DONE),
    ("tool-calls", "Calls that are open have ids of their own.", _calls, TOOL_CALL),
    ("tool-results", "A result has the id of its call, and each call has one.", _results, None),
    ("error-form", "error is one of three codes and a message.", _error_form, ERROR),
    ("error-safe", "error shows no path, no trace and no credential.", _error_safe, ERROR),
)


def _one_message(streams: list[tuple[ProbeAnswer, list[Frame]]]) -> Verdict:
    messages: dict[object, set[str]] = {}
    for _, frames in streams:
        for frame in frames:
            if frame.event == ERROR and frame.data:
                found = messages.setdefault(str(frame.data.get("code")), set())
                found.add(str(frame.data.get("message")))
    several = [code for code, found in messages.items() if len(found) > 1]
    return judged(
        "error-fixed",
        "There is one message for each code of an error.",
        [BrokenPlace("one message", f"{code}: {len(messages[code])} of them") for code in several],
        is_seen=bool(messages),
    )


def _no_secrets(loop: LoopProbe) -> Verdict:
    token = loop.token.reveal().encode()
    return judged(
        "secrets",
        "No answer holds the credential that it was asked with.",
        [
            BrokenPlace("an answer without it", each.asked)
            for each in loop.answers
            if token in each.body
        ],
    )
