"""The OpenAI endpoints: answers, streams, models, errors."""

import json
from decimal import Decimal

from tests.support.http import chat_body, request, stream
from tests.support.organisation import Organisation


def frames(acme: Organisation, text: str, model: str, **more: object) -> list[bytes]:
    """The SSE lines of one streamed answer."""
    fields = [("authorization", f"Bearer {acme.token}"), ("content-type", "application/json")]
    body = chat_body(text, model, stream=True, **more)
    lines = stream("POST", acme.url + "/v1/chat/completions", fields, body)
    return [line.rstrip(b"\n") for line in lines if line.strip()]


def deltas(lines: list[bytes]) -> str:
    text = ""
    for line in lines:
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:]).get("choices", []):
                text += choice["delta"].get("content") or ""
    return text


def test_an_agent_answers_a_chat_completion(acme: Organisation) -> None:
    reply = acme.chat("hello")
    assert reply.status == 200
    assert reply.text == "hello"
    assert reply.json["object"] == "chat.completion"
    assert reply.json["choices"][0]["finish_reason"] == "stop"
    assert reply.headers["x-tangle-runid"].startswith("conv_")
    assert reply.headers["x-tangle-turnid"]


def test_the_agent_may_be_named_by_the_path(acme: Organisation) -> None:
    reply = acme.chat("hello", None, path="/agents/words/v1/chat/completions")
    assert reply.text == "hello "


def test_without_a_model_the_default_agent_answers(acme: Organisation) -> None:
    assert acme.chat("hello", None).text == "hello"


def test_a_model_path_resolves_to_its_last_segment(acme: Organisation) -> None:
    assert acme.chat("hello", "bridge/sandbox/echo").text == "hello"


def test_an_address_of_our_own_domain_is_a_local_agent(acme: Organisation) -> None:
    assert acme.chat("hello", "@words@acme.example").text == "hello "
    assert acme.chat("hello", "agent://acme.example").text == "hello"


def test_usage_tells_cost_currency_and_run_cost(acme: Organisation) -> None:
    usage = acme.chat("hello", "paid").json["usage"]
    assert usage["cost"] == "0.0002"
    assert usage["run_cost"] == "0.0002"
    assert usage["currency"] == "credits"


def test_a_run_adds_up_what_its_turns_cost(acme: Organisation) -> None:
    run = [("x-tangle-runid", "conv_adding_up")]
    acme.chat("one", "paid", headers=run)
    usage = acme.chat("two", "paid", headers=run).json["usage"]
    assert Decimal(usage["run_cost"]) == 2 * Decimal(usage["cost"])


def test_a_stream_gives_chunks_and_then_done(acme: Organisation) -> None:
    lines = frames(acme, "a b c", "words")
    assert deltas(lines) == "a b c "
    assert lines[-1] == b"data: [DONE]"


def test_a_stream_tells_its_usage_in_a_chunk_of_its_own_when_asked(acme: Organisation) -> None:
    lines = frames(acme, "a b", "paid", stream_options={"include_usage": True})
    usage = json.loads(lines[-2][6:])
    assert usage["choices"] == []
    assert usage["usage"]["cost"] == "0.0002"
    assert sum(b'"usage":{' in line for line in lines) == 1


def test_a_stream_tells_its_usage_unasked_with_the_reason_of_its_end(acme: Organisation) -> None:
    lines = frames(acme, "a b", "paid")
    last = json.loads(lines[-2][6:])
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["usage"]["cost"] == "0.0002"
    assert sum(b'"usage":{' in line for line in lines) == 1


def test_text_that_looks_like_sse_stays_inside_one_frame(acme: Organisation) -> None:
    text = "x\n\nevent: done\ndata: {}\r\r\u2028end"
    assert deltas(frames(acme, text, "echo")) == text


def test_the_text_of_an_exception_reaches_nobody(acme: Organisation) -> None:
    reply = acme.chat("hello", "broken")
    assert (reply.status, reply.code) == (500, "agent_failed")
    assert b"canary" not in reply.body
    assert b"passwd" not in reply.body


