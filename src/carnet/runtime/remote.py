"""Agents that are elsewhere: another gateway, or a model provider, both over chat completions.

Law 1. A call to another agent carries the callee's document as it was given: depth, run, turn,
       parent and speaker. Nothing is counted here.
Law 2. A call to a model provider carries none of it: a model is not a hop.
Law 3. The payer's credential leaves only to a callee that is listed for it, byte for byte. If it
       would have to and may not, the call is not made: without it the wrong party would pay.
Law 4. Every call to another agent leaves one record (`Leg`), however it ends: just before its end,
       or among the notes of the call where nobody listens any more.
Law 5. What a callee charges is told also where it failed; what it charges beyond its limit is not
       owed.
Law 6. With a token we are known by it. Without one the call is signed and carries the travel
       document, and the answer counts as far as the receipt proves it (`runtime.proving`).
Law 7. A skill that is asked for by name is passed on to a Carnet, which reads it beside the
       messages. Nobody else would: there it is refused before anything leaves.
Law 8. All calls of a run belong to one trace: the one that came, or one that the run names.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec import Struct

from carnet.core.call import Ask, Call
from carnet.core.carnet import Carnet, Trace
from carnet.core.events import Done, Event, Usage
from carnet.core.message import Message
from carnet.core.proof import Spending
from carnet.core.secret import Secret
from carnet.core.skill import CHAT
from carnet.errors import (
    CarnetError,
    ConfigInvalid,
    PeerNotListed,
    ProviderTimeout,
    SkillNotFound,
)
from carnet.ports.agent import AGENT_OWNED
from carnet.ports.door import Answer, Bounds, Door, Outbound
from carnet.runtime.closing import closing
from carnet.runtime.hearing import JSON, SSE, hear, listen
from carnet.runtime.legs import LegStatus, ending, leg_of, note_left
from carnet.runtime.proving import Slip, Verifying
from carnet.runtime.signing import Signing
from carnet.wire import openai, tangle, trace

logger = logging.getLogger("carnet.runtime")


_TOKEN: Final = re.compile(r"[!-~]+", re.ASCII)


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where chat completions are served, and how we are known there."""

    url: str  # in full, with the path of the completions
    model: str  # the name the agent or model has there
    token: Secret | None = None
    currency: str = "credits"
    bounds: Bounds = Bounds()

    def authorization(self) -> dict[str, Secret]:
        """The header that says who we are."""
        if self.token is None:
            return {}
        token = self.token.reveal()
        if not _TOKEN.fullmatch(token):
            raise ConfigInvalid(key="token", reason="holds a character that no header can carry")
        return {"authorization": Secret(f"Bearer {token}")}

    def outbound(
        self,
        ask: Ask,
        headers: dict[str, str],
        secrets: dict[str, Secret],
        *,
        with_skill: bool = False,
    ) -> Outbound:
        """The request for what is asked."""
        accept = SSE if ask.stream else JSON
        return Outbound(
            url=self.url,
            body=openai.write_request(
                ask, model=self.model, stream=ask.stream, with_skill=with_skill
            ),
            headers={"content-type": JSON, "accept": accept, **headers},
            secrets=secrets,
            bounds=self.bounds,
        )


class Lane(Struct, frozen=True, eq=False):
    """How we and another gateway know one another without a token: by our keys."""

    signing: Signing
    verifying: Verifying
    peer: str  # its domain

    def proven(self, call: Call, heard: AsyncIterator[Event], slip: Slip) -> AsyncIterator[Event]:
        """The events of its answer, as far as its receipt proves them."""
        return self.verifying.proven(heard, call.carnet, slip, peer=self.peer, told=openai.told)


class Skilled(Struct, frozen=True, eq=False):
    """Whether skills can be asked of another side by name, and what helps if they cannot."""

    is_carnet: Callable[[], Awaitable[bool]]
    way: str  # another way to reach them, as its operator would write it


