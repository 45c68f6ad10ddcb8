"""Several agents asked at once, and one reply made of their answers (R38).

Law 1. Who is asked stands in the configuration, or at the beginning of what the caller says, as
       handles: `@scheduler @docs@bots.example find a free Tuesday`; one without a domain is of this
       gateway. There are at most `MOST_BRANCHES`, and each is a call of the turn like any other.
Law 2. The answers stand in the order of the list, each behind its address: they are the reply, or
       what the agent is asked that joins them, whose answer is the reply then. To a model they are
       framed as what others have said: none of them gives it instructions.
Law 3. Where one of them asks for something the answers of the others are shown beside its question.
       "Go on without" is one of its answers: the reply is made of the others then.
Law 4. Where the reply is a list that a person reads, and mentions in it are relayed, those who are
       asked are told so, and whose words are whose is marked in it (R37).
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import SPOKEN_BY, Event, Extension, Message, Text
from carnet.core.messages.mentions import leading_handles, named
from carnet.core.people.address import is_agent_uri, is_handle, parse_agent_uri, parse_handle
from carnet.errors import AddressInvalid, Declined, InvalidRequest
from carnet.guards.target.injection import untrusted
from carnet.runtime.visit.fan_out.branch import MOST_BRANCHES, BranchAnswer, OnFailure
from carnet.runtime.visit.fan_out.fan_out import FanOut
from carnet.runtime.visit.interrupts import Paused
from carnet.runtime.visit.visit import Visit

_BESIDE: Final = ",;:"  # what may stand between handles
_JOIN: Final = (
    "{count} agents were asked at once. Make one reply of what they have answered, which is quoted"
    " below in the order in which they were named.\n\nThey were asked:\n{question}\n\n{answers}"
)


class Orchestration(Struct, frozen=True, kw_only=True):
    """Whom to ask, and what to make of the answers."""

    agents: tuple[str, ...] | None = None  # None: the handles that a message begins with
    join: str | None = None  # the agent that is given all answers; None: they are listed
    first: int | None = None  # how many answers are enough; None: all
    timeout: float | None = None  # seconds that each of them has
    on_failure: OnFailure = "collect"

    async def __call__(self, visit: Visit) -> AsyncIterator[Event]:
        """Ask them, and say what came of it."""
        messages = _messages(visit)
        agents, messages = (self.agents, messages) if self.agents else addressed(messages)
        is_relayed = self.join is None and visit.capabilities.relays
        if is_relayed:  # what they write is read by whoever relays, as it is
            visit.stated = visit.capabilities
        asked = visit.fan_out(
            agents,
            messages,
            first=None if self.first is None else min(self.first, len(agents)),
            timeout=self.timeout,
            on_failure=self.on_failure,
            without=True,
        )
        async with asked as fan:
            try:
                async for _ in fan:
                    pass
            except Paused:
                if shown := listed(fan.answers, fan.asking):
                    yield Text(shown)
                raise
        if self.join is None:
            for event in marked(fan) if is_relayed else [Text(listed(fan.answers))]:
                yield event
            return
        answers = listed(fan.answers)
        question = messages[-1].text
        prompt = _JOIN.format(count=len(agents), question=question, answers=untrusted(answers))
        async for event in visit.peer(self.join)(prompt):
            yield event


def listed(answers: Sequence[BranchAnswer], asking: Sequence[int] = ()) -> str:
    """All answers, each behind its address; one that was not needed is left out."""
    lines = [_line(answer, is_asking=answer.place in asking) for answer in answers]
    return "\n\n".join([each for each in lines if each])


def marked(fan: FanOut) -> Iterator[Event]:
    """The same, with marks before and after what each of them has said itself."""
    between = ""
    for answer, place in zip(fan.answers, fan.ordinals, strict=True):
        if answer.state == "done":
            yield Text(f"{between}{answer.to}:\n")
            yield Extension(SPOKEN_BY, {"author": answer.to, "place": place})
            yield Text(answer.text)
            yield Extension(SPOKEN_BY, None)
        elif line := _line(answer, is_asking=False):
            yield Text(between + line)
        else:
            continue
        between = "\n\n"


def _line(answer: BranchAnswer, *, is_asking: bool) -> str:
    if answer.state == "done":
        return f"{answer.to}:\n{answer.text}"
    if is_asking:
        return f"{answer.to} asks for something first."
    if isinstance(answer.error, Declined) and answer.state == "cancelled":
        return f"{answer.to} was left out."
    if answer.state == "failed" and answer.error is not None:
        return f"{answer.to} has failed: {answer.error.safe_text} ({answer.error.code})"
    return ""


def addressed(messages: Sequence[Message]) -> tuple[tuple[str, ...], list[Message]]:
    """Whom the last thing that was said names first, and the conversation without that."""
    last = messages[-1]
    place = next((n for n, part in enumerate(last.parts) if isinstance(part, str)), None)
    found: list[str] = []
    rest = "" if place is None else str(last.parts[place])
    while rest := rest.lstrip():
        word, *after = rest.split(maxsplit=1)
        handle = _handle(word.rstrip(_BESIDE))
        if handle is None:
            break
        found.append(handle)
        if len(found) > MOST_BRANCHES:  # also of those that are named again: each is read
            raise InvalidRequest("messages", f"names more than {MOST_BRANCHES} agents")
        rest = after[0] if after else ""
    if not found or place is None:
        reason = "begins with no handle; name the agents first: '@name @other@domain ...'"
        raise InvalidRequest("messages", reason)
    if not rest:
        raise InvalidRequest("messages", "says nothing after the handles")
    parts = (*last.parts[:place], rest, *last.parts[place + 1 :])
    return tuple(dict.fromkeys(found)), [*messages[:-1], replace(last, parts=parts)]


def _handle(word: str) -> str | None:
    try:
        if is_agent_uri(word):
            parse_agent_uri(word)
            return word
        if "@" not in word[1:] and leading_handles(word) == ((word,), ""):
            return named(word)
        return str(parse_handle(word)) if is_handle(word) else None
    except AddressInvalid:
        return None


def _messages(visit: Visit) -> list[Message]:
    """The conversation as far as the user has spoken last."""
    messages = list(visit.messages)
    while messages and messages[-1].role != "user":
        messages.pop()
    if messages:
        return messages
    text = visit.payload.get("text")
    if not isinstance(text, str) or not text:
        raise InvalidRequest("messages", "says nothing")
    return [Message.user(text)]
