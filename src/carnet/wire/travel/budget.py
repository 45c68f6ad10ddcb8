"""The request header `carnet-budget`: the most that its sender will have spent on the call.

Law. It only narrows. Beside a signature it counts if the signature covers it, and is refused else.
"""

from typing import Final

from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.chain.terms import read_terms
from carnet.core.people.delegation import narrower
from carnet.core.people.proof import Spending
from carnet.errors import InvalidRequest, MalformedCallerContext
from carnet.wire.grammar.headers import Headers

BUDGET: Final = "carnet-budget"
BUDGET_START: Final = b"\n" + BUDGET.encode()
BUDGET_COVERED: Final = b'"%b"' % BUDGET.encode()  # as the text that is signed names it


def with_budget(claim: Claim, headers: Headers) -> Claim:
    """The claim with the budget that its request names; refused where it is not in its form."""
    text = headers.get(BUDGET)
    if text is None:
        return claim
    try:
        budget: Spending | None = read_terms(text)  # which refuses whatever is not in its form
    except InvalidRequest:
        form = "must be an amount, or money=,calls=,tokens=,seconds= with numbers"
        raise MalformedCallerContext(BUDGET, form) from None
    if claim.budget is not None:
        budget = narrower(claim.budget, budget)
    return replace(claim, budget=budget)
