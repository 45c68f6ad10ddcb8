"""The payment that a request brings along.

Law 1. Where a request is signed, its signature covers the payment, or it is refused: whoever stands
       between could have put another one there, or have kept this one.
Law 2. Whose payment it is, and what it is worth, is nothing that is known here.
"""

from msgspec import structs

from carnet.core.call import Claim
from carnet.core.people.proof import Proof
from carnet.errors import HeaderNotSigned, PaymentRefused
from carnet.wire.dialects.dialect import Arrival
from carnet.wire.travel.payment import PAYS, read_payment


def with_payment(claim: Claim, arrival: Arrival) -> Claim:
    """The claim with the payment that stands in a header, if one does."""
    if PAYS not in arrival.headers.joined():
        return claim
    found = read_payment(arrival.headers)
    if found is None:
        return claim
    payment, header = found
    if claim.payment is not None:  # the body has brought one
        raise PaymentRefused(reason="several")
    proof = claim.proof
    if proof is not None and not _is_covered(header, proof):
        raise HeaderNotSigned
    return structs.replace(claim, payment=payment)


def _is_covered(header: str, proof: Proof) -> bool:
    """Whether a header is one of the lines that were signed, and not part of what one says."""
    line = f'\n"{header}": '.encode()
    return any(line in b"\n" + base for base in proof.bases)