class Remote:
    """An agent of another gateway, reached with the Tangle stamp."""

    def __init__(
        self,
        door: Door,
        endpoint: Endpoint,
        *,
        most_cost: int,
        takes_credential: bool = False,
        forwards: str = "forward-user",
        lane: Lane | None = None,
        skilled: Skilled | None = None,
    ) -> None:
        """Reach one agent.

        Args:
            door: The way out.
            endpoint: Where it is.
            most_cost: The most it may charge for one call, in micro-units.
            takes_credential: Whether the payer's credential may leave to it.
            forwards: "agent-owned" if calls to it are paid by the caller itself.
            lane: Given where calls are signed, and receipts are asked for: by Carnets alone.
            skilled: Tells whether it is a Carnet where there is no lane.
        """
        self._door = door
        self._endpoint = endpoint
        self._authorization = endpoint.authorization()
        self._most_cost = most_cost
        self._takes_credential = takes_credential
        self._forwards = forwards
        self._lane = lane
        self._skilled = skilled

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Send the call and give the answer as it comes."""
        cost: int | None = None
        recorded = False
        slip = Slip()
        try:
            async with (
                self._door.send(await self._outbound(call)) as answer,
                closing(self._heard(answer, call, slip)) as events,
            ):
                async for event in events:
                    said = event
                    if type(said) is Usage:
                        said = self._within_limit(said, call)
                        cost = said.cost
                    elif type(said) is Done:
                        recorded = True
                        yield leg_of(call, cost, "done", receipt=slip.proved)
                    yield said
        except CarnetError as error:
            yield leg_of(call, cost, ending(error), error.code, receipt=slip.proved)
            raise
        except (asyncio.CancelledError, GeneratorExit) as leaving:
            if not recorded:
                note_left(call, cost, leaving)
            raise

    async def answer(self, call: Call, /) -> list[Event]:
        """The same in one piece; see `runtime.answering`."""
        said: list[Event] = []
        code: str | None = None
        status: LegStatus = "failed"
        slip = Slip()
        try:
            async with self._door.send(await self._outbound(call)) as answer:
                await self._hear(answer, call, slip, said)
            status = "done"
        except CarnetError as error:
            status, code = ending(error), error.code
            raise
        except asyncio.CancelledError:
            code = ProviderTimeout.code
            raise
        finally:
            cost = self._bound(said, call)
            leg = leg_of(call, cost, status, code, receipt=slip.proved)
            if status == "done":
                said.insert(-1, leg)
            else:
                call.notes.extend((*said, leg))
        return said

    def _heard(self, answer: Answer, call: Call, slip: Slip) -> AsyncIterator[Event]:
        if self._lane is None:
            return listen(answer, call.ask, self._endpoint.currency)
        heard = listen(answer, call.ask, self._endpoint.currency, slip)
        return self._lane.proven(call, heard, slip)

    async def _hear(self, answer: Answer, call: Call, slip: Slip, said: list[Event]) -> None:
        if self._lane is None:
            await hear(answer, call.ask, self._endpoint.currency, said)
            return
        async with closing(self._heard(answer, call, slip)) as events:
            async for event in events:
                said.append(event)  # noqa: PERF401  those before an error too

    def _bound(self, said: list[Event], call: Call) -> int | None:
        """Bound the costs among these events by the callee's limit; the last of them."""
        cost = None
        for place, event in enumerate(said):
            if type(event) is Usage:
                said[place] = bounded = self._within_limit(event, call)
                cost = bounded.cost
        return cost

    async def _outbound(self, call: Call) -> Outbound:
        named = _is_named(call.ask)
        if named:
            await self._refuse_without_skills()
        headers, secrets = tangle.write(call.carnet, forwarded=self._forwarded(call))
        belongs_to = trace_of(call.carnet)
        headers |= trace.write(belongs_to, span_id(belongs_to, call.carnet.turn))
        outbound = self._endpoint.outbound(
            call.ask, headers, {**self._authorization, **secrets}, with_skill=named
        )
        return outbound if self._lane is None else self._signed(outbound, call, self._lane)

    async def _refuse_without_skills(self) -> None:
        """Refuse to ask for a skill by name where that would be read as mere chat."""
        if self._lane is not None:
            return
        if self._skilled is None or not await self._skilled.is_carnet():
            way = "" if self._skilled is None else self._skilled.way
            raise SkillNotFound("the other side is no Carnet", way=way)

    def _signed(self, outbound: Outbound, call: Call, lane: Lane) -> Outbound:
        """The same with the travel document: who pays, and how much we will at the most."""
        most = Spending(money=self._most_cost, currency=self._endpoint.currency)
        return lane.signing.sign_carnet(
            outbound, call.carnet, audience=lane.peer, payer=call.payer.account, budget=most
        )

    def _forwarded(self, call: Call) -> Secret | None:
        if call.credential is None or self._forwards == AGENT_OWNED:
            return None
        if not self._takes_credential:  # R5
            raise PeerNotListed
        return call.credential

    def _within_limit(self, usage: Usage, call: Call) -> Usage:
        limit = self._most_for(call)
        if usage.cost is None or usage.cost <= limit:
            return usage
        logger.warning(
            "callee charged more than its limit",
            extra={
                "run": call.carnet.run,
                "turn": call.carnet.turn,
                "agent": call.agent,
                "charged": usage.cost,
                "limit": limit,
            },
        )
        return msgspec.structs.replace(usage, cost=limit)

    def _most_for(self, call: Call) -> int:
        """The most it may charge for this call: what is left of a budget may be less."""
        budget = call.carnet.budget
        if budget is None or budget.money is None:
            return self._most_cost
        return min(budget.money, self._most_cost)


