"""Signed calls from this process: to an agent:// address, or to a URL that speaks SAMVAD.

Law 1. Where there is a configuration we sign as its organisation, with the key of its gateway;
       without one, or with --key, with a key of this person's own.
Law 2. Who signs as the gateway sends a listed Carnet what the gateway would, the travel document
       included, and the answer must be proved. A person's key has no document to sign.
Law 3. A credential is shown as ***, also inside a body.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, structs

from carnet.cli.invocation import Invocation, to_json, visible
from carnet.cli.output import Growing
from carnet.cli.reach.recipient import find_recipient, has_settings
from carnet.cli.reach.request import CallOptions, given_token, payment_of
from carnet.cli.trust.delegation_forms import presented
from carnet.core.chain.carnet import Carnet
from carnet.core.messages.events import Data, Event, Text, Usage, Waiting
from carnet.core.money.amount import format_amount
from carnet.core.people.address import AGENT, is_agent_uri, parse_agent_uri
from carnet.core.people.proof import Spending
from carnet.errors import CarnetError, UsageInvalid
from carnet.ports.trust.keys import SigningKeys
from carnet.ports.world.http_client import HttpClient, Outbound
from carnet.runtime.agents.samvad_peer import as_text, text_field, text_skill
from carnet.runtime.client.key import load_key
from carnet.runtime.peers.keyring import Ring
from carnet.runtime.peers.samvad_client import RecipientClient, SamvadClient
from carnet.runtime.peers.samvad_request import SamvadRequest
from carnet.runtime.receipts.verification import ExpectedReceipt, Verifying
from carnet.runtime.stream import closing
from carnet.runtime.system import SystemClock, SystemIds
from carnet.runtime.visit.pulled import pulled
from carnet.wire.dialects import samvad

if TYPE_CHECKING:
    from carnet.ports.trust.trust import Peer


class SigningIdentity(Struct, frozen=True):
    """Who signs, and with which keys."""

    sender: str
    keys: SigningKeys
    verifying: Verifying | None = None  # of a gateway: asks Carnets for their receipts


async def call_signed(invocation: Invocation, asked: CallOptions, http: HttpClient) -> None:
    """Send the call from here and print its answer, or with --dry-run the request."""
    from carnet.cli.call.task_view import print_task

    _refuse_own(invocation, asked.address)
    async with open_direct(invocation, asked, http) as direct:
        client = direct.client
        token = None if asked.delegate is None else presented(asked.delegate, direct.sender)
        request = await _request(asked, client, SystemIds(), token)
        if direct.peer is not None and direct.is_gateway:
            request = _documented(invocation, request, direct.peer)
        if asked.dry_run:
            _show(invocation, await client.written(request), request)
        elif asked.task:
            await print_task(invocation, asked, client, request)
        else:
            await _print(invocation, client, request)


class DirectClient(Struct, frozen=True, eq=False):
    """The client of an agent elsewhere, called from here and not by our gateway."""

    client: RecipientClient
    peer: "Peer | None"  # whose agent it is, if we list it
    sender: str  # who we sign as
    is_gateway: bool  # whether we sign with the key of our gateway


@asynccontextmanager
async def open_direct(
    invocation: Invocation, asked: CallOptions, http: HttpClient
) -> AsyncIterator[DirectClient]:
    """The client of whoever is at an address; its connections are those of `http`."""
    clock, ids = SystemClock(), SystemIds()
    recipient, peer = await find_recipient(invocation, asked.address, asked.bounds)
    async with _signing_identity(invocation, asked, http) as by:
        client = SamvadClient.of(
            http, by.keys, by.sender, clock=clock, ids=ids, verifying=by.verifying
        )
        try:
            yield DirectClient(client.to(recipient), peer, by.sender, by.verifying is not None)
        finally:
            await client.close()


@asynccontextmanager
async def _signing_identity(
    invocation: Invocation, asked: CallOptions, http: HttpClient
) -> AsyncIterator[SigningIdentity]:
    from carnet.assembly.store import opened

    if asked.key or not has_settings(invocation):
        key = load_key(asked.key)
        yield SigningIdentity(f"{AGENT}client-{key.kid}", key)
        return
    domain, clock = invocation.settings.gateway.domain, SystemClock()
    currency = invocation.settings.ledger.currency
    async with opened(invocation.settings) as store:
        ring = Ring(pinned=store.pinned, peers=store.peers, http=http, clock=clock)
        try:
            await store.keys.ensure(clock.wall_us())
            verifying = Verifying(ring, domain=domain, currency=currency, clock=clock)
            yield SigningIdentity(f"{AGENT}{domain}", store.keys, verifying)
        finally:
            await ring.close()


def _documented(invocation: Invocation, request: SamvadRequest, peer: "Peer") -> SamvadRequest:
    """The same with the document that a Carnet is sent: this person is where the chain begins."""
    from carnet.assembly.stamps import depth_limits

    settings = invocation.settings
    return structs.replace(
        request,
        carnet=Carnet(
            run=request.trace_id,
            turn=request.span_id,
            last_depth=depth_limits(settings).default,
        ),
        budget=Spending(money=peer.most_cost, currency=settings.ledger.currency),
    )


def _refuse_own(invocation: Invocation, address: str) -> None:
    if not is_agent_uri(address) or not has_settings(invocation):
        return
    domain, own = parse_agent_uri(address), invocation.settings.gateway.domain
    if own in {domain, domain.partition(".")[2]}:
        raise UsageInvalid(
            reason=f"'{address}' is served by your own gateway, so there is no direct way.",
            fix="Leave out --direct.",
        )


async def _request(
    asked: CallOptions, client: RecipientClient, ids: SystemIds, delegation: str | None
) -> SamvadRequest:
    skill, payload = asked.skill, asked.payload
    if skill is None:
        card = await client.card()
        skill = text_skill(card)
        payload = {text_field(card, skill): asked.text}
    return SamvadRequest(
        skill=skill,
        payload=payload,
        stream=asked.stream,
        trace_id=asked.run or ids.uuid(),
        span_id=asked.turn or ids.uuid(),
        auth=given_token(asked),
        is_task=asked.task,
        callback=asked.callback,
        delegation=delegation,
        secrets=payment_of(asked),
    )


def _show(invocation: Invocation, outbound: Outbound, request: SamvadRequest) -> None:
    from carnet.cli.reach.request import describe

    page = describe(outbound)
    raw = outbound.body.decode()
    hidden = [request.delegation] if request.delegation is not None else []
    if request.delegation is not None:
        page["body"]["delegationToken"] = "***"  # that it is there, not what it is
    if request.auth is not None:
        hidden.append(request.auth.reveal())
        page["body"]["auth"]["token"] = "***"  # noqa: S105
    for text in hidden:
        raw = raw.replace(to_json(text), '"***"')
    page["raw"] = raw
    head = [f"{name}: {value}" for name, value in page["headers"].items()]
    text = "\n".join([f"{page['method']} {page['url']}", *head, "", raw])
    invocation.result(page, lambda: text)
    if hidden:
        invocation.note("The token is shown as ***; digest and signature are of the body with it.")


async def _print(invocation: Invocation, client: RecipientClient, request: SamvadRequest) -> None:
    events: list[Event] = []
    growing = Growing()
    receipt = ExpectedReceipt()
    shown = False
    async with closing(pulled(partial(client.run, request, receipt=receipt))) as coming:
        async for event in coming:
            if isinstance(event, Waiting):
                raise _waits(event, request)
            events.append(event)
            if request.stream and isinstance(event, Text | Data):
                shown = _print_chunk(invocation, event, growing) or shown
    result = samvad.result_of(events)
    page: dict[str, Any] = {"result": result, "run": request.trace_id, "turn": request.span_id}
    cost = _cost(events)
    if receipt.proved is not None:
        page |= {"cost": cost, "receipt": receipt.proved}
    if shown and invocation.format == "text":
        growing.end(result)
    else:
        invocation.result(page, lambda: visible(as_text(result)))
    if invocation.format == "text":
        paid = "" if cost is None else f"  cost {cost}"
        invocation.note(f"run {request.trace_id}  turn {request.span_id}{paid}")


def _waits(waiting: Waiting, request: SamvadRequest) -> CarnetError:
    """What is told of a call that waits: it is no answer."""
    error = waiting.error()
    error.run = request.trace_id
    return error


def _cost(events: list[Event]) -> str | None:
    """What the call has cost, as the receipt of a Carnet tells it."""
    costs = [event for event in events if isinstance(event, Usage) and event.cost is not None]
    if not costs:
        return None
    return f"{format_amount(costs[-1].cost or 0)} {costs[-1].currency or ''}".rstrip()


def _print_chunk(invocation: Invocation, event: Text | Data, growing: Growing) -> bool:
    value = event.text if isinstance(event, Text) else event.value
    if invocation.format != "text":
        click.echo(to_json({"chunk": value}))
    else:
        growing.say(value if isinstance(value, str) else f"{to_json(value)}\n")
    return True