def test_an_error_in_mid_stream_has_a_code_and_no_done(acme: Organisation) -> None:
    lines = frames(acme, "hello", "half")
    assert deltas(lines) == "so far "
    assert json.loads(lines[-1][6:])["error"]["code"] == "agent_failed"
    assert b"data: [DONE]" not in lines


def test_a_stream_that_fails_before_its_first_event_is_an_http_error(acme: Organisation) -> None:
    reply = acme.chat("hello", "broken", stream=True)
    assert (reply.status, reply.code) == (500, "agent_failed")


def test_the_agents_are_listed_as_models(acme: Organisation) -> None:
    models = acme.get("/v1/models").json
    names = [model["id"] for model in models["data"]]
    assert models["object"] == "list"
    assert {"echo", "words", "paid"} <= set(names)


def test_one_agent_is_shown_as_it_stands_in_the_list(acme: Organisation) -> None:
    listed = {model["id"]: model for model in acme.get("/v1/models").json["data"]}
    assert acme.get("/v1/models/words").json == listed["words"]
    reply = acme.get("/v1/models/nobody")
    assert (reply.status, reply.code) == (404, "agent_not_found")
    assert acme.get("/v1/models/%40echo%40globex.example").code == "agent_not_found"
    assert request("POST", acme.url + "/v1/models/words", body=b"").status == 405


def test_a_token_sees_only_the_agents_it_may_call(acme: Organisation) -> None:
    token = acme.new_token("narrow", "--scope", "call:echo", "--scope", "run:read")
    models = acme.get("/v1/models", token=token).json
    assert [model["id"] for model in models["data"]] == ["echo"]
    assert acme.chat("hi", "words", token=token).code == "permission_missing"


def test_health_is_open_and_metrics_are_not(acme: Organisation) -> None:
    assert request("GET", acme.url + "/healthz").json == {"status": "ok"}
    assert request("GET", acme.url + "/readyz").json == {"status": "ready"}
    assert request("GET", acme.url + "/metrics").status == 401
    assert acme.get("/metrics").code == "permission_missing"
    token = acme.new_token("scraper", "--scope", "metrics")
    acme.chat("hello")
    assert (
        b'carnet_calls_total{agent="echo",state="done"}' in acme.get("/metrics", token=token).body
    )


def test_every_code_has_a_page_and_the_api_describes_itself(acme: Organisation) -> None:
    page = request("GET", acme.url + "/-/errors/bridge_depth_exceeded").json
    assert page["status"] == 429
    assert page["next_step"]
    assert request("GET", acme.url + "/-/errors/no_such_code").status == 404
    both = request("GET", acme.url + "/-/errors/payment_required").json
    assert (both["code"], [each["code"] for each in both["also"]]) == (
        "payment_required",
        ["payment_wanted"],
    )
    api = request("GET", acme.url + "/openapi.json").json
    assert "/v1/chat/completions" in api["paths"]


def test_an_agent_calls_another_agent_in_process(acme: Organisation) -> None:
    reply = acme.chat("paid hello there", "relay")
    assert reply.text == "hello there"
    assert reply.json["usage"]["cost"] == "0.0002"


def test_two_calls_to_one_agent_in_a_turn_do_not_collide(acme: Organisation) -> None:
    assert acme.chat("go", "twice").text == "one two"


def test_a_turn_records_run_turn_parent_and_speaker(acme: Organisation) -> None:
    ids = [
        ("x-tangle-runid", "conv_record"),
        ("x-tangle-turnid", "conv_record.abcd1234.t0.echo"),
        ("x-tangle-parent-turnid", "conv_record.t0.outer"),
        ("x-tangle-speaker", "critic"),
        ("x-tangle-forwarded-depth", "2"),
    ]
    reply = acme.chat("hi", headers=ids)
    assert reply.headers["x-tangle-runid"] == "conv_record"
    (turn,) = acme.get("/runs/conv_record").json["turns"]
    assert turn["turn"] == "conv_record.abcd1234.t0.echo"
    assert turn["parent_turn"] == "conv_record.t0.outer"
    assert (turn["speaker"], turn["depth"]) == ("critic", 2)
