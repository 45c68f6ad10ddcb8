"""Somebody between two Carnets changes what passes: each time it is refused, and nothing runs."""

from collections.abc import Callable

import pytest

from tests.support.organisation import Organisation
from tests.support.served import executions
from tests.travel.conftest import Scene
from tests.travel.middlebox import Passing, send, untouched
from tests.travel.scene import claims, rewritten

AGENT = "paid"


def field(name: str, value: str) -> Callable[[Passing], None]:
    def change(passing: Passing) -> None:
        passing.headers[name] = value

    return change


def strip(*names: str) -> Callable[[Passing], None]:
    def change(passing: Passing) -> None:
        for name in names:
            passing.headers.pop(name)

    return change


def say(**changed: object) -> Callable[[Passing], None]:
    """Write something else into the document, under its old signature."""

    def change(passing: Passing) -> None:
        passing.headers["carnet"] = rewritten(passing.headers["carnet"], **changed)

    return change


def swap_body(passing: Passing) -> None:
    passing.body = passing.body.replace(b"hi", b"ho")


def query(passing: Passing) -> None:
    passing.path += "?stream=true"


ON_THE_WAY: dict[str, tuple[Callable[[Passing], None], str]] = {
    "depth lowered in the header": (field("x-tangle-forwarded-depth", "0"), "signature_invalid"),
    "depth lowered in the document": (say(d=0), "signature_invalid"),
    "limit raised in the document": (say(l=99), "signature_invalid"),
    "document stripped": (strip("carnet"), "signature_invalid"),
    "signature stripped": (strip("signature", "signature-input"), "signature_missing"),
    "all proof stripped": (strip("carnet", "signature", "signature-input"), "token_missing"),
    "payer swapped": (say(pay={"issuer": "a.example", "id": "bob"}), "signature_invalid"),
    "payer added": (
        field("x-tangle-forwarded-authorization", "Bearer sk-tan-bob"),
        "header_not_signed",
    ),
    "actor added": (field("x-actor-id", "root"), "header_not_signed"),
    "budget widened": (say(bud={"money": "99", "currency": "credits"}), "signature_invalid"),
    "deadline extended": (say(dl=9_000_000_000_000), "signature_invalid"),
    "path forgotten": (say(path=[]), "signature_invalid"),
    "body changed": (swap_body, "digest_mismatch"),
    "query added": (query, "header_not_signed"),
    "host changed": (field("host", "c.example"), "signature_invalid"),
    "document broken": (field("carnet", "a.b.c"), "travel_document_invalid"),
}


@pytest.mark.parametrize("what", ON_THE_WAY)
def test_whoever_changes_a_signed_call_on_the_way_gets_it_refused(scene: Scene, what: str) -> None:
    change, code = ON_THE_WAY[what]
    ran = executions(scene.b.folder, AGENT)
    scene.box.ask = change
    reply = scene.a.chat("hi", f"@{AGENT}@b.example")
    status = 400 if code == "travel_document_invalid" else 401
    error = reply.json["error"]
    assert (error["code"], error["peer_status"], error["peer_code"]) == (
        "peer_refused",
        status,
        code,
    )
    assert executions(scene.b.folder, AGENT) == ran
    run = reply.headers["x-tangle-runid"]
    assert scene.b.get(f"/runs/{run}").status == 404
    assert unbilled(scene.a, run)


def unbilled(organisation: Organisation, run: str) -> bool:
    page = organisation.get(f"/runs/{run}").json
    return (page["state"], page["cost"]) == ("failed", "0")


def test_a_call_that_was_overheard_on_the_way_is_not_accepted_again(scene: Scene) -> None:
    first = scene.a.chat("hi", f"@{AGENT}@b.example")
    assert first.text == "hi"
    ran = executions(scene.b.folder, AGENT)
    received = scene.box.asked[-1]
    for _ in range(2):
        again = send("POST", received, scene.b.port)
        assert again.status == 401
        assert b'"nonce_replayed"' in again.body
    assert executions(scene.b.folder, AGENT) == ran
    run = first.headers["x-tangle-runid"]
    assert len(scene.b.json("ledger", "--run", run)["entries"]) == 1


def test_a_call_that_was_overheard_is_good_for_no_other_host(scene: Scene) -> None:
    assert scene.a.chat("hi", f"@{AGENT}@b.example").text == "hi"
    received = scene.box.asked[-1]
    unchanged = send("POST", received, scene.c.port)
    assert (unchanged.status, b'"destination_mismatch"' in unchanged.body) == (401, True)
    received.headers["host"] = f"127.0.0.1:{scene.c.port}"
    redirected = send("POST", received, scene.c.port)
    assert (redirected.status, b'"signature_invalid"' in redirected.body) == (401, True)
    assert executions(scene.c.folder, AGENT) == []


