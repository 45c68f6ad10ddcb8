"""What readiness says of an upstream that is left alone: a word to all, the rest to operators."""

import pytest

from tests.support.http import request
from tests.support.organisation import Organisation


@pytest.fixture(scope="module")
def operator(acme: Organisation) -> str:
    return acme.new_token("operator-tools", "--scope", "metrics")


@pytest.fixture
def broken(acme: Organisation) -> None:
    """The one upstream of this gateway, which nobody answers for, has failed often enough."""
    codes = [acme.chat("hi", "gone").code for _ in range(7)]
    assert codes[0] in {"provider_unavailable", "circuit_open"}
    assert codes[-1] == "circuit_open"


@pytest.mark.usefixtures("broken")
def test_an_open_circuit_is_a_word_to_strangers_and_a_name_to_operators(
    acme: Organisation, operator: str
) -> None:
    """A70: no host is told to anybody who may not know it."""
    open_answer = request("GET", acme.url + "/readyz")
    assert (open_answer.status, open_answer.json) == (200, {"status": "degraded"})
    assert acme.get("/readyz").json == {"status": "degraded"}  # a caller is told no more
    page = acme.get("/readyz", token=operator).json
    assert page["checks"] == {"store": True, "serving": True}
    (circuit,) = page["circuits"]
    assert circuit["upstream"].startswith("http://127.0.0.1:")
    assert circuit["state"] in {"open", "half_open"}
    assert circuit["failures"] >= 5
    assert b"carnet_open_circuits 1.0" in acme.get("/metrics", token=operator).body


def test_a_wrong_token_is_told_nothing_at_all(acme: Organisation) -> None:
    fields = [("authorization", "Bearer ck_wrong"), ("x-forwarded-for", "203.0.113.9")]
    reply = request("GET", acme.url + "/readyz", fields)
    assert (reply.status, reply.code) == (401, "token_invalid")
