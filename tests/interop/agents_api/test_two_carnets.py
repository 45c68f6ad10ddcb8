"""Two organisations over agents-api: what must survive from the one to the other."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from carnet.testing.stage import Organisation, Stage
from carnet.testing.wait import until
from tests.interop.agents_api.conftest import AGENTS, sections
from tests.support.http import HeaderList, Reply, chat_body, request

CALLED = ("echo", "tells", "approves", "asks", "twice", "streams", "wants", "files", "fails")


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """One whose agents are those of the other, by their kind and as a peer."""
    with Stage(tmp_path_factory.mktemp("two")) as stage:
        globex = stage.organisation("globex.example", config=sections(), agents=AGENTS)
        globex.start()
        token = globex.new_token("from-acme", "--peer", "acme.example")
        kinds = [
            f'[agents.far-{name}]\nkind = "agents_api"\nurl = "{globex.url}"\nmodel = "{name}"\n'
            'token = {env = "GLOBEX"}\n'
            for name in CALLED
        ]
        made = stage.organisation("acme.example", config="\n".join(kinds))
        secret = made.folder / "var" / "globex.token"
        secret.write_text(token)
        secret.chmod(0o600)
        made.carnet(
            *("peers", "add", "globex.example", "--url", globex.url, "--dialect", "agents_api"),
            *("--token-file", str(secret), "--credit", "10"),
        )
        made.start(env={"GLOBEX": token})
        yield made


def ask(gateway: Organisation, agent: str, fields: HeaderList = (), **more: Any) -> Reply:
    own = [("authorization", f"Bearer {gateway.token}"), ("content-type", "application/json")]
    url = f"{gateway.url}/v1/chat/completions"
    return request("POST", url, [*own, *fields], chat_body(model=agent, **more))


@pytest.mark.parametrize("agent", ["far-echo", "@echo@globex.example"])
def test_text_crosses_whole_and_streamed(acme: Organisation, agent: str) -> None:
    assert ask(acme, agent, text="hello there").text == "hello there"
    reply = ask(acme, agent, text="hello there", stream=True)
    lines = [line[6:] for line in reply.body.splitlines() if line.startswith(b"data: {")]
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines]
    assert "".join(each.get("content") or "" for each in deltas) == "hello there"


def test_history_crosses(acme: Organisation) -> None:
    messages = [
        {"role": "user", "content": "before"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "now"},
    ]
    given = json.loads(ask(acme, "far-tells", messages=messages).text)["messages"]
    assert [each[:2] for each in given] == [
        ["user", "before"],
        ["assistant", "yes"],
        ["user", "now"],
    ]


def test_tools_of_the_agent_cross_in_a_stream(acme: Organisation) -> None:
    run = "conv_tools"
    ask(acme, "far-streams", [("x-tangle-runid", run)], text="go", stream=True)
    exported = acme.carnet("run", "export", run).stdout.splitlines()
    events = [json.loads(line) for line in exported]
    (call,) = [each["fields"] for each in events if each.get("event") == "tool_call"]
    assert (call["name"], call["arguments"], call["index"]) == ("search", '{"q":1}', 2)


def test_tools_that_the_caller_is_to_run_cross_and_so_do_their_results(acme: Organisation) -> None:
    choice = ask(acme, "far-wants", text="go").json["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert call["function"] == {"name": "lookup", "arguments": '{"key":"k"}'}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": '"v"'},
    ]
    assert ask(acme, "far-wants", messages=messages).text == "thank you"


@pytest.mark.parametrize("agent", ["far-approves", "@approves@globex.example"])
@pytest.mark.parametrize(
    ("outcome", "words"), [("accepted", "granted"), ("rejected", "left alone")]
)
def test_a_question_crosses_and_so_does_its_answer(
    acme: Organisation, agent: str, outcome: str, words: str
) -> None:
    run = f"conv_{agent.strip('@')[:3]}_{outcome}"
    fields = [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0.a")]
    reply = ask(acme, agent, fields, text="go")
    (asked,) = reply.json["error"]["interrupts"]
    assert (asked["kind"], asked["message"]) == ("approval", "May I publish?")
    assert asked["origin"] == "@approves@globex.example"
    answer = ("carnet-resolution", f"{asked['state']};outcome={outcome}")
    assert ask(acme, agent, [*fields, answer], text="go").text == words
    assert ask(acme, agent, fields, text="go").text == words


def test_two_questions_of_one_run_cross_one_after_the_other(acme: Organisation) -> None:
    fields = [("x-tangle-runid", "conv_twice"), ("x-tangle-turnid", "conv_twice.t0.a")]
    reply = ask(acme, "far-twice", fields, text="go")
    for outcome in ("accepted", "rejected"):
        (asked,) = reply.json["error"]["interrupts"]
        answer = ("carnet-resolution", f"{asked['state']};outcome={outcome}")
        reply = ask(acme, "far-twice", [*fields, answer], text="go")
    assert reply.text == "accepted rejected"


def test_an_answer_in_words_crosses(acme: Organisation) -> None:
    fields = [("x-tangle-runid", "conv_city"), ("x-tangle-turnid", "conv_city.t0.a")]
    (asked,) = ask(acme, "far-asks", fields, text="go").json["error"]["interrupts"]
    assert asked["kind"] == "input"
    answer = ("carnet-resolution", f"{asked['state']};outcome=accepted;value=:IkdyYXoi:")
    assert ask(acme, "far-asks", [*fields, answer], text="go").text == "weather of Graz"


def test_a_person_decides_what_an_agent_elsewhere_asks(acme: Organisation) -> None:
    ask(acme, "far-approves", [("x-tangle-runid", "conv_inbox")], text="go")
    own = [("authorization", f"Bearer {acme.token}"), ("content-type", "application/json")]
    listed = request("GET", f"{acme.url}/approvals", own).json["approvals"]
    (asked,) = [each for each in listed if each["run"] == "conv_inbox"]
    body = json.dumps({"decision": "approved"}).encode()
    reply = request("POST", f"{acme.url}/approvals/{asked['id']}", own, body)
    assert reply.status == 200, reply.body


def test_files_and_data_cross(acme: Organisation) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {"message": {"parts": [{"type": "text", "text": "show"}]}},
    }
    own = [("authorization", f"Bearer {acme.token}"), ("content-type", "application/json")]
    url = f"{acme.url}/agents-api/v1/agent/far-files"
    task = request("POST", url, own, json.dumps(body).encode()).json["result"]
    kinds = [part["type"] for part in task["status"]["message"]["parts"]]
    assert kinds == ["text", "file", "file", "data"]


def test_a_failure_crosses_as_one_of_the_other_side(acme: Organisation) -> None:
    reply = ask(acme, "far-fails", text="go")
    assert (reply.status, reply.code) == (502, "provider_error")
    assert b"secret" not in reply.body


def test_a_task_crosses(acme: Organisation) -> None:
    own = [("authorization", f"Bearer {acme.token}"), ("content-type", "application/json")]
    accepted = request("POST", f"{acme.url}/tasks", own, chat_body("later", "far-echo"))
    assert accepted.status == 202
    url = f"{acme.url}/tasks/{accepted.json['taskId']}"
    until(lambda: request("GET", url, own).json["status"] == "done")
    assert b"later" in request("GET", url, own).body