TRACED = f"00-{'9' * 32}-{'8' * 16}-01"


@pytest.mark.parametrize(
    "change",
    [field("traceparent", TRACED), field("tracestate", "proxy=1"), strip("traceparent")],
    ids=["rewritten", "state added", "taken away"],
)
def test_a_tracing_proxy_breaks_no_call(scene: Scene, change: Callable[[Passing], None]) -> None:
    """A93: its own span is read, and the call holds."""
    scene.box.ask = change
    assert scene.a.chat("hi", f"@{AGENT}@b.example").text == "hi"
    signed = scene.box.asked[-1].headers["signature-input"]
    assert '"traceparent"' not in signed
    assert '"tracestate"' not in signed


# ---------------------------------------------------------------------- on the way back


def other_words(passing: Passing) -> None:
    passing.body = passing.body.replace(b'"hi"', b'"no"')


def cheaper(passing: Passing) -> None:
    receipt = passing.headers["carnet-receipt"]
    passing.headers["carnet-receipt"] = rewritten(receipt, cost="0")


BACK: dict[str, Callable[[Passing], None]] = {
    "receipt dropped": strip("carnet-receipt"),
    "receipt rewritten": cheaper,
    "receipt broken": field("carnet-receipt", "a.b.c"),
    "answer changed": other_words,
}


@pytest.mark.parametrize("what", BACK)
def test_an_answer_without_its_receipt_is_no_answer(scene: Scene, what: str) -> None:
    a, b, box = scene.a, scene.b, scene.box
    box.answer = BACK[what]
    names = [("x-tangle-runid", f"run-{what.replace(' ', '-')}"), ("x-tangle-turnid", "t1")]
    reply = a.chat("hi", f"@{AGENT}@b.example", headers=names)
    assert (reply.status, reply.code) == (502, "peer_response_invalid"), reply.body
    run = reply.headers["x-tangle-runid"]
    assert unbilled(a, run)
    ran = executions(b.folder, AGENT)
    box.answer = untouched
    again = a.chat("hi", f"@{AGENT}@b.example", headers=names)  # the turn may run again
    assert again.text == "hi"
    assert executions(b.folder, AGENT) == ran  # and the other side answers from its record
    (ours,) = a.json("ledger", "--run", run)["entries"]
    (theirs,) = b.json("ledger", "--run", run)["entries"]
    assert ours["amount"] == theirs["amount"]


def test_the_receipt_of_another_call_proves_nothing(scene: Scene) -> None:
    scene.a.chat("hi", f"@{AGENT}@b.example")
    earlier = scene.box.answered[-1].headers["carnet-receipt"]
    scene.box.answer = field("carnet-receipt", earlier)
    reply = scene.a.chat("hi", f"@{AGENT}@b.example")
    assert (reply.status, reply.code) == (502, "peer_response_invalid")
    scene.box.answer = untouched
    assert scene.a.chat("hi", f"@{AGENT}@b.example").text == "hi"


def without_comments(passing: Passing) -> None:
    frames = passing.body.split(b"\n\n")
    passing.body = b"\n\n".join(frame for frame in frames if not frame.startswith(b":"))


def test_a_stream_without_its_receipt_does_not_end_well(scene: Scene) -> None:
    scene.box.answer = without_comments
    reply = scene.a.chat("one two", "@words@b.example", stream=True)
    assert b"peer_response_invalid" in reply.body
    assert b"[DONE]" not in reply.body
    scene.box.answer = untouched
    assert b"[DONE]" in scene.a.chat("one two", "@words@b.example", stream=True).body
    assert unbilled(scene.a, reply.headers["x-tangle-runid"])


def test_a_cost_that_nobody_signed_is_not_owed(scene: Scene) -> None:
    def charge(passing: Passing) -> None:
        passing.body = passing.body.replace(b'"cost":"0.0002"', b'"cost":"0.9"')

    scene.box.answer = charge
    reply = scene.a.chat("hi", f"@{AGENT}@b.example")
    assert reply.json["usage"]["cost"] == "0.0002"  # what the receipt says
    assert claims(scene.box.answered[-1].headers["carnet-receipt"])["cost"] == "0.0002"


def test_a_failure_that_claims_a_cost_without_a_receipt_costs_nothing(scene: Scene) -> None:
    scene.box.answer = strip("carnet-receipt")
    reply = scene.a.chat("x", "@spends@b.example")
    assert reply.status == 502
    assert unbilled(scene.a, reply.headers["x-tangle-runid"])
