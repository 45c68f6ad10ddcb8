"""Two organisations as two processes: one run, both hops, one payer, ledgers that agree."""

import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from carnet.testing.wait import PATIENCE_SECONDS, until
from tests.interop.conftest import Databases
from tests.support.federation import introduce, organisation
from tests.support.organisation import Organisation
from tests.support.recorder import recording
from tests.support.served import AGENTS, executions

SEVERAL = """
[agents.several]
kind = "python"
target = "agents:several"

[agents.lingers]
kind = "python"
target = "agents:slow"

[agents.shallow]
kind = "python"
target = "agents:echo"
max_depth = 2
"""

SEVERAL_AGENT = """

async def several(visit: carnet.Visit) -> str:
    async def one(name: str) -> str:
        try:
            return await visit.peer(name).ask("hi")
        except carnet.CarnetError as error:
            return error.code

    return " ".join(await asyncio.gather(*map(one, visit.text.split())))
"""


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, database: Databases
) -> Iterator[tuple[Organisation, Organisation]]:
    folder = tmp_path_factory.mktemp("pair")
    a = organisation(folder / "a", "a.example", database())
    b = organisation(folder / "b", "b.example", database())
    introduce(a, b)
    introduce(b, a)
    for gateway in (a, b):
        gateway.configure(SEVERAL, agents=AGENTS + SEVERAL_AGENT)
    a.start()
    b.start()
    yield a, b
    assert (a.stop(), b.stop()) == (0, 0)


Pair = tuple[Organisation, Organisation]


def total(entries: list[dict[str, str]], **having: str) -> Decimal:
    found = [e for e in entries if all(value in e[name] for name, value in having.items())]
    assert found
    return sum((Decimal(entry["amount"]) for entry in found), Decimal(0))


def test_a_call_crosses_two_gateways_and_both_ledgers_agree(pair: Pair) -> None:
    a, b = pair
    answer = a.json("call", "@paid@b.example", "hi")
    assert answer["choices"][0]["message"]["content"] == "hi"
    run = a.json("runs")["runs"][0]["run"]
    page = a.json("run", "show", run)
    (turn,) = page["turns"]
    (outbound,) = turn["legs"]
    assert (turn["depth"], turn["agent"], turn["state"]) == (0, "@paid@b.example", "done")
    assert (outbound["depth"], outbound["to"], outbound["cost"]) == (1, "@paid@b.example", "0.0002")
    theirs = b.json("ledger", "--run", run)["entries"]
    ours = a.json("ledger", "--run", run)["entries"]
    assert total(ours, credit="peer:b.example") == total(theirs, debit="@a.example")
    assert theirs[0]["debit"] == "a.example@a.example"  # the operator's token is not forwardable


def test_run_show_prints_both_hops_for_people(pair: Pair) -> None:
    a, _ = pair
    a.carnet("call", "@paid@b.example", "hello")
    run = a.json("runs")["runs"][0]["run"]
    text = a.carnet("run", "show", run).stdout
    assert run in text
    assert "@paid@b.example" in text
    assert "0.0002" in text


def test_a_run_shows_calls_as_they_were_asked_for_and_what_refused_them(pair: Pair) -> None:
    a, _ = pair
    names = ["@nobody@b.example", "several", "echo", "@echo@b.example"]
    answer = a.chat(" ".join(names), "several", headers=[("x-tangle-runid", "conv_several")])
    assert answer.text == "peer_refused loop_detected hi hi"
    (turn,) = a.json("run", "show", "conv_several")["turns"]
    (loop,) = turn["legs"]
    assert (loop["to"], loop["code"], loop["ordinal"]) == ("several", "loop_detected", 1)
    assert (loop["peer_status"], loop["peer_code"]) == (None, None)  # it never left
    assert [child["ordinal"] for child in turn["children"]] == [0, 2, 3]
    (refused,) = turn["children"][0]["legs"]
    assert (refused["peer_status"], refused["peer_code"]) == (404, "agent_not_found")
    lines = a.carnet("run", "show", "conv_several").stdout.splitlines()
    assert [line.strip("├─└│→ ").split()[0] for line in lines[3:]] == [
        *("@nobody@b.example", "@nobody@b.example", "several", "echo"),
        *("@echo@b.example", "@echo@b.example"),
    ]
    assert "it said 404 agent_not_found  peer_refused  ◀ refused here" in lines[4]


def test_a_call_that_came_back_too_deep_is_shown_where_it_left(pair: Pair) -> None:
    a, _ = pair
    run = [("x-tangle-runid", "conv_too_deep")]
    assert a.chat("@relay@b.example @shallow@a.example hi", "relay", headers=run).status != 200
    (call,) = a.json("run", "show", "conv_too_deep")["turns"][0]["children"]
    (refused,) = [leg for leg in call["legs"] if leg["to"] == "shallow"]
    assert (refused["code"], refused["depth"]) == ("bridge_depth_exceeded", 2)
    lines = a.carnet("run", "show", "conv_too_deep").stdout.splitlines()
    assert ["→ shallow" in line for line in lines if "◀ refused here" in line].count(True) == 1


def test_a_run_that_a_person_cancelled_is_not_shown_as_refused(pair: Pair) -> None:
    a, b = pair
    run, text = [("x-tangle-runid", "conv_by_hand")], "@lingers@b.example 600"
    asking = threading.Thread(target=lambda: a.chat(text, "relay", headers=run))
    asking.start()
    until(lambda: executions(b.folder, "lingers"))
    assert a.json("run", "cancel", "conv_by_hand")["cancelled"]
    asking.join(PATIENCE_SECONDS)
    text = a.carnet("run", "show", "conv_by_hand").stdout
    assert "◀ cancelled here" in text
    assert "◀ refused here" not in text
    assert "◀ failed here" not in text


