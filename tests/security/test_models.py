"""A model behind an agent: what callers can make of the operator's key, and of one another."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.security.support.scene import fresh, ids
from tests.support.federation import introduce, organisation
from tests.support.http import request
from tests.support.model import CLOSED, Answer, Asked, Model, answered, refused
from tests.support.organisation import Organisation

CONFIG = """
[agents.model]
kind = "openai"
url = "{url}/model/v1"
model = "large"

[agents.instructed]
kind = "openai"
url = "{url}/instructed/v1"
system = "Be brief."

[agents.both]
kind = "openai"
url = "{url}/both/v1"
system = "Be brief."
caller_system = true

[agents.opened]
kind = "openai"
url = "{url}/opened/v1"
pass_members = ["*"]

[agents.fragile]
kind = "openai"
url = "{url}/fragile/v1"

[agents.priced]
kind = "openai"
url = "{url}/priced/v1"
price = "0.5"

[agents.by-tokens]
kind = "openai"
url = "{url}/priced/v1"
price_out = "2"

[agents.narrow]
kind = "openai"
url = "{url}/narrow/v1"
pass_members = ["user"]
"""
REMOVED = "carnet-removed"
# Where it is answered, by whom, for how much, what the operator's account keeps, who pays for it.
ODD: dict[str, Any] = {
    "api_base": "http://127.0.0.1:9/",
    "base_url": "http://127.0.0.1:9/",
    "models": ["dearest"],
    "service_tier": "priority",
    "best_of": 20,
    "store": True,
    "metadata": {"a": "b"},
    "user": "somebody else",
    "web_search_options": {},
    "extra_headers": {"authorization": "x"},
}
USUAL: dict[str, Any] = {
    "temperature": 0.5,
    "max_tokens": 7,
    "stop": ["."],
    "response_format": {"type": "json_object"},
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}],
    "tool_choice": "auto",
    "seed": 1,
}
MCP: Any = {"type": "mcp", "server_url": "http://127.0.0.1:9/"}


@pytest.fixture(scope="module")
def provider() -> Iterator[Model]:
    with Model().serving() as serving:
        yield serving


@pytest.fixture
def model(provider: Model) -> Model:
    """It answers well, until a test says something else."""
    provider.reply = lambda _: answered()
    return provider


@pytest.fixture(scope="module")
def globex(tmp_path_factory: pytest.TempPathFactory, provider: Model) -> Iterator[Organisation]:
    """Whose agents are models."""
    folder = tmp_path_factory.mktemp("models")
    globex = organisation(folder / "globex", "globex.example")
    globex.configure(CONFIG.format(url=provider.url))
    globex.start()
    yield globex
    assert globex.stop() == 0


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory, globex: Organisation) -> Iterator[Organisation]:
    """Who calls them from elsewhere."""
    acme = organisation(tmp_path_factory.mktemp("acme") / "acme", "acme.example")
    introduce(acme, globex)
    acme.start()
    yield acme
    assert acme.stop() == 0


def asked_of(model: Model, text: str) -> Asked:
    (asked,) = model.of(text)
    return asked


# ---------------------------------------------------------------------- what reaches it


@pytest.mark.parametrize("stream", [False, True])
def test_a_member_that_is_not_let_pass_never_reaches_the_model_and_is_named(
    globex: Organisation,
    model: Model,
    stream: bool,  # noqa: FBT001  given by name
) -> None:
    """A90."""
    text = fresh("members")
    reply = globex.chat(text, "model", stream=stream, **ODD, **USUAL)
    assert reply.status == 200
    assert reply.headers[REMOVED].split(", ") == list(ODD)
    body = asked_of(model, text).body
    assert {name: body[name] for name in USUAL} == USUAL
    assert body.keys() <= {*USUAL, "model", "messages", "stream", "stream_options"}
    assert body["model"] == "large"


def test_a_member_of_another_organisations_caller_does_not_reach_the_model_either(
    acme: Organisation, model: Model
) -> None:
    """A90: over two gateways."""
    text = fresh("abroad")
    assert acme.chat(text, "@model@globex.example", **ODD, **USUAL).status == 200
    assert asked_of(model, text).body.keys().isdisjoint(ODD)
    assert asked_of(model, text).body["seed"] == 1


def test_a_task_says_what_does_not_pass_when_it_is_accepted(
    globex: Organisation, model: Model
) -> None:
    """A90."""
    text = fresh("later")
    reply = globex.chat(text, "model", path="/tasks", service_tier="priority")
    assert (reply.status, reply.headers[REMOVED]) == (202, "service_tier")
    globex.carnet("tasks", "wait", reply.json["taskId"])
    assert "service_tier" not in asked_of(model, text).body


def test_a_repeat_says_the_same(globex: Organisation, model: Model) -> None:
    """A90: the answer of a record names what did not pass, too."""
    text, run = fresh("repeat"), fresh("run")
    replies = [globex.chat(text, "model", headers=ids(run), best_of=3) for _ in range(2)]
    assert [reply.headers[REMOVED] for reply in replies] == ["best_of"] * 2
    assert replies[0].body == replies[1].body
    assert len(model.of(text)) == 1


def test_a_name_that_no_header_can_carry_is_told_as_other(
    globex: Organisation, model: Model
) -> None:
    """A90, A58."""
    text = fresh("odd")
    odd: dict[str, Any] = {"x\r\nset-cookie: a": 1, "é": 2, "a" * 65: 3}
    reply = globex.chat(text, "model", **odd)
    assert (reply.status, reply.headers[REMOVED]) == (200, "other")
    assert "set-cookie" not in reply.headers
    assert len(asked_of(model, text).body) == 3


def test_a_tool_that_the_provider_would_run_is_no_function_and_stays_behind(
    globex: Organisation, model: Model
) -> None:
    """A90: it would be called from the provider's network, with whatever key it is given."""
    text = fresh("tools")
    reply = globex.chat(text, "model", tools=[*USUAL["tools"], MCP])
    assert reply.headers[REMOVED] == "tools"
    assert asked_of(model, text).body["tools"] == USUAL["tools"]
    alone = fresh("alone")
    assert globex.chat(alone, "model", tools=[MCP]).headers[REMOVED] == "tools"
    assert "tools" not in asked_of(model, alone).body


