"""Agents that speak SAMVAD: called by signed requests, whatever dialect the call came in.

Law 1. The run is the trace, the turn is the span and the turn it is made in is the parent span. A
       call that is repeated keeps all three and gets a nonce of its own.
Law 2. Plain text is given to the skill that takes it, and its result is text again. A skill that
       is asked for by name gets its payload and gives its result as they are.
Law 3. The chain rides in the headers of Tangle. A Carnet reads them under our signature; an SDK
       ignores them, and the run ends there.
Law 4. A skill that is only to be had as a task is handed over as one and waited for.
Law 5. Every call leaves one record (`Leg`), however it ends; see `runtime.remote`.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from carnet.core.call import Ask, Call
from carnet.core.events import RESULT, Done, Event, Extension, Text, Usage
from carnet.core.proof import Spending
from carnet.core.secret import Secret
from carnet.core.skill import CHAT, Mode
from carnet.errors import (
    CarnetError,
    PeerNotListed,
    SkillNotFound,
)
from carnet.ports.agent import AGENT_OWNED
from carnet.runtime.closing import closing
from carnet.runtime.errand import Errand, Errands
from carnet.runtime.errand_tasks import TaskErrands
from carnet.runtime.legs import ending, leg_of, note_left
from carnet.runtime.proving import Slip
from carnet.runtime.remote import span_id, trace_of
from carnet.wire import json, samvad, tangle, trace

TEXT: Final = "text"


class Samvad:
    """An agent elsewhere, reached through the dialect of signed envelopes."""

    def __init__(
        self,
        errands: Errands,
        *,
        skill: str | None = None,
        token: Secret | None = None,
        most_cost: int = 0,
        currency: str = "credits",
        takes_credential: bool = False,
        forwards: str = "forward-user",
    ) -> None:
        """Reach one agent.

        Args:
            errands: The way to it.
            skill: What plain text is given to; by default the one that its card suggests.
            token: What it knows us by, beside our signature.
            most_cost: The most it may charge for one call, in micro-units; 0 if it is free.
            currency: That of the amounts.
            takes_credential: Whether the payer's credential may leave to it.
            forwards: "agent-owned" if calls to it are paid by the caller itself.
        """
        self._errands = errands
        self._tasks = TaskErrands(errands)
        self._skill = skill
        self._token = token
        self._most_cost = most_cost
        self._currency = currency
        self._takes_credential = takes_credential
        self._forwards = forwards

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Send the call and give the answer as it comes."""
        telling = _Telling(call, self._most_cost)
        try:
            errand = await self._errand(call)
            way = self._tasks if errand.is_task else self._errands
            async with closing(way.run(errand, telling.slip)) as events:
                async for event in events:
                    for said in telling.tell(event):
                        yield said
        except CarnetError as error:
            yield telling.failed(error)
            raise
        except (asyncio.CancelledError, GeneratorExit) as leaving:
            telling.note_left(leaving)
            raise

    async def answer(self, call: Call, /) -> list[Event]:
        """The same in one piece; see `runtime.answering`."""
        telling = _Telling(call, self._most_cost)
        heard: list[Event] = []
        try:
            errand = await self._errand(call)
            way = self._tasks if errand.is_task else self._errands
            await way.answer(errand, telling.slip, heard)
        except BaseException as error:
            said = telling.tell_all(heard)
            if isinstance(error, CarnetError):
                said.append(telling.failed(error))
            elif isinstance(error, asyncio.CancelledError | GeneratorExit):
                telling.note_left(error)
            call.notes.extend(said)
            raise
        return telling.tell_all(heard)

    async def _errand(self, call: Call) -> Errand:
        card = await self._errands.card()
        carnet = call.carnet
        headers, secrets = tangle.write(carnet, forwarded=self._forwarded(call))
        belongs_to = trace_of(carnet)
        headers |= trace.write(belongs_to, span_id(belongs_to, carnet.turn))
        skill, payload = self._asked(call.ask, card)
        return Errand(
            skill=skill,
            payload=payload,
            stream=_in_stream(call.ask, card, skill),
            is_task=_only_later(card, skill),
            trace_id=carnet.run,
            span_id=carnet.turn,
            parent_span_id=carnet.parent_turn,
            auth=self._token,
            headers=headers,
            secrets=secrets,
            carnet=carnet,
            payer=call.payer.account,
            budget=Spending(money=self._most_cost, currency=self._currency),
            under=call.delegation,
        )

    def _asked(self, ask: Ask, card: samvad.Card) -> tuple[str, dict[str, Any]]:
        """The skill that is asked for, and what goes in."""
        if ask.skill is not None and not _chats_by_another_name(ask.skill, card):
            return ask.skill, ask.payload or {}
        skill = self._skill or text_skill(card)
        return skill, {text_field(card, skill): ask.text}

    def _forwarded(self, call: Call) -> Secret | None:
        if call.credential is None or self._forwards == AGENT_OWNED:
            return None
        if not self._takes_credential:  # R5
            raise PeerNotListed
        return call.credential


