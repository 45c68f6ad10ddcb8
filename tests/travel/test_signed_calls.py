"""Two Carnets without a token: signed calls, documents, receipts and one run."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.federation import introduce, organisation
from tests.support.organisation import Organisation
from tests.support.served import executions
from tests.travel.conftest import Scene
from tests.travel.scene import claims


def outbound_calls(organisation: Organisation, run: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = organisation.json("run", "show", run)["turns"][0]["legs"]
    return found


def test_a_call_without_a_token_is_signed_and_its_answer_receipted(scene: Scene) -> None:
    a, b, box = scene.a, scene.b, scene.box
    reply = a.chat("hi", "@paid@b.example")
    assert (reply.status, reply.text) == (200, "hi"), reply.body
    sent = box.asked[-1].headers
    assert "authorization" not in sent
    document = claims(sent["carnet"])
    assert (document["iss"], document["aud"], document["d"]) == ("a.example", "b.example", 1)
    assert document["pay"] == {"issuer": "a.example", "id": "starter"}
    assert document["bud"] == {"money": "1", "currency": "credits"}
    assert document["dl"] > document["iat"] * 1000
    run = reply.headers["x-tangle-runid"]
    receipt = claims(box.answered[-1].headers["carnet-receipt"])
    assert (receipt["iss"], receipt["aud"], receipt["run"]) == ("b.example", "a.example", run)
    assert (receipt["cost"], receipt["calls"], receipt["max_d"]) == ("0.0002", 1, 1)
    (entry,) = b.json("ledger", "--run", run)["entries"]
    assert entry["debit"] == "starter@a.example"
    (ours,) = a.json("ledger", "--run", run)["entries"]
    assert (ours["credit"], ours["amount"]) == ("peer:b.example", entry["amount"])
    (outbound,) = outbound_calls(a, run)
    assert outbound["receipt"] == box.answered[-1].headers["carnet-receipt"]
    assert "receipt" in a.carnet("run", "show", run).stdout


def test_a_stream_brings_its_receipt_before_its_last_frame(scene: Scene) -> None:
    a, box = scene.a, scene.box
    reply = a.chat("one two three", "@words@b.example", stream=True)
    assert reply.status == 200
    assert reply.body.endswith(b"data: [DONE]\n\n")
    stream = box.answered[-1].body
    assert 0 < stream.index(b": carnet-receipt ") < stream.index(b"data: [DONE]")
    assert b"carnet-receipt" not in reply.body  # the client came without a document
    (outbound,) = outbound_calls(a, reply.headers["x-tangle-runid"])
    assert outbound["receipt"]


def test_who_comes_with_a_token_gets_neither_document_nor_receipt(
    scene: Scene, tmp_path: Path
) -> None:
    b, box, d = scene.b, scene.box, organisation(tmp_path, "d.example")
    introduce(d, b, url=box.url)
    d.start()
    try:
        assert d.chat("hi", "@echo@b.example").text == "hi"
    finally:
        d.close()
    assert "authorization" in box.asked[-1].headers
    assert not {"carnet", "signature"} & box.asked[-1].headers.keys()
    assert "carnet-receipt" not in box.answered[-1].headers


@pytest.mark.parametrize("how", [{}, {"stream": True}])
def test_the_document_and_the_receipt_ride_on_the_signed_dialect_as_well(
    scene: Scene, how: dict[str, Any]
) -> None:
    reply = scene.a.chat("one two", "@words@c.example", **how)
    assert reply.status == 200, reply.body
    run = reply.headers["x-tangle-runid"]
    (outbound,) = outbound_calls(scene.a, run)
    receipt = claims(outbound["receipt"])
    assert (receipt["iss"], receipt["run"], receipt["max_d"]) == ("c.example", run, 1)
    (entry,) = scene.c.json("ledger", "--run", run)["entries"]
    assert entry["debit"] == "starter@a.example"


def test_the_receipt_counts_the_calls_below_and_how_deep_they_went(scene: Scene) -> None:
    a, box = scene.a, scene.box
    reply = a.chat("@relay@b.example @twice@b.example x", "relay")
    assert (reply.status, reply.text) == (200, "one two"), reply.body
    receipt = claims(box.answered[-1].headers["carnet-receipt"])
    # relay of b at 1, its twice at 2, and two echoes at 3
    assert (receipt["calls"], receipt["max_d"]) == (4, 3)


def test_the_path_names_the_agents_that_were_passed(scene: Scene) -> None:
    a, box = scene.a, scene.box
    assert a.chat("@echo@b.example hi", "relay").text == "hi"
    assert claims(box.asked[-1].headers["carnet"])["path"] == ["@relay@a.example"]
    assert a.chat("hi", "@echo@b.example").text == "hi"
    assert "path" not in claims(box.asked[-1].headers["carnet"])  # nobody of ours was asked


def test_an_agent_of_ours_that_is_at_a_peer_is_called_by_signature_too(scene: Scene) -> None:
    assert scene.a.chat("hi", "linked").text == "hi"
    document = claims(scene.box.asked[-1].headers["carnet"])
    assert (document["aud"], document["path"]) == ("b.example", ["@linked@a.example"])


def test_a_call_that_comes_back_to_an_agent_is_a_loop(scene: Scene) -> None:
    a, b = scene.a, scene.b
    before = len(executions(a.folder, "once"))
    reply = a.chat("@onward@b.example @once@a.example", "once")
    error = reply.json["error"]
    assert (reply.status, error["peer_status"], error["peer_code"]) == (502, 409, "loop_detected")
    assert len(executions(a.folder, "once")) == before + 1
    assert b.chat("@once@a.example", "onward").text == "0 > end"


def test_a_loop_that_we_refused_ourselves_is_shown_in_the_run_it_belongs_to(
    scene: Scene,
) -> None:
    a, b, run = scene.a, scene.b, "conv_of_a_loop"
    text = "@onward@b.example @once@a.example"
    assert a.chat(text, "once", headers=[("x-tangle-runid", run)]).status == 502
    (turn,) = a.json("run", "show", run)["turns"]
    (call,) = turn["children"]
    legs = {leg["to"]: leg for leg in call["legs"]}
    assert legs.keys() == {"@onward@b.example", "once"}
    refused = legs["once"]
    found = (refused["code"], refused["status"], refused["depth"], refused["peer_code"])
    assert found == ("loop_detected", "refused", 2, None)
    (theirs,) = b.json("run", "show", run)["turns"][0]["children"]
    assert refused["turn"] == theirs["turn"]
    shown = a.carnet("run", "show", run).stdout.splitlines()
    (marked,) = [line for line in shown if "→ once" in line]
    assert "loop_detected  ◀ refused here" in marked


def test_a_loop_over_the_signed_dialect_is_shown_as_well(scene: Scene) -> None:
    a, run = scene.a, "conv_of_another_loop"
    a.chat("@relay@c.example @once@a.example", "once", headers=[("x-tangle-runid", run)])
    (call,) = a.json("run", "show", run)["turns"][0]["children"]
    assert [leg["code"] for leg in call["legs"] if leg["to"] == "once"] == ["loop_detected"]


def test_an_agent_that_allows_it_is_called_again_until_the_depth_ends_it(scene: Scene) -> None:
    a = scene.a
    way = "@again@b.example @again@a.example @again@b.example"
    assert a.chat(way, "onward").text == "0 > 1 > 2 > end"
    stopped = a.chat(f"{way} @again@a.example", "onward")
    assert stopped.text == "0 > 1 > 2 > stopped at 4 of 4"


def test_what_the_other_side_failed_at_is_told_and_what_it_cost_is_proved(scene: Scene) -> None:
    a, b, box = scene.a, scene.b, scene.box
    reply = a.chat("x", "@spends@b.example")
    assert (reply.status, reply.json["usage"]["cost"]) == (502, "0.0002"), reply.body
    receipt = claims(box.answered[-1].headers["carnet-receipt"])
    assert (receipt["code"], receipt["cost"]) == ("agent_failed", "0.0002")
    run = reply.headers["x-tangle-runid"]
    theirs = b.json("ledger", "--run", run)["entries"]
    ours = a.json("ledger", "--run", run)["entries"]
    assert [entry["amount"] for entry in ours] == [entry["amount"] for entry in theirs]
