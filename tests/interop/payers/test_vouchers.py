"""A voucher of one organisation pays for one call at another, and for nothing else."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import carnet
from carnet.core.people.identity import Secret
from carnet.errors import CarnetError
from carnet.runtime.client.key import ClientKey
from carnet.testing.wait import until
from carnet.wire.travel.voucher import read_voucher
from tests.faults.stores import holds, number
from tests.interop.payers.conftest import Payers, tells_revoked
from tests.support.http import Reply, chat_body, request


def refused(reply: Reply) -> str:
    """Why a payment was refused; nothing was recorded, and the next step is told."""
    error = reply.json["error"]
    assert (reply.status, error["code"]) == (402, "payment_refused"), reply
    assert error["hint"], error
    return str(error["reason"])


def test_a_voucher_pays_in_the_place_of_its_holder(payers: Payers) -> None:
    made = payers.acme.json(
        "vouchers", "issue", "globex.example", "0.5", "--account", "alice", "--expires", "1h"
    )
    reply = payers.pay(made["voucher"])
    assert (reply.status, reply.text) == (200, "hello")
    assert reply.json["usage"]["cost"] == "0.0002"
    run = reply.headers["x-tangle-runid"]
    assert payers.billed(run) == [("acme.example", f"alice#{made['id']}", "agent:paid", 200)]


def test_a_voucher_is_used_once_and_its_call_may_be_repeated(payers: Payers) -> None:
    voucher = payers.issue()
    named = [("x-tangle-runid", "conv_voucher_once"), ("x-tangle-turnid", "conv_voucher_once.t0.p")]
    first = payers.pay(voucher, headers=named)
    assert first.status == 200
    assert refused(payers.pay(voucher)) == "used"
    again = payers.pay(voucher, headers=named)
    assert (again.status, again.body) == (200, first.body)
    assert len(payers.billed("conv_voucher_once")) == 1


def test_of_many_that_show_a_voucher_at_once_one_is_answered(payers: Payers) -> None:
    voucher = payers.issue()
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: payers.pay(voucher), range(8)))
    assert sorted(reply.status for reply in replies) == [200] + [402] * 7
    assert {refused(reply) for reply in replies if reply.status != 200} == {"used"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"amount": 100}, "amount"),
        ({"audience": "initech.example"}, "audience"),
        ({"currency": "euro"}, "currency"),
        ({"issuer": "unknown.example"}, "issuer"),
        ({"issuer": "acme.example"}, "forged"),
        ({"issuer": "globex.example"}, "forged"),
        ({"holder": "initech.example"}, "holder"),
        ({"holder": "token:somebody"}, "holder"),
        ({"issued": 1_000_000, "expires": 1_000_600}, "expired"),
        ({"issued": 4_000_000_000, "expires": 4_000_000_600}, "early"),
        ({"issued": 1_000_000, "expires": 4_000_000_600}, "unreadable"),
    ],
)
def test_what_is_wrong_with_a_voucher_is_told_and_nobody_pays(
    payers: Payers, changes: dict[str, Any], reason: str
) -> None:
    before = number(payers.globex, "SELECT COUNT(*) FROM turn")
    assert refused(payers.pay(payers.forge(**changes))) == reason
    assert number(payers.globex, "SELECT COUNT(*) FROM turn") == before


def test_a_voucher_that_was_changed_is_refused(payers: Payers) -> None:
    head, body, tail = payers.forge().split(".")
    for broken in (
        f"{head}.{body}.{tail[:-4]}AAAA",
        f"{head}.{payers.forge(amount=9_000_000).split('.')[1]}.{tail}",
    ):
        assert refused(payers.pay(broken)) == "forged"
    for broken in (
        f"{head}.{body}",
        "voucher_",
        f"{head}.{body}.{tail}.x",
        f"{head}.{body}.{tail}=",
    ):
        assert refused(payers.pay(broken)) == "unreadable"


def test_what_is_too_small_says_what_is_needed(payers: Payers) -> None:
    error = payers.pay(payers.forge(amount=100)).json["error"]
    assert (error["needed"], error["covers"]) == ("0.0002", "0.0001")
    assert "larger" in error["hint"]


def test_one_that_is_made_out_to_somebody_is_taken_of_nobody_else(payers: Payers) -> None:
    guest = payers.globex.new_token("guest-of-acme")
    voucher = payers.issue("1", "--for", "guest-of-acme")
    assert refused(payers.pay(voucher)) == "holder"
    assert payers.pay(voucher, token=guest).status == 200


def test_a_voucher_that_was_revoked_is_refused(payers: Payers) -> None:
    made = payers.acme.json("vouchers", "issue", "globex.example", "1")
    kept = payers.acme.json("vouchers", "issue", "globex.example", "1")
    payers.acme.carnet("vouchers", "revoke", made["id"])
    until(lambda: tells_revoked(payers.acme, made["id"]))
    payers.globex.stop()  # what it has learned of Acme is forgotten: it may be a minute old
    payers.globex.start()
    assert refused(payers.pay(made["voucher"])) == "revoked"
    assert payers.pay(kept["voucher"]).status == 200
    states = {each["id"]: each["state"] for each in _listed(payers)}
    assert (states[made["id"]], states[kept["id"]]) == ("revoked", "live")


def test_while_it_cannot_be_learned_whether_it_was_revoked_no_voucher_is_taken(
    payers: Payers,
) -> None:
    voucher = payers.issue()
    payers.acme.stop()
    payers.globex.stop()
    payers.globex.start()
    try:
        assert refused(payers.pay(voucher)) == "unsure"
        assert payers.pay(payers.forge()).status == 200  # its key was written down: nobody is asked
    finally:
        payers.acme.start()
        payers.globex.stop()  # that Acme did not answer is forgotten
        payers.globex.start()


def _listed(payers: Payers) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = payers.acme.json("vouchers", "list", "--all")["vouchers"]
    return found


def test_a_voucher_of_our_own_is_good_at_our_own_gateway_until_it_is_revoked(
    payers: Payers,
) -> None:
    globex = payers.globex
    made = [globex.json("vouchers", "issue", "globex.example", "1") for _ in range(2)]
    reply = payers.pay(made[0]["voucher"])
    assert reply.status == 200
    (posting,) = payers.billed(reply.headers["x-tangle-runid"])
    assert posting[:2] == ("globex.example", f"operator#{made[0]['id']}")
    globex.carnet("vouchers", "revoke", made[1]["id"])
    until(lambda: tells_revoked(globex, made[1]["id"]))
    assert refused(payers.pay(made[1]["voucher"])) == "revoked"


def test_an_issuer_owes_no_more_than_its_credit_whatever_it_has_promised(payers: Payers) -> None:
    globex = payers.globex
    key = ClientKey(bytes(range(1, 33)))
    globex.carnet(
        "peers", "add", "poor.example", "--url", "http://127.0.0.1:9", "--credit", "0.0003"
    )
    globex.carnet(
        *("peers", "add", "agent://poor.example", "--key", key.public_text, "--kid", key.kid)
    )
    poor = payers._replace(stark=key)
    assert poor.pay(poor.forge(issuer="poor.example")).status == 200
    short = poor.pay(poor.forge(issuer="poor.example"))
    assert (short.status, short.code) == (402, "payment_required")
    assert "left" not in short.json["error"]  # what Poor still has is nobody else's to know


def test_all_that_is_called_for_a_call_is_paid_by_its_voucher_and_no_more(payers: Payers) -> None:
    voucher = payers.forge(amount=500)
    reply = payers.pay(voucher, agent="shopping", text="2")
    assert reply.status == 200
    run = reply.headers["x-tangle-runid"]
    assert [amount for *_, amount in payers.billed(run) if amount] == [200, 200]
    assert {issuer for issuer, *_ in payers.billed(run)} == {"stark.example"}
    dear = payers.pay(payers.forge(amount=500), agent="shopping", text="3")
    assert (dear.status, dear.code) == (402, "budget_exceeded")
    spent = payers.billed(dear.headers.get("x-tangle-runid", "") or dear.json["error"]["run"])
    assert sum(amount for *_, amount in spent) == 400


def test_what_costs_more_than_a_voucher_covers_is_owed_by_who_called(payers: Payers) -> None:
    guest = payers.globex.new_token("spendthrift")
    # 4,096 tokens are expected of an answer; this one has twice as many.
    reply = payers.pay(payers.forge(amount=5000), agent="wordy", text="8192", token=guest)
    assert reply.status == 200
    run = reply.headers["x-tangle-runid"]
    owed = {credit: amount for _, _, credit, amount in payers.billed(run)}
    assert owed == {"agent:wordy": 5000, "unpaid:token:spendthrift": 3192}
    refused_now = payers.globex.chat("1", "wordy", token=guest)
    assert (refused_now.status, refused_now.code) == (402, "bill_unpaid")
    with_another = payers.pay(payers.forge(), agent="wordy", text="1", token=guest)
    assert (with_another.status, with_another.code) == (402, "bill_unpaid")
    assert payers.pay(payers.forge(), agent="wordy", text="1").status == 200  # Stark owes nothing


def test_who_shows_a_voucher_agrees_to_no_further_payment_of_its_issuer(payers: Payers) -> None:
    voucher = payers.forge()
    named = [("x-tangle-runid", "conv_seller_v"), ("x-tangle-turnid", "conv_seller_v.t0.seller")]
    asked = payers.pay(voucher, agent="seller", headers=named)
    assert asked.status == 402
    state = asked.json["error"]["interrupt"]["state"]
    agreed = [*named, ("carnet-resolution", f"{state};outcome=accepted")]
    answer = payers.pay(voucher, agent="seller", headers=agreed)
    assert (answer.status, answer.code) == (403, "answer_forbidden")
    asked_here = payers.globex.json("inbox")["approvals"]
    assert state not in json.dumps(asked_here)
    declined = [*named, ("carnet-resolution", f"{state};outcome=rejected")]
    assert payers.pay(voucher, agent="seller", headers=declined).text == "not sold"


def test_two_payers_are_refused(payers: Payers) -> None:
    listed = payers.globex.new_token("listed-payer", "--may-forward-authorization")
    forwarded = [("x-tangle-forwarded-authorization", f"Bearer {payers.forge()}")]
    both = payers.pay(payers.forge(), headers=forwarded, token=listed)
    assert refused(both) == "several"
    twice = payers.globex.chat(
        "hi", "paid", headers=[("carnet-payment", payers.forge()), ("x-payment", "e30=")]
    )
    assert refused(twice) == "several"


def test_a_forwarded_voucher_is_taken_of_listed_callers_alone(payers: Payers) -> None:
    listed = payers.globex.new_token("listed-voucher", "--may-forward-authorization")
    voucher = payers.forge()
    forwarded = [("x-tangle-forwarded-authorization", f"Bearer {voucher}")]
    stranger = payers.globex.chat("hi", "paid", headers=forwarded)
    assert (stranger.status, stranger.code) == (403, "forwarding_not_allowed")
    reply = payers.globex.chat("hi", "paid", headers=forwarded, token=listed)
    assert reply.status == 200
    (posting,) = payers.billed(reply.headers["x-tangle-runid"])
    assert (posting[0], posting[3]) == ("stark.example", 200)
    again = payers.globex.chat("hi", "paid", headers=forwarded, token=listed)
    assert refused(again) == "used"


def test_who_may_not_spend_spends_no_voucher(payers: Payers) -> None:
    poor = payers.globex.new_token("no-pay", "--scope", "call:*")
    reply = payers.pay(payers.forge(), token=poor)
    assert (reply.status, reply.code) == (403, "permission_missing")


async def test_a_stranger_with_a_voucher_is_answered_where_it_had_to_pay(payers: Payers) -> None:
    url = f"{payers.globex.url}/agents/open"
    key = ClientKey(bytes(range(2, 34)))
    payers.globex.carnet(
        *("peers", "add", f"agent://client-{key.kid}", "--key", key.public_text, "--kid", key.kid)
    )
    async with carnet.connect(url, key=key, identity="agent://open.globex.example") as agent:
        with pytest.raises(CarnetError) as alone:
            await agent.call("chat", text="hi")
        assert alone.value.code in {"payment_required", "peer_refused"}
    voucher = payers.forge()
    async with carnet.connect(
        url, key=key, identity="agent://open.globex.example", voucher=voucher
    ) as agent:
        assert await agent.call("chat", text="hi") == {"text": "hi"}
        with pytest.raises(CarnetError) as spent:
            await agent.call("chat", text="again")
        assert "402" in str(spent.value) or spent.value.status == 402
        other = agent.within(voucher=payers.forge())
        assert await other.call("chat", text="more") == {"text": "more"}


def test_a_task_is_paid_by_the_voucher_that_it_was_handed_over_with(payers: Payers) -> None:
    voucher = payers.forge()
    fields = [
        ("authorization", f"Bearer {payers.globex.token}"),
        ("content-type", "application/json"),
        ("carnet-payment", voucher),
    ]
    begun = request("POST", f"{payers.globex.url}/tasks", fields, chat_body("hi", "paid"))
    assert begun.status == 202, begun
    task = begun.json["taskId"]

    def ended() -> bool:
        return bool(payers.globex.get(f"/tasks/{task}").json["status"] == "done")

    until(ended)
    sql = "SELECT COUNT(*) FROM ledger WHERE issuer = 'stark.example' AND account LIKE ?"
    assert number(payers.globex, sql, f"%{_id(voucher)}") == 1


def _id(voucher: str) -> str:
    return read_voucher(Secret(voucher)).id


def test_a_voucher_stands_in_no_log_no_record_and_no_error(payers: Payers) -> None:
    voucher = payers.issue()
    bad = payers.forge(amount=100)
    replies = [payers.pay(voucher), payers.pay(voucher), payers.pay(bad), payers.pay(bad + "x")]
    assert [reply.status for reply in replies] == [200, 402, 402, 402]
    for text in (voucher, bad):
        signature = text.rpartition(".")[2]
        assert all(signature.encode() not in reply.body for reply in replies)
        for gateway in (payers.acme, payers.globex):
            assert not holds(gateway, signature)
            assert signature not in gateway.log.read_text()


def test_the_command_line_pays_with_a_voucher(payers: Payers) -> None:
    voucher = payers.forge()
    kept = payers.globex.folder / "voucher.txt"
    kept.write_text(voucher + "\n")
    shown = payers.globex.carnet("call", "paid", "hi", "--voucher", str(kept), "--dry-run").stdout
    assert "carnet-payment: ***" in shown
    assert voucher not in shown
    page = payers.globex.json("call", "paid", "hi", "--voucher", str(kept))
    assert page["usage"]["cost"] == "0.0002"
    done = payers.globex.try_carnet("call", "paid", "hi", "--voucher", str(kept))
    assert done.returncode == 1
    assert "used before" in done.stderr
    by_variable = {"CARNET_VOUCHER": payers.forge()}
    assert payers.globex.try_carnet("call", "paid", "hi", env=by_variable).returncode == 0


def test_inspecting_a_voucher_says_whether_it_would_be_taken_and_does_not_use_it(
    payers: Payers,
) -> None:
    voucher = payers.issue("0.5", "--for", "acme.example")
    for _ in range(2):
        page = payers.globex.json("vouchers", "inspect", voucher)
        assert (page["holds"], page["amount"], page["holder"]) == (True, "0.5", "acme.example")
        assert voucher not in json.dumps(page)
    spent = payers.forge()
    assert payers.pay(spent).status == 200
    done = payers.globex.try_carnet("--format", "json", "vouchers", "inspect", spent)
    assert done.returncode == 4
    assert json.loads(done.stdout)["why"] == "it was used before"
    there = payers.acme.try_carnet("--format", "json", "vouchers", "inspect", voucher)
    assert json.loads(there.stdout)["why"] == "it is for another gateway"
