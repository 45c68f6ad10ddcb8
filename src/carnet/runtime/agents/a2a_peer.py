"""Agents that speak A2A: called by messages, whatever dialect the call came in.

Law 1. The id of the message is the id of the turn: whoever knows it answers a repeat from its own
       record. A callee that does not may run it twice (R56).
Law 2. What is spoken last is the message, with its files, links and data. A skill that is asked for
       is named in the metadata, with what goes into it as data, and is one of the card's.
Law 3. What an agent of ours asks with, and the protocol has no word for, is refused before it
       leaves: parameters, instructions. Of a caller's own chat it is left out; earlier messages
       are left out of both.
Law 4. What a task waits for, its call ends with, and the answer goes to the same task: where it is
       stands in the record of our turn (`runtime.peers.a2a.tasks`).
Law 5. Whoever leaves while the task runs has it cancelled.
Law 6. Its place in a chain of mentions goes with every message, as its stamp writes it, also with
       an answer to what a task waits for.
Law 7. Every call leaves one record (`OutboundCall`), however it ends. What it reports to cost is
       never owed beyond what it may (A33).
Law 8. Whom it is made for is vouched for anew to every callee that takes it, and to it alone.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.chain.carnet import Carnet
from carnet.core.messages.events import DataPart, Part, Usage, Waiting
from carnet.core.messages.interrupt import Interrupt, paid
from carnet.core.messages.output import Output
from carnet.core.people.delegation import narrower
from carnet.core.people.identity import CHAT
from carnet.core.people.proof import Spending
from carnet.errors import (
    CarnetError,
    InvalidRequest,
    PeerRefused,
    ProviderError,
    SkillNotFound,
    TaskNotFound,
)
from carnet.ports.world.http_client import Outbound
from carnet.runtime.peers.a2a.client import A2aClient, Reached, is_carnet
from carnet.runtime.peers.a2a.tasks import Abandoning, TaskRequest, TaskRun, give_up
from carnet.runtime.peers.policies import Ending, surfaced, with_agreed
from carnet.runtime.peers.samvad_tasks import GIVE_UP_SECONDS
from carnet.runtime.peers.signing import OWN, Stamping
from carnet.runtime.receipts.outbound_calls import Calling
from carnet.wire.dialects.a2a import client as a2a
from carnet.wire.dialects.a2a.extensions import OutboundFacts, write_outbound
from carnet.wire.dialects.a2a.extensions.identity import URI as IDENTITY_URI
from carnet.wire.dialects.a2a.extensions.own import CHAIN
from carnet.wire.grammar.mentionable import IDENTITY_EVIDENCE, NAMESPACE, VERIFIABLE_CREDENTIALS
from carnet.wire.identity.platform_credential import URI as PLATFORM_URI

DIALECT: Final = "a2a"
SKILL: Final = "skillId"  # the member of a message's metadata that names a skill
UNSPEAKABLE: Final = (
    "has no word in A2A, which the called agent speaks; leave it out, or reach it in another "
    "dialect"
)
OWN_SKILL: Final = "urn:carnet:a2a:skill:v1"
_TRACE: Final = ("traceparent", "tracestate")
_UNKNOWN_CALLER: Final = 401
_INSTRUCTING: Final = frozenset({"system", "developer"})


class A2aPeer:
    """An agent elsewhere, reached through the protocol that most of them speak."""

    def __init__(
        self,
        client: A2aClient,
        *,
        skill: str | None = None,
        most_cost: int = 0,
        currency: str = "credits",
        stamping: Stamping = OWN,
        domain: str = "",
    ) -> None:
        """Reach one agent.

        Args:
            client: Sends the requests to it.
            skill: What plain text is given to, where it has several.
            most_cost: The most it may charge for one call, in micro-units; 0 if it is free.
            currency: That of the amounts.
            stamping: What its calls carry, and whose credential.
            domain: Ours, which nobody elsewhere speaks for.
        """
        self._client = client
        self._skill = skill
        self._most_cost = most_cost
        self._currency = currency
        self._stamping = stamping
        self._domain = domain
        self._leaving = Abandoning()

    async def __call__(self, call: Call, out: Output, /) -> Ending:
        """Send the call and pass on the answer as it comes."""
        free = None if self._most_cost else 0  # the protocol has no word for a cost
        calling = Calling(call, out, dialect=DIALECT, bound=self._bounded, cost=free)
        try:
            attesting = self._client.attesting
            who = None if attesting is None else attesting.subject(call)
            cause = None if attesting is None else attesting.cause(call)
            reached = await self._client.reach(who, cause)
            run = TaskRun(
                self._client, reached, self._task_request(call, reached, calling), calling
            )
            calling.is_sent = True
            end = await self._run(run, reached, call, calling)
        except BaseException as error:
            if _is_unknown(error):
                self._forget(call)
            calling.ended(error)
            raise
        if type(end) is Waiting:
            calling.waits = True
            end = surfaced(end, call, self._domain)
        elif run.progress.usage is None:
            out.usage(Usage(cost=calling.cost))
        calling.ended()
        return end

    def _forget(self, call: Call) -> None:
        """Have the token obtained anew that was refused."""
        client = self._client
        if client.access is not None:
            client.access.forget()
        if client.federation is not None and client.attesting is not None:
            client.federation.forget(client.attesting.cause(call))

    async def _run(self, run: TaskRun, reached: Reached, call: Call, calling: Calling) -> Ending:
        is_answered = any(a2a.place_of(each.interrupt) for each in call.resolved)
        try:
            return await (run.run_on(call.resolved) if is_answered else run.begin())
        except TaskNotFound:  # of their doing, and not of our caller's
            raise ProviderError("the task that it took on is not there") from None
        except BaseException:
            if run.progress.is_running:
                self._leaving.leave(self._client, reached, run.progress.task or "")
            raise
        finally:
            if run.progress.usage is not None:  # also of a task that has failed
                calling.usage(run.progress.usage)

    async def abandon(self, asked: Sequence[Interrupt]) -> None:
        """Ask for the ends of the tasks that wait for these: nobody will answer them."""
        places = [place for each in asked if (place := a2a.place_of(each)) is not None]
        tasks = dict.fromkeys([place.task for place in places if place.task])
        if not tasks:
            return
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                reached = await self._client.reach()
                await asyncio.gather(*(give_up(self._client, reached, task) for task in tasks))
        except (CarnetError, TimeoutError):
            pass  # they end when they end

    def _bounded(self, usage: Usage, call: Call) -> Usage:
        """What counts of a usage: its cost, as far as we pay it."""
        budget = call.carnet.budget
        money = None if budget is None else budget.money
        most = self._most_cost if money is None else min(money, self._most_cost)
        if call.resolved:
            most += paid(call.resolved)
        return replace(usage, cost=None if usage.cost is None else min(usage.cost, most))

    def _task_request(self, call: Call, reached: Reached, calling: Calling) -> TaskRequest:
        ask = call.ask
        is_talk = ask.skill in {None, CHAT.id}
        if call.is_child and is_talk:
            _refuse_unspeakable(ask)
        skill = self._skill if is_talk else ask.skill
        if skill is not None and skill not in {each.id for each in reached.card.skills}:
            raise SkillNotFound("the card of the called agent has no such skill")
        stamped = self._stamping.written(call)
        facts = self._facts(call, stamped.headers)
        metadata, uris, _ = write_outbound(facts, reached.advertised)
        metadata, uris = self._vouched(call, reached, metadata | stamped.metadata, uris)
        is_presented = self._presents(reached)
        uris = (*uris, PLATFORM_URI) if is_presented else uris
        message = a2a.write_message(
            asked_parts(ask),
            message_id=call.carnet.turn,
            metadata=metadata | _skill_metadata(skill, ask, reached),
            extensions=uris,
        )
        return TaskRequest(
            message=message,
            headers=stamped.headers,
            secrets=stamped.secrets,
            sign=lambda outbound: self._noted(self._signed(outbound, reached, call), calling),
            currency=self._currency,
            as_result=not is_talk,
            extensions=uris,
            **({"bind": partial(self._presented, call)} if is_presented else {}),
        )

    def _vouched(
        self, call: Call, reached: Reached, metadata: dict[str, Any], uris: tuple[str, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The metadata with what we vouch for, where the callee takes it; made for it alone."""
        attesting, audience = self._client.attesting, self._client.endpoint.audience
        if attesting is None or audience is None or IDENTITY_URI not in reached.advertised:
            return metadata, uris
        carried = {IDENTITY_EVIDENCE: [attesting.evidence(call, audience)]}
        beside = metadata.get(NAMESPACE, {})
        return metadata | {NAMESPACE: {**beside, **carried}}, (*uris, IDENTITY_URI)

    def _presents(self, reached: Reached) -> bool:
        """Whether a callee takes credentials; a Carnet reads all that they say from evidence."""
        client = self._client
        is_ours = client.attesting is None or client.endpoint.audience is None
        return not is_ours and PLATFORM_URI in reached.advertised and not is_carnet(reached.card)

    def _presented(self, call: Call, message: dict[str, Any]) -> dict[str, Any]:
        """A message with a credential that is bound to it, and to the callee."""
        attesting, audience = self._client.attesting, self._client.endpoint.audience
        if attesting is None or audience is None:
            return message
        made = attesting.platform_credential(call, audience, message["messageId"])
        metadata = message.get("metadata") or {}
        beside = metadata.get(NAMESPACE, {}) | {VERIFIABLE_CREDENTIALS: [made]}
        return message | {"metadata": metadata | {NAMESPACE: beside}}

    def _signed(self, outbound: Outbound, reached: Reached, call: Call) -> Outbound:
        """The same with the travel document, where a peer knows us by our key."""
        signing, peer = self._client.signing, self._client.endpoint.peer
        known = reached.secrets or reached.mints or reached.wants_signature
        if signing is None or peer is None or known:
            return self._client.known(reached, outbound)
        carnet, budget = self._spending(call)
        return signing.sign_carnet(
            outbound, carnet, audience=peer, payer=call.payer.account, budget=budget
        )

    @staticmethod
    def _noted(outbound: Outbound, calling: Calling) -> Outbound:
        """The same, noted as what was sent."""
        calling.receipt.sent = outbound.signed
        return outbound

    def _spending(self, call: Call) -> tuple[Carnet, Spending]:
        """What the callee may spend, with what was agreed to since."""
        carnet, most = call.carnet, self._most_cost
        if call.resolved:
            more = paid(call.resolved)
            carnet, most = with_agreed(carnet, more), most + more
        return carnet, Spending(money=most, currency=self._currency)

    def _facts(self, call: Call, headers: dict[str, str]) -> OutboundFacts:
        """What extensions may tell of a call."""
        carnet, budget = self._spending(call)
        document = call.document
        return OutboundFacts(
            carnet=replace(carnet, budget=narrower(carnet.budget, budget)),
            trace={name: headers[name] for name in _TRACE if name in headers},
            payer=str(call.payer.account),
            proof=None if document is None else _digest(document.signed),
            record=carnet.turn,
            above=_digest(call.record.key),
        )


