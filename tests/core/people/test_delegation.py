"""Authority that narrows: what a link may grant, for how long, and who may pass it on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.people.delegation import (
    MOST_LINKS,
    MOST_SECONDS,
    Delegation,
    check_chain,
    check_link,
    check_loop,
    check_times,
    least,
    may_go_on,
    narrower,
)
from carnet.core.people.proof import SECOND_US, Spending
from carnet.errors import DelegationExceeded, DelegationInvalid, DelegationWidened, LoopDetected

NOW = 1_776_146_908
A, B, C, D = (f"agent://{name}.example" for name in "abcd")


def link(**more: Any) -> Delegation:
    """What A grants B, to be shown to C."""
    whole = {
        "issuer": A,
        "subject": B,
        "scope": ("read", "write"),
        "hops": 3,
        "issued": NOW,
        "expires": NOW + 600,
        "audience": C,
        **more,
    }
    return Delegation(**whole)


def below(parent: Delegation, **more: Any) -> Delegation:
    """What B passes on to D of what it holds."""
    given_on = {"issuer": B, "subject": D, "hops": parent.hops - 1, "parent": parent, **more}
    return replace(parent, **given_on)


def test_a_chain_begins_with_the_first_token() -> None:
    first = link()
    last = below(first)
    assert last.chain() == (first, last)
    assert (first.edges, last.edges) == (0, 1)


def test_what_is_printed_of_it_is_what_it_grants_and_never_the_token() -> None:
    first = link(text="eyJ.first.token", signed=b"signed-first", signature=b"mark-first")
    last = below(first, text="eyJ.last.token", signed=b"signed-last", signature=b"mark-last")
    printed = repr(last)
    assert printed.startswith("Delegation(issuer='agent://b.example', subject='agent://d.example'")
    assert "parent=Delegation(issuer='agent://a.example'" in printed
    assert not any(word in printed for word in ("token'", "eyJ", "signed-", "mark-"))
    assert last.text == "eyJ.last.token"


def test_what_it_says_of_earlier_ones_counts_as_passed_on() -> None:
    assert link(actors=(D, C)).edges == 2


def test_a_skill_is_covered_by_its_name_or_by_the_star() -> None:
    assert link().covers("read")
    assert not link().covers("pay")
    assert link(scope=("*",)).covers("pay")
    assert not link(scope=()).covers("read")


def test_the_first_link_that_is_good_for_one_call_is_the_one_that_is_spent() -> None:
    first = link()
    second = below(first, once=True, token_id="two")
    third = replace(second, token_id="three", parent=second)
    assert first.single_use() is None
    assert third.single_use() == second
    assert (first.single_use_link(), third.single_use_link()) == (1, 2)


# ---------------------------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"expires": NOW}, "it has expired"),
        ({"expires": NOW + MOST_SECONDS + 61}, "it is meant to hold for longer than 86400 seconds"),
        ({"issued": NOW + 61}, "it was issued in the future"),
        ({"not_before": NOW + 61}, "it does not hold yet"),
    ],
)
def test_a_link_whose_time_is_wrong_is_refused_and_named(more: dict[str, Any], reason: str) -> None:
    bad = link(**more)
    for last, number in ((bad, 1), (below(link(), **more), 2), (below(bad, **_GOOD_TIMES), 1)):
        with pytest.raises(DelegationInvalid) as refused:
            check_times(last, NOW * SECOND_US)
        assert refused.value.facts["reason"] == reason
        assert refused.value.facts["link"] == number


_GOOD_TIMES = {"issued": NOW, "expires": NOW + 600, "not_before": 0}


def test_a_minute_is_forgiven_between_two_clocks_but_not_at_the_end() -> None:
    good = link(issued=NOW + 60, not_before=NOW + 60, expires=NOW + MOST_SECONDS + 60)
    check_times(good, NOW * SECOND_US)
    check_times(link(expires=NOW + 1), NOW * SECOND_US + SECOND_US - 1)
    with pytest.raises(DelegationInvalid):
        check_times(link(expires=NOW + 1), NOW * SECOND_US + SECOND_US)


# ---------------------------------------------------------------------------------- links

BUDGET = Spending(money=100, currency="credits", calls=5, tokens=50)

WIDER: list[tuple[str, dict[str, Any]]] = [
    ("aud", {"audience": D}),
    ("aud", {"audience": None}),
    ("scope", {"scope": ("read", "pay")}),
    ("scope", {"scope": ("*",)}),
    ("exp", {"expires": NOW + 601}),
    ("maxDepth", {"hops": 3}),
    ("maxDepth", {"hops": 4}),
    ("once", {"once": False}),
    ("bud.money", {"budget": None}),
    ("bud.money", {"budget": replace(BUDGET, money=101)}),
    ("bud.money", {"budget": replace(BUDGET, currency="eur")}),
    ("bud.calls", {"budget": replace(BUDGET, calls=6)}),
    ("bud.calls", {"budget": replace(BUDGET, calls=None)}),
    ("bud.tokens", {"budget": replace(BUDGET, tokens=51)}),
    ("bud.tokens", {"budget": replace(BUDGET, tokens=None)}),
]


@pytest.mark.parametrize(("claim", "more"), WIDER)
def test_a_link_that_grants_more_is_refused_by_the_name_of_the_claim(
    claim: str, more: dict[str, Any]
) -> None:
    """A30."""
    parent = link(once=True, token_id="x", budget=BUDGET)
    check_link(parent, below(parent), 2)
    with pytest.raises(DelegationWidened) as refused:
        check_link(parent, below(parent, **more), 2)
    assert refused.value.public_facts() == {"link": 2, "claim": claim}


NARROWER: list[dict[str, Any]] = [
    {"scope": ("read",)},
    {"scope": ()},
    {"expires": NOW + 1},
    {"hops": 1},
    {"once": True},
    {"budget": replace(BUDGET, money=0, calls=0, tokens=0)},
    {"budget": BUDGET},
]


@pytest.mark.parametrize("more", NARROWER)
def test_a_link_may_grant_less(more: dict[str, Any]) -> None:
    check_link(link(), below(link(), **more), 2)


def test_a_scope_of_everything_may_be_narrowed_to_anything() -> None:
    parent = link(scope=("*",))
    check_link(parent, below(parent, scope=("anything",)), 2)
    check_link(parent, below(parent, scope=("*",)), 2)


def test_who_neither_holds_nor_was_addressed_passes_nothing_on() -> None:
    for stranger in (A, D, "agent://c.b.example"):
        with pytest.raises(DelegationInvalid) as refused:
            check_link(link(), below(link(), issuer=stranger), 3)
        assert refused.value.facts["link"] == 3


def test_who_was_addressed_may_go_on_to_anybody() -> None:
    check_link(link(), below(link(), issuer=C, subject=C, audience=D), 2)


def test_the_gateway_of_an_agent_goes_on_for_it() -> None:
    parent = link(audience="agent://desk.c.example")
    check_link(parent, below(parent, issuer=C, subject=C, audience=D), 2)
    assert not may_go_on("agent://example", link())
    assert not may_go_on(B, parent)


def test_a_token_for_nobody_in_particular_is_passed_on_by_its_holder_alone() -> None:
    parent = link(audience=None)
    check_link(parent, below(parent, audience=C), 2)
    with pytest.raises(DelegationInvalid):
        check_link(parent, below(parent, issuer=C), 2)


# ---------------------------------------------------------------------------------- chains


def test_a_chain_is_judged_link_by_link_and_the_bad_one_is_named() -> None:
    first = link(hops=9)
    second = replace(first, issuer=B, subject=D, hops=8, parent=first)
    third = replace(second, issuer=D, subject=A, hops=7, parent=second)
    check_chain(third)
    bad = replace(second, scope=("pay",))
    with pytest.raises(DelegationWidened) as refused:
        check_chain(replace(third, scope=("pay",), parent=bad))
    assert refused.value.facts["link"] == 2
    with pytest.raises(DelegationWidened) as refused:
        check_chain(replace(third, scope=("pay",)))
    assert refused.value.facts["link"] == 3


@pytest.mark.parametrize("hops", [0, -1])
def test_a_token_without_a_hop_left_is_refused(hops: int) -> None:
    check_chain(link(hops=1))
    with pytest.raises(DelegationExceeded):
        check_chain(link(hops=hops))


def test_a_chain_has_no_more_hops_than_its_first_link_gave() -> None:
    first = link(hops=1)
    with pytest.raises(DelegationExceeded):
        check_chain(below(first))


def test_a_chain_of_too_many_links_is_refused() -> None:
    last = link(hops=100)
    for _ in range(MOST_LINKS):
        last = replace(last, hops=last.hops - 1, parent=last)
    with pytest.raises(DelegationExceeded) as refused:
        check_chain(last)
    assert refused.value.facts["reason"] == "it has more than 8 links"


# ---------------------------------------------------------------------------------- loops


def own(identity: str) -> bool:
    return identity == C


def test_what_we_granted_may_be_shown_to_us_by_whoever_holds_it() -> None:
    """A31: authority that comes home is no loop."""
    first = link(issuer=C, audience=None)
    check_loop(first, own)
    check_loop(below(first), own)


@pytest.mark.parametrize(
    "last",
    [
        below(link(issuer=C, subject=C), issuer=B),
        below(link(), issuer=C),
        link(actors=(B, C)),
        link(actors=(B, D, B)),
        below(link(), issuer=A),
        link(subject=C),
    ],
)
def test_a_chain_that_was_here_before_or_passed_somebody_twice_is_a_loop(last: Delegation) -> None:
    """A31."""
    with pytest.raises(LoopDetected):
        check_loop(last, own)


# ---------------------------------------------------------------------------------- budgets

BOUND = st.none() | st.integers(0, 100)
BUDGETS = st.none() | st.builds(
    lambda money, calls, tokens, currency: Spending(
        money=money, calls=calls, tokens=tokens, currency=None if money is None else currency
    ),
    BOUND,
    BOUND,
    BOUND,
    st.sampled_from(["credits", "eur"]),
)


@given(BUDGETS, BUDGETS)
def test_the_narrower_of_two_budgets_is_within_both(
    one: Spending | None, other: Spending | None
) -> None:
    both = narrower(one, other)
    for each in (one, other):
        if each is None:
            continue
        assert both is not None
        for part in ("calls", "tokens", "money"):
            bound, left = getattr(each, part), getattr(both, part)
            assert bound is None or left <= bound
        assert each.money is None or both.money == 0 or both.currency == each.currency


def test_without_a_budget_there_is_none() -> None:
    assert narrower(None, None) is None
    assert narrower(BUDGET, None) == narrower(None, BUDGET) == BUDGET
    assert least(None, None) is None


def test_of_two_currencies_nothing_can_be_spent() -> None:
    euros = Spending(money=7, currency="eur")
    assert narrower(BUDGET, euros) == replace(BUDGET, money=0)


@given(BUDGETS, BUDGETS)
def test_what_is_derived_with_the_narrower_budget_is_never_wider(
    held: Spending | None, left: Spending | None
) -> None:
    parent = link(budget=held)
    check_link(parent, below(parent, budget=narrower(held, left)), 2)
