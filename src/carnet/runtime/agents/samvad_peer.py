"""Agents that speak SAMVAD: called by signed requests, whatever dialect the call came in.

Law 1. The run is the trace, the turn is the span and the turn it is made in is the parent span. A
       call that is repeated keeps all three and gets a nonce of its own.
Law 2. Plain text is given to the skill that takes it, and its result is text again. A skill that
       is asked for by name gets its payload and gives its result as they are.
Law 3. The chain rides in the headers of Tangle. A Carnet reads them under our signature; an SDK
       ignores them, and the run ends there.
Law 4. A skill that is only to be had as a task is handed over as one and waited for.
Law 5. What an agent of ours asks with, and the dialect has no word for, is refused before anything
       leaves: parameters, instructions, images. Of a caller's own chat it is left out, as it
       always was; earlier messages are left out of both.
Law 6. What a callee asks for before it goes on, its call ends with; see `runtime.peers.policies`.
       Only a Carnet that reads our whole profile can be brought the answer.
Law 7. Every call leaves one record (`OutboundCall`), however it ends.
"""

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.messages.events import RESULT, Event, Extension, Text, Usage, Waiting
from carnet.core.messages.interrupt import StatedResolution, paid
from carnet.core.messages.output import Output, Sink
from carnet.core.people.identity import CHAT, Mode, Secret
from carnet.core.people.proof import Spending
from carnet.errors import InvalidRequest, SkillNotFound
from carnet.runtime.peers.policies import Ending, run_on, surfaced, with_agreed
from carnet.runtime.peers.samvad_client import RecipientClient
from carnet.runtime.peers.samvad_request import SamvadRequest
from carnet.runtime.peers.samvad_tasks import SamvadTasks
from carnet.runtime.peers.signing import OWN, Stamping
from carnet.runtime.receipts.outbound_calls import Calling
from carnet.wire.dialects import samvad
from carnet.wire.dialects.policy import RESOLUTION, write_resolution
from carnet.wire.grammar import json

DIALECT: Final = "samvad"
TEXT: Final = "text"
UNSPEAKABLE: Final = (
    "has no word in SAMVAD, which the called agent speaks; leave it out, ask it for a skill, or "
    "reach it in another dialect"
)
_INSTRUCTING: Final = frozenset({"system", "developer"})


