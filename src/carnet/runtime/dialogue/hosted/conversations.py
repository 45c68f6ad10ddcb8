"""A conversation that a gateway drives: an Agent, and what `visit.conversation` of one does.

Law 1. Who takes part by a name or an address is called out of the turn that the conversation
       speaks: admitted, paid, recorded and bounded as any call that an agent makes. Its place among
       the calls is that of its turn in the conversation.
Law 2. A turn that runs again asks nobody again who has answered: the record of the call answers,
       and of functions and models what was kept as a step of the turn.
Law 3. What a participant asks for, the turn asks for; when it is answered, the conversation goes on
       with the one who asked.
Law 4. Predicates, orders and all other plain functions are called in threads, as agents are.
Law 5. Participants are one hop deeper than the turn, those of a conversation within it one more.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from carnet.core.call import Agent, Ask, Call
from carnet.core.chain.carnet import Carnet
from carnet.core.dialogue.events import ConversationResult
from carnet.core.dialogue.transcript import text_for
from carnet.core.messages.events import (
    CHILD,
    Done,
    End,
    Event,
    Extension,
    Message,
    Usage,
    Waiting,
)
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.messages.output import Output
from carnet.errors import CarnetError
from carnet.ports.calls.steps import Steps
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.agents.python import Native, blamed
from carnet.runtime.dialogue.attempt import (
    AttemptOutput,
    attempt_of,
    check_halt,
    conversation_name,
)
from carnet.runtime.dialogue.callees import Callees
from carnet.runtime.dialogue.definition import (
    ChatModelTarget,
    Conversation,
    Participant,
    conversation_of,
)
from carnet.runtime.dialogue.hosted.pages import DialoguesWithin, TurnDialogues, first_place
from carnet.runtime.dialogue.parts import DialogueParts, is_over
from carnet.runtime.dialogue.place import DialoguePlace
from carnet.runtime.dialogue.run import DialogueRun, tell_turns
from carnet.runtime.threads import Threads
from carnet.runtime.visit.children import scoped_ordinal
from carnet.runtime.visit.interrupts import Paused, TurnQuestions
from carnet.runtime.visit.loop_visit import CallsOut
from carnet.runtime.visit.means import VisitMeans
from carnet.runtime.visit.steps import KeptSteps
from carnet.runtime.visit.visit import PER_CALL, Visit


class HostParts(Struct, frozen=True, kw_only=True, eq=False):
    """What all conversations of a gateway are driven with."""

    calls: CallsOut
    steps: Steps
    clock: Clock
    ids: Ids
    http: HttpClient
    currency: str
    means: VisitMeans
    threads: Threads = field(default_factory=Threads)  # where functions decide on its course


class DialogueHost:
    """Who takes part in the conversations of one turn: calls out of it."""

    def __init__(
        self,
        call: Call,
        out: Output,
        parts: HostParts,
        *,
        counts: bool,
        journal: DialoguesWithin | None = None,
    ) -> None:
        """`counts`: the calls out of the turn are the turns of one conversation, in its order.

        `out` is that of the turn; `journal` is given where they are within another conversation.
        """
        self.journal = journal or DialoguesWithin(TurnDialogues(call.record, parts.steps, out))
        self.waits: Waiting | None = None  # what one of them asks for
        self.call = call
        self.out = out
        self.parts = parts
        self._counts = counts
        self._speakers: dict[tuple[int, int], Agent] = {}
        self._models = Callees(
            clock=parts.clock, ids=parts.ids, currency=parts.currency, http=parts.http
        )

    def of(self, target: Any, participant: Participant) -> Agent:
        """Who answers for a target of a participant."""
        key = (id(participant), id(target))
        found = self._speakers.get(key)
        if found is None:
            found = self._speakers[key] = self._made(target, participant)
        return found

    def _made(self, target: Any, participant: Participant) -> Agent:
        if isinstance(target, str):
            return _CalledSpeaker(self, target)
        if isinstance(target, ChatModelTarget):
            return _ModelSpeaker(self, self._models.of(target, participant))
        return _FunctionSpeaker(self, target, participant.first_ordinal(target))

    def dialogue_parts(self) -> DialogueParts:
        """What a run of one of them is driven with."""
        parts = self.parts
        return DialogueParts(
            clock=parts.clock,
            ids=parts.ids,
            callees=self,
            journal=self.journal,
            streams=False,
            currency=parts.currency,
            threads=parts.threads,
        )

    def place(self, *, ordinal: int = 0, scopes: bool = False) -> DialoguePlace:
        """Where one of them stands; `scopes`: it is one of several."""
        carnet = self.call.carnet
        return DialoguePlace(
            run_id=carnet.run,
            depth=carnet.depth,
            last_depth=carnet.bound(self.parts.calls.last_depth),
            parent_turn_id=carnet.turn,
            ordinal=ordinal,
            trace=carnet.trace,
            deadline=carnet.deadline,
            made_in=None if scopes else carnet,
            key=self.call.record.key,
        )

    def ordinal(self, call: Call) -> int:
        """The place of a turn among the calls out of ours."""
        if self._counts and call.carnet.turn == self._counted(call):
            return call.record.n
        return scoped_ordinal(call.carnet.turn.encode())

    def _counted(self, call: Call) -> str:
        """The id that a turn of the first conversation has."""
        return self.call.carnet.child_turn(call.record.n, call.agent, self.call.record.key)

    def auth(self, call: Call) -> str:
        """Who pays for a turn: the participant says it where the agent may choose."""
        source = self.parts.calls.auth_source
        return call.target.auth_source if source == PER_CALL else source

    def paused(self, waits: Waiting) -> Paused:
        """Take what is asked for; to be raised."""
        self.waits = waits
        return Paused()


class HostedVisit(Visit):
    """One turn of a conversation, as who speaks it calls others."""

    def __init__(self, host: DialogueHost, call: Call, out: Output, carnet: Carnet) -> None:
        """`call` is that of the turn in its conversation, `carnet` that its calls are made with."""
        parts = host.parts
        super().__init__(
            replace(host.call, ask=call.ask, carnet=replace(carnet, deadline=call.carnet.deadline)),
            out,
            parts.calls.dispatch,
            last_depth=parts.calls.last_depth,
            auth_source=parts.calls.auth_source,
            means=parts.means,
        )

    def begin(self, ordinal: int) -> None:
        """Give the next call this place."""
        self._children.skip_to(ordinal)


class HostedFunctionVisit(HostedVisit):
    """The same for a function: a participant itself, one hop deeper than the conversation."""

    def __init__(self, host: DialogueHost, call: Call, out: Output, ordinal: int) -> None:
        """`ordinal` tells who speaks for a participant from that one: it does things of its own."""
        spoken, above = call.carnet, host.call.carnet
        scope = f"{spoken.turn}#{ordinal}" if ordinal else spoken.turn
        super().__init__(host, call, out, replace(above, depth=spoken.depth, run_is_ours=False))
        self._means = replace(self._means, converses=HostedConversations(host.parts))
        self._interrupts = TurnQuestions(self._call, scope)
        self._kept = KeptSteps(
            self._call.record,
            self._means.steps,
            self._means.threads,
            first=first_place(scope, of_function=True),
        )
        self._children = self._children.scoped(scope)


class BothOutputs:
    """Takes what a participant says; what it uses and calls is noted in the turn as well."""

    def __init__(self, host: DialogueHost, call: Call, attempt: AttemptOutput) -> None:
        """`call` is that of the turn in its conversation."""
        self.host = host
        self.path = host.journal.path(call.carnet.turn)
        self.attempt = attempt

    async def write(self, event: Event, /) -> None:
        """Take an event that is no end."""
        if isinstance(event, Extension) and event.name == CHILD:
            self.host.journal.dialogues.note(self.path, event)
            await self.host.out.write(event)
        await self.attempt.write(event)

    def usage(self, usage: Usage, /) -> None:
        """Take what was used."""
        self.host.journal.dialogues.note(self.path, usage)
        self.host.out.usage(usage)
        self.attempt.usage(usage)

    def called(self, call: OutboundCall, /) -> None:
        """Take note of a call to another organisation."""
        self.host.out.called(call)
        self.attempt.called(call)

    def mark(self) -> int:
        """How far it is."""
        return self.attempt.mark()

    def back(self, mark: int, /) -> bool:
        """Take back what was said since then."""
        return self.attempt.back(mark)


class _CalledSpeaker:
    """An agent here or elsewhere, called out of the turn."""

    def __init__(self, host: DialogueHost, address: str) -> None:
        self._host = host
        self._address = address

    async def __call__(self, call: Call, out: Output, /) -> End:
        above = self._host.call.carnet
        carnet = replace(above, depth=call.carnet.depth - 1)
        visit = HostedVisit(
            self._host, call, BothOutputs(self._host, call, attempt_of(out)), carnet
        )
        visit.begin(self._host.ordinal(call))
        ask = Ask(messages=call.ask.messages)
        try:
            events = await visit.answer(self._address, ask, self._host.auth(call))
        except Paused as paused:
            waits = await visit.waiting(paused)
            raise paused if waits is None else self._host.paused(waits) from None
        finally:
            visit.close()
        for event in events:
            await out.write(event)
        self._host.journal.dialogues.recorded.add(call.carnet.turn)
        return Done()


class _ModelSpeaker:
    """A model, asked in the turn."""

    def __init__(self, host: DialogueHost, model: Agent) -> None:
        self._host = host
        self._model = model

    async def __call__(self, call: Call, out: Output, /) -> End:
        return await self._model(call, BothOutputs(self._host, call, attempt_of(out)))


class _FunctionSpeaker(Native):
    """A function, called in the turn with a visit of its own."""

    def __init__(self, host: DialogueHost, target: Any, ordinal: int) -> None:
        calls = host.parts.calls
        super().__init__(
            target,
            calls.dispatch,
            last_depth=calls.last_depth,
            auth_source=calls.auth_source,
            means=host.parts.means,
        )
        self._host = host
        self._ordinal = ordinal

    async def __call__(self, call: Call, out: Output, /) -> End:
        end = await super().__call__(call, BothOutputs(self._host, call, attempt_of(out)))
        if isinstance(end, Waiting):
            raise self._host.paused(end)
        return end

    def _visit(self, call: Call, out: Output) -> Visit:
        return HostedFunctionVisit(self._host, call, out, self._ordinal)


class ConversationAgent:
    """A conversation as an Agent of a gateway."""

    def __init__(self, conversation: Conversation, parts: HostParts) -> None:
        self._conversation = conversation
        self._parts = parts

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Have it speak; gives every turn of it behind its name."""
        host = DialogueHost(call, out, self._parts, counts=True)
        parts = host.dialogue_parts()
        seed = text_for(_messages(call.ask), call.target.speaker)
        run = DialogueRun(self._conversation, host.place(), parts, seed=seed)
        try:
            result = await tell_turns(run, out)
        except Paused:
            if host.waits is None:
                raise
            return host.waits
        except CarnetError:
            raise
        except Exception as error:  # of who defines it: its order, its predicate
            raise blamed(error, call) from error
        check_halt(result.halted, is_late=is_over(call.carnet.deadline, parts))
        return Done()


