"""Requests as a dialect sees them, and calls that it writes the answers of."""

from typing import Any

from carnet.core.call import Admitted, Ask, Call, Target, call_of
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Done, End
from carnet.core.people.identity import Account, Actor, Caller, Payer
from carnet.ports.calls.agent import Output
from carnet.wire.crypto.components import Request
from carnet.wire.dialects.dialect import Arrival, Dialect, GatewayFacts, TaskView
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS

ALICE = Account("acme.example", "alice")
GATEWAY = GatewayFacts(domain="acme.example", currency="credits", started=1_700_000_000)


def turn(**fields: Any) -> Turn:
    given: dict[str, Any] = {"n": 7, "agent": "echo", "run": "conv_1", "turn": "turn_1", **fields}
    return Turn(payer=ALICE, created=1_700_000_000_000_000, **given)


def task(**fields: Any) -> TaskView:
    return TaskView(
        **{"id": "t-1", "turn": turn(), "sender": "token:alice", "currency": "credits", **fields}
    )


async def silent(call: Call, out: Output, /) -> End:
    del call, out
    return Done()


def target(**fields: Any) -> Target:
    given = {"name": "echo", "speaker": "echo", "agent": silent, "credit": "agent:echo", **fields}
    return Target(**given)


def call(ask: Ask | None = None, *, task: str | None = None, **of_target: Any) -> Call:
    admitted = Admitted(
        agent="echo",
        ask=ask or Ask(messages=()),
        carnet=Carnet(run="conv_1", turn="turn_1", depth=0, last_depth=3),
        caller=Caller(actor=Actor(name="token:alice"), scopes=frozenset()),
        payer=Payer(account=ALICE, quota="token:alice"),
    )
    return call_of(admitted, target(**of_target), turn(), task=task)


def arrival(
    dialect: Dialect,
    way: str,
    *,
    request: Request | None = None,
    fields: dict[str, str] | None = None,
    query: str | None = None,
    body: bytes = b"",
    **more: Any,
) -> Arrival:
    """A request that came one of the ways of a dialect, with its body."""
    (found,) = [each for each in dialect.ways if each.name == way]
    lines = [(name.encode(), value.encode()) for name, value in (fields or {}).items()]
    head = request or Request(
        method=found.method,
        authority="acme.example",
        path=found.path,
        query=query,
        headers=Headers(lines),
    )
    came = Arrival(found, head.headers, head=lambda: head, stamps=STAMPS, **more)
    came.body = body
    return came
