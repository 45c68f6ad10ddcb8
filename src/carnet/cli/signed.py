"""Signed calls from this process: to an agent:// address, or to a URL that speaks SAMVAD.

Law 1. Where there is a configuration we sign as its organisation, with the key of its gateway;
       without one, or with --key, with a key of this person's own.
Law 2. A credential is shown as ***, also inside a body.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from carnet.cli.composing import Asked, find_peer, given_token
from carnet.cli.invocation import Invocation, to_json, visible
from carnet.core.address import AGENT, is_agent_uri, is_handle, parse_agent_uri, parse_handle
from carnet.core.events import Data, Event, Text
from carnet.errors import CarnetError, PeerUnknown, UsageInvalid
from carnet.ports.door import Bounds, Door, Outbound
from carnet.runtime.cards import Cards, Place
from carnet.runtime.client import read_address
from carnet.runtime.client_key import load_key
from carnet.runtime.closing import closing
from carnet.runtime.errand import Errand, Errands, Recipient
from carnet.runtime.samvad import as_text, text_field, text_skill
from carnet.runtime.signing import Signing
from carnet.runtime.system import SystemClock, SystemIds
from carnet.wire import samvad

if TYPE_CHECKING:
    from carnet.ports.keys import OwnKeys
    from carnet.ports.trust import Peer


class Signer(Struct, frozen=True):
    """Who signs, and with which keys."""

    sender: str
    keys: Any  # an OwnKeys, of which only the signer is asked


async def call_signed(invocation: Invocation, asked: Asked, door: Door) -> None:
    """Send the call from here and print its answer, or with --dry-run the request."""
    clock, ids = SystemClock(), SystemIds()
    cards = Cards(door, clock)
    recipient = await _recipient(invocation, asked)
    try:
        async with _signer(invocation, asked) as by:
            domain = by.sender.removeprefix(AGENT)
            errands = Errands(
                door,
                recipient,
                cards=cards,
                signing=Signing(keys=by.keys, domain=domain, clock=clock, ids=ids),
                sender=by.sender,
                clock=clock,
                ids=ids,
            )
            errand = await _errand(asked, errands, ids)
            if asked.dry_run:
                _show(invocation, await errands.request(errand), asked)
            else:
                await _print(invocation, errands, errand)
    finally:
        await cards.close()


@asynccontextmanager
async def _signer(invocation: Invocation, asked: Asked) -> AsyncIterator[Signer]:
    from carnet.assembly.storing import open_from

    if asked.key or not _has_settings(invocation):
        key = load_key(asked.key)
        yield Signer(f"{AGENT}client-{key.kid}", key)
        return
    store = await open_from(invocation.settings, exclusive=False)
    try:
        keys: OwnKeys = store.keys
        await keys.ensure(SystemClock().wall_us())
        yield Signer(f"{AGENT}{invocation.settings.gateway.domain}", keys)
    finally:
        await store.close()


def _has_settings(invocation: Invocation) -> bool:
    try:
        return bool(invocation.settings)
    except CarnetError:
        if invocation.config is not None:
            raise
        return False


async def _recipient(invocation: Invocation, asked: Asked) -> Recipient:
    bounds = Bounds(
        first_byte_seconds=asked.timeout, idle_seconds=asked.timeout, total_seconds=asked.timeout
    )
    _refuse_own(invocation, asked.address)
    peer, local = await _known(invocation, asked.address)
    if peer is None:
        url, expected = read_address(asked.address)
        identities = frozenset({expected} if expected else ())
    else:
        url = f"{peer.url}/agents/{local}" if local else peer.url
        identities = frozenset({f"{AGENT}{local}.{peer.domain}" if local else AGENT + peer.domain})
    return Recipient(place=Place(url), identities=identities, bounds=bounds)


def _refuse_own(invocation: Invocation, address: str) -> None:
    if not is_agent_uri(address) or not _has_settings(invocation):
        return
    domain, own = parse_agent_uri(address), invocation.settings.gateway.domain
    if own in {domain, domain.partition(".")[2]}:
        raise UsageInvalid(
            reason=f"'{address}' is served by your own gateway, so there is no direct way.",
            fix="Leave out --direct and --dry-run.",
        )


async def _known(invocation: Invocation, address: str) -> "tuple[Peer | None, str]":
    """The peer that an address belongs to, if we know it, and the agent's name there."""
    if not (is_agent_uri(address) or is_handle(address)) or not _has_settings(invocation):
        return None, ""
    if is_handle(address):
        handle = parse_handle(address)
        return await find_peer(invocation, handle.domain), handle.local
    domain = parse_agent_uri(address)
    local, _, parent = domain.partition(".")
    for known, name in ((domain, ""), (parent, local)):
        try:
            return await find_peer(invocation, known), name
        except PeerUnknown:
            continue
    return None, ""


async def _errand(asked: Asked, errands: Errands, ids: SystemIds) -> Errand:
    skill, payload = asked.skill, asked.payload
    if skill is None:
        card = await errands.card()
        skill = text_skill(card)
        payload = {text_field(card, skill): asked.text}
    return Errand(
        skill=skill,
        payload=payload,
        stream=asked.stream,
        trace_id=asked.run or ids.uuid(),
        span_id=asked.turn or ids.uuid(),
        auth=given_token(asked),
    )


def _show(invocation: Invocation, request: Outbound, asked: Asked) -> None:
    from carnet.cli.composing import describe

    page = describe(request)
    raw = request.body.decode()
    token = given_token(asked)
    if token is not None:
        raw = raw.replace(to_json(token.reveal()), '"***"')
        page["body"]["auth"]["token"] = "***"  # noqa: S105  that it is there, not what it is
    page["raw"] = raw
    head = [f"{name}: {value}" for name, value in page["headers"].items()]
    text = "\n".join([f"{page['method']} {page['url']}", *head, "", raw])
    invocation.result(page, lambda: text)


async def _print(invocation: Invocation, errands: Errands, errand: Errand) -> None:
    said: list[Event] = []
    shown = False
    async with closing(errands.run(errand)) as events:
        async for event in events:
            said.append(event)
            if errand.stream and isinstance(event, Text | Data):
                shown = _print_chunk(invocation, event) or shown
    result = samvad.result_of(said)
    page = {"result": result, "run": errand.trace_id, "turn": errand.span_id}
    if shown and invocation.format == "text":
        click.echo()
    else:
        invocation.result(page, lambda: visible(as_text(result)))
    if invocation.format == "text":
        invocation.note(f"run {errand.trace_id}  turn {errand.span_id}")


def _print_chunk(invocation: Invocation, event: Text | Data) -> bool:
    value = event.text if isinstance(event, Text) else event.value
    if invocation.format != "text":
        click.echo(to_json({"chunk": value}))
    elif isinstance(value, str):
        click.echo(visible(value), nl=False)
    else:
        click.echo(to_json(value))
    return True
