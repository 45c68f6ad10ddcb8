"""What is activated and told of tasks: use, budgets, skills, and what nobody asked for."""

from typing import Any

import pytest

from carnet.testing.stage import Organisation
from carnet.wire.dialects.a2a.extensions.datalayer import DATALAYER_URI
from carnet.wire.dialects.a2a.extensions.own import CHAIN_URI, USAGE_URI
from carnet.wire.dialects.a2a.extensions.questions.kagent import KAGENT_URI
from carnet.wire.dialects.a2a.extensions.signed_receipts import RECEIPTS_URI
from carnet.wire.dialects.a2a.extensions.skill import SKILL_URI
from tests.interop.a2a_extensions.conftest import ask, claimed, send

INVALID, REFUSED = -32602, -32050


def test_a_task_tells_its_chain_and_use_and_nothing_that_nobody_asked_for(
    gateway: Organisation,
) -> None:
    sent = send(gateway, "priced")
    assert {*sent.metadata} == {CHAIN_URI, USAGE_URI}
    assert sent.metadata[USAGE_URI] == {"cost": "0.01", "currency": "credits", "runCost": "0.01"}
    assert "a2a-extensions" not in sent.headers
    shown = ask(gateway, "priced", "GetTask", {"id": sent.task["id"]}).body["result"]
    assert shown["metadata"] == sent.metadata


def test_what_is_active_is_told_and_what_is_not_known_is_not(gateway: Organisation) -> None:
    others = "urn:nobody:knows:v1, urn:carnet:a2a:chain:v2"  # a version is not another one
    sent = send(gateway, "priced", uris=f"{KAGENT_URI}, {others}, {KAGENT_URI}, {DATALAYER_URI}")
    assert sent.headers["a2a-extensions"] == f"{KAGENT_URI}, {DATALAYER_URI}"
    assert sent.metadata["datalayer"] == {"usage": {"cost": 0.01, "currency": "credits"}}


@pytest.mark.parametrize("named", ["not a uri", ",".join(f"urn:x:{n}" for n in range(40))])
def test_a_list_of_extensions_that_is_none_is_refused(named: str, gateway: Organisation) -> None:
    assert send(gateway, uris=named).error == (INVALID, "invalid_request")


def budget(cost: float, currency: str = "credits") -> dict[str, Any]:
    return {"datalayer": {"budget": {"cost": cost, "currency": currency}}}


def test_a_budget_only_lowers_what_may_be_spent(gateway: Organisation) -> None:
    assert send(gateway, "priced", budget(5)).metadata[USAGE_URI]["cost"] == "0.01"
    less = send(gateway, "priced", budget(0.001))
    other = send(gateway, "priced", budget(5, "USD"))
    assert less.error[0] == other.error[0] == REFUSED
    assert send(gateway, "echo", budget(0)).text == "hello"
    with_credential = {"datalayer": {"credential": "s3cret", "execution": {"executionId": "e1"}}}
    shown = claimed(gateway, send(gateway, metadata=with_credential))
    assert shown == {"datalayer": {"credential": "withheld", "execution": {"executionId": "e1"}}}


def in_chain(**parts: object) -> dict[str, Any]:
    return {CHAIN_URI: {"budget": parts}}


def test_a_budget_in_our_chain_only_lowers_what_may_be_spent(gateway: Organisation) -> None:
    much, little = {"money": "5", "currency": "credits"}, {"money": "0.001", "currency": "credits"}
    assert send(gateway, "priced", in_chain(**much)).metadata[USAGE_URI]["cost"] == "0.01"
    assert send(gateway, "priced", in_chain(**little)).error[0] == REFUSED
    assert send(gateway, "echo", in_chain(**little, calls=1)).text == "hello"
    # Of two that tell one the smaller counts, whichever it is.
    assert send(gateway, "priced", in_chain(**much) | budget(0.001)).error[0] == REFUSED
    assert send(gateway, "priced", in_chain(**little) | budget(5)).error[0] == REFUSED


def test_a_budget_in_our_chain_that_could_not_be_held_is_refused(gateway: Organisation) -> None:
    for wrong in ({"money": 0.5}, {"steps": 3}, {"calls": -1}):
        assert send(gateway, "echo", in_chain(**wrong)).error[1] == "malformed_caller_context"


def test_a_skill_is_asked_for_by_its_name(gateway: Organisation) -> None:
    sent = send(gateway, "adds", {SKILL_URI: {"skill": "add", "payload": {"a": 1, "b": 2}}})
    (artifact,) = sent.task["artifacts"]
    assert artifact == {"artifactId": "result", "parts": [{"data": {"sum": 3}}]}
    wrong = send(gateway, "adds", {SKILL_URI: {"skill": "add", "payload": {"a": "x"}}})
    assert wrong.error == (INVALID, "schema_invalid")
    unknown = send(gateway, "adds", {SKILL_URI: {"skill": "subtract"}})
    assert unknown.error == (REFUSED, "skill_not_found")
    broken = send(gateway, "adds", {SKILL_URI: {"payload": {}}})
    assert broken.error == (INVALID, "invalid_request")


def test_a_receipt_in_a_foreign_form_is_not_there_where_none_was_issued(
    gateway: Organisation,
) -> None:
    assert {*send(gateway, uris=RECEIPTS_URI).metadata} == {CHAIN_URI, USAGE_URI}
