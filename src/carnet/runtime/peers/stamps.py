"""What a call carries on its way out, whatever dialect it leaves in.

Law 1. A call to another agent carries the callee's document as it was given; nothing is counted.
Law 2. The payer's credential leaves only to a callee that is listed for it, byte for byte. If it
       would have to and may not, the call is not made: without it the wrong party would pay.
Law 3. All calls of a run belong to one trace: the one that came, or one that the run names.
"""

from hashlib import blake2b
from typing import Final

from msgspec import Struct

from carnet.core.call import AGENT_OWNED, FORWARD_USER, Call
from carnet.core.chain.carnet import Carnet, Trace
from carnet.core.people.identity import Secret
from carnet.errors import PeerNotListed
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.stamp import Leaving, Stamps, write_trace


class Stamping(Struct, frozen=True, kw_only=True):
    """How the calls to one callee are stamped."""

    takes_credential: bool = False  # whether the payer's credential may leave to it
    forwards: str = FORWARD_USER  # "agent-owned" if calls to it are paid by the caller itself
    stamps: Stamps = STAMPS  # those that are written toward peers

    def write(self, call: Call) -> tuple[dict[str, str], dict[str, Secret]]:
        """The headers of a call, and those that must not be logged."""
        carnet = call.carnet
        credential = call.credential
        leaving = Leaving(forwarded=None if credential is None else self._forwarded(credential))
        written = self.stamps.write(carnet, leaving)
        belongs_to = trace_of(carnet)
        headers = written.headers | write_trace(belongs_to, span_id(belongs_to, carnet.turn))
        return headers, written.secrets

    def _forwarded(self, credential: Secret) -> Secret | None:
        if self.forwards == AGENT_OWNED:
            return None
        if not self.takes_credential:  # R5
            raise PeerNotListed
        return credential


OWN: Final = Stamping()  # nobody's credential leaves


def trace_of(carnet: Carnet) -> Trace:
    """The trace of a call out. A run without one gets the same at every hop."""
    if carnet.trace is not None:
        return carnet.trace
    digest = blake2b(carnet.run.encode()).hexdigest()
    return Trace(digest[:32], digest[32:48])


def span_id(trace: Trace, turn: str) -> str:
    """The span of a call out: the same for every attempt, so that it needs no record."""
    return blake2b(f"{trace.trace_id}{turn}".encode(), digest_size=8).hexdigest()
