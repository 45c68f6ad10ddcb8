"""What a caller says of itself: whether it is believed, and the budget `chain_depth`."""

import pytest
from msgspec.structs import replace

from carnet.core.chain.carnet import Mark
from carnet.core.people.caller_host import CallerHost
from carnet.core.people.identity import Context, Secret, StatedContext
from carnet.errors import CallerNotVerified, DepthExceeded
from carnet.guards.candidate import Candidate
from carnet.guards.context import Hosts, spend_depth
from carnet.ports.trust.callers import NO_CALLERS
from tests.guards.scene import claim, proved
from tests.guards.signed_scene import document, travelled

STATED = StatedContext(agent="critic", user=7, host="https://b.example:8443/x", root="req-1")
HOST = CallerHost(url="https://b.example:8443/x", certificate="CN=b", metadata={"team": "docs"})
KEY = "cck_right"


class Listed:
    """One host is listed."""

    def find(self, url: str, /) -> CallerHost | None:
        return HOST if url == HOST.url else None

    def holds(self, host: CallerHost, key: Secret, now: int, /) -> bool:
        return host is HOST and now > 0 and key == Secret(KEY)


def plain(stated: StatedContext, **more: object) -> Context:
    names = ("agent", "user", "host", "root", "depth")
    return Context(**{name: getattr(stated, name) for name in names} | more)


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
    stated = replace(STATED, host=host)
    proof = travelled(document=document())
    assert Hosts(NO_CALLERS).judge(stated, proof, 1) == (plain(stated, verified=verified), None)


def test_what_comes_with_a_token_alone_is_claimed() -> None:
    assert Hosts(Listed()).judge(STATED, None, 1) == (plain(STATED), None)
    unsigned = travelled(document=None)
    assert Hosts(Listed()).judge(STATED, unsigned, 1) == (plain(STATED), None)


def test_a_key_or_a_certificate_of_its_host_verifies_it() -> None:
    believed = (plain(STATED, verified=True, metadata={"team": "docs"}), HOST)
    assert Hosts(Listed()).judge(replace(STATED, key=Secret(KEY)), None, 1) == believed
    assert Hosts(Listed()).judge(replace(STATED, certificate="CN=b"), None, 1) == believed
    claimed = Hosts(Listed()).judge(replace(STATED, certificate="CN=other"), None, 1)
    assert claimed == (plain(STATED), None)


@pytest.mark.parametrize("host", [HOST.url, "https://unknown.example", "self"])
def test_a_key_that_does_not_hold_is_refused_whatever_is_listed(host: str) -> None:
    with pytest.raises(CallerNotVerified):
        Hosts(Listed()).judge(replace(STATED, host=host, key=Secret("cck_wrong")), None, 1)


@pytest.mark.parametrize(("recorded", "run"), [(False, None), (True, "req-1")])
def test_a_claimed_root_joins_no_run_but_that_of_a_recorded_task(
    recorded: bool,  # noqa: FBT001
    run: str | None,
) -> None:
    mark = Mark(stamp="caller_context", depth=1, last_depth=16, run="req-1", is_recorded=recorded)
    candidate = proved(replace(claim("echo", marks=(mark,)), context=STATED))
    assert candidate.position.run == run
    assert (candidate.position.depth, candidate.position.bound_by) == (1, "caller_context")


@pytest.mark.parametrize(("depth", "last"), [(0, 1), (1, 1)])
def test_a_budget_lowers_how_deep_a_chain_may_go(depth: int, last: int) -> None:
    candidate = Candidate(claim("echo", marks=(Mark(stamp="tangle", depth=depth),)), 1)
    candidate.position = replace(candidate.position, depth=depth)
    spend_depth(candidate, 2, "agent", 3)
    assert (candidate.position.last_depth, candidate.position.bound_by) == (last, "chain_depth")


def test_a_budget_never_raises_how_deep_a_chain_may_go() -> None:
    candidate = Candidate(claim("echo"), 1)
    spend_depth(candidate, 9, "token", 3)
    assert candidate.position.last_depth is None
    candidate.position = replace(candidate.position, last_depth=1, bound_by="tangle")
    spend_depth(candidate, 9, "token", 3)
    assert (candidate.position.last_depth, candidate.position.bound_by) == (1, "tangle")


def test_a_budget_that_has_ended_tells_what_it_is_and_of_which_chain() -> None:
    candidate = Candidate(claim("echo"), 1)
    candidate.context = plain(STATED)
    candidate.position = replace(candidate.position, depth=2)
    with pytest.raises(DepthExceeded) as refused:
        spend_depth(candidate, 2, "token", 3)
    assert refused.value.public_facts() == {
        "observed": 2,
        "limit": 2,
        "stamp": "chain_depth",
        "ceiling": 2,
        "root": "req-1",
    }
    assert "token" in refused.value.next_step