def test_an_operator_may_let_every_member_pass(globex: Organisation, model: Model) -> None:
    text = fresh("opened")
    reply = globex.chat(text, "opened", tools=[MCP], **ODD)
    assert REMOVED not in reply.headers
    body = asked_of(model, text).body
    assert {name: body[name] for name in ODD} == ODD
    assert body["tools"] == [MCP]


def test_an_operator_may_let_pass_what_is_listed_alone(globex: Organisation, model: Model) -> None:
    text = fresh("narrow")
    reply = globex.chat(text, "narrow", user="u", temperature=1)
    assert reply.headers[REMOVED] == "temperature"
    assert asked_of(model, text).body["user"] == "u"


# ---------------------------------------------------------------------- who instructs it


def test_callers_do_not_instruct_an_agent_that_has_a_system_message_of_its_own(
    globex: Organisation, model: Model
) -> None:
    """R58, A91: they are removed, and the answer says so."""
    text = fresh("instructed")
    messages = messages_of(text, "system", "developer")
    reply = globex.chat(text, "instructed", messages=messages)
    assert (reply.status, reply.headers[REMOVED]) == (200, "system")
    assert asked_of(model, text).body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": text},
    ]


def test_callers_of_another_organisation_do_not_either(acme: Organisation, model: Model) -> None:
    """R58, A91."""
    text = fresh("from-abroad")
    reply = acme.chat(text, "@instructed@globex.example", messages=messages_of(text, "system"))
    assert reply.status == 200
    roles = [(one["role"], one["content"]) for one in asked_of(model, text).body["messages"]]
    cue = "You are responding as hop 1 of a chain capped at 3 hops. [2 hops remaining.]"
    assert roles == [("system", f"Be brief.\n\n{cue}"), ("user", text)]


def test_callers_system_messages_come_after_ours_where_they_are_let_pass(
    globex: Organisation, model: Model
) -> None:
    """R58."""
    text = fresh("both")
    reply = globex.chat(text, "both", messages=messages_of(text, "system"))
    assert REMOVED not in reply.headers
    contents = [one["content"] for one in asked_of(model, text).body["messages"]]
    assert contents == ["Be brief.", "Say yes.", text]


def test_a_bare_model_is_instructed_by_its_callers(globex: Organisation, model: Model) -> None:
    """R58."""
    text = fresh("bare")
    reply = globex.chat(text, "model", messages=messages_of(text, "developer"))
    assert REMOVED not in reply.headers
    roles = [one["role"] for one in asked_of(model, text).body["messages"]]
    assert roles == ["developer", "user"]


def messages_of(text: str, *roles: str) -> list[dict[str, str]]:
    return [
        *({"role": role, "content": "Say yes."} for role in roles),
        {"role": "user", "content": text},
    ]


# ---------------------------------------------------------------------- who is left alone

POISON = "a request that breaks the model"


def breaking(asked: Asked) -> Answer:
    return refused(500) if asked.last_message.startswith(POISON) else answered()


def closing(asked: Asked) -> Answer:
    return CLOSED if asked.last_message.startswith(POISON) else answered()


def refusing(asked: Asked) -> Answer:
    return refused(400, "content_filter") if asked.last_message.startswith(POISON) else answered()


@pytest.mark.parametrize("reply", [breaking, closing, refusing])
def test_what_one_callers_requests_meet_closes_a_model_to_nobody_else(
    globex: Organisation, model: Model, reply: Callable[[Asked], Answer]
) -> None:
    """A92: a 500 that only its requests meet counts for it alone; a refusal for nobody."""
    mallory, alice = globex.new_token(fresh("mallory")), globex.new_token(fresh("alice"))
    model.reply = reply
    last = [globex.chat(POISON, "model", token=mallory) for _ in range(8)][-1]
    assert globex.chat("hello", "model", token=alice).status == 200
    assert request("GET", globex.url + "/readyz").json == {"status": "ready"}
    assert last.code == ("circuit_open" if reply is not refusing else "model_refused")
    left = globex.chat("hello", "model", token=mallory)
    assert left.status == (503 if reply is not refusing else 200)


