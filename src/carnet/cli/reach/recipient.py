"""Whom an address means: an agent of a peer that we list, or whoever is at a URL."""

from difflib import get_close_matches
from typing import TYPE_CHECKING

from carnet.cli.invocation import Invocation
from carnet.cli.reach.request import find_peer
from carnet.core.people.address import is_agent_uri, is_handle, parse_agent_uri, parse_handle
from carnet.errors import AgentNotFound, CarnetError, PeerUnknown
from carnet.ports.world.http_client import Bounds
from carnet.runtime.client.client import read_address
from carnet.runtime.peers.cards import Site
from carnet.runtime.peers.samvad_client import recipient_of
from carnet.runtime.peers.samvad_request import Recipient

if TYPE_CHECKING:
    from carnet.ports.trust.trust import Peer


def has_settings(invocation: Invocation) -> bool:
    """Whether there is a configuration; one that was named and cannot be read is an error."""
    try:
        return bool(invocation.settings)
    except CarnetError:
        if invocation.config is not None:
            raise
        return False


def find_own(invocation: Invocation, address: str) -> str | None:
    """The name of an agent of our own that an address means, empty for the default one.

    None for an address elsewhere. A plain word can mean nobody else: AgentNotFound.
    """
    if not has_settings(invocation):
        return None
    settings = invocation.settings
    if is_agent_uri(address) or is_handle(address):
        own = settings.gateway.domain
        return next((local for domain, local in _readings(address) if domain == own), None)
    if address in settings.agents or "/" in address or "@" in address:
        return address if address in settings.agents else None
    near = get_close_matches(address, settings.agents, n=1)
    raise AgentNotFound(suggestion=near[0] if near else "")


async def find_recipient(
    invocation: Invocation, address: str, bounds: Bounds
) -> "tuple[Recipient, Peer | None]":
    """Where an address leads and who is expected there; and the peer, if we list it."""
    peer, local = await _known(invocation, address)
    if peer is None:
        url, expected = read_address(address)
        identities = frozenset({expected} if expected else ())
        return Recipient(site=Site(url), identities=identities, bounds=bounds), None
    return recipient_of(peer, local, bounds), peer


async def _known(invocation: Invocation, address: str) -> "tuple[Peer | None, str]":
    """The peer that an address belongs to, if we list it, and the agent's name there."""
    if not (is_agent_uri(address) or is_handle(address)) or not has_settings(invocation):
        return None, ""
    for domain, local in _readings(address):
        try:
            return await find_peer(invocation, domain), local
        except PeerUnknown:
            continue
    return None, ""


def _readings(address: str) -> list[tuple[str, str]]:
    """The organisations that an address may mean, each with the name of the agent there."""
    if is_handle(address):
        handle = parse_handle(address)
        return [(handle.domain, handle.local)]
    domain = parse_agent_uri(address)
    local, _, parent = domain.partition(".")
    return [(domain, ""), (parent, local)]
