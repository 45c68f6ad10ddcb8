"""Another agent, as a turn may call it: what it is asked, with whatever may go with that.

Law 1. What is asked is judged before it leaves: TypeError or ValueError for whoever wrote the
       agent, in words that say what it should be.
Law 2. Text alone, and messages of ours, are asked as they always were. With parameters, or as
       objects of OpenAI's interface, they have a body, and reach whoever reads that interface.
Law 3. What was given is copied: a list that is changed afterwards changes nothing that was asked.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol, Unpack, get_args

from msgspec.structs import replace

from carnet.core.call import Ask
from carnet.core.messages.events import Event, Extension, Message, Part, Role, Text, joined_text
from carnet.core.messages.parameters import Parameters, write_parameters
from carnet.core.people.identity import CHAT, Result
from carnet.core.people.proof import Spending
from carnet.errors import CarnetError, InvalidJson
from carnet.runtime.stream import closing
from carnet.wire.dialects.openai.request import MOST_MESSAGES, read_messages, write_message
from carnet.wire.grammar import json

Prompt = str | Message | Sequence[Message | Mapping[str, Any]]
Payload = Mapping[str, Any] | None

EXAMPLE = "carnet.Message.user('...') or {'role': 'user', 'content': '...'}"


class MakesCalls(Protocol):
    """The turn that a call is made out of."""

    @property
    def streams(self) -> bool:
        """Whether the caller reads as we speak."""

    @property
    def is_final(self) -> bool:
        """Whether nobody may be called out of it any more."""

    def dispatch(self, address: str, ask: Ask, auth: str) -> AsyncIterator[Event]:
        """Call another agent as the next child of this turn; gives its events as they come."""

    async def answer(self, address: str, ask: Ask, auth: str) -> list[Event]:
        """The same, when all of its events are there."""


class Callee:
    """Another agent, as this turn may call it."""

    def __init__(
        self,
        visit: MakesCalls,
        address: str,
        auth: str,
        fallback: str | None = None,
        share: Spending | None = None,
    ) -> None:
        """Made by `Visit.peer`; `fallback` is what is answered where nobody may be called.

        `share` is what each call may spend.
        """
        if fallback is not None and not isinstance(fallback, str):
            raise TypeError("'fallback' must be text")
        self._visit = visit
        self._address = address
        self._auth = auth
        self._fallback = fallback
        self._share = share

    def _shared(self, ask: Ask) -> Ask:
        return ask if self._share is None else replace(ask, share=self._share)

    def _events(self, ask: Ask) -> AsyncIterator[Event]:
        if self._fallback is not None and self._visit.is_final:
            return _fallen_back(self._fallback)
        return self._visit.dispatch(self._address, self._shared(ask), self._auth)

    async def _answer(self, ask: Ask) -> list[Event]:
        if self._fallback is not None and self._visit.is_final:
            return [Text(self._fallback)]
        return await self._visit.answer(self._address, self._shared(ask), self._auth)

    def __call__(
        self,
        prompt: Prompt,
        *,
        system: str | None = None,
        stream: bool | None = None,
        **parameters: Unpack[Parameters],
    ) -> AsyncIterator[Event]:
        """Call it; gives its events. Raises a CarnetError when it fails or is refused.

        Args:
            prompt: What is said: text, or the whole conversation as `carnet.Message`s or as
                objects of OpenAI's interface.
            system: What it is instructed with, before the conversation.
            stream: Whether its answer is to grow; by default as our own caller reads.
            parameters: How it is to answer: `temperature`, `tools` and so on.
        """
        streams = self._visit.streams if stream is None else stream
        ask = asked(prompt, system, parameters, stream=streams)
        return _spoken(self._events(ask))

    async def ask(
        self, prompt: Prompt, *, system: str | None = None, **parameters: Unpack[Parameters]
    ) -> str:
        """Call it and wait for the whole text of its answer. Takes what a call of it takes."""
        ask = asked(prompt, system, parameters)
        return joined_text(await self._answer(ask))

    async def skill(self, skill: str, payload: Payload = None) -> dict[str, Any]:
        """Ask it for a skill by name and wait for the result."""
        ask = _skill_asked(skill, payload, stream=False)
        events = await self._answer(ask)
        results = [event.payload for event in events if isinstance(event, Extension)]
        if results:
            return results[-1]  # type: ignore[no-any-return]  # an object: RESULT holds no other
        return {"text": joined_text(events)}

    def stream_skill(self, skill: str, payload: Payload = None) -> AsyncIterator[Event | Result]:
        """Ask it for a skill; gives its chunks as they come, and at the end its `Result`."""
        ask = _skill_asked(skill, payload, stream=True)
        return _with_result(self._events(ask))


async def _fallen_back(text: str) -> AsyncIterator[Event]:
    yield Text(text)


def _skill_asked(skill: str, payload: Payload, *, stream: bool) -> Ask:
    given = {} if payload is None else dict(payload)
    text = given.get("text") if skill == CHAT.id else None
    messages = (Message("user", (text,)),) if isinstance(text, str) else ()
    return Ask(messages=messages, stream=stream, skill=skill, payload=given)


async def _with_result(events: AsyncIterator[Event]) -> AsyncIterator[Event | Result]:
    async with closing(events) as spoken:
        async for event in spoken:
            yield Result(event.payload) if isinstance(event, Extension) else event


async def _spoken(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    """What is for whoever listens to a conversation: all but the result of a skill."""
    async with closing(events) as spoken:
        async for event in spoken:
            if not isinstance(event, Extension):
                yield event


def asked(
    prompt: Prompt, system: str | None, parameters: Mapping[str, Any], *, stream: bool = False
) -> Ask:
    """The question, judged."""
    given = [Message.user(prompt)] if isinstance(prompt, str) else _listed(prompt)
    if system is not None:
        if not isinstance(system, str):
            raise TypeError("'system' must be text")
        given = [Message.system(system), *given]
    messages = tuple([_message(each, index) for index, each in enumerate(given)])
    members = write_parameters(parameters) if parameters else {}
    if not members and all(isinstance(each, Message) for each in given):
        return Ask(messages=messages, stream=stream)
    written = [write_message(each) if isinstance(each, Message) else each for each in given]
    body = _copied({"messages": written, **members})
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    return Ask(messages=messages, stream=stream, max_tokens=most, body=body)


def _listed(prompt: object) -> list[Any]:
    found = [prompt] if isinstance(prompt, Message) else prompt
    if isinstance(found, Mapping) or not isinstance(found, Sequence) or not found:
        raise TypeError(f"ask with text, or with a list of messages such as {EXAMPLE}")
    if len(found) > MOST_MESSAGES:
        raise ValueError(f"ask with at most {MOST_MESSAGES} messages")
    return list(found)


def _message(given: object, index: int) -> Message:
    if isinstance(given, Message):
        return _judged(given, index)
    if not isinstance(given, Mapping):
        raise TypeError(f"messages[{index}] must be a message such as {EXAMPLE}")
    try:
        (message,) = read_messages([dict(given)])
    except CarnetError as error:
        place = str(error.facts.get("field", "")).replace("messages[0]", f"messages[{index}]", 1)
        raise ValueError(f"'{place}' {error.facts.get('reason', '')}") from None
    return message


def _judged(message: Message, index: int) -> Message:
    """A message of ours: nothing holds whoever makes one to its types."""
    if message.role not in get_args(Role):
        raise ValueError(f"'messages[{index}].role' must be one of {', '.join(get_args(Role))}")
    is_listed = isinstance(message.parts, tuple)
    if not is_listed or not all(isinstance(part, Part) for part in message.parts):
        reason = "must be a tuple of texts, Links, Files and DataParts: Message('user', ('...',))"
        raise TypeError(f"'messages[{index}].parts' {reason}")
    return message


def _copied(body: dict[str, Any]) -> dict[str, Any]:
    try:
        return json.read_object(json.write(body))
    except InvalidJson as error:
        raise ValueError(f"what is asked is no JSON: {error.facts.get('reason')}") from None
    except (TypeError, UnicodeEncodeError) as error:
        raise TypeError(f"what is asked is no JSON: {error}") from None
