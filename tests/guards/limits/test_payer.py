"""Who pays: forwarded credentials, own accounts, agents that pay themselves."""

import pytest
from msgspec.structs import replace

from carnet.core.chain.carnet import Mark
from carnet.core.people.identity import Account, Payer, Secret
from carnet.errors import ForwardingNotAllowed, PayerRefused, PermissionMissing
from carnet.guards import limits
from carnet.guards.caller import authentication
from carnet.guards.caller.authentication import KnownCaller
from carnet.guards.candidate import Candidate
from carnet.guards.limits import Paying
from tests.guards.scene import DOMAIN, claim, directory, known_peers, known_tokens, proved

STRANGER = "Bearer sk-tan-user-123"


def pay(candidate: Candidate) -> Payer:
    Paying(tokens=known_tokens(), peers=known_peers(), domain=DOMAIN)(candidate)
    return candidate.payer


def test_without_a_forwarded_credential_the_caller_pays() -> None:
    payer = pay(proved(claim("paid")))
    assert payer == Payer(account=Account(DOMAIN, "alice"), quota="token:alice", limit=1000)


def test_what_is_remembered_of_a_token_is_forgotten_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authentication, "MOST_REMEMBERED", 1)
    monkeypatch.setattr(limits, "MOST_REMEMBERED", 1)
    tokens = known_tokens()
    knowing = KnownCaller(tokens, lambda _: False)
    paying = Paying(tokens=tokens, peers=known_peers(), domain=DOMAIN)

    def shown(token: str) -> Candidate:
        candidate = Candidate(claim("paid", token=token), 0)
        knowing(candidate)
        candidate.target = directory().find("paid")
        paying(candidate)
        return candidate

    first = shown("ck_alice")
    again = shown("ck_alice")
    assert (again.caller is first.caller, again.payer is first.payer) == (True, True)
    other = shown("ck_roaming")
    assert (other.caller.actor.name, other.payer.account.id) == ("token:roaming", "roaming")
    shown("ck_alice")
    scopes = frozenset({"call:*", "pay", "more"})
    hash_ = tokens.find(Secret("ck_alice")).hash  # type: ignore[union-attr]
    kept = tokens._by_hash  # noqa: SLF001  as a refresh replaces it
    kept[hash_] = replace(kept[hash_], spending_limit=7, scopes=scopes)
    changed = shown("ck_alice")
    assert changed.payer.limit == 7
    assert "more" in changed.caller.scopes


def test_a_peer_pays_from_its_own_account_up_to_its_credit() -> None:
    payer = pay(proved(claim("paid", token="ck_b")))
    assert payer.account == Account("b.example", "b.example")
    assert (payer.quota, payer.limit, payer.own_issue) == ("peer:b.example", 300, False)


def test_a_peer_that_is_only_a_token_has_no_credit() -> None:
    assert pay(proved(claim("paid", token="ck_c"))).limit == 0


def test_a_forwarded_credential_from_a_caller_that_is_not_listed_bills_nobody() -> None:
    for token in ("ck_alice", "ck_c"):
        with pytest.raises(ForwardingNotAllowed):
            pay(proved(claim("paid", token=token, forwarded=STRANGER)))


def test_a_credential_of_somebody_else_becomes_an_account_the_peer_vouches_for() -> None:
    candidate = proved(claim("paid", token="ck_b", forwarded=STRANGER))
    payer = pay(candidate)
    assert payer.account.issuer == "b.example"
    assert payer.account.id.startswith("fp_")
    assert (payer.quota, payer.limit) == ("peer:b.example", 300)
    assert payer.by_forwarding
    assert candidate.credential is not None
    assert candidate.credential.reveal() == STRANGER


def test_a_listed_token_without_a_domain_vouches_in_its_own_name() -> None:
    payer = pay(proved(claim("paid", token="ck_listed", forwarded=STRANGER)))
    assert (payer.account.issuer, payer.quota, payer.limit) == ("token:listed", "token:listed", 50)


def test_a_forwarded_credential_of_ours_pays_from_its_own_account() -> None:
    payer = pay(proved(claim("paid", token="ck_b", forwarded="Bearer ck_alice")))
    assert payer.account == Account(DOMAIN, "alice")
    assert payer.own_issue
    assert payer.by_forwarding


@pytest.mark.parametrize("spent", ["ck_old", "ck_broke"])
def test_a_forwarded_credential_of_ours_that_cannot_pay_is_never_replaced(spent: str) -> None:
    with pytest.raises(PayerRefused):
        pay(proved(claim("paid", token="ck_b", forwarded=f"Bearer {spent}")))


def test_a_caller_without_the_right_to_pay_may_not_call_what_has_a_price() -> None:
    with pytest.raises(PermissionMissing):
        pay(proved(claim("paid", token="ck_broke")))
    assert pay(proved(claim("echo", token="ck_broke"))).account.id == "broke"


def test_a_forwardable_token_is_forwarded_from_the_origin_byte_for_byte() -> None:
    candidate = proved(claim("@critic@b.example", token="ck_roaming"))
    pay(candidate)
    assert candidate.credential is not None
    assert candidate.credential.reveal() == "Bearer ck_roaming"


def test_a_token_that_is_not_forwardable_stays_here() -> None:
    candidate = proved(claim("@critic@b.example"))
    pay(candidate)
    assert candidate.credential is None


def test_below_the_origin_a_callers_own_token_is_never_forwarded() -> None:
    mark = Mark(stamp="tangle", depth=1, last_depth=3, run="conv_1")
    candidate = proved(claim("@critic@b.example", token="ck_roaming", marks=(mark,)))
    pay(candidate)
    assert candidate.credential is None


def test_an_agent_owned_call_is_paid_by_the_agent_and_carries_no_credential() -> None:
    candidate = proved(claim("own", token="ck_roaming"))
    payer = pay(candidate)
    assert payer.account == Account(DOMAIN, "agent:own")
    assert candidate.credential is None