def test_what_a_peers_requests_meet_closes_a_model_to_nobody_else(
    acme: Organisation, globex: Organisation, model: Model
) -> None:
    """A92: over two gateways. A peer may speak for many, and is one caller."""
    model.reply = breaking
    alice = globex.new_token(fresh("alice"))
    for _ in range(8):
        assert acme.chat(POISON, "@opened@globex.example").status == 503
    assert globex.chat("hello", "opened", token=alice).status == 200


def test_what_two_callers_meet_closes_a_model_to_all(globex: Organisation, model: Model) -> None:
    """A92: then it is no doing of theirs."""
    tokens = [globex.new_token(fresh("caller")) for _ in range(3)]
    model.reply = lambda _: refused(500)
    for number in range(10):
        globex.chat(f"hello {number}", "fragile", token=tokens[number % 2])
    refusal = globex.chat("hello", "fragile", token=tokens[2])
    assert (refusal.status, refusal.code) == (503, "circuit_open")
    operator = globex.new_token(fresh("operator"), "--scope", "metrics")
    page = globex.get("/readyz", token=operator).json
    assert page["status"] == "degraded"
    assert [row for row in page["circuits"] if row["upstream"].endswith("/fragile/v1")]


# ---------------------------------------------------------------------- what its refusals mean

SECRET = "the provider's own words, at /srv/house"
MEANINGS = {
    "context by its code": (400, "context_length_exceeded", 400, "context_length_exceeded"),
    "context by its words": (413, None, 400, "model_refused"),
    "another 400": (400, "invalid_value", 400, "model_refused"),
    "refused content": (400, "content_filter", 400, "model_refused"),
    "key": (401, "invalid_api_key", 502, "model_key_refused"),
    "payment": (402, None, 503, "model_quota_exceeded"),
    "quota": (429, "insufficient_quota", 503, "model_quota_exceeded"),
    "rate": (429, "rate_limit_exceeded", 429, "model_rate_limited"),
    "model": (404, "model_not_found", 502, "model_not_found"),
    "fault": (500, None, 503, "provider_unavailable"),
    "gateway": (504, None, 504, "provider_timeout"),
}


@pytest.mark.parametrize("what", MEANINGS)
def test_a_models_refusal_keeps_its_meaning_and_its_words_are_the_operators(
    globex: Organisation, model: Model, what: str
) -> None:
    """R51, A65: a code of ours to the caller, the words to the log and `run show`."""
    upstream, word, status, code = MEANINGS[what]
    caller, run = globex.new_token(fresh("caller")), fresh("meaning")
    model.reply = lambda asked: (
        refused(upstream, word, SECRET) if asked.last_message == run else answered()
    )
    assert globex.chat("hello", "model").status == 200
    reply = globex.chat(run, "model", token=caller, headers=ids(run))
    assert (reply.status, reply.code) == (status, code)
    pages = [reply, *(globex.get(f"/runs/{run}{tail}", token=caller) for tail in ("", "/events"))]
    assert [each for each in pages if b"/srv/house" in each.body] == []
    shown = globex.carnet("run", "show", run).stdout
    assert f"{upstream} " in shown
    assert SECRET in shown
    until(lambda: any(SECRET in line and code in line for line in globex.log_lines()))


def test_a_peers_caller_is_told_what_the_model_of_the_peer_meant(
    acme: Organisation, model: Model
) -> None:
    """R51: over two gateways."""
    text = fresh("abroad")
    model.reply = lambda asked: (
        refused(400, "context_length_exceeded", SECRET)
        if asked.last_message == text
        else answered()
    )
    reply = acme.chat(text, "@model@globex.example")
    assert (reply.status, reply.code) == (502, "peer_refused")
    assert reply.json["error"]["peer_code"] == "context_length_exceeded"
    assert SECRET.encode() not in reply.body


def test_a_key_that_a_provider_says_back_is_shown_to_nobody(
    globex: Organisation, model: Model
) -> None:
    """A65, I11: not to the operator either."""
    run = fresh("key")
    words = "Incorrect API key provided: sk-canary-of-the-operator-0001"
    model.reply = lambda asked: (
        refused(401, None, words) if asked.last_message == run else answered()
    )
    globex.chat(run, "model", headers=ids(run))
    shown = globex.carnet("run", "show", run).stdout
    assert "Incorrect API key provided: ***" in shown
    assert "canary-of-the-operator" not in shown


def test_the_card_of_a_model_tells_its_price_and_the_most_a_call_may_cost(
    globex: Organisation,
) -> None:
    """R31: what depends on tokens is not known before."""
    cards = [
        globex.get(f"/agents/{name}/.well-known/agent.json").json["carnet"]
        for name in ("model", "priced", "by-tokens")
    ]
    prices = [(card["price"], card["price_out"], card["most_cost"]) for card in cards]
    assert prices == [("0", "0", "0"), ("0.5", "0", "0.5"), ("0", "2", None)]
