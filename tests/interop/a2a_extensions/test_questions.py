"""What a task waits for, asked and answered in the words of several extensions."""

from typing import Any

import pytest

from carnet.testing.stage import Organisation
from carnet.wire.dialects.a2a.extensions.interrupt import INTERRUPT_URI
from carnet.wire.dialects.a2a.extensions.questions import x402
from carnet.wire.dialects.a2a.extensions.questions.beeai import BEEAI_URI, KAGENTI_URI
from carnet.wire.dialects.a2a.extensions.questions.kagent import KAGENT_URI
from tests.interop.a2a_extensions.conftest import Answered, ask, claimed, send

INVALID = -32602


def waiting(gateway: Organisation, agent: str, uris: str = "", **more: Any) -> Answered:
    sent = send(gateway, agent, uris=uris, **more)
    assert sent.asked["metadata"][INTERRUPT_URI]["interrupts"]
    return sent


def reply(
    gateway: Organisation, agent: str, to: Answered, metadata: dict[str, Any], text: str = "?"
) -> Answered:
    return send(gateway, agent, metadata, text=text, taskId=to.task["id"])


@pytest.mark.parametrize("by", ["id", "state", "neither"])
@pytest.mark.parametrize(
    ("outcome", "value", "text"),
    [("accepted", {"to": "me"}, "granted {'to': 'me'}"), ("rejected", "v", "denied v")],
)
def test_our_own_extension_answers_by_id_or_state(
    by: str, outcome: str, value: object, text: str, gateway: Organisation
) -> None:
    asked = waiting(gateway, "approves")
    (question,) = asked.asked["metadata"][INTERRUPT_URI]["interrupts"]
    assert asked.asked["extensions"] == [INTERRUPT_URI]
    named = {by: question[by]} if by != "neither" else {}
    answer = {INTERRUPT_URI: {**named, "outcome": outcome, "value": value}}
    assert reply(gateway, "approves", asked, answer).text == text


