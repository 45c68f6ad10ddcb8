"""Another agent, as a turn may call it: what it is asked, with whatever may go with that.

Law 1. What is asked is judged before it leaves: TypeError or ValueError for whoever wrote the
       agent, in words that say what it should be.
Law 2. Text alone, and messages of ours, are asked as they always were. With parameters, or as
       objects of OpenAI's interface, they have a body, and reach whoever reads that interface.
Law 3. What was given is copied: a list that is changed afterwards changes nothing that was asked.
Law 4. The calls out of one turn have their places and names from one allocator, whoever makes them:
       no two of them share an id, and a turn that runs again makes the same ones.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from copy import copy
from hashlib import blake2b
from itertools import count
from typing import Any, Final, Protocol, Unpack, get_args

from msgspec import Struct

from carnet.core.call import Ask
from carnet.core.chain.carnet import Carnet
from carnet.core.messages.events import (
    CHILD,
    Event,
    Extension,
    Message,
    Part,
    Role,
    Usage,
    joined_text,
)
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.messages.parameters import Parameters, write_parameters
from carnet.core.people.address import AGENT
from carnet.core.people.identity import CHAT, Result
from carnet.errors import CarnetError, InvalidJson
from carnet.runtime.receipts.outbound_calls import again, tally
from carnet.runtime.stream import closing
from carnet.wire.dialects.openai.request import MOST_MESSAGES, read_messages, write_message
from carnet.wire.grammar import json

Prompt = str | Message | Sequence[Message | Mapping[str, Any]]
Payload = Mapping[str, Any] | None

COUNTED: Final = 1_000_000  # places of tool calls are below
_ORDINALS: Final = 999_000_000  # so that an ordinal has nine digits at the most
EXAMPLE = "carnet.Message.user('...') or {'role': 'user', 'content': '...'}"


class ChildCall(Struct, frozen=True, kw_only=True):
    """One call out of a turn."""

    ordinal: int
    to: str  # the name or address that it goes to
    made_in: Carnet  # the document of the turn that makes it
    key: bytes  # of that turn

    @property
    def depth(self) -> int:
        """How deep it stands."""
        return self.made_in.depth + 1

    def cost(self, usage: Usage, noted: list[Event], *, is_ours: bool) -> Extension:
        """What it has cost whoever pays for this turn, and how many calls it took.

        `noted` is what its own turn notes of calls; `is_ours` says that this turn's payer pays.
        """
        counted = tally(self.depth, noted)
        payload = {
            "to": self.to,
            "index": self.ordinal,
            "cost": (usage.cost or 0) if is_ours else 0,
            "calls": counted.calls,
            "deepest": counted.deepest,
            **again(noted),
        }
        return Extension(CHILD, payload)

    def refusal(self, refused: CarnetError) -> OutboundCall:
        """The record of a call that was refused before it left."""
        return OutboundCall(
            ordinal=0,
            child_turn=self.made_in.child_turn(self.ordinal, speaker_of(self.to), self.key),
            to=self.to,
            depth=self.depth,
            state="refused",
            code=refused.code,
        )


class ChildCalls:
    """Gives the calls out of one turn their places: there is one a turn, whoever makes them."""

    __slots__ = ("_carnet", "_conversations", "_key", "_next")

    def __init__(self, carnet: Carnet, key: bytes) -> None:
        """`carnet` is the document of the turn that makes them, `key` that of its record."""
        self._carnet = carnet
        self._key = key
        self._next = count()  # threads may take some too
        self._conversations = count(1)

    def take(self, to: str) -> ChildCall:
        """The next call, to an agent by its name or address."""
        return ChildCall(ordinal=next(self._next), to=to, made_in=self._carnet, key=self._key)

    def take_ordinal(self) -> int:
        """The place of the next call, for whoever makes it past us."""
        return next(self._next)

    def skip_to(self, ordinal: int) -> None:
        """Give the next call this place, which whoever makes it has fixed."""
        self._next = count(ordinal)

    def begin(self, ordinal: int) -> None:
        """Count calls and conversations from here."""
        self._next, self._conversations = count(ordinal), count(ordinal + 1)

    def take_conversation(self) -> int:
        """The place of the next conversation, from 1."""
        return next(self._conversations)

    def scoped(self, part: str) -> "ChildCalls":
        """Places of their own for a part of the turn, above all that are counted in it."""
        other = copy(self)
        other.begin(scoped_ordinal(part.encode()))
        return other


def scoped_ordinal(part: bytes) -> int:
    """A place among the calls out of a turn that is above all that are counted."""
    return COUNTED + int.from_bytes(blake2b(part, digest_size=8).digest()) % _ORDINALS


def speaker_of(to: str) -> str:
    """The name that a call goes to, as far as its address says it."""
    if to.startswith(AGENT):
        return to.removeprefix(AGENT).partition(".")[0]
    return to.removeprefix("@").partition("@")[0]


class MakesCalls(Protocol):
    """The turn that a call is made out of."""

    @property
    def streams(self) -> bool:
        """Whether the caller reads as we speak."""

    def dispatch(self, address: str, ask: Ask, auth: str) -> AsyncIterator[Event]:
        """Call another agent as the next child of this turn; gives its events as they come."""

    async def answer(self, address: str, ask: Ask, auth: str) -> list[Event]:
        """The same, when all of its events are there."""


class Callee:
    """Another agent, as this turn may call it."""

    def __init__(self, visit: MakesCalls, address: str, auth: str) -> None:
        """Made by `Visit.peer`."""
        self._visit = visit
        self._address = address
        self._auth = auth

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
        return _spoken(self._visit.dispatch(self._address, ask, self._auth))

    async def ask(
        self, prompt: Prompt, *, system: str | None = None, **parameters: Unpack[Parameters]
    ) -> str:
        """Call it and wait for the whole text of its answer. Takes what a call of it takes."""
        ask = asked(prompt, system, parameters)
        return joined_text(await self._visit.answer(self._address, ask, self._auth))

    async def skill(self, skill: str, payload: Payload = None) -> dict[str, Any]:
        """Ask it for a skill by name and wait for the result."""
        ask = _skill_asked(skill, payload, stream=False)
        events = await self._visit.answer(self._address, ask, self._auth)
        results = [event.payload for event in events if isinstance(event, Extension)]
        if results:
            return results[-1]  # type: ignore[no-any-return]  # an object: RESULT holds no other
        return {"text": joined_text(events)}

    def stream_skill(self, skill: str, payload: Payload = None) -> AsyncIterator[Event | Result]:
        """Ask it for a skill; gives its chunks as they come, and at the end its `Result`."""
        ask = _skill_asked(skill, payload, stream=True)
        return _with_result(self._visit.dispatch(self._address, ask, self._auth))


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
