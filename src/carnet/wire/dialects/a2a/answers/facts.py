"""What is told of a task beside what was said: its chain, its use, its receipt, for extensions.

Law 1. It is known from the record and from what the guards proved, never from what a caller claims.
Law 2. Who has told an actor chain is told ours: through whom the call came, and us.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import RECEIPT, STATEMENT, UNKNOWN_COST, Event, Extension, Usage
from carnet.core.people.address import handle_of
from carnet.wire.dialects.a2a.extensions import TaskFacts
from carnet.wire.dialects.a2a.extensions.actor_chain import KEY
from carnet.wire.dialects.a2a.form import Form, form_of


def facts_of_call(call: Call, task: str, domain: str, form: Form | None = None) -> TaskFacts:
    """What is known of a task from its call; `domain` is ours, `form` its own if that was read."""
    carnet = call.carnet
    facts = TaskFacts(task=task, run=carnet.run, turn=carnet.turn)
    message = (form or form_of(call)).message
    if not domain or message is None or "metadata" not in message:
        return facts
    own = handle_of(call.agent, domain)
    if own is None or not _tells_actors(message["metadata"]):
        return facts
    document = call.document
    return replace(
        facts,
        path=(*carnet.path, own),
        on_behalf_of=carnet.on_behalf_of,
        proof=None if document is None else f"sha-256:{sha256(document.signed).hexdigest()}",
    )


def _tells_actors(metadata: object) -> bool:
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
        elif type(event) is not Extension:
            continue
        elif event.name == RECEIPT:
            facts = replace(facts, receipt=str(event.payload))
        elif event.name == STATEMENT:
            facts = replace(facts, statement=event.payload)
        elif event.name == UNKNOWN_COST and facts.usage is not None:
            facts = replace(facts, usage=_used(replace(facts.usage, cost=None), currency))
    return facts


def _used(usage: Usage, currency: str) -> Usage | None:
    """What was used, in our currency; None where nobody said."""
    has_amount = usage.cost is not None or usage.run_cost is not None
    if usage.tokens_in is usage.tokens_out is None and not has_amount:
        return None
    named = currency if has_amount else None
    return Usage(usage.tokens_in, usage.tokens_out, usage.cost, usage.run_cost, named)
