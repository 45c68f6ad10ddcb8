"""Rights: an intersection, deny first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.people.identity import (
    NO_CEILING,
    Account,
    Actor,
    Caller,
    Ceiling,
    Payer,
    Standing,
    Token,
    allows,
)

PERMISSIONS = st.sampled_from(["call:echo", "call:critic", "call:remote", "pay", "tool:sh"])
GRANTS = st.frozensets(st.one_of(PERMISSIONS, st.sampled_from(["*", "call:*", "tool:*"])))


def caller(scopes: frozenset[str], ceiling: Ceiling = NO_CEILING) -> Caller:
    return Caller(actor=Actor(name="token:alice"), scopes=scopes, ceiling=ceiling)


@pytest.mark.parametrize(
    ("granted", "permission", "held"),
    [
        ({"call:echo"}, "call:echo", True),
        ({"call:echo"}, "call:critic", False),
        ({"call:*"}, "call:critic", True),
        ({"call:*"}, "pay", False),
        ({"*"}, "admin:tokens", True),
        (set(), "pay", False),
    ],
)
def test_a_star_stands_for_all_of_its_noun(
    granted: set[str], permission: str, *, held: bool
) -> None:
    assert allows(frozenset(granted), permission) is held


def test_deny_wins_over_allow() -> None:
    ceiling = Ceiling(allow=frozenset({"call:*"}), deny=frozenset({"call:remote"}))
    assert ceiling.allows("call:echo")
    assert not ceiling.allows("call:remote")
    assert not ceiling.allows("pay")


def test_without_an_allow_list_everything_not_denied_is_allowed() -> None:
    assert NO_CEILING.allows("pay")
    assert not NO_CEILING.allows("")
    assert not Ceiling(deny=frozenset({"pay"})).allows("pay")


@given(scopes=GRANTS, allow=st.none() | GRANTS, deny=GRANTS, permission=PERMISSIONS)
def test_a_right_is_held_only_within_scopes_and_ceiling(
    scopes: frozenset[str], allow: frozenset[str] | None, deny: frozenset[str], permission: str
) -> None:
    ceiling = Ceiling(allow=allow, deny=deny)
    may = caller(scopes, ceiling).may(permission)
    assert may is (allows(scopes, permission) and ceiling.allows(permission))
    assert not (may and allows(deny, permission))


def test_an_account_is_written_with_its_issuer_and_sorts_by_it() -> None:
    assert str(Account("globex.example", "critic")) == "critic@globex.example"
    assert Account("a", "z") < Account("b", "a")


def test_a_payer_is_an_account_of_ours_unless_said() -> None:
    payer = Payer(account=Account("acme.example", "alice"), quota="token:alice")
    assert (payer.limit, payer.own_issue, payer.by_forwarding) == (None, True, False)


def test_trust_is_earned_by_a_signature_a_token_or_a_listing() -> None:
    stranger = Standing(sender="agent://x.example")
    holder = Standing(sender="agent://x.example", authenticated=True)
    listed = Standing(sender="agent://x.example", listed=True)
    assert [caller.meets("public") for caller in (stranger, holder, listed)] == [True] * 3
    assert [caller.meets("authenticated") for caller in (stranger, holder, listed)] == [
        *(False, True, False),
    ]
    assert [caller.meets("trusted-peers") for caller in (stranger, holder, listed)] == [
        *(False, False, True),
    ]


def test_a_list_of_peers_is_the_whole_list() -> None:
    listed = Standing(sender="agent://x.example", listed=True)
    assert not listed.meets("trusted-peers", ())
    assert listed.meets("trusted-peers", ("agent://x.example",))


def test_without_a_ceiling_the_scopes_decide_and_a_right_without_a_name_is_nobodys() -> None:
    assert caller(frozenset({"call:*"})).may("call:echo")
    assert not caller(frozenset({"call:*"})).may("pay")
    assert not caller(frozenset({"*"})).may("")


def token(name: str = "alice", *, expires: int | None = None, revoked: int | None = None) -> Token:
    return Token(
        n=1,
        name=name,
        hash=b"",
        prefix="ck_",
        scopes=frozenset(),
        created=1,
        expires=expires,
        revoked=revoked,
    )


def test_all_tokens_of_one_name_have_one_account() -> None:
    assert [token(name).account for name in ("alice", "alice#phone", "alice#a#b")] == ["alice"] * 3


def test_a_token_that_a_command_made_for_itself_is_told_from_one_of_the_operator() -> None:
    assert token("operator#17").is_of_command
    assert not token("operator").is_of_command
    assert not token("alice#phone").is_of_command


def test_a_token_lives_until_it_expires_or_is_revoked() -> None:
    assert token().is_live(10)
    assert token(expires=11).is_live(10)
    assert not token(expires=10).is_live(10)
    assert not token(expires=11, revoked=5).is_live(10)
