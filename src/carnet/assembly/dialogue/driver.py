"""Conversations in anybody's own program: run to their end, or followed event by event.

    result = await carnet.run_conversation(
        [researcher, critic], seed="...", max_turns=6, max_spend="0.50", journal="sqlite:var/j.db"
    )

Law 1. What is wrong with what was given is told before anybody is called or anything is written.
Law 2. Whoever stops reading, and a task that is cancelled, aborts the run; it can go on under the
       same `run_id`, with the same journal.
Law 3. Connections and files that were opened for a run are closed with it.
Law 4. A run in a journal is that of whoever began it: who names it as well has one of its own.
Law 5. A run within a request or an agent's turn is part of that chain; see `runtime.chain`.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, Unpack, get_type_hints

from carnet.assembly.dialogue.depth import first_refused
from carnet.core.chain.turn_id import OUR_RUNS
from carnet.core.dialogue.events import ConversationResult, DialogueEvent
from carnet.ports.calls.dialogues import Dialogues
from carnet.runtime.chain.call_chain import CallChain, current_chain
from carnet.runtime.dialogue.callees import Callees, Listing
from carnet.runtime.dialogue.definition import (
    Amount,
    Conversation,
    HaltOn,
    OnEvent,
    Order,
    conversation_of,
    refuse_unknown,
)
from carnet.runtime.dialogue.inbound import InboundOptions, continued, owner_of, place
from carnet.runtime.dialogue.nested import NestedConversations
from carnet.runtime.dialogue.parts import DialogueParts
from carnet.runtime.dialogue.place import DialoguePlace
from carnet.runtime.dialogue.policy import CallPolicy
from carnet.runtime.dialogue.run import DialogueRun
from carnet.runtime.stream import closing
from carnet.runtime.system import SystemClock, SystemIds
from carnet.stores.dialogues.journal import DialogueJournal, JournalSummary
from carnet.stores.open import open_journal
from carnet.wire.stamps.tangle import DEFAULT_MAX_DEPTH

Participants = Conversation | Sequence[Any]

DEFAULT_CURRENCY: Final = "credits"
_OF_DEFINITION: Final = {"order", "halt_on", "policy", "max_turns", "max_spend", "deadline"}


class ConversationJournal:
    """The runs of a driver, kept in a file of its own.

    async with carnet.Journal("sqlite:var/j.db") as journal:
        await carnet.run_conversation(..., journal=journal)
    """

    def __init__(self, url: str) -> None:
        """`url` is `sqlite:` and the path of the file, made if there is none."""
        self._url = url
        self._opened: DialogueJournal | None = None

    async def __aenter__(self) -> Self:
        self._opened = await open_journal(self._url, base=Path())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()

    @property
    def dialogues(self) -> DialogueJournal:
        """The journal itself, while it is open."""
        if self._opened is None:
            raise RuntimeError("open it first: async with carnet.Journal(url) as journal")
        return self._opened

    async def runs(self) -> list[JournalSummary]:
        """Every run that was begun here."""
        return await self.dialogues.runs()

    async def begun(self, prefix: str = "") -> list[str]:
        """The ids of the runs that begin so, newest first."""
        return await self.dialogues.begun(prefix)

    async def events(
        self, run_id: str, parent_turn_id: str = "", *, owner: str | None = None
    ) -> list[DialogueEvent]:
        """All that was told of a run, or of the one within a turn of it; none if it is unknown.

        Several callers may have a run of that name: `owner`, as `runs()` tells it, says whose.
        """
        return await self.dialogues.events(run_id, parent_turn_id, owner=owner)

    async def nested(self, run_id: str, *, owner: str | None = None) -> list[str]:
        """The turns of a run that hold a conversation of their own."""
        return await self.dialogues.nested(run_id, owner=owner)

    async def forget(self, run_id: str, *, owner: str | None = None) -> None:
        """Remove all that was kept of a run; InProgress while somebody drives it."""
        await self.dialogues.forget(run_id, owner=owner)


class ConversationOptions(InboundOptions, total=False):
    """What a conversation may be given, beside who takes part."""

    seed: str | None  # what it begins with; None goes on with that of the run
    order: Order
    halt_on: HaltOn
    policy: CallPolicy
    max_turns: int
    max_spend: Amount
    deadline: float  # seconds, for all of it
    journal: str | ConversationJournal
    ordinal: int  # from 0: which conversation of its request it is, where there are several
    abort: asyncio.Event  # set it to halt the run
    max_depth: int  # the first depth at which nobody is called
    currency: str  # that amounts are told in; a cost in another one is unknown
    allow_changes: bool  # go on with a run under another definition or seed


async def run_conversation(
    participants: Participants,
    /,
    *,
    on_event: OnEvent | None = None,
    **options: Unpack[ConversationOptions],
) -> ConversationResult:
    """Run a conversation to its end, or go on with one by its `run_id` and its journal.

    Args:
        participants: A `carnet.Conversation`, or two or more who take part: agents, functions,
            addresses, models, conversations, or `carnet.Participant`s of these.
        on_event: Given every event after it was kept; it may be asynchronous, and is waited for.
        options: `seed`, the limits `max_turns`, `max_spend` and `deadline`, `order`, `halt_on`,
            `policy`, `journal`, `abort`, `max_depth`, and what `carnet.inbound` gives.
    """
    async with _run(participants, options, streams=on_event is not None) as run:
        return await run.tell(on_event)


def stream_conversation(
    participants: Participants, /, **options: Unpack[ConversationOptions]
) -> AsyncGenerator[DialogueEvent, None]:
    """Run a conversation and give its events, each after it was kept. Takes what a run takes."""
    return _events(participants, options)


async def _events(
    participants: Participants, options: ConversationOptions
) -> AsyncGenerator[DialogueEvent, None]:
    async with (
        _run(participants, options, streams=True) as run,
        closing(run.events()) as events,
    ):
        async for event in events:
            yield event


@asynccontextmanager
async def _run(
    participants: Participants, options: ConversationOptions, *, streams: bool
) -> AsyncIterator[DialogueRun]:
    conversation = _conversation(participants, options)
    chain = current_chain()
    where = _place(options, chain)
    where.refuse_if_final()
    clock, ids = SystemClock(), SystemIds()
    currency = options.get("currency", DEFAULT_CURRENCY)
    callees = Callees(clock=clock, ids=ids, currency=currency, listing=Listing(conversation, chain))
    try:
        owner = owner_of(where.run_id, where.caller, where.credential)
        async with _journal(options.get("journal"), owner) as journal:
            parts = DialogueParts(
                clock=clock,
                ids=ids,
                callees=callees,
                journal=journal,
                abort=options.get("abort"),
                streams=streams,
                allow_changes=options.get("allow_changes", False),
                currency=currency,
            )
            callees.converses = NestedConversations(parts)
            yield DialogueRun(conversation, where, parts, seed=options.get("seed"))
    finally:
        await callees.close()


def _conversation(participants: Participants, options: ConversationOptions) -> Conversation:
    refuse_unknown(options, get_type_hints(ConversationOptions))
    given: Mapping[str, Any] = {
        name: value for name, value in options.items() if name in _OF_DEFINITION
    }
    conversation = conversation_of(participants, given)
    conversation.refuse_names()
    return conversation


def _place(options: ConversationOptions, chain: CallChain | None) -> DialoguePlace:
    read = continued(place(options), chain)
    last_depth = first_refused(options.get("max_depth", DEFAULT_MAX_DEPTH)) - 1
    return DialoguePlace(
        run_id=read.run_id or f"{OUR_RUNS}{SystemIds().ordered_uuid()}",
        depth=read.depth,
        last_depth=last_depth if read.last_depth is None else min(last_depth, read.last_depth),
        parent_turn_id=read.parent_turn_id,
        ordinal=options.get("ordinal", read.ordinal),
        credential=read.credential,
        caller=options.get("caller") or (None if chain is None else chain.caller),
        trace=read.trace,
        deadline=read.deadline,
    )


@asynccontextmanager
async def _journal(
    given: str | ConversationJournal | None, owner: str
) -> AsyncIterator[Dialogues | None]:
    if given is None:
        yield None
    elif isinstance(given, ConversationJournal):
        yield given.dialogues.of(owner)
    else:
        async with ConversationJournal(given) as journal:
            yield journal.dialogues.of(owner)
