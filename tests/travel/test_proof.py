"""The proof of a tree of calls: each receipt names those below it, and nobody can leave one out."""

import json
from collections.abc import Callable
from typing import Any

from carnet.testing.wait import until
from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.travel.conftest import Scene
from tests.travel.middlebox import Passing
from tests.travel.scene import claims, rewritten

DEEP = "@relay@b.example @relay@c.example echo hi"  # b, then c, and there another in process


def run_of(organisation: Organisation, text: str, agent: str = "relay") -> str:
    """Have a tree of calls made; the id of its run."""
    reply = organisation.chat(text, agent)
    assert (reply.status, reply.text) == (200, "hi"), reply.body
    return str(reply.headers["x-tangle-runid"])


def prove(organisation: Organisation, run: str, token: str | None = None) -> Reply:
    fields = [
        ("authorization", f"Bearer {token or organisation.token}"),
        ("content-type", "application/json"),
    ]
    return request("POST", f"{organisation.url}/runs/{run}/receipts", fields, b"{}")


def proof(organisation: Organisation, run: str) -> dict[str, Any]:
    reply = prove(organisation, run)
    assert reply.status == 200, reply.body
    page: dict[str, Any] = json.loads(reply.body)
    return page


def changing(change: Callable[[list[Any]], None]) -> Callable[[Passing], None]:
    """Somebody on the way changes which receipts are told."""

    def box(passing: Passing) -> None:
        if passing.body.startswith(b'{"run":') and b'"receipts":[' in passing.body:
            page = json.loads(passing.body)
            change(page["receipts"])
            passing.body = json.dumps(page).encode()

    return box


def test_a_receipt_names_the_receipts_of_what_was_called_below(scene: Scene) -> None:
    run = run_of(scene.a, DEEP)
    page = proof(scene.a, run)
    assert (page["proved"], page["faults"]) == (True, [])
    assert (page["signed"], page["vouched"], page["unproved"]) == (2, 0, 1)
    (of_b,) = page["receipts"]
    (of_c,) = of_b["below"]
    assert (of_b["issuer"], of_b["audience"], of_b["verdict"]) == (
        "b.example",
        "a.example",
        "signed",
    )
    assert (of_c["issuer"], of_c["audience"], of_c["verdict"]) == (
        "c.example",
        "b.example",
        "signed",
    )
    assert (of_b["calls"], of_c["calls"], of_b["max_depth"]) == (3, 2, 3)
    assert of_c["parent"] == of_b["turn"]
    assert claims(of_b["receipt"])["sub"]["n"] == 1
    assert "sub" not in claims(of_c["receipt"])


def test_what_was_called_in_process_is_named_too(scene: Scene) -> None:
    """The call to c was made by an agent that the one which b has a receipt for called here."""
    page = proof(scene.a, run_of(scene.a, "@relay@b.example hasty @echo@c.example hi"))
    assert (page["proved"], page["signed"], page["unproved"]) == (True, 2, 1)
    assert page["receipts"][0]["below"][0]["issuer"] == "c.example"


def test_a_receipt_that_is_left_out_is_missed(scene: Scene) -> None:
    run = run_of(scene.a, DEEP)
    scene.box.answer = changing(list.clear)
    page = proof(scene.a, run)
    assert page["proved"] is False
    assert [fault["fault"] for fault in page["faults"]] == [
        "it names other receipts than those that were shown"
    ]


def test_a_receipt_that_was_changed_does_not_hold(scene: Scene) -> None:
    def cheaper(receipts: list[Any]) -> None:
        receipts[0]["receipt"] = rewritten(receipts[0]["receipt"], cost="7")

    run = run_of(scene.a, DEEP)
    scene.box.answer = changing(cheaper)
    page = proof(scene.a, run)
    assert page["proved"] is False
    assert {fault["fault"] for fault in page["faults"]} == {
        "it names other receipts than those that were shown",
        "its signature does not hold",
    }
    assert page["receipts"][0]["below"][0]["verdict"] == "broken"


def test_who_tells_nothing_leaves_its_calls_unproved(scene: Scene) -> None:
    def silent(passing: Passing) -> None:
        if passing.path.endswith("/receipts"):
            passing.path = "/nowhere"

    run = run_of(scene.a, DEEP)
    scene.box.ask = silent
    page = proof(scene.a, run)
    assert (page["proved"], page["signed"], page["unproved"]) == (True, 1, 2)
    assert page["receipts"][0]["unknown"] is not None


def test_one_whose_key_is_not_known_here_is_vouched_for(scene: Scene) -> None:
    run = run_of(scene.c, "@relay@b.example @echo@a.example hi")
    scene.c.carnet("peers", "remove", "a.example")
    try:
        page = until(lambda: proof(scene.c, run), lambda seen: bool(seen["vouched"]))
    finally:
        scene.c.carnet("peers", "add", "a.example", "--url", scene.a.url, "--credit", "10")
    assert (page["proved"], page["signed"], page["vouched"]) == (True, 1, 1)


def test_nobody_else_is_told_of_a_run(scene: Scene) -> None:
    run = run_of(scene.a, DEEP)
    other = scene.a.new_token("other-prover")
    assert (prove(scene.a, run, other).status, prove(scene.a, run, other).code) == (
        404,
        "run_not_found",
    )


def test_the_command_draws_the_tree_and_fails_where_a_receipt_is_missing(scene: Scene) -> None:
    run = run_of(scene.a, DEEP)
    drawn = scene.a.carnet("run", "proof", run).stdout
    assert "b.example" in drawn
    assert "c.example" in drawn
    assert scene.a.json("run", "proof", run)["proved"] is True
    scene.box.answer = changing(list.clear)
    failed = scene.a.try_carnet("run", "proof", run)
    assert failed.returncode == 4, failed.stderr
    assert "names other receipts" in failed.stdout + failed.stderr