class Provider:
    """A model, reached like any client reaches it."""

    def __init__(self, door: Door, endpoint: Endpoint, *, system_prompt: str | None = None) -> None:
        """`system_prompt` is said before everything else."""
        self._door = door
        self._endpoint = endpoint
        self._authorization = endpoint.authorization()
        self._system_prompt = system_prompt

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Ask the model. What it costs is ours to say, by the tokens it counts."""
        ask = self._ask(call)
        async with (
            self._door.send(self._outbound(ask)) as answer,
            closing(listen(answer, ask, self._endpoint.currency)) as events,
        ):
            async for event in events:
                yield _counted(event)

    async def answer(self, call: Call, /) -> list[Event]:
        """The same in one piece; see `runtime.answering`."""
        ask = self._ask(call)
        said: list[Event] = []
        try:
            async with self._door.send(self._outbound(ask)) as answer:
                await hear(answer, ask, self._endpoint.currency, said)
        except BaseException:
            call.notes.extend(map(_counted, said))
            raise
        return [*map(_counted, said)]

    def _ask(self, call: Call) -> Ask:
        prompt = self._system_prompt
        return call.ask if prompt is None else _prompted(call.ask, prompt)

    def _outbound(self, ask: Ask) -> Outbound:
        return self._endpoint.outbound(ask, {}, self._authorization)


def trace_of(carnet: Carnet) -> Trace:
    """The trace of a call out. A run without one gets the same at every hop."""
    if carnet.trace is not None:
        return carnet.trace
    digest = blake2b(carnet.run.encode()).hexdigest()
    return Trace(digest[:32], digest[32:48])


def span_id(trace: Trace, turn: str) -> str:
    """The span of a call out: the same for every attempt, so that it needs no record."""
    return blake2b(f"{trace.trace_id}{turn}".encode(), digest_size=8).hexdigest()


def _is_named(ask: Ask) -> bool:
    """Whether a skill is asked for; a chat is one without saying so."""
    return ask.skill not in {None, CHAT.id}


def _counted(event: Event) -> Event:
    return Usage(event.tokens_in, event.tokens_out) if type(event) is Usage else event


def _prompted(ask: Ask, prompt: str) -> Ask:
    body = ask.body
    if body is not None:
        body = {**body, "messages": [{"role": "system", "content": prompt}, *body["messages"]]}
    messages = (Message("system", (prompt,)), *ask.messages)
    return msgspec.structs.replace(ask, messages=messages, body=body)
