"""Where a name leads.

Law 1. An exact name of ours wins, then the last segment of a path, then addresses.
Law 2. Our own domain is never dialled; another domain only if it is a peer, or if strangers may be
       called. What is remembered of those pushes out nothing of peers.
Law 3. Whoever asks about agents of ours learns nothing of peers: `own` does not look at them.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence

from carnet.core.memo import Memo
from carnet.core.people.address import (
    AGENT,
    Address,
    is_agent_uri,
    is_handle,
    local_name,
    parse_agent_uri,
    parse_handle,
)
from carnet.errors import AddressInvalid, AgentNotFound, PeerUnknown
from carnet.ports.calls.agent import Target
from carnet.ports.trust.trust import Peer, Peers

MOST_REMEMBERED = 4096
MOST_MET = 256  # agents of strangers


class Routing:
    """Finds targets by name, path or address."""

    def __init__(
        self,
        *,
        agents: Mapping[str, Target],
        peers: Peers,
        domain: str,
        reach: Callable[[Peer, str, str], Target],
        meet: Callable[[Address], Target] | None = None,
    ) -> None:
        """`reach` builds the target for an agent of a peer.

        It is given the peer, the agent's name there (empty for its default one) and the address.
        `meet` builds that of an agent of a stranger, where strangers may be called.
        """
        self._meet = meet
        self._met: Memo[Address, Target] = Memo(MOST_MET)
        self._agents = dict(agents)
        self._peers = peers
        self._domain = domain
        self._reach = reach
        self._default = next((target for target in agents.values() if target.default), None)
        self._remote: Memo[str, tuple[Peer, Target]] = Memo(MOST_REMEMBERED)

    def find(self, name: str) -> Target:
        """The target of a name; the default agent for an empty one."""
        found = self._agents.get(name)
        if found is not None:
            return found
        if not name and self._default is not None:
            return self._default
        if is_handle(name):
            return self._of_handle(name)
        if is_agent_uri(name):
            return self._of_identity(name)
        found = self._agents.get(local_name(name))
        if found is None:
            raise AgentNotFound(suggestion=self._nearest(name))
        return found

    def own(self, name: str) -> Target:
        """The agent served here that a name leads to; nobody learns whether a peer is listed."""
        if name in self._agents or not (is_handle(name) or is_agent_uri(name)):
            return self.find(name)
        try:
            local = self._local(name)
        except AddressInvalid:
            raise AgentNotFound from None
        found = self._agents.get(local) if local else self._default
        if local is None or found is None:
            raise AgentNotFound
        return found

    def _local(self, address: str) -> str | None:
        """What an address calls an agent of ours, empty for the default one; None for others'."""
        if is_handle(address):
            handle = parse_handle(address)
            return handle.local if handle.domain == self._domain else None
        domain = parse_agent_uri(address)
        local, _, parent = domain.partition(".")
        if domain == self._domain:
            return ""
        return local if parent == self._domain else None

    def local(self) -> Sequence[Target]:
        """The agents served here."""
        return list(self._agents.values())

    def _of_handle(self, name: str) -> Target:
        address = parse_handle(name)
        if address.domain == self._domain:
            return self._own(address.local)
        peer = self._peers.find(address.domain)
        if peer is None:
            return self._of_stranger(address)
        return self._of_peer(peer, address.local, str(address))

    def _of_stranger(self, address: Address) -> Target:
        if self._meet is None:
            raise PeerUnknown
        return self._met.get(address) or self._met.keep(address, self._meet(address))

    def _of_identity(self, name: str) -> Target:
        domain = parse_agent_uri(name)
        if domain == self._domain and self._default is not None:
            return self._default
        local, _, parent = domain.partition(".")
        if parent == self._domain:
            return self._own(local)
        peer = self._peers.find(domain)
        if peer is not None:
            return self._of_peer(peer, "", f"{AGENT}{domain}")
        peer = self._peers.find(parent)
        if peer is not None:  # the same agent as its handle, by one name
            return self._of_peer(peer, local, str(Address(local, parent)))
        raise PeerUnknown

    def _of_peer(self, peer: Peer, local: str, name: str) -> Target:
        remembered = self._remote.get(name)
        if remembered is None or remembered[0] != peer:
            remembered = self._remote.keep(name, (peer, self._reach(peer, local, name)))
        return remembered[1]

    def _own(self, local: str) -> Target:
        found = self._agents.get(local)
        if found is None:
            raise AgentNotFound(suggestion=self._nearest(local))
        return found

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(local_name(name), list(self._agents), n=1)
        return near[0] if near else ""
