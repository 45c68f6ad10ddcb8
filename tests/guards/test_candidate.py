"""What a caller says of itself beside what is proved: kept, and verified if its host signed it."""

import pytest
from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.identity import Actor, Caller, Context
from carnet.guards.candidate import Candidate
from tests.guards.signed_scene import candidate, document, signed_claim, travelled

TOLD = Context(agent="critic", user=7, host="https://b.example:8443/x", root="req-1")
CALLER = Caller(actor=Actor(name="peer:b.example"), scopes=frozenset())


def documented() -> Claim:
    return signed_claim(proof=travelled(document=document()))


def judged(claim: Claim) -> Candidate:
    found = candidate(claim)
    found.prove_caller(CALLER)
    return found


def test_a_caller_without_a_context_has_none() -> None:
    assert judged(documented()).caller is CALLER


@pytest.mark.parametrize(
    ("host", "verified"),
    [
        ("https://b.example:8443/x", True),
        ("https://B.example", True),
        ("https://b.example.evil.example", False),
        ("https://other.example/b.example", False),
        ("http://[::1]/", False),
        ("self", False),
    ],
)
def test_a_context_is_verified_where_its_host_has_signed_it(host: str, verified: bool) -> None:  # noqa: FBT001
    told = replace(TOLD, host=host)
    found = judged(replace(documented(), context=told))
    assert found.caller == replace(CALLER, context=replace(told, verified=verified))


def test_what_comes_with_a_token_is_claimed() -> None:
    found = judged(replace(documented(), proof=None, context=TOLD))
    assert found.caller.context == TOLD
