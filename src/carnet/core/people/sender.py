"""Who sends a call, in the words of whoever answers it (R39).

Law. What stands here was proved: by a token, a signature, a credential, or in this process.
     What a caller only says of itself is its `context`.
"""

from collections.abc import Sequence

from msgspec import Struct

from carnet.core.people.address import handle_of, parse_handle
from carnet.core.people.identity import Caller
from carnet.errors import AddressInvalid

_AGENT = "agent:"  # how the name of one begins that calls in process


class Sender(Struct, frozen=True, kw_only=True):
    """Who sends: a person, a machine, or another agent."""

    name: str  # as records and pages have it: token:alice, peer:globex.example, agent:researcher
    how: str  # it was proved: token | signature | in_process | a2a-jwt | a2a-oauth
    address: str | None = None  # @name@domain, or agent://domain; None where it has none
    domain: str | None = None  # of another organisation; None: it is of this one

    @property
    def is_agent(self) -> bool:
        """Whether an agent of this gateway or of another organisation has sent it."""
        return self.how != "token" or self.domain is not None


def sender_of(
    caller: Caller, path: Sequence[str], *, domain: str, person: str | None = None
) -> Sender:
    """The sender of a call.

    Args:
        caller: Who was admitted.
        path: The agents that the call has passed, the last of them its own.
        domain: Ours.
        person: The address of whose token was shown.
    """
    actor, last = caller.actor, path[-1] if path else None
    if actor.how == "in_process":
        own = last or handle_of(actor.name.removeprefix(_AGENT), domain)
        return Sender(name=actor.name, how=actor.how, address=own)
    address = person if actor.domain is None else None
    if caller.standing is not None:
        # The last of the path is whom the signer lets call; those before it are what it says.
        is_signers = last is not None and _domain_of(last) == actor.domain
        address = last if is_signers else caller.standing.sender
    return Sender(name=actor.name, how=actor.how, address=address, domain=actor.domain)


def _domain_of(address: str) -> str | None:
    try:
        return parse_handle(address).domain
    except AddressInvalid:
        return None