def _digest(data: bytes) -> str:
    return f"sha-256:{sha256(data).hexdigest()}"


def _skill_metadata(skill: str | None, ask: Ask, reached: Reached) -> dict[str, Any]:
    """What names a skill: for everybody, and for a Carnet in its own words."""
    if skill is None:
        return {}
    own = {OWN_SKILL: {"skill": skill, "payload": ask.payload or {"text": ask.text}}}
    return {SKILL: skill} | (own if CHAIN.uris[0] in reached.advertised else {})


def _is_unknown(error: BaseException) -> bool:
    """Whether the callee does not know us by what we have shown."""
    return isinstance(error, PeerRefused) and error.facts.get("peer_status") == _UNKNOWN_CALLER


def asked_parts(ask: Ask) -> Sequence[Part]:
    """What is asked, in parts."""
    if ask.skill not in {None, CHAT.id}:
        return (DataPart(ask.payload or {}),)
    return ask.spoken.parts or ("",)


def _refuse_unspeakable(ask: Ask) -> None:
    """Refuse what would be lost, by its name and with the way out."""
    found = [name for name in ask.body or {} if name != "messages"]
    if any(message.role in _INSTRUCTING for message in ask.messages):
        found.append("system")
    if found:
        raise InvalidRequest(found[0], UNSPEAKABLE)
