"""The vocabulary of permissions: what can be granted, and what two sets leave together."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from carnet.core.people.identity import allows
from carnet.core.people.permissions import (
    NAMES,
    PLAIN,
    ROLES,
    both,
    is_permission,
    rights_of,
    written_out,
)

ASKED = st.sampled_from([*NAMES, "call:echo", "call:x", "admin:nothing", "tool:x", "run:x"])
GRANTED = st.frozensets(st.sampled_from([*NAMES, "call:echo", "*", "run:*", "admin:*"]))


@pytest.mark.parametrize("name", [*NAMES, "call:echo", "call:bridge/x", "*", "run:*", "admin:*"])
def test_a_name_that_is_acted_on_can_be_granted(name: str) -> None:
    assert is_permission(name)


@pytest.mark.parametrize(
    "name", ["tool:", "tools:x", "admin:nothing", "run:write", "call:", "", "**", "people", "*:*"]
)
def test_a_name_that_nothing_acts_on_cannot_be_granted(name: str) -> None:
    assert not is_permission(name)


def test_each_role_holds_the_one_before_it() -> None:
    assert list(ROLES) == ["viewer", "operator", "admin"]
    assert ROLES["viewer"] < ROLES["operator"] < ROLES["admin"]
    assert ROLES["operator"] >= PLAIN
    assert ROLES["admin"] == set(NAMES)
    assert not allows(ROLES["operator"], "admin:people")


def test_what_stands_for_all_is_written_out_when_it_is_granted() -> None:
    assert written_out({"*"}) == set(NAMES)
    assert written_out({"run:*", "pay"}) == {"run:read", "run:cancel", "pay"}
    assert written_out({"call:*", "call:echo"}) == {"call:*", "call:echo"}


@given(GRANTED, GRANTED, ASKED)
def test_two_sets_leave_what_both_allow_and_nothing_else(
    one: frozenset[str], other: frozenset[str], asked: str
) -> None:
    assert allows(both(one, other), asked) == (allows(one, asked) and allows(other, asked))


@given(GRANTED, ASKED)
def test_what_was_written_out_never_allows_more(granted: frozenset[str], asked: str) -> None:
    assert not allows(written_out(granted), asked) or allows(granted, asked)


def test_a_role_that_is_not_known_gives_nothing() -> None:
    assert rights_of(["nobody"], []) == frozenset()
    assert rights_of(["viewer"], ["metrics"]) == {"run:read", "metrics"}
