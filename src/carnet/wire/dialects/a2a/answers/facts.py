"""What is told of a task beside what was said: its chain, its use, its receipt, for extensions.

Law 1. It is known from the record and from what the guards proved, never from what a caller claims.
Law 2. Who has told an actor chain is told ours: through whom the call came, and us.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import RECEIPT, STATEMENT, UNKNOWN_COST, Event, Extension, Usage
from carnet.core.people.address import handle_of
from carnet.wire.dialects.a2a.extensions import TaskFacts
from carnet.wire.dialects.a2a.extensions.actor_chain import KEY
from carnet.wire.dialects.a2a.form import form_of


def facts_of_call(call: Call, task: str, domain: str) -> TaskFacts:
    """What is known of a task from its call; `domain` is ours."""
    carnet = call.carnet
    facts = TaskFacts(task=task, run=carnet.run, turn=carnet.turn)
    own = handle_of(call.agent, domain) if domain else None
    if own is None or not _tells_actors(form_of(call).message):
        return facts
    document = call.document
    return replace(
        facts,
        path=(*carnet.path, own),
        on_behalf_of=carnet.on_behalf_of,
        proof=None if document is None else f"sha-256:{sha256(document.signed).hexdigest()}",
    )


def _tells_actors(message: Mapping[str, Any] | None) -> bool:
    metadata = None if message is None else message.get("metadata")
    return isinstance(metadata, Mapping) and KEY in metadata


def facts_of_turn(turn: Turn, task: str, currency: str) -> TaskFacts:
    """What is known of a task from its record, which holds what was used as well."""
    usage = Usage(turn.tokens_in, turn.tokens_out, turn.cost, turn.run_cost)
    return with_events(TaskFacts(task=task, run=turn.run, turn=turn.turn), (usage,), currency)


def with_events(facts: TaskFacts, events: Iterable[Event], currency: str) -> TaskFacts:
    """The same with what its events tell: what was used, and what was signed about it."""
    for event in events:
        if type(event) is Usage:
            facts = replace(facts, usage=_used(event, currency))
        elif type(event) is Extension and event.name == RECEIPT:
            facts = replace(facts, receipt=str(event.payload))
        elif type(event) is Extension and event.name == STATEMENT:
            facts = replace(facts, statement=event.payload)
        elif type(event) is Extension and event.name == UNKNOWN_COST and facts.usage is not None:
            facts = replace(facts, usage=_used(replace(facts.usage, cost=None), currency))
    return facts


def _used(usage: Usage, currency: str) -> Usage | None:
    """What was used, in our currency; None where nobody said."""
    amounts = (usage.cost, usage.run_cost)
    if usage.tokens_in is usage.tokens_out is None and amounts == (None, None):
        return None
    return replace(usage, currency=None if amounts == (None, None) else currency)
