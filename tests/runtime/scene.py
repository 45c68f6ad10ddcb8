"""A call, an answer and a few Agents, for the tests of this folder."""

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from carnet.core.call import Ask, Call
from carnet.core.carnet import Carnet
from carnet.core.events import Done, Event, Text
from carnet.core.identity import Account, Actor, Caller, Payer
from carnet.core.message import Message
from carnet.core.secret import Secret
from carnet.core.turn import Turn
from carnet.errors import CarnetError
from carnet.ports.agent import Agent
from carnet.runtime.execution import absent

ALICE = Account("acme.example", "alice")
CARNET = Carnet(
    run="run_1",
    turn="run_1.t0.critic",
    depth=1,
    last_depth=3,
    bound_by="tangle",
    speaker="critic",
)

TARGET = absent("@critic@globex.example")


def make_call(
    *, stream: bool = False, credential: Secret | None = None, text: str = "hello", **carnet: Any
) -> Call:
    """A call to `@critic@globex.example`; the carnet's fields can be set."""
    document = msgspec.structs.replace(CARNET, **carnet)
    return Call(
        agent="@critic@globex.example",
        target=TARGET,
        ask=Ask(messages=(Message("user", (text,)),), stream=stream),
        carnet=document,
        caller=Caller(actor=Actor(name="agent:researcher"), scopes=frozenset({"*"})),
        payer=Payer(account=ALICE, purse="token:alice"),
        record=Turn(
            n=1,
            agent="@critic@globex.example",
            run=document.run,
            turn=document.turn,
            payer=ALICE,
            created=0,
        ),
        credential=credential,
    )


def completion(text: str = "well", **usage: Any) -> bytes:
    """A whole answer of a peer."""
    answer: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        ],
    }
    if usage:
        answer["usage"] = usage
    return json.dumps(answer).encode()


def delta(text: str) -> bytes:
    """One frame of a streamed answer."""
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
END = b"data: [DONE]\n\n"


async def collect(events: AsyncIterator[Event]) -> list[Event]:
    """Everything an Agent says."""
    return [event async for event in events]


async def fail(events: AsyncIterator[Event]) -> tuple[CarnetError, list[Event]]:
    """The error that an answer ends in, and what was said before."""
    said: list[Event] = []
    try:
        async for event in events:
            said.append(event)  # noqa: PERF401  kept when it raises
    except CarnetError as error:
        return error, said
    raise AssertionError("the call did not fail")


def saying(*events: Event, then: BaseException | None = None) -> Agent:
    """An Agent that says this and then, if told so, fails."""

    async def agent(_: Call, /) -> AsyncIterator[Event]:
        for event in events:
            yield event
        if then is not None:
            raise then

    return agent


def in_turn(*agents: Agent) -> tuple[Agent, list[Call]]:
    """An Agent that is the first at its first call, and so on; and the calls it got."""
    calls: list[Call] = []

    def agent(call: Call, /) -> AsyncIterator[Event]:
        calls.append(call)
        return agents[min(len(calls), len(agents)) - 1](call)

    return agent, calls


GOOD = saying(Text("well"), Done())
