"""What happened: lists, trees, event streams, cancelling, disconnecting, draining."""

import http.client
import json
import signal
import threading
from pathlib import Path

import pytest

from carnet.ports.world.records import RunFilter
from carnet.testing.wait import PATIENCE_SECONDS, until
from tests.faults.scene import HELD, HELD_CONFIG
from tests.support.http import chat_body, request, stream
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, executions


def fields(acme: Organisation, *more: tuple[str, str]) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {acme.token}"), ("content-type", "application/json"), *more]


def test_the_head_of_an_event_stream_is_the_whole_answer(acme: Organisation) -> None:
    assert acme.chat("hi", headers=[("x-tangle-runid", "conv_head")]).status == 200
    connection = http.client.HTTPConnection("127.0.0.1", acme.port, timeout=30)
    for _ in range(2):  # and the connection goes on
        connection.request("HEAD", "/runs/conv_head/events", headers=dict(fields(acme)))
        reply = connection.getresponse()
        assert (reply.status, reply.read()) == (200, b"")
    connection.close()


def wait_for_state(acme: Organisation, run: str, state: str) -> dict[str, str]:
    def look() -> dict[str, str]:
        reply = acme.get(f"/runs/{run}")
        turn: dict[str, str] = reply.json["turns"][0] if reply.status == 200 else {}
        return turn

    return until(look, lambda turn: turn.get("state") == state)


def run_events(
    acme: Organisation, run: str, *, after: str | None = None
) -> list[tuple[str, str, dict[str, object]]]:
    more = [("last-event-id", after)] if after else []
    found, event, number = [], "", ""
    for line in stream("GET", f"{acme.url}/runs/{run}/events", fields(acme, *more)):
        name, _, value = line.decode().strip().partition(": ")
        if name == "event":
            event = value
        elif name == "id":
            number = value
        elif name == "data":
            found.append((event, number, json.loads(value)))
    return found


def test_runs_are_listed_newest_first_to_those_who_took_part(acme: Organisation) -> None:
    token = acme.new_token("lister")
    for run in ("conv_list_1", "conv_list_2"):
        acme.chat("hi", "paid", headers=[("x-tangle-runid", run)], token=token)
    page = acme.get("/runs", token=token).json
    assert [run["run"] for run in page["runs"]] == ["conv_list_2", "conv_list_1"]
    assert page["runs"][0]["cost"] == "0.0002"
    assert page["runs"][0]["state"] == "done"
    assert acme.get("/runs?limit=1", token=token).json["next"]
    stranger = acme.new_token("stranger")
    assert acme.get("/runs", token=stranger).json["runs"] == []
    assert acme.get("/runs/conv_list_1", token=stranger).code == "run_not_found"
    assert acme.get("/runs/no_such_run", token=stranger).code == "run_not_found"


def test_a_run_is_shown_as_a_tree_with_payer_and_cost(acme: Organisation) -> None:
    acme.chat("paid hello", "relay", headers=[("x-tangle-runid", "conv_tree")])
    page = acme.get("/runs/conv_tree").json
    (root,) = page["turns"]
    (child,) = root["children"]
    assert (root["agent"], root["depth"], root["cost"]) == ("relay", 0, "0.0002")
    assert (child["agent"], child["depth"], child["cost"]) == ("paid", 1, "0.0002")
    assert child["payer"] == root["payer"]
    assert child["actor"] == "agent:relay"
    assert (page["cost"], page["limit"], page["depth"]) == ("0.0002", 4, 1)


def test_the_journal_of_a_run_can_be_followed_from_any_event(acme: Organisation) -> None:
    run = [("x-tangle-runid", "conv_follow")]
    acme.chat("a b c", "words", headers=run, stream=True)
    events = run_events(acme, "conv_follow")
    assert events[0][0] == "accepted"
    texts = [data["text"] for event, _, data in events if event == "text"]
    assert texts == ["a ", "b ", "c "]
    assert events[-1][0] == "end"
    second = next(number for event, number, _ in events if event == "text")
    rest = run_events(acme, "conv_follow", after=second)
    assert [data["text"] for event, _, data in rest if event == "text"] == ["b ", "c "]


