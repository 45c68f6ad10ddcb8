"""A call, an answer and a few Agents, for the tests of this folder."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import msgspec

from carnet.core.call import Ask, Call
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    OUTBOUND_CALL,
    Done,
    End,
    Event,
    Extension,
    Message,
    Text,
    Usage,
    is_terminal,
)
from carnet.core.messages.outbound_call import OutboundCall, outbound_event, read_outbound_event
from carnet.core.messages.output import Output, Sink
from carnet.core.people.identity import Account, Actor, Caller, Payer, Secret
from carnet.errors import CarnetError
from carnet.ports.calls.agent import Agent
from carnet.runtime.stream import closing
from carnet.runtime.turns.execution import absent
from carnet.runtime.visit.pulled import pulled

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
        payer=Payer(account=ALICE, quota="token:alice"),
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


class Paper:
    """An Output that keeps all it is told in one list; who reads along sees it at once."""

    def __init__(self, *, is_read: bool = False) -> None:
        self.events: list[Event] = []
        self._is_read = is_read

    async def write(self, event: Event, /) -> None:
        self.events.append(event)

    def usage(self, usage: Usage, /) -> None:
        self.events.append(usage)

    def called(self, call: OutboundCall, /) -> None:
        self.events.append(outbound_event(call))

    def mark(self) -> int:
        return len(self.events)

    def back(self, mark: int, /) -> bool:
        since = self.events[mark:]
        paid = [event for event in since if isinstance(event, Usage | Extension)]
        if self._is_read and paid != since:
            return False
        self.events[mark:] = paid
        return True


async def collect(agent: Agent, call: Call, out: Paper | None = None) -> list[Event]:
    """Everything an Agent says: events, usage, the records of calls out, and its end."""
    paper = out or Paper()
    end = await agent(call, paper)
    return [*paper.events, end]


async def fail(
    agent: Agent, call: Call, out: Paper | None = None
) -> tuple[CarnetError, list[Event]]:
    """The error that an answer ends in, and what was said before."""
    paper = out or Paper()
    try:
        await agent(call, paper)
    except CarnetError as error:
        return error, paper.events
    raise AssertionError("the call did not fail")


def streamed_events(agent: Agent, call: Call) -> AsyncGenerator[Event, None]:
    """What an Agent says, while it does."""

    class Reading(Paper):
        def __init__(self, sink: Sink) -> None:
            super().__init__()
            self.write = sink.write  # type: ignore[method-assign]
            self.usage = sink.usage  # type: ignore[method-assign]

    async def say(sink: Sink) -> End:
        return await agent(call, Reading(sink))

    return pulled(say)


def speaking(function: Callable[[Call], AsyncIterator[Event]]) -> Agent:
    """An Agent that says what a generator yields."""

    async def agent(call: Call, out: Output, /) -> End:
        async with closing(function(call)) as events:
            async for event in events:
                if is_terminal(event):
                    return event
                if isinstance(event, Usage):
                    out.usage(event)
                elif isinstance(event, Extension) and event.name == OUTBOUND_CALL:
                    out.called(read_outbound_event(event.payload, 0))
                else:
                    await out.write(event)
        return Done()

    return agent


def saying(*events: Event, then: BaseException | None = None) -> Agent:
    """An Agent that says this and then, if told so, fails."""

    @speaking
    async def agent(_: Call, /) -> AsyncIterator[Event]:
        for event in events:
            yield event
        if then is not None:
            raise then

    return agent


def in_turn(*agents: Agent) -> tuple[Agent, list[Call]]:
    """An Agent that is the first at its first call, and so on; and the calls it got."""
    calls: list[Call] = []

    async def agent(call: Call, out: Output, /) -> End:
        calls.append(call)
        return await agents[min(len(calls), len(agents)) - 1](call, out)

    return agent, calls


GOOD = saying(Text("well"), Done())