@pytest.mark.parametrize(
    "answer",
    [
        {"outcome": "perhaps"},
        {"outcome": "accepted", "id": "another"},
        {"outcome": "accepted", "value": "x" * 20_000},
        {},
        "accepted",
    ],
)
def test_a_broken_answer_is_refused_and_the_task_waits_on(
    answer: object, gateway: Organisation
) -> None:
    asked = waiting(gateway, "approves")
    refused = reply(gateway, "approves", asked, {INTERRUPT_URI: answer}, text="approve")
    assert refused.error == (INVALID, "invalid_request")
    shown = ask(gateway, "approves", "GetTask", {"id": asked.task["id"]}).body["result"]
    assert shown["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert reply(gateway, "approves", asked, {}, text="approve").text == "granted "


def test_kagent_is_asked_and_answers_in_its_own_words(gateway: Organisation) -> None:
    for approved, text in ((True, "granted "), (False, "denied too dear")):
        asked = waiting(gateway, "approves", KAGENT_URI)
        assert asked.headers["a2a-extensions"] == KAGENT_URI
        assert asked.asked["extensions"] == [INTERRUPT_URI, KAGENT_URI]
        request = asked.asked["metadata"][KAGENT_URI]
        assert request["type"] == "tool_approval_request"
        (tool,) = request["tools"]
        assert tool["args"] == {"to": "all"}
        decided = {"id": tool["id"], "approved": approved, "rejection_reason": "too dear"}
        answer = {KAGENT_URI: {"type": "tool_approval_response", "approvals": [decided]}}
        assert reply(gateway, "approves", asked, answer).text == text


def test_kagent_answers_a_question_with_a_choice(gateway: Organisation) -> None:
    asked = waiting(gateway, "asks", KAGENT_URI)
    request = asked.asked["metadata"][KAGENT_URI]
    assert request["type"] == "ask_user_request"
    assert request["questions"][0]["choices"] == ["Bern", "Basel"]
    answer = {"type": "ask_user_response", "id": request["id"], "answers": [{"answer": ["Bern"]}]}
    assert reply(gateway, "asks", asked, {KAGENT_URI: answer}).text == "weather of Bern"


@pytest.mark.parametrize("uri", [BEEAI_URI, KAGENTI_URI])
def test_beeai_and_its_heir_decide(uri: str, gateway: Organisation) -> None:
    for decision, text in (("approve", "granted "), ("reject", "denied ")):
        asked = waiting(gateway, "approves", uri)
        assert asked.asked["metadata"][uri]["description"] == "May I?"
        assert {KAGENT_URI, BEEAI_URI, KAGENTI_URI} & {*asked.asked["metadata"]} == {uri}
        assert reply(gateway, "approves", asked, {uri: {"decision": decision}}).text == text


@pytest.mark.parametrize("uri", x402.URIS)
def test_x402_agrees_to_be_debited_or_does_not(uri: str, gateway: Organisation) -> None:
    asked = waiting(gateway, "sells", uri)
    metadata = asked.asked["metadata"]
    assert metadata[x402.STATUS] == "payment-required"
    (way,) = metadata[x402.REQUIRED]["accepts"]
    assert (way["scheme"], way["maxAmountRequired"]) == ("carnet", "500000")
    assert "(0.5 credits)" in asked.asked["parts"][0]["text"]
    paid = {"x402Version": 1, "scheme": "carnet", "network": "carnet", "payload": {"agreed": True}}
    payload = {"paymentRequirements": way, "paymentPayload": paid}
    answer = {x402.STATUS: "payment-submitted", x402.PAYLOAD: payload}
    assert reply(gateway, "sells", asked, answer).text == "the report"
    other = waiting(gateway, "sells", uri)
    refusal = {x402.STATUS: "payment-rejected"}
    assert reply(gateway, "sells", other, refusal).text == "no report"


@pytest.mark.parametrize(
    "metadata",
    [
        {
            x402.STATUS: "payment-submitted",
            x402.PAYLOAD: {"x402Version": 1, "scheme": "exact", "payload": {"signature": "0x5e"}},
        },
        {x402.STATUS: "payment-completed"},
        {x402.STATUS: "paid"},
        {KAGENT_URI: {"type": "tool_approval_response", "approvals": []}},
        {BEEAI_URI: {"decision": "perhaps"}},
    ],
)
def test_no_answer_in_a_foreign_form_is_an_answer_by_the_words_beside_it(
    metadata: dict[str, Any], gateway: Organisation
) -> None:
    asked = waiting(gateway, "sells", x402.X402_URI)
    refused = reply(gateway, "sells", asked, metadata, text="approve")
    assert refused.error == (INVALID, "invalid_request")
    assert reply(gateway, "sells", asked, {}, text="approve").text == "the report"


def test_an_answer_that_comes_with_no_task_is_a_claim(gateway: Organisation) -> None:
    sent = send(gateway, "approves", {BEEAI_URI: {"decision": "approve"}})
    assert sent.asked
    assert claimed(gateway, sent) == {"beeai": {"decision": "approve"}}


def test_who_told_its_chain_in_headers_need_not_tell_it_again(gateway: Organisation) -> None:
    chain = {"x_tangle_runid": "conv_hdr", "x_tangle_turnid": "conv_hdr.t0.a", "x_a2a_hop": "1"}
    asked = waiting(gateway, "approves", **chain)
    other = send(gateway, "approves", taskId=asked.task["id"], text="yes", x_tangle_runid="conv_x")
    assert other.error == (INVALID, "chain_mismatch")
    done = send(gateway, "approves", taskId=asked.task["id"], text="yes")
    assert done.text == "granted "
    assert done.task["id"] == asked.task["id"]
    assert gateway.json("run", "show", "conv_hdr")["turns"][0]["state"] == "done"