def test_a_run_can_be_cancelled(acme: Organisation) -> None:
    replies = []

    def ask() -> None:
        replies.append(acme.chat("600", "slow", headers=[("x-tangle-runid", "conv_cancel")]))

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for_state(acme, "conv_cancel", "running")
    reply = request("POST", acme.url + "/runs/conv_cancel/cancel", fields(acme), b"")
    assert (reply.json["run"], reply.json["cancelled"]) == ("conv_cancel", 1)
    (hop,) = reply.json["hops"]
    assert (hop["agent"], hop["outcome"], hop["below"]) == ("slow", "cancelled", [])
    asking.join(PATIENCE_SECONDS)
    assert (replies[0].status, replies[0].code) == (409, "cancelled")
    assert acme.get("/runs/conv_cancel").json["turns"][0]["code"] == "cancelled"


def test_when_the_last_reader_has_gone_the_turn_is_cancelled(acme: Organisation) -> None:
    body = chat_body("600", "slow", stream=True)
    path = acme.url + "/v1/chat/completions"
    lines = stream("POST", path, fields(acme, ("x-tangle-runid", "conv_gone")), body)
    next(lines)
    lines.close()
    assert wait_for_state(acme, "conv_gone", "failed")["code"] == "cancelled"


def test_an_agent_that_finishes_on_its_own_outlives_its_reader(acme: Organisation) -> None:
    body = chat_body("8", "stubborn", stream=True)
    path = acme.url + "/v1/chat/completions"
    lines = stream("POST", path, fields(acme, ("x-tangle-runid", "conv_stubborn")), body)
    next(lines)
    lines.close()
    assert wait_for_state(acme, "conv_stubborn", "done")["code"] is None


def test_a_retry_after_a_disconnect_is_a_new_attempt_with_a_discard_marker(
    acme: Organisation,
) -> None:
    ids = [("x-tangle-runid", "conv_retry"), ("x-tangle-turnid", "conv_retry.t0.held")]
    path = acme.url + "/v1/chat/completions"
    lines = stream("POST", path, fields(acme, *ids), chat_body("again", "held", stream=True))
    next(lines)
    lines.close()
    wait_for_state(acme, "conv_retry", "failed")
    (acme.folder / "again").touch()
    again = acme.chat("again", "held", headers=ids, stream=True)
    assert again.body.endswith(b"data: [DONE]\n\n")
    assert executions(acme.folder, "held").count("conv_retry.t0.held") == 2
    assert "discard" in [event for event, _, _ in run_events(acme, "conv_retry")]


def test_a_gateway_drains_before_it_stops(tmp_path: Path) -> None:
    gateway = Organisation(tmp_path, "drain.example")
    gateway.configure(HELD_CONFIG, agents=AGENTS + HELD)
    gateway.start()
    replies = []

    def ask() -> None:
        replies.append(gateway.chat("go", "held", headers=[("x-tangle-runid", "conv_drain")]))

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for_state(gateway, "conv_drain", "running")
    gateway.signal(signal.SIGTERM)
    until(lambda: gateway.get("/readyz").status == 503)
    (tmp_path / "go").touch()
    assert gateway.ended() == 0
    asking.join(PATIENCE_SECONDS)
    assert replies[0].text == "half whole "
    assert b"Traceback" not in (tmp_path / "err.txt").read_bytes()


def test_log_lines_are_json_with_the_fixed_fields(acme: Organisation) -> None:
    run = "conv_logged"
    acme.chat(
        "hi", headers=[("x-tangle-runid", run), ("traceparent", f"00-{'a' * 32}-{'b' * 16}-01")]
    )
    found: list[dict[str, object]] = until(
        lambda: [line for line in map(json.loads, acme.log_lines()) if line["run"] == run]
    )
    names = ["timestamp", "correlation_id", "component", "level", "message", "run", "turn"]
    assert list(found[0])[: len(names)] == names
    assert found[0]["correlation_id"] == "a" * 32


