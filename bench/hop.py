"""`python -m bench.hop FOLDER`: the steps of a hop, each timed by itself.

The gateway is assembled from the configuration in FOLDER as `carnet serve` does it, on the same
event loop and with the same care for memory; only the server before it is missing. What is timed
are its own parts, given what they are given in a call. It prints one JSON object, which
`bench.budget` shows.
"""

# ruff: noqa: SLF001 - the parts of a gateway are looked at from within

import asyncio
import gc
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.bodies import CHAT_PATH, chat_answer, chat_request
from bench.timing import alone, alone_awaited, together, with_thread
from carnet.assembly.gateway import RunningGateway, build
from carnet.assembly.serve import COLLECT_AFTER
from carnet.assembly.store import open_from
from carnet.config import load
from carnet.core.call import Call, Claim
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Done, Event, Usage
from carnet.gateway.endpoint import request_of
from carnet.guards.admission.gate import Gate
from carnet.guards.admission.transaction import Entry
from carnet.guards.candidate import Candidate
from carnet.http.exchange import Exchange, Message, check_json_body
from carnet.http.link import LINE, Line
from carnet.http.process import Process
from carnet.ports.calls.turns import Debit, TurnClaim, TurnFinish
from carnet.ports.world.http_client import Outbound
from carnet.runtime.agents.remote import Provider
from carnet.runtime.egress.client import _write_head
from carnet.runtime.system import SystemClock, SystemIds
from carnet.runtime.turns.broadcast import Broadcast
from carnet.runtime.turns.recording import Recording
from carnet.runtime.webhooks.callbacks import CallbackDeliveries
from carnet.telemetry import WRITE_SECONDS, LogSink, start_logging
from carnet.wire.dialects import openai
from carnet.wire.dialects.dialect import Arrival
from carnet.wire.grammar import json as strict_json

AGENT = "up"
CURRENCY = "credits"
NOTES = 4000  # log lines of one round
OK = 200


class Sent:
    """A request as a server hands it over, and the check of its answer."""

    def __init__(self, scope: dict[str, Any], body: bytes) -> None:
        self.scope = {**scope, LINE: Line()}
        self._message: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def receive(self) -> Message:
        message, self._message = self._message, None
        if message is None:  # whoever looks out for a client that goes away waits
            await asyncio.Event().wait()
            raise RuntimeError("the client never goes away")
        return message

    async def send(self, message: Message) -> None:
        if message.get("status", OK) != OK:
            raise RuntimeError(f"a call was answered with {message['status']}")


def _scope(token: str, size: int) -> dict[str, Any]:
    return {
        "type": "http",
        "scheme": "http",
        "method": "POST",
        "path": CHAT_PATH,
        "raw_path": CHAT_PATH.encode(),
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % size),
            (b"authorization", f"Bearer {token}".encode()),
        ],
    }


class Kept:
    """Turns that are durable at once: what recording costs without its store."""

    async def finish(self, finish: TurnFinish) -> Turn:
        return finish.turn


class Hop:
    """A gateway, and what its parts are given in one call."""

    def __init__(self, gateway: RunningGateway, token: str) -> None:
        self.gateway = gateway
        self.answering = gateway.answerings[openai.DIALECT.name]
        self.gate: Gate = self.answering._admission  # type: ignore[assignment]  # it is one
        self.body = chat_request(AGENT)
        self.scope = _scope(token, len(self.body))
        self.answer = chat_answer()
        self.events: list[Event] = openai.read_answer(self.answer, currency=CURRENCY)
        self._claims: list[TurnClaim] = []
        self.provider = _innermost(self.examined().target.agent)

    def sent(self) -> Sent:
        return Sent(self.scope, self.body)

    def exchange(self) -> Exchange:
        sent = self.sent()
        return Exchange(sent.scope, sent.receive, sent.send)

    def arrival(self, exchange: Exchange) -> Arrival:
        arrival = Arrival(
            openai.DIALECT.ways[0],
            exchange.headers,
            head=lambda: request_of(exchange),
            stamps=self.gateway.stamps,
        )
        arrival.stamped()
        arrival.body = self.body
        return arrival

    def claim(self, exchange: Exchange) -> Claim:
        claim = openai.DIALECT.read(self.arrival(exchange))
        if not isinstance(claim, Claim):
            raise TypeError("a chat was read as a question")
        return claim

    async def call(self) -> Call:
        """A call that was admitted and recorded like any other."""
        call = await self.gate.admit(self.claim(self.exchange()))
        self.answering._concurrency.leave(call.caller.actor.name, stream=False)
        return call

    def examined(self) -> Candidate:
        return self.gate._examine(self.claim(self.exchange()))

    def entry(self, candidate: Candidate) -> Entry:
        """What `Gate.admit` makes of a candidate before it asks the store."""
        return self.gate._intake.entry(candidate)

    def turn_claim(self, entry: Entry) -> TurnClaim:
        return self.gate._transaction._turn_claim(entry, self.gate._most_run_calls)

    def prepare_claims(self, number: int) -> None:
        """Claims of new turns, made before the store is timed."""
        candidate = self.examined()
        self._claims = [self.turn_claim(self.entry(candidate)) for _ in range(number)]

    async def store(self) -> None:
        """One turn from its claim to its end, both durable."""
        claim = self._claims.pop()
        verdict = await self.gateway.store.turns.claim(claim)
        finish = TurnFinish(
            turn=verdict.turn,  # type: ignore[union-attr]  # nothing denies a new turn
            state="done",
            payer=claim.admitted.payer,
            events=self.answer,  # about as long as what is recorded of it
            first=0,
            last=1,
            debits=(Debit(f"agent:{AGENT}", 0),),
            children_cost=0,
            reserve=0,
            now=claim.now,
            tokens_in=400,
            tokens_out=380,
        )
        await self.gateway.store.turns.finish(finish)

    async def record(self, call: Call) -> None:
        """The events of an answer and its end, up to the store."""
        recording = Recording(
            turns=Kept(),  # type: ignore[arg-type]  # nothing else is asked of it here
            call=call,
            broadcast=Broadcast(lambda: None),
            on_broken=lambda: None,
            deliveries=CallbackDeliveries((openai.DIALECT,), self.answering._gateway, str),
        )
        for event in self.events[:-1]:
            if isinstance(event, Usage):
                recording.usage(event)
            else:
                await recording.write(event)
        await recording.finish(Done(), now=0)

    def written(self, call: Call) -> bytes:
        end = (Usage(400, 380, 0, 0, CURRENCY), Done())
        writer = openai.DIALECT.writer(call, self.answering._gateway)
        writer.headers(stream=False)
        return writer.whole([*self.events[:-2], *end])

    async def application(self) -> None:
        sent = self.sent()
        await self.gateway.app(sent.scope, sent.receive, sent.send)


