"""The operator's policy: asked before a call and before each tool; it may only deny."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.process import tool_call, with_usage
from tests.security.contexts.conftest import CONFIG_HERE, served
from tests.security.contexts.requests import chain
from tests.support.http import request
from tests.support.model import Model
from tests.support.organisation import Organisation
from tests.support.served import executions

NAMES = ("refused", "raises", "odd", "late")
CONFIG = CONFIG_HERE + "".join(
    f'[agents.{name}]\nkind = "python"\ntarget = "agents:echo"\n' for name in NAMES
)
CONFIG += '[agents.denied]\nkind = "python"\ntarget = "agents:denied_below"\n'
POLICY = '\n[policy]\ntarget = "agents:{}"\nseconds = 3\n'


@pytest.fixture(scope="module", params=["judge", "ajudge"])
def judged(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    config = CONFIG + POLICY.format(request.param)
    with served(tmp_path_factory.mktemp("judged"), config) as gateway:
        yield gateway


LOOP = """
[agents.loop]
kind = "engine"
tools = ["agents:peek", "agents:wipe"]

[models.small]
url = "{}/v1"
retries = 0

[engine]
model = "small"
"""


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model().serving() as found:
        yield found


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Organisation]:
    config = CONFIG + POLICY.format("judge") + LOOP.format(model.url)
    with served(tmp_path_factory.mktemp("strict"), config) as gateway:
        yield gateway


def asked(gateway: Organisation) -> list[str]:
    path = gateway.folder / "asked.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_what_it_has_nothing_against_is_answered(judged: Organisation) -> None:
    assert judged.chat("hi").text == "hi"
    assert judged.chat("echo hi", "relay").text == "hi"


def test_what_it_denies_is_refused_and_runs_nothing(judged: Organisation) -> None:
    reply = judged.chat("hi", "refused")
    assert (reply.status, reply.code) == (403, "policy_denied")
    assert reply.json["error"]["hint"]
    assert executions(judged.folder, "refused") == []
    below = judged.chat("refused hi", "relay")
    assert (below.status, below.code) == (403, "policy_denied")
    assert executions(judged.folder, "refused") == []


def test_a_call_that_it_denies_takes_nothing_of_a_budget(judged: Organisation) -> None:
    assert judged.chat("hi", "denied", headers=[("carnet-budget", "calls=5")]).text == "4 4"


def test_one_that_is_late_has_denied_and_holds_up_nobody(judged: Organisation) -> None:
    reply = judged.chat("hi", "late")  # while the policy has said nothing
    (judged.folder / "answered").touch()
    assert (reply.status, reply.code) == (403, "policy_denied")
    assert executions(judged.folder, "late") == []
    assert not judged.held()


@pytest.mark.parametrize("name", ["raises", "odd"])
def test_one_that_fails_has_denied_and_its_words_are_the_operators(
    strict: Organisation, name: str
) -> None:
    reply = strict.chat("hi", name)
    assert (reply.status, reply.code) == (403, "policy_denied")
    assert b"canary" not in reply.body
    assert executions(strict.folder, name) == []


def test_it_is_told_who_acts_who_claims_to_call_and_what_is_to_be_done(
    strict: Organisation,
) -> None:
    before = len(asked(strict))
    assert strict.chat("echo hi", "relay", headers=chain()).status == 200
    seen = asked(strict)[before:]
    context = "source@https://source.example (claimed)"
    assert seen == [f"call relay - {context} user", f"call echo - {context} user"]


def test_it_is_asked_before_each_tool_and_what_it_denies_is_not_run(
    strict: Organisation, model: Model
) -> None:
    token = strict.new_token("tools", "--scope", "call:*", "--scope", "tool:*")
    for tool, ran in (("peek", ["it"]), ("wipe", [])):
        answers = iter([tool_call(tool, '{"what":"it"}'), with_usage("So.")])
        model.reply = lambda _, answers=answers: next(answers)  # type: ignore[misc]
        before = len(asked(strict))
        assert strict.chat("do it", "loop", token=token).text == "So."
        assert asked(strict)[before:] == [
            "call loop - self (claimed) service",
            f"tool loop {tool} self (claimed) service",
        ]
        assert executions(strict.folder, tool) == ran
    assert "denies this tool" in json.dumps(model.asked[-1].body)


def test_it_may_deny_by_what_the_caller_claims(strict: Organisation) -> None:
    reply = strict.chat("hi", headers=chain(agent="intruder"))
    assert (reply.status, reply.code) == (403, "policy_denied")


def test_it_grants_nothing_that_the_guards_refuse(strict: Organisation) -> None:
    narrow = strict.new_token("narrow", "--scope", "call:echo")
    before = len(asked(strict))
    assert strict.chat("hi", "about", token=narrow).status == 403
    assert strict.chat("hi", token="ck_unknown").status == 401
    assert len(asked(strict)) == before


def test_why_it_denied_is_in_the_log_without_a_token_or_an_owners_key(
    strict: Organisation,
) -> None:
    strict.chat("hi", "refused")
    strict.stop()  # then all of it is written
    strict.start()
    lines = [json.loads(line) for line in strict.log.read_text().splitlines()]
    [line, *_] = [each for each in lines if each.get("agent") == "refused" and "detail" in each]
    assert "because the operator says so" in line["detail"]
    assert "'auth_source': 'user'" in line["detail"]
    assert "token_id" not in line["detail"]


def test_every_dialect_has_a_word_for_it(strict: Organisation) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {
            "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
        },
    }
    fields = [("authorization", f"Bearer {strict.token}"), ("content-type", "application/json")]
    fields.append(("a2a-version", "1.0"))
    reply = request("POST", f"{strict.url}/agents/refused/a2a", fields, json.dumps(body).encode())
    assert reply.status == 403
    assert reply.json["error"]["data"][0]["metadata"]["code"] == "policy_denied"


@pytest.mark.parametrize(
    ("target", "words"),
    [("agents:nothing", "has no 'nothing'"), ("agents:echo", "does not take a principal")],
)
def test_a_policy_that_cannot_be_asked_is_refused_before_anything_is_served(
    tmp_path: Path, target: str, words: str
) -> None:
    gateway = Organisation(tmp_path / "wrong", "acme.example")
    gateway.configure(POLICY.format(target.partition(":")[2]))
    done = gateway.try_carnet("config", "check", "--load")
    assert done.returncode == 2
    assert "policy.target" in done.stderr
    assert words in done.stderr
