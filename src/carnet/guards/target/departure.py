"""May this call leave for another organisation?

Law. Both answers are given before any I/O: a chain with no hop left is refused, and a credential
that would have to be forwarded to a peer that is not listed stops the call. It is never sent
without the credential, because then the wrong party would pay.
"""

from carnet.core.chain.carnet import Carnet
from carnet.core.people.address import handle_of
from carnet.core.people.secret import Secret
from carnet.errors import PeerNotListed
from carnet.ports.work.agent import Target


def check_credential(target: Target, credential: Secret | None) -> None:
    """Refuse to forward a credential to a peer that is not listed for it."""  # R5
    if target.is_remote and credential is not None and not target.takes_credential:
        raise PeerNotListed


def onward_carnet(
    carnet: Carnet, target: Target, domain: str, *, key: bytes, last_depth: int
) -> Carnet | None:
    """The carnet that a callee elsewhere receives; None for an agent of ours.

    `key` is that of the record. An agent that is elsewhere but has a name of ours
    has passed the call on, as far as loops go.
    """
    if not target.is_remote:
        return None
    via = handle_of(target.name, domain)
    return carnet.next_hop(index=0, speaker=target.speaker, key=key, default=last_depth, via=via)
