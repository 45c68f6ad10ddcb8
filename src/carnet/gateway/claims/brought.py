"""What a request brings beside its body: a proof, a key, an answer, a budget.

Law 1. What a signature must cover counts only if it does.
Law 2. A budget only narrows.
"""

from msgspec import structs

from carnet.core.call import Claim
from carnet.wire.dialects.dialect import Arrival
from carnet.wire.dialects.policy import RESOLUTION_START, read_resolution
from carnet.wire.stamps.stamp import read_key
from carnet.wire.travel.budget import BUDGET_START, with_budget


def with_key(claim: Claim, arrival: Arrival) -> Claim:
    """The claim with the key that names its repeats, unless it is claimed by a name of its own."""
    is_named = claim.exactly_once and claim.key is not None
    return claim if is_named else structs.replace(claim, key=read_key(arrival.headers))


def with_resolution(claim: Claim, arrival: Arrival) -> Claim:
    """The claim with the answer that its turn waits for, and the budget, that it brings."""
    names = arrival.headers.joined()
    if BUDGET_START in names:
        claim = with_budget(claim, arrival.headers)
    if RESOLUTION_START not in names:
        return claim
    return structs.replace(claim, resolution=read_resolution(arrival.headers))