class SamvadPeer:
    """An agent elsewhere, reached through the dialect of signed envelopes."""

    def __init__(
        self,
        client: RecipientClient,
        *,
        skill: str | None = None,
        token: Secret | None = None,
        most_cost: int = 0,
        currency: str = "credits",
        stamping: Stamping = OWN,
        domain: str = "",
    ) -> None:
        """Reach one agent.

        Args:
            client: Sends the requests to it.
            skill: What plain text is given to; by default the one that its card suggests.
            token: What it knows us by, beside our signature.
            most_cost: The most it may charge for one call, in micro-units; 0 if it is free.
            currency: That of the amounts.
            stamping: What its calls carry, and whose credential.
            domain: Ours, which nobody elsewhere speaks for.
        """
        self._client = client
        self._domain = domain
        self._tasks = SamvadTasks(client, currency=currency)
        self._skill = skill
        self._token = token
        self._most_cost = most_cost
        self._currency = currency
        self._stamping = stamping

    async def __call__(self, call: Call, out: Output, /) -> Ending:
        """Send the call and pass on the answer as it comes."""
        # Nothing in this dialect can tell a cost; the receipt of a Carnet does.
        free = None if self._most_cost else 0
        calling = Calling(call, out, dialect=DIALECT, bound=self._bounded, cost=free)
        try:
            request = await self._request(call)
            way = self._tasks if request.is_task else self._client
            sink = _InWords(calling) if _is_talk(call.ask) else calling
            calling.is_sent = True
            if call.resolved and await self._client.takes_resolutions(request):
                end = await run_on(call, sink, partial(self._send, request, calling))
            else:
                end = await way.run(request, sink, calling.receipt)
        except BaseException as error:
            calling.ended(error)
            raise
        if type(end) is Waiting:
            calling.waits = True
            end = surfaced(end, call, self._domain)
        elif calling.receipt.proved is None:
            out.usage(Usage(cost=calling.cost))
        calling.ended()
        return end

    async def _send(
        self, request: SamvadRequest, calling: Calling, stated: StatedResolution | None, sink: Sink
    ) -> Ending:
        """Send a call whose turn runs on, perhaps with an answer to what the callee asks for."""
        calling.receipt.presented = calling.receipt.proved = None
        if stated is not None:
            secrets = {**request.secrets, RESOLUTION: Secret(write_resolution(stated))}
            request = replace(request, secrets=secrets)
        way = self._tasks if request.is_task else self._client
        return await way.run(request, sink, calling.receipt)

    def _bounded(self, usage: Usage, call: Call) -> Usage:
        """What counts of a usage: its cost, as far as we pay it."""
        budget = call.carnet.budget
        money = None if budget is None else budget.money
        most = self._most_cost if money is None else min(money, self._most_cost)
        if call.resolved:
            most += paid(call.resolved)
        return Usage(cost=None if usage.cost is None else min(usage.cost, most))

    async def _request(self, call: Call) -> SamvadRequest:
        if call.is_child and _is_talk(call.ask):
            _refuse_unspeakable(call.ask)
        card = await self._client.card()
        carnet, most = call.carnet, self._most_cost
        if call.resolved:
            more = paid(call.resolved)
            carnet, most = with_agreed(carnet, more), most + more
        headers, secrets = self._stamping.write(call)
        skill, payload = self._asked(call.ask, card)
        modes = _modes(card, skill)
        return SamvadRequest(
            skill=skill,
            payload=payload,
            stream=_in_stream(call.ask, modes),
            is_task=set(modes) == {"async"},
            trace_id=carnet.run,
            span_id=carnet.turn,
            parent_span_id=carnet.parent_turn,
            auth=self._token,
            headers=headers,
            secrets=secrets,
            carnet=carnet,
            payer=call.payer.account,
            budget=Spending(money=most, currency=self._currency),
            under=call.delegation,
            card=card,
        )

    def _asked(self, ask: Ask, card: samvad.Card) -> tuple[str, dict[str, Any]]:
        """The skill that is asked for, and what goes in."""
        if ask.skill is not None and not _chats_by_another_name(ask.skill, card):
            return ask.skill, ask.payload or {}
        skill = self._skill or text_skill(card)
        return skill, {text_field(card, skill): ask.text}


class _InWords:
    """Passes on an answer to who asked in words: a result is text, unless there was text before."""

    __slots__ = ("_has_spoken", "_write", "usage")

    def __init__(self, sink: Sink) -> None:
        self._write = sink.write
        self.usage = sink.usage
        self._has_spoken = False

    async def write(self, event: Event, /) -> None:
        shown = event
        if not self._has_spoken and type(event) is Extension and event.name == RESULT:
            shown = Text(as_text(event.payload))
        self._has_spoken = self._has_spoken or type(shown) is Text
        await self._write(shown)


def _chats_by_another_name(skill: str, card: samvad.Card) -> bool:
    for known in card.skills:
        if known.id == skill:
            return False
    return skill == CHAT.id


def _refuse_unspeakable(ask: Ask) -> None:
    """Refuse what would be lost, by its name and with the way out."""
    found = [name for name in ask.body or {} if name != "messages"]
    if any(message.role in _INSTRUCTING for message in ask.messages):
        found.append("system")
    if not all(isinstance(part, str) for part in ask.spoken.parts):
        found.append("images")
    if found:
        raise InvalidRequest(found[0], UNSPEAKABLE)


def _is_talk(ask: Ask) -> bool:
    return ask.skill in {None, CHAT.id}


def as_text(result: dict[str, Any]) -> str:
    """A result for people: its only text, or JSON."""
    values = list(result.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.write_text(result)


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
    for known in card.skills:
        if known.id == skill:
            return known.modes
    return ()


def _in_stream(ask: Ask, modes: tuple[Mode, ...]) -> bool:
    """Whether the answer is to grow: as it was asked for, where the skill has both modes."""
    if not modes:
        return ask.stream
    return "stream" in modes and (ask.stream or "sync" not in modes)
