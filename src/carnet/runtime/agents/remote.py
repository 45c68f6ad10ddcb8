"""Agents that are elsewhere: another gateway, or a model provider, called by one request each.

A gateway is asked in the dialect of a codec (`wire.dialects.outbound`), a model over chat
completions.

Law 1. A call to another agent carries what `runtime.peers.signing` writes; one to a model provider
       carries none of it: a model is not a hop.
Law 2. Every call to another agent leaves one record (`OutboundCall`), however it ends.
Law 3. What a callee charges is told also where it failed; what it charges beyond its limit is not
       owed.
Law 4. With a token we are known by it. Without one the call is signed and carries the travel
       document, and the answer counts as far as the receipt proves it
       (`runtime.receipts.verification`).
Law 5. What a callee asks for before it goes on, its call ends with; see `runtime.peers.policies`.
Law 6. A skill that is asked for by name is passed on to a Carnet, which reads it beside the
       messages. Nobody else would: there it is refused before anything leaves.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct

from carnet.core.call import Ask, Call
from carnet.core.messages.events import Message, Usage, Waiting
from carnet.core.messages.interrupt import StatedResolution, paid
from carnet.core.messages.output import Output, Sink
from carnet.core.people.identity import CHAT, Secret
from carnet.core.people.proof import Spending
from carnet.errors import (
    CarnetError,
    ConfigInvalid,
    DepthExceeded,
    PaymentRefused,
    SkillNotFound,
)
from carnet.ports.world.http_client import Bounds, HttpAnswer, HttpClient, Outbound
from carnet.runtime.peers.answer_reader import JSON, SSE, read_answer
from carnet.runtime.peers.policies import Ending, run_on, surfaced, with_agreed
from carnet.runtime.peers.signing import OWN, Signing, Stamping
from carnet.runtime.receipts.outbound_calls import Calling
from carnet.runtime.receipts.verification import Verifying
from carnet.telemetry import redact
from carnet.wire.dialects import openai
from carnet.wire.dialects.openai.members import Passing
from carnet.wire.dialects.outbound import Codec
from carnet.wire.dialects.policy import RESOLUTION, write_resolution
from carnet.wire.stamps.log_names import write_log_names
from carnet.wire.stamps.mentionable import cue_of

logger = logging.getLogger("carnet.runtime")


EVERYTHING: Final = Passing()
AUTHORIZATION: Final = "authorization"
_TOKEN: Final = re.compile(r"[!-~]+", re.ASCII)


def shown_as(token: Secret | None, header: str = AUTHORIZATION) -> dict[str, Secret]:
    """The header that shows a token; nothing where there is none."""
    if token is None:
        return {}
    shown = token.reveal()
    if not _TOKEN.fullmatch(shown):
        raise ConfigInvalid(key="token", reason="holds a character that no header can carry")
    return {header: Secret(f"Bearer {shown}" if header == AUTHORIZATION else shown)}


class RemoteEndpoint(Struct, frozen=True, kw_only=True):
    """Where a dialect is served, and how we are known there."""

    url: str  # in full, with the path of the request
    model: str  # the name the agent or model has there
    token: Secret | None = None
    currency: str = "credits"
    bounds: Bounds = Bounds()
    codec: Codec = openai.CODEC
    key_header: str = AUTHORIZATION  # that says who we are, by our token
    headers: Mapping[str, str] = {}  # that every request has

    def authorization(self) -> dict[str, Secret]:
        """The header that says who we are."""
        return shown_as(self.token, self.key_header)

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
            body=self.codec.write(ask, model=self.model, stream=ask.stream, with_skill=with_skill),
            headers={"content-type": JSON, "accept": accept, **headers},
            secrets=secrets,
            bounds=self.bounds,
        )


class SignedLink(Struct, frozen=True, eq=False):
    """How we and another gateway know one another without a token: by our keys."""

    signing: Signing
    verifying: Verifying
    peer: str  # its domain


class Skilled(Struct, frozen=True, eq=False):
    """Whether skills can be asked of another side by name, and what helps if they cannot."""

    is_carnet: Callable[[], Awaitable[bool]]
    way: str  # another way to reach them, as its operator would write it


class Remote:
    """An agent of another gateway, reached with our stamps."""

    def __init__(
        self,
        http: HttpClient,
        endpoint: RemoteEndpoint,
        *,
        most_cost: int,
        stamping: Stamping = OWN,
        link: SignedLink | None = None,
        skilled: Skilled | None = None,
        domain: str = "",
    ) -> None:
        """Reach one agent.

        Args:
            http: Sends its requests.
            endpoint: Where it is.
            most_cost: The most it may charge for one call, in micro-units.
            stamping: What its calls carry, and whose credential.
            link: Given where calls are signed, and receipts are asked for: by Carnets alone.
            skilled: Tells whether it is a Carnet where there is no link.
            domain: Ours, which nobody elsewhere speaks for.
        """
        self._http = http
        self._endpoint = endpoint
        self._authorization = endpoint.authorization()
        self._most_cost = most_cost
        self._stamping = stamping
        self._link = link
        self._skilled = skilled
        self._domain = domain

    @property
    def is_signed(self) -> bool:
        """Whether it is told, by the travel document, how much a call may cost."""
        return self._link is not None

    async def __call__(self, call: Call, out: Output, /) -> Ending:
        """Send the call and pass on the answer as it comes."""
        calling = Calling(call, out, dialect=self._endpoint.codec.dialect, bound=self._within_limit)
        try:
            if call.resolved:
                end = await run_on(call, calling, partial(self._send, call, calling))
            else:
                outbound = await self._outbound(call)
                calling.is_sent, calling.receipt.sent = True, outbound.signed
                async with self._http.send(outbound) as answer:
                    del outbound  # an answer may last for hours, and needs nothing of it
                    end = await self._read_answer(answer, call, calling, calling)
        except BaseException as error:
            if isinstance(error, DepthExceeded):  # who refuses need not say at which depth
                error.facts.setdefault("observed", call.carnet.depth)
            calling.ended(error)
            raise
        if type(end) is Waiting:
            calling.waits = True
            end = surfaced(end, call, self._domain)
        calling.ended()
        return end

    async def _send(
        self, call: Call, calling: Calling, stated: StatedResolution | None, sink: Sink
    ) -> Ending:
        """Send a call whose turn runs on, perhaps with an answer to what the callee asks for."""
        calling.receipt.presented = calling.receipt.proved = None
        outbound = await self._outbound(call, stated)
        calling.is_sent, calling.receipt.sent = True, outbound.signed
        async with self._http.send(outbound) as answer:
            del outbound
            return await self._read_answer(answer, call, calling, sink)

    async def _read_answer(
        self, answer: HttpAnswer, call: Call, calling: Calling, into: Sink
    ) -> Ending:
        endpoint, ask, link = self._endpoint, call.ask, self._link
        codec, currency = endpoint.codec, endpoint.currency
        if link is None:
            return await read_answer(answer, ask, codec, currency, into)
        receipt = calling.receipt

        def read(sink: Sink) -> Awaitable[Ending]:
            return read_answer(answer, ask, codec, currency, sink, receipt)

        return await link.verifying.proven(
            read, call.carnet, receipt, into, peer=link.peer, result_of=codec.result
        )

    async def _outbound(self, call: Call, stated: StatedResolution | None = None) -> Outbound:
        named = _is_named(call.ask)
        if named:
            await self._refuse_without_skills()
        stamped = self._stamping.written(call)
        headers, secrets = stamped.headers, stamped.secrets
        if stated is not None:
            secrets = {**secrets, RESOLUTION: Secret(write_resolution(stated))}
        outbound = self._endpoint.outbound(
            call.ask, headers, {**self._authorization, **secrets}, with_skill=named
        )
        return outbound if self._link is None else self._signed(outbound, call, self._link)

    async def _refuse_without_skills(self) -> None:
        """Refuse to ask for a skill by name where that would be read as mere chat."""
        if self._link is not None:
            return
        if self._skilled is None or not await self._skilled.is_carnet():
            way = "" if self._skilled is None else self._skilled.way
            raise SkillNotFound("the other side is no Carnet", way=way)

    def _signed(self, outbound: Outbound, call: Call, link: SignedLink) -> Outbound:
        """The same with the travel document: who pays, and how much we will at the most."""
        carnet, money = call.carnet, self._most_cost
        if call.resolved:
            more = paid(call.resolved)
            carnet, money = with_agreed(carnet, more), money + more
        most = Spending(money=money, currency=self._endpoint.currency)
        return link.signing.sign_carnet(
            outbound, carnet, audience=link.peer, payer=call.payer.account, budget=most
        )

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
        budget, more = call.carnet.budget, paid(call.resolved) if call.resolved else 0
        if budget is None or budget.money is None:
            return self._most_cost + more
        return min(budget.money, self._most_cost) + more


class Provider:
    """A model, reached like any client reaches it."""

    def __init__(
        self,
        http: HttpClient,
        endpoint: RemoteEndpoint,
        *,
        system_prompt: str | None = None,
        passing: Passing = EVERYTHING,
        log_names: Sequence[str] = (),
        cue_depth: int | None = None,
        by_payer: bool = False,
    ) -> None:
        """`system_prompt` is said before everything else; `passing` is what callers may say.

        It is asked with the credential of the payer, where that is so; else with our own.

        `log_names` are of products whose logs find our calls by them. With `cue_depth`, the last
        depth of a chain that no stamp bounds, the model is told where in its chain it stands.
        """
        self._http = http
        self._endpoint = endpoint
        self._authorization = endpoint.authorization()
        self._system_prompt = system_prompt
        self._passing = passing
        self._log_names = log_names
        self._cue_depth = cue_depth
        self._by_payer = by_payer

    async def __call__(self, call: Call, out: Output, /) -> Ending:
        """Ask the model. What it costs is ours to say, by the tokens it counts."""
        ask, endpoint = call.ask, self._endpoint
        removed = self._passing.removed(ask)
        if removed:
            ask = self._without(removed, call)
        prompt = self._prompt(call)
        if prompt is not None:
            ask = _prompted(ask, prompt)
        names: dict[str, str] = {}
        if self._log_names:
            payer = str(call.payer.account)
            names = write_log_names(self._log_names, run=call.carnet.run, payer=payer)
        shown = self._authorization if not self._by_payer else _of_payer(call)
        outbound = endpoint.outbound(ask, names, shown)
        try:
            async with self._http.send(outbound) as answer:
                del outbound
                return await read_answer(
                    answer, ask, endpoint.codec, endpoint.currency, _Counting(out)
                )
        except CarnetError as error:
            mask(error, endpoint.token)
            if self._by_payer and call.credential is not None:
                mask(error, Secret(call.credential.reveal().rpartition(" ")[2]))
            raise

    def _prompt(self, call: Call) -> str | None:
        """What is said before everything else, with the cue of a chained call."""
        prompt = self._system_prompt
        if self._cue_depth is None or not call.carnet.depth:  # mentionable:chain:cue-rendered
            return prompt
        cue = cue_of(call.carnet, self._cue_depth)
        return cue if prompt is None else f"{prompt}\n\n{cue}"

    def _without(self, removed: Sequence[str], call: Call) -> Ask:
        fields = {"run": call.carnet.run, "turn": call.carnet.turn, "agent": call.agent}
        extra = {**fields, "detail": ", ".join(removed)}
        logger.info("left out of what the model is asked", extra=extra)
        return self._passing.kept(call.ask)


def _of_payer(call: Call) -> dict[str, Secret]:
    """The credential of the payer as the authorization of a model (R30)."""
    if call.credential is None:  # the gate lets no such call in
        raise PaymentRefused(reason="absent")
    return {AUTHORIZATION: call.credential}


def mask(error: CarnetError, token: Secret | None) -> None:
    """Keep our own key, and what looks like one, out of what a provider says back."""
    words = error.words
    if words is None:
        return
    if token is not None:
        words = words.replace(token.reveal(), "***")
    error.words = error.detail = redact(words)


class _Counting:
    """Passes on what a model says; of what it used the tokens alone."""

    __slots__ = ("_usage", "write")

    def __init__(self, out: Output) -> None:
        self.write = out.write
        self._usage = out.usage

    def usage(self, usage: Usage, /) -> None:
        self._usage(Usage(usage.tokens_in, usage.tokens_out))


def _is_named(ask: Ask) -> bool:
    """Whether a skill is asked for; a chat is one without saying so."""
    return ask.skill not in {None, CHAT.id}


def _prompted(ask: Ask, prompt: str) -> Ask:
    body = ask.body
    if body is not None:
        body = {**body, "messages": [{"role": "system", "content": prompt}, *body["messages"]]}
    messages = (Message("system", (prompt,)), *ask.messages)
    return msgspec.structs.replace(ask, messages=messages, body=body)