class HostedConversations:
    """What `visit.conversation` does in a gateway."""

    def __init__(self, parts: HostParts) -> None:
        self._parts = parts

    async def __call__(
        self, call: Call, out: Output, participants: Any, options: Mapping[str, Any], ordinal: int
    ) -> ConversationResult | Waiting:
        """What it came to, or what somebody in it asks for."""
        given = dict(options)
        seed, on_event = given.pop("seed", ""), given.pop("on_event", None)
        conversation = conversation_of(participants, given)
        conversation.refuse_clients()
        host, attempt = self._host(call, out)
        name = conversation_name(ordinal)
        place = host.place(ordinal=ordinal, scopes=True)
        if attempt is not None:
            place = replace(place, most=attempt.most_of(name))
        run = DialogueRun(conversation, place, host.dialogue_parts(), seed=seed)
        try:
            return await run.tell(on_event)
        except Paused:
            if host.waits is None:
                raise
            return host.waits
        finally:
            if attempt is not None:
                attempt.converse(name, run.record.usage(), is_kept=True)

    def _host(self, call: Call, out: Output) -> tuple[DialogueHost, AttemptOutput | None]:
        """Its host, and the attempt at a turn of another conversation that has it, if one does."""
        if not isinstance(out, BothOutputs):
            return DialogueHost(call, out, self._parts, counts=False), None
        journal = DialoguesWithin(out.host.journal.dialogues, out.path)
        host = DialogueHost(call, out.host.out, self._parts, counts=False, journal=journal)
        return host, out.attempt


def _messages(ask: Ask) -> tuple[Message, ...]:
    if ask.messages:
        return ask.messages
    text = (ask.payload or {}).get("text")
    return (Message.user(text),) if isinstance(text, str) else ()