def _innermost(agent: Any) -> Provider:  # noqa: ANN401, RUF100 - a wrapper in a wrapper
    while hasattr(agent, "_agent"):
        agent = agent._agent
    if not isinstance(agent, Provider):
        raise TypeError(f"no model answers for {AGENT}")
    return agent


async def steps(hop: Hop, sink: LogSink) -> dict[str, float]:
    """Seconds of each step, by its name."""
    call = await hop.call()
    return {
        **_inbound_steps(hop),
        "store": await together(hop.store, hop.prepare_claims),
        **await _outbound_steps(hop, call),
        "recording": await alone_awaited(lambda: hop.record(call)),
        "writing": alone(lambda: hop.written(call)),
        "noting": await with_thread(
            _noting(hop, call), lambda: not sink._lines, steps=NOTES, rest=WRITE_SECONDS
        ),
        "application": await together(hop.application),
    }


def _inbound_steps(hop: Hop) -> dict[str, float]:
    stamps, body = hop.gateway.stamps, hop.body
    headers = hop.exchange().headers
    parsed = strict_json.read_object(body)
    arrival = hop.arrival(hop.exchange())
    claim, candidate = hop.claim(hop.exchange()), hop.examined()
    entry = hop.entry(candidate)
    return {
        "headers": alone(lambda: stamps.read(hop.exchange().headers)),
        "kind": alone(lambda: check_json_body(headers)),
        "request": alone(lambda: openai.DIALECT.read(arrival)),
        "request_json": alone(lambda: strict_json.read_object(body))
        + alone(lambda: strict_json.canonical(parsed)),
        "guards": alone(lambda: hop.gate._examine(claim)),
        "document": alone(lambda: hop.entry(candidate)),
        "claim": alone(lambda: hop.turn_claim(entry)),
    }


async def _outbound_steps(hop: Hop, call: Call) -> dict[str, float]:
    http, provider = hop.gateway.backend.http, hop.provider

    def asked() -> Outbound:
        return provider._endpoint.outbound(call.ask, {}, provider._authorization)

    outbound = asked()
    route = http.route(outbound)

    async def exchange() -> None:
        async with http.send(outbound) as answer:
            await answer.read()

    head = alone(lambda: _write_head(route, outbound))
    return {
        "outbound": alone(asked) + head,
        "exchange": await together(exchange) - head,  # which it writes again
        "answer": alone(lambda: openai.read_answer(hop.answer, currency=CURRENCY)),
    }


def _noting(hop: Hop, call: Call) -> Callable[[], object]:
    exchange = hop.exchange()
    return lambda: hop.answering._note(exchange, call, "done", 0.001)


async def measure(folder: Path) -> int:
    """Assemble, time, print."""
    settings = load(folder / "carnet.toml", {})
    with (folder / "hop.log").open("w") as log:
        sink = start_logging(stream=log)
        try:
            found = await _in_gateway(settings, folder, lambda hop: steps(hop, sink))
        finally:
            sink.close()
    print(json.dumps(found))
    return 0


async def _in_gateway(
    settings: Any,  # noqa: ANN401, RUF100 - only passed on
    folder: Path,
    act: Callable[[Hop], Awaitable[dict[str, float]]],
) -> dict[str, float]:
    store = await open_from(settings, exclusive=True)
    try:
        await store.start()
        gateway = build(settings, store, SystemClock(), SystemIds())
    except BaseException:
        await store.close()
        raise
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        return await act(Hop(gateway, (folder / "var" / "starter.token").read_text().strip()))
    finally:
        await gateway.close()


if __name__ == "__main__":
    sys.exit(Process().run(lambda: measure(Path(sys.argv[1]))))
