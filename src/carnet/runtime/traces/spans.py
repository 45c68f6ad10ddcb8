"""Turns as spans of one trace, in the JSON form of OTLP: what leaves while a gateway runs.

`runtime.replay.otlp` writes a recorded run out, with what was said in it; this tells of a turn as
it ends, and of its words nothing.

Law 1. Pure. All spans of a run are in one trace, at whichever organisation: the one that came with
       the call, else one that the run names.
Law 2. A call out is a span of its own, and the one that its `traceparent` named: what the other
       organisation tells of it stands below it.
Law 3. Neither what was asked nor what was answered is in a span, and no credential.
Law 4. The names of the field are here and nowhere else: they are still in development there.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from carnet.core.chain.carnet import Carnet, Trace
from carnet.core.chain.turn import IN_PROCESS, Turn
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.money.amount import format_amount
from carnet.runtime.peers.signing import span_id, trace_of
from carnet.version import __version__

EndedTurn = tuple[Carnet, Turn, Sequence[OutboundCall]]
Span = dict[str, Any]

OPERATION: Final = "gen_ai.operation.name"
INVOKES: Final = "invoke_agent"
PROVIDER: Final = "gen_ai.provider.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
TOKENS_IN: Final = "gen_ai.usage.input_tokens"
TOKENS_OUT: Final = "gen_ai.usage.output_tokens"
ERROR: Final = "error.type"
SERVER: Final = "server.address"

_INTERNAL, _SERVER, _CLIENT = 1, 2, 3  # kinds of spans
_OK, _ERROR = 1, 2  # statuses of spans
_NANOSECONDS: Final = 1000  # of a microsecond


def spans_of(ended: EndedTurn, domain: str) -> Iterator[Span]:
    """The span of a turn, and one for each call out that is no turn of its own."""
    carnet, turn, outbound = ended
    trace = trace_of(carnet)
    calls = {call.child_turn: call for call in outbound}  # one that was made again is one
    is_call = calls.pop(turn.turn, None) is not None
    yield _turn_span(carnet, turn, trace, domain, is_call=is_call)
    for call in calls.values():
        yield _call_span(turn, call, trace, domain)


def peer_of(agent: str) -> str:
    """The organisation that an address is of; empty for an agent here."""
    if agent.startswith("agent://"):
        return agent.removeprefix("agent://").partition("/")[0]
    return agent.rpartition("@")[2] if agent.startswith("@") else ""


def request_of(spans: Sequence[Span], domain: str) -> dict[str, Any]:
    """One request of the protocol that tells of spans."""
    resource = {
        "service.name": "carnet",
        "service.namespace": domain,
        "service.version": __version__,
        "carnet.domain": domain,
    }
    scope = {"name": "carnet", "version": __version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": attributes_of(resource)},
                "scopeSpans": [{"scope": scope, "spans": list(spans)}],
            }
        ]
    }


def attributes_of(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is known of these, as the protocol writes it."""
    return [
        {"key": key, "value": _value(value)} for key, value in values.items() if value is not None
    ]


def _value(value: Any) -> dict[str, str]:
    if isinstance(value, int):
        return {"intValue": str(value)}  # protobuf writes 64 bits as text
    return {"stringValue": str(value)}


def _turn_span(carnet: Carnet, turn: Turn, trace: Trace, domain: str, *, is_call: bool) -> Span:
    """`is_call`: the turn is nothing but a call to another organisation."""
    here = _INTERNAL if turn.actor.startswith(IN_PROCESS) else _SERVER
    return _span(
        turn,
        trace,
        id=span_id(trace, turn.turn) if is_call else _own_id(trace, turn.turn, domain),
        parent=_parent(carnet, turn, trace, domain),
        kind=_CLIENT if is_call else here,
        agent=turn.agent,
        attributes={
            SERVER: peer_of(turn.agent) or None,
            "carnet.turn": turn.turn,
            "carnet.depth": turn.depth,
            "carnet.dialect": turn.dialect,
            "carnet.actor": turn.actor,
            "carnet.payer": str(turn.payer),
            "carnet.state": turn.state,
            "carnet.attempt": turn.attempt,
            "carnet.cost": None if turn.cost is None else format_amount(turn.cost),
            TOKENS_IN: turn.tokens_in,
            TOKENS_OUT: turn.tokens_out,
            ERROR: turn.code,
        },
    )


def _call_span(turn: Turn, call: OutboundCall, trace: Trace, domain: str) -> Span:
    """A call out that a turn made beside the gateway; when is not kept, and told as its turn's."""
    return _span(
        turn,
        trace,
        id=span_id(trace, call.child_turn),
        parent=_own_id(trace, turn.turn, domain),
        kind=_CLIENT,
        agent=call.to,
        attributes={
            SERVER: peer_of(call.to) or None,
            "carnet.turn": call.child_turn,
            "carnet.depth": call.depth,
            "carnet.dialect": call.dialect or None,
            "carnet.state": call.state,
            "carnet.cost": None if call.cost is None else format_amount(call.cost),
            ERROR: call.code,
        },
    )


def _parent(carnet: Carnet, turn: Turn, trace: Trace, domain: str) -> str:
    """The span that it stands below: the turn that called it here, or what its caller named."""
    if turn.parent_turn is not None and turn.actor.startswith(IN_PROCESS):
        return _own_id(trace, turn.parent_turn, domain)
    return "" if carnet.trace is None else carnet.trace.span_id


def _own_id(trace: Trace, turn: str, domain: str) -> str:
    """The span of a turn at one organisation: its caller's has the same turn, and another span."""
    return blake2b(f"{domain} {trace.trace_id}{turn}".encode(), digest_size=8).hexdigest()


def _span(
    turn: Turn,
    trace: Trace,
    *,
    id: str,
    parent: str,
    kind: int,
    agent: str,
    attributes: Mapping[str, Any],
) -> Span:
    code = attributes[ERROR]
    ended = turn.created if turn.ended is None else turn.ended
    named = {OPERATION: INVOKES, PROVIDER: "carnet", AGENT: agent, CONVERSATION: turn.run}
    return {
        "traceId": trace.trace_id,
        "spanId": id,
        "parentSpanId": parent,
        "name": f"{INVOKES} {agent}",
        "kind": kind,
        "startTimeUnixNano": str(turn.created * _NANOSECONDS),
        "endTimeUnixNano": str(ended * _NANOSECONDS),
        "attributes": attributes_of(named | {"carnet.run": turn.run, **attributes}),
        "status": {"code": _OK} if code is None else {"code": _ERROR, "message": code},
    }