class _Telling:
    """How the answer to one call is told on: in words if it was asked in words, with a record."""

    __slots__ = ("_call", "_cost", "_has_spoken", "_is_recorded", "_most_cost", "slip")

    def __init__(self, call: Call, most_cost: int) -> None:
        self._call = call
        self._most_cost = most_cost
        self._cost = None if most_cost else 0  # nothing in this dialect can tell a cost
        self._has_spoken = self._is_recorded = False
        self.slip = Slip()

    def tell(self, event: Event) -> Sequence[Event]:
        """What is said for an event; before the end stands the record."""
        said = _in_words(event, self._call.ask, has_spoken=self._has_spoken)
        if type(said) is Usage:  # as the receipt of a Carnet tells it
            self._cost = _least(said.cost, self._most_cost)
            return (Usage(cost=self._cost),)
        if type(said) is not Done:
            self._has_spoken = self._has_spoken or type(said) is Text
            return (said,)
        self._is_recorded = True
        proved = self.slip.proved
        leg = leg_of(self._call, self._cost, "done", receipt=proved)
        return (leg, said) if proved is not None else (Usage(cost=self._cost), leg, said)

    def tell_all(self, events: Sequence[Event]) -> list[Event]:
        """What is said for all of them."""
        return [said for event in events for said in self.tell(event)]

    def failed(self, error: CarnetError) -> Event:
        """The record of a call that ended in an error."""
        return leg_of(self._call, self._cost, ending(error), error.code, self.slip.proved)

    def note_left(self, leaving: BaseException) -> None:
        """Note the record of a call that nobody hears any more, unless it was told."""
        if not self._is_recorded:
            note_left(self._call, self._cost, leaving)


def _chats_by_another_name(skill: str, card: samvad.Card) -> bool:
    return skill == CHAT.id and not any(known.id == CHAT.id for known in card.skills)


def _in_words(event: Event, ask: Ask, *, has_spoken: bool) -> Event:
    """The result of a skill as text, for whoever asked in words and has heard none."""
    if ask.skill not in {None, CHAT.id} or has_spoken:
        return event
    if type(event) is Extension and event.name == RESULT:
        return Text(as_text(event.payload))
    return event


def as_text(result: dict[str, Any]) -> str:
    """A result for people: its only text, or JSON."""
    values = list(result.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.write_text(result)


def _least(cost: int | None, most: int) -> int | None:
    return None if cost is None else min(cost, most)


def text_skill(card: samvad.Card) -> str:
    """The skill that plain text is meant for: `chat`, or the only one there is."""
    known = [skill.id for skill in card.skills]
    if CHAT.id in known:
        return CHAT.id
    if len(known) == 1:
        return known[0]
    raise SkillNotFound("the agent has several skills and none is called chat")


def text_field(card: samvad.Card, skill: str) -> str:
    """The field of the payload that text goes into: `text`, or the only one that is needed."""
    schema = next((known.input_schema for known in card.skills if known.id == skill), {})
    needed = schema.get("required")
    if isinstance(needed, list) and len(needed) == 1 and isinstance(needed[0], str):
        return needed[0]
    return TEXT


def _modes(card: samvad.Card, skill: str) -> tuple[Mode, ...]:
    return next((known.modes for known in card.skills if known.id == skill), ())


def _only_later(card: samvad.Card, skill: str) -> bool:
    """Whether the skill is to be had as a task alone."""
    return set(_modes(card, skill)) == {"async"}


def _in_stream(ask: Ask, card: samvad.Card, skill: str) -> bool:
    """Whether the answer is to grow: as it was asked for, where the skill has both modes."""
    modes = _modes(card, skill)
    if not modes:
        return ask.stream
    return "stream" in modes and (ask.stream or "sync" not in modes)
