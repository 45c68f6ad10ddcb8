"""What a caller says of itself beside what is proved: kept, and verified if its host signed it."""

import pytest
from msgspec.structs import replace

from carnet.core.people.identity import Actor, Caller, Context
from carnet.guards.candidate import in_context
from tests.guards.signed_scene import document, travelled

CONTEXT = Context(agent="critic", user=7, host="https://b.example:8443/x", root="req-1")
CALLER = Caller(actor=Actor(name="peer:b.example"), scopes=frozenset())


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
    context = replace(CONTEXT, host=host)
    caller = in_context(CALLER, context, travelled(document=document()))
    assert caller == replace(CALLER, context=replace(context, verified=verified))


def test_what_comes_with_a_token_is_claimed() -> None:
    assert in_context(CALLER, CONTEXT, None).context == CONTEXT