def test_a_run_id_shared_with_somebody_else_cancels_only_ones_own_turns(acme: Organisation) -> None:
    run = [("x-tangle-runid", "conv_shared_cancel")]
    replies = []

    def ask() -> None:
        replies.append(acme.chat("shared", "held", headers=run))

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for_state(acme, "conv_shared_cancel", "running")
    mallory = acme.new_token("mallory-cancels")
    acme.chat("me too", headers=run, token=mallory)
    path = acme.url + "/runs/conv_shared_cancel/cancel"
    reply = request("POST", path, [("authorization", f"Bearer {mallory}")], b"")
    assert reply.json["cancelled"] == 0
    (acme.folder / "shared").touch()
    asking.join(PATIENCE_SECONDS)
    assert replies[0].status == 200


def test_a_page_of_nothing_is_a_page_of_one(acme: Organisation) -> None:
    acme.chat("hi")
    assert len(acme.get("/runs?limit=0").json["runs"]) == 1
    assert acme.get("/runs?limit=x").code == "invalid_request"


@pytest.mark.parametrize("name", RunFilter.__struct_fields__)
def test_runs_are_chosen_by_words_that_a_store_can_hold(acme: Organisation, name: str) -> None:
    for word in ("%00", "a%00b", "a%0Ab", "", "x" * 257, f"a&{name}=b"):
        refused = acme.get(f"/runs?{name}={word}")
        assert (refused.status, refused.code) == (400, "invalid_request"), word
    word = "2999-01-01T00:00:00Z" if name == "since" else "no_such"
    assert acme.get(f"/runs?{name}={word}").json == {"runs": [], "next": None}


def test_runs_are_listed_by_payer_and_since_with_the_error_they_met(acme: Organisation) -> None:
    token = acme.new_token("chooses")
    for run, agent in (("conv_good", "words"), ("conv_bad", "broken")):
        acme.chat("hi", agent, headers=[("x-tangle-runid", run)], token=token)
    bad, good = acme.get("/runs", token=token).json["runs"]
    assert (bad["run"], bad["state"], bad["code"]) == ("conv_bad", "failed", "agent_failed")
    assert (good["run"], good["code"]) == ("conv_good", None)

    def runs(query: str) -> list[str]:
        return [line["run"] for line in acme.get(f"/runs?{query}", token=token).json["runs"]]

    assert runs(f"payer={good['payer']}") == ["conv_bad", "conv_good"]
    assert runs("payer=somebody@acme.example") == []
    assert runs(f"since={good['started']}") == ["conv_bad", "conv_good"]
    assert runs(f"since={good['started']}&state=done") == ["conv_good"]
    assert runs("since=2999-01-01") == []
    assert acme.get("/runs?since=soon", token=token).code == "invalid_request"


def test_a_list_goes_on_after_runs_that_its_reader_may_not_see_as_such(
    acme: Organisation,
) -> None:
    """The turn that is like that is of another caller, in a run of the reader's."""
    reader = acme.new_token("reads-on")
    other = acme.new_token("forwards-on", "--may-forward-authorization")
    acme.chat("hi", "words", headers=[("x-tangle-runid", "conv_own")], token=reader)
    shared = ("x-tangle-runid", "conv_shared_list")
    acme.chat("hi", headers=[shared], token=reader)
    paid_by = ("x-tangle-forwarded-authorization", f"Bearer {reader}")
    assert acme.chat("hi", "words", headers=[shared, paid_by], token=other).status == 200
    until(
        lambda: acme.get("/runs?agent=words", token=other).json["runs"],
        lambda found: len(found) == 1,
    )
    first = acme.get("/runs?agent=words&limit=1", token=reader).json
    assert first["runs"] == []
    following = acme.get(f"/runs?agent=words&limit=1&before={first['next']}", token=reader).json
    assert [run["run"] for run in following["runs"]] == ["conv_own"]
