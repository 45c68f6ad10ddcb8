"""Whose word is believed of what, and whom rules admit."""

import pytest

from carnet.core.people.evidence import (
    AllowRule,
    Evidence,
    ProvedNames,
    TrustedIssuer,
    denied_by,
    fits,
    is_of,
)
from carnet.core.people.grant import Grant, consented, payer_of
from carnet.core.people.identity import Account, Payer

FOUND = Evidence(subject="slack:T123/U4", issuer="slack.example", method="m", assurance="platform")


def test_an_issuer_is_believed_as_far_as_it_is_trusted() -> None:
    """M28."""
    trusted = TrustedIssuer(issuer="slack.example", subject_prefixes=("slack:T123/",))
    assert trusted.admits(FOUND)
    for other in (
        TrustedIssuer(issuer="other.example", subject_prefixes=("slack:T123/",)),
        TrustedIssuer(issuer="slack.example", subject_prefixes=("slack:T999/",)),
        TrustedIssuer(issuer="slack.example", methods=("n",), subject_prefixes=("slack:",)),
        TrustedIssuer(issuer="slack.example", assurance=("wallet",), subject_prefixes=("slack:",)),
        TrustedIssuer(issuer="slack.example"),
    ):
        assert not other.admits(FOUND)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        *((name, True) for name in ("b.example", "agent://b.example", "agent://x.b.example")),
        *((name, True) for name in ("@x@b.example", "mailto:x@b.example", "acct:x@b.example")),
        *((name, False) for name in ("@x@a.example", "slack:x.b.example", "agent://xb.example")),
        *((name, False) for name in ("slack:T1/x@b.example", "@x@y@b.example", "xb.example", "")),
    ],
)
def test_a_name_is_of_an_issuers_own_domain_or_not(name: str, own: bool) -> None:  # noqa: FBT001
    assert is_of(name, "b.example") is own
    assert is_of(name, "@issuer@b.example") is own


def test_a_star_stands_at_the_end_alone() -> None:
    assert fits("slack:*", "slack:T1")
    assert fits("*", "")
    assert not fits("*@b.example", "@x@b.example")
    assert fits("@x@b.example", "@x@b.example")


def test_the_nearest_rule_is_told() -> None:
    rules = (
        AllowRule(subject="@c@c.example"),
        AllowRule(subject="@a@a.example", on_behalf_of="mailto:*"),
        AllowRule(subject="@a@a.example", action="book"),
    )
    alone = [ProvedNames(("@a@a.example",))]
    assert denied_by(rules, "chat", alone) == (2, "on_behalf_of")
    assert denied_by(rules, "chat", [ProvedNames(("@a@a.example",), "mailto:u@x")]) is None
    assert denied_by(rules, "book", alone) is None
    assert denied_by(rules, "chat", [ProvedNames(("@z@z.example",))]) == (1, "subject")
    assert denied_by((), "chat", alone) == (1, "subject")


def test_whom_it_acts_for_is_that_of_the_same_evidence() -> None:
    rules = (AllowRule(subject="@a@a.example", on_behalf_of="mailto:u@x"),)
    apart = [ProvedNames(("@a@a.example",)), ProvedNames(("@b@b.example",), "mailto:u@x")]
    assert denied_by(rules, "chat", apart) == (1, "on_behalf_of")


PEER = Payer(account=Account("b.example", "b.example"), quota="peer:b.example", own_issue=False)


def test_consent_is_the_senders_own_word() -> None:
    """R41."""
    agreed = Evidence(
        subject="@a@b.example",
        issuer="b.example",
        method="m",
        on_behalf_of=("mailto:u@x",),
        claims={"consent": "payment"},
    )
    found = consented(PEER, [FOUND, agreed], "agent://b.example")
    assert (found.account, found.quota) == (Account("b.example", "mailto:u@x"), PEER.quota)
    assert consented(PEER, [agreed], "agent://c.example") == PEER
    own = Payer(account=Account("a.example", "alice"), quota="token:alice")
    assert consented(own, [agreed], "agent://b.example") == own
    assert agreed.principal == "mailto:u@x"
    assert FOUND.principal is None


def test_subjects_of_one_issuer_share_what_it_may_owe() -> None:
    grant = Grant(
        issuer="https://login.example/x", subject="u", scopes=frozenset(), expires=1, credit=7
    )
    payer = payer_of(grant)
    assert (payer.account, payer.quota, payer.limit) == (
        Account("login.example/x", "u"),
        "oauth:login.example/x",
        7,
    )