def test_a_forwardable_token_pays_at_the_callee(pair: Pair) -> None:
    a, b = pair
    token = a.new_token("roaming", "--forwardable")
    run = a.chat("hi", "@paid@b.example", token=token).headers["x-tangle-runid"]
    (entry,) = b.json("ledger", "--run", run)["entries"]
    account, _, issuer = entry["debit"].partition("@")
    assert issuer == "a.example"
    assert account != "a.example"
    assert token not in str(entry)
    (ours,) = a.json("ledger", "--run", run)["entries"]
    assert (ours["debit"], ours["credit"]) == ("roaming@a.example", "peer:b.example")
    assert ours["amount"] == entry["amount"]


def test_a_stream_crosses_both_gateways(pair: Pair) -> None:
    a, _ = pair
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    reply = a.chat("a b c", "@words@b.example", **options)
    assert reply.status == 200
    assert b'"content":"a "' in reply.body
    assert reply.body.endswith(b"data: [DONE]\n\n")
    done = a.carnet("call", "--stream", "@words@b.example", "x y z")
    assert done.stdout.strip() == "x y z"


def test_a_repeat_at_the_origin_does_not_reach_the_callee(pair: Pair) -> None:
    a, b = pair
    ids = [("x-tangle-runid", "conv_once"), ("x-tangle-turnid", "conv_once.t0.echo")]
    first = a.chat("hi", "@echo@b.example", headers=ids)
    again = a.chat("hi", "@echo@b.example", headers=ids)
    assert first.body == again.body
    assert len([turn for turn in executions(b.folder, "echo") if "conv_once" in turn]) == 1


def test_a_refusal_of_the_callee_names_its_code_and_is_not_retried(pair: Pair) -> None:
    a, _ = pair
    reply = a.chat("hi", "@nobody@b.example")
    assert (reply.status, reply.code) == (502, "peer_refused")
    assert reply.json["error"]["peer_code"] == "agent_not_found"


def test_the_last_hop_is_refused_before_anything_is_sent(pair: Pair) -> None:
    a, b = pair
    before = executions(b.folder, "echo")
    reply = a.chat("hi", "@echo@b.example", headers=[("x-tangle-forwarded-depth", "3")])
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    assert executions(b.folder, "echo") == before


def test_ledgers_agree_when_the_callee_fails_after_it_has_paid(pair: Pair) -> None:
    a, b = pair
    run = [("x-tangle-runid", "conv_spends")]
    reply = a.chat("hi", "@spends@b.example", headers=run)
    assert (reply.status, reply.code) == (502, "provider_error")
    assert reply.json["usage"]["cost"] == "0.0002"
    theirs = b.json("ledger", "--run", "conv_spends")["entries"]
    ours = a.json("ledger", "--run", "conv_spends")["entries"]
    assert total(ours, credit="peer:b.example") == total(theirs, debit="@a.example")
    assert len(executions(b.folder, "spends")) == 1  # one retry layer: the hop next to the fault


def test_what_is_cancelled_at_the_callee_stays_cancelled(pair: Pair) -> None:
    a, b = pair
    run = [("x-tangle-runid", "conv_stopped")]
    replies = []

    def ask() -> None:
        replies.append(a.chat("600", "@slow@b.example", headers=run))

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: executions(b.folder, "slow"))
    assert b.json("run", "cancel", "conv_stopped")["cancelled"] == 1
    asking.join(PATIENCE_SECONDS)
    assert replies[0].json["error"]["peer_code"] == "cancelled"
    assert len(executions(b.folder, "slow")) == 1


def test_a_peer_without_credit_gets_402_and_nothing_runs(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("credit")
    a, b = organisation(folder / "a", "a.example"), organisation(folder / "b", "b.example")
    introduce(a, b, credit="0")
    a.start()
    b.start()
    try:
        reply = a.chat("hi", "@paid@b.example")
        assert reply.json["error"]["peer_code"] == "payment_required"
        assert executions(b.folder, "paid") == []
        assert a.chat("hi", "@echo@b.example").status == 200
    finally:
        a.stop()
        b.stop()


def test_forwarding_to_a_peer_that_is_not_listed_is_refused_before_io(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("unlisted")
    a, b = organisation(folder / "a", "a.example"), organisation(folder / "b", "b.example")
    with recording(b.port) as between:
        introduce(a, b, url=between.url, forwarding=False)
        a.start()
        b.start()
        try:
            token = a.new_token("roaming", "--forwardable")
            reply = a.chat("hi", "@echo@b.example", token=token)
            assert (reply.status, reply.code) == (403, "peer_not_listed")
            assert between.seen == []
            assert a.chat("hi", "@echo@b.example").status == 200
        finally:
            a.stop()
            b.stop()


def test_an_unreachable_peer_is_told_as_such(pair: Pair) -> None:
    a, _ = pair
    a.carnet("peers", "add", "gone.example", "--url", "http://127.0.0.1:9")
    reply = a.chat("hi", "@echo@gone.example")
    for _ in range(100):  # the gateway sees the new peer within a second
        if reply.code != "peer_unknown":
            break
        reply = a.chat("hi", "@echo@gone.example")
    assert (reply.status, reply.code) == (503, "provider_unavailable")
