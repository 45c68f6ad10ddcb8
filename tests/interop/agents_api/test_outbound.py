"""Agents of the kind agents_api: a host that knows nothing of Carnet, called by a gateway."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from carnet.testing.stage import Organisation, Stage
from tests.support.agents_api.server import TOKEN, Seen, hosting
from tests.support.http import HeaderList, Reply, chat_body, request

AGENTS = """
import carnet


@carnet.agent("researcher")
async def researcher(visit):
    yield await visit.peer("parrot").ask(visit.text)


@carnet.agent("instructs")
async def instructs(visit):
    words = [carnet.Message.system("obey"), carnet.Message.user("hi")]
    yield await visit.peer("parrot").ask(messages=words)
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Seen]:
    with hosting() as seen:
        yield seen


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, host: Seen) -> Iterator[Organisation]:
    names = ("parrot", "counts", "acts", "fails", "deep")
    sections = [
        f'[agents.{name}]\nkind = "agents_api"\nurl = "{host.url}"\ntoken = {{env = "SITE"}}\n'
        for name in names
    ]
    sections += [
        f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n'
        for name in ("researcher", "instructs")
    ]
    unknown = f'[agents.unknown]\nkind = "agents_api"\nurl = "{host.url}"\nmodel = "parrot"\n'
    with Stage(tmp_path_factory.mktemp("site")) as stage:
        made = stage.organisation(
            "acme.example", config="\n".join([*sections, unknown]), agents=AGENTS
        )
        made.start(env={"SITE": TOKEN})
        yield made


def ask(gateway: Organisation, agent: str, fields: HeaderList = (), **more: Any) -> Reply:
    own = [("authorization", f"Bearer {gateway.token}"), ("content-type", "application/json")]
    url = f"{gateway.url}/v1/chat/completions"
    return request("POST", url, [*own, *fields], chat_body(model=agent, **more))


def test_an_agent_there_is_asked_by_a_message_and_told_who_calls(
    gateway: Organisation, host: Seen
) -> None:
    host.requests.clear()
    reply = ask(gateway, "parrot", text="hello")
    assert reply.text == "parrot: hello"
    ((agent, headers, body),) = host.requests
    assert agent == "parrot"
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert body["method"] == "message/send"
    assert body["params"]["message"]["parts"] == [{"type": "text", "text": "hello"}]
    assert body["params"]["id"] != reply.headers["x-tangle-turnid"]
    (caller,) = host.callers()
    assert caller == {
        "agent": "parrot",
        "user": "1",
        "host": gateway.url,
        "depth": "1",
        "root": reply.headers["x-tangle-runid"],
    }


def test_the_agent_that_calls_is_named_and_not_what_a_caller_says_of_itself(
    gateway: Organisation, host: Seen
) -> None:
    host.requests.clear()
    fields = [
        ("x-agents-api-caller-agent", "somebody"),
        ("x-agents-api-caller-user", "42"),
        ("x-agents-api-caller-host", "https://source.example"),
        ("x-agents-api-chain-depth", "2"),
        ("x-agents-api-chain-root", "root-1"),
    ]
    reply = ask(gateway, "researcher", fields, text="hello")
    assert reply.text == "parrot: hello"
    (caller,) = host.callers()
    assert caller["agent"] == "researcher"
    assert (caller["host"], caller["user"], caller["depth"]) == (gateway.url, "1", "3")


def test_a_stream_there_is_read_as_it_comes(gateway: Organisation) -> None:
    reply = ask(gateway, "parrot", text="hello", stream=True)
    lines = [line[6:] for line in reply.body.splitlines() if line.startswith(b"data: {")]
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines]
    assert "".join(each.get("content") or "" for each in deltas) == "parrot: hello"


def test_history_and_tools_that_were_run_and_files_go_along(gateway: Organisation) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "before"},
        {"role": "assistant", "content": "yes"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "42"},
        {"role": "user", "content": "now"},
    ]
    reply = ask(gateway, "counts", messages=messages)
    assert json.loads(reply.text) == {
        "text": "now",
        "data": [
            ["role", "text"],
            ["role", "text"],
            ["arguments", "toolCallId", "toolId"],
            ["result", "toolCallId", "toolId"],
        ],
        "files": [],
    }


@pytest.mark.parametrize("decision", ["accepted", "rejected"])
def test_an_action_there_is_a_question_here_and_its_answer_goes_there(
    gateway: Organisation, host: Seen, decision: str
) -> None:
    host.requests.clear()
    run = f"conv_{decision}"
    fields = [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0.a")]
    reply = ask(gateway, "acts", fields, text="publish")
    assert reply.status == 403
    (asked,) = reply.json["error"]["interrupts"]
    assert (asked["kind"], asked["message"]) == ("approval", "Publish the post")
    assert asked["preview"] == {"title": "News"}
    assert asked["arguments"] == {"post": 7}
    answer = ("carnet-resolution", f"{asked['state']};outcome={decision}")
    reply = ask(gateway, "acts", [*fields, answer], text="publish")
    assert reply.status == 200, reply.body
    assert json.loads(reply.text)["applied"] is (decision == "accepted")
    methods = [body["method"] for _, _, body in host.requests]
    assert methods == ["message/send", "agents/resolve-pending-action"]
    given = host.requests[-1][2]["params"]
    assert given["decision"] == decision
    assert given["action_id"].startswith("act-")
    assert host.callers()[-1]["depth"] == "1"


def test_an_error_there_is_told_without_its_words(gateway: Organisation) -> None:
    reply = ask(gateway, "fails", text="go")
    assert reply.status == 502
    assert reply.code == "peer_refused"
    assert reply.json["error"]["peer_code"] == "jsonrpc_32603"
    assert b"secret" not in reply.body


def test_who_is_not_known_there_is_refused_here(gateway: Organisation) -> None:
    reply = ask(gateway, "unknown", text="go")
    assert (reply.status, reply.code) == (502, "peer_refused")
    assert reply.json["error"]["peer_status"] == 401


def test_a_chain_that_is_too_deep_there_is_too_deep_here(gateway: Organisation) -> None:
    reply = ask(gateway, "deep", text="go")
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    assert reply.json["error"]["limit"] == 3


def test_what_the_dialect_has_no_word_for_is_refused_before_it_leaves(
    gateway: Organisation, host: Seen
) -> None:
    host.requests.clear()
    reply = ask(gateway, "instructs", text="go")
    assert reply.status >= 400
    assert host.requests == []


def test_the_command_line_calls_an_agent_there_by_its_url(
    gateway: Organisation, host: Seen
) -> None:
    words = ("--dialect", "agents_api", "--as", TOKEN)
    url = f"{host.url}/agents-api/v1/agent/parrot"
    done = gateway.carnet("call", url, "good day", *words)
    assert done.stdout == "parrot: good day\n"
    done = gateway.carnet("call", host.url, "good day", *words, "--model", "parrot", "--stream")
    assert done.stdout == "parrot: good day\n"
    asked = gateway.carnet("call", url, "good day", *words, "--dry-run").stdout
    assert '"message/send"' in asked
    assert TOKEN not in asked
    assert "--model NAME" in gateway.try_carnet("call", host.url, "hi", *words).stderr
    waits = gateway.try_carnet("call", f"{host.url}/agents-api/v1/agent/acts", "hi", *words)
    assert waits.returncode == 1
    assert "Publish the post" in waits.stderr
