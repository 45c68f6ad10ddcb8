"""Every route answers as `/openapi.json` says: in each status, media type and shape it promises."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from carnet.testing.wait import until
from tests.support.http import Reply, chat_body, request
from tests.support.organisation import Organisation
from tests.support.schemas import SCHEMAS, valid
from tests.support.served import AGENTS, CONFIG
from tests.support.signing.signed import Line, Sender, Signed, digest, message, sign

DOMAIN = "acme.example"
MODES = {"message": "sync", "stream": "stream", "task": "async"}
RUNS = ("run:read", "run:cancel", "call:*", "pay")
MEMORY = ("memory:read", "memory:write")
ADMIN = ("admin:runs", "admin:people", "admin:reload", "admin:keys", "admin:config")
SCOPES = (*RUNS, *MEMORY, "triggers", "metrics", *ADMIN)
PERSON = "described"
SIGNATURE = {"content-digest", "signature-input", "signature"}


NEW_TRIGGERS = {
    "/hooks": {"name": "words", "agent": "words"},
    "/schedules": {"name": "words", "agent": "words", "cron": "@yearly", "message": "Hi"},
}
FORM = "/sign-in"  # what a page sends; the tests of sessions press its button
EVENTS = ("/hooks/{name}", "/hooks/{name}/{secret}")  # which prove themselves by a signature


class Described:
    """A gateway and its description of itself."""

    def __init__(self, acme: Organisation, line: Line, name: str) -> None:
        self.acme = acme
        self.line = line
        self.api: dict[str, Any] = request("GET", f"{acme.url}/openapi.json").json
        self.sender = Sender(f"agent://client-{name}")
        acme.carnet("peers", "add", self.sender.identity, "--key", self.sender.public)
        options = [word for scope in SCOPES for word in ("--scope", scope)]
        self.holder = f"holder-{name}"
        acme.carnet("people", "add", self.holder, "--role", "admin")
        self.token = acme.new_token(f"asks-{name}", *options, "--person", self.holder)

    def routes(self) -> list[tuple[str, str]]:
        methods = ("get", "post")
        paths: dict[str, Any] = self.api["paths"]
        return [(method, path) for path in paths for method in methods if method in paths[path]]

    def operation_at(self, method: str, path: str) -> dict[str, Any]:
        operation: dict[str, Any] = self.api["paths"][path][method]
        return operation

    def check(self, method: str, path: str, reply: Reply) -> int:
        """An answer is one that the description promises."""
        responses = self.operation_at(method, path)["responses"]
        content = responses.get(str(reply.status), responses["default"])["content"]
        media = reply.headers["content-type"].partition(";")[0]
        assert media in content, (method, path, reply)
        if media == "application/json":
            whole = {**content[media]["schema"], "components": self.api["components"]}
            problems = jsonschema_rs.validator_for(whole).iter_errors(reply.json)
            assert [str(problem) for problem in problems] == [], (method, path, reply)
        return reply.status

    def signed(self, path: str) -> Signed:
        """A signed request to where an agent is asked for something."""
        auth = {"scheme": "bearer", "token": self.acme.token}
        mode = MODES[path.rpartition("/")[2]]
        given: dict[str, Any] = {"mode": mode, "payload": {"text": "hi"}, "auth": auth}
        return message(self.sender, f"agent://words.{DOMAIN}", target=path, **given)

    def about(self, method: str, path: str) -> Signed:
        """A signed request about a task."""
        empty = (("content-digest", digest(b"")),)
        plain = Signed(method=method, target=path, headers=empty, body=b"")
        return sign(self.sender, plain, path=path[path.index("/agent/task/") :])

    def task(self) -> str:
        """A task of this sender, which has ended."""
        task = str(self.line.send(self.signed("/agents/words/agent/task")).json["taskId"])
        until(lambda: self.page(f"/tasks/{task}").json["status"], lambda seen: seen == "done")
        return task

    def page(self, path: str) -> Reply:
        return self.acme.get(path, token=self.token)

    def question(self) -> str:
        """What a call of this token asks for, and nobody has answered."""
        self.acme.chat("hi", "cautious", token=self.token)
        return str(self.page("/approvals").json["approvals"][0]["id"])

    def remember(self, text: str) -> None:
        """Have an agent keep something for whoever holds the token."""
        fields = [("authorization", f"Bearer {self.token}"), ("content-type", "application/json")]
        body = msgspec.json.encode({"content": text})
        reply = request("PUT", f"{self.acme.url}/memory/words/kept.md", fields, body)
        assert self.check("put", "/memory/{agent}/{path}", reply) == 200

    def triggers(self) -> None:
        """A hook and a schedule of whoever holds the token; it may have them already."""
        fields = [("authorization", f"Bearer {self.token}"), ("content-type", "application/json")]
        for path, asked in NEW_TRIGGERS.items():
            request("POST", f"{self.acme.url}{path}", fields, json.dumps(asked).encode())

    def conversation(self) -> str:
        """A conversation whose last answer is not whole."""
        fields = [("authorization", f"Bearer {self.token}"), ("content-type", "application/json")]
        body = msgspec.json.encode({"content": "hi", "agent": "half"})
        reply = request("POST", f"{self.acme.url}/message", fields, body)
        return reply.headers["x-conversation-id"]

    def rule(self) -> str:
        """An answer for the future."""
        body = msgspec.json.encode({"outcome": "accepted", "remember": {}})
        fields = [("authorization", f"Bearer {self.token}"), ("content-type", "application/json")]
        request("POST", f"{self.acme.url}/approvals/{self.question()}", fields, body)
        return str(self.page("/rules").json["rules"][0]["rule"])


# Asked in words of their own, about what is theirs: other tests ask it all.
OWN_WORDS = (
    *("/a2a", "/agents-api/", "/ledger/", "/webfinger", "/agent-key/", "/policy-"),
    *("/oauth", "/keys/", "/receipts", "/-/config/"),
)


def has_own_words(path: str) -> bool:
    return any(words in path for words in OWN_WORDS)


def filled(
    path: str, *, task: str, run: str, question: str = "x", rule: str = "0", talk: str = "x"
) -> str:
    names = {"{name}": "words", "{model}": "words", "{task}": task, "{run}": run}
    names |= {"{id}": question, "{number}": rule, "{conversation}": talk, "{secret}": "x"}
    names |= {"{code}": "internal", "{schema}": "card", "{person}": PERSON}
    names |= {"{agent}": "words", "{path}": "kept.md", "{page}": "glossary"}
    names |= {"{folder}": "operations", "{article}": "limits"}
    names |= {"{book}": "a2a", "{chapter}": "extensions", "{section}": "chain"}
    for name, value in names.items():
        path = path.replace(name, value)
    return path


@pytest.fixture(scope="module")
def described(acme: Organisation) -> Iterator[Described]:
    with Line(acme.port) as line:
        yield Described(acme, line, "described")


def test_every_route_refuses_as_it_is_described(described: Described) -> None:
    """Without a token or a signature, and for what there is not."""
    for method, path in described.routes():
        place = filled(path, task="no-such", run="no-such").replace("/words/", "/nobody/")
        described.check(method, path, request(method.upper(), described.acme.url + place))
        fields = [
            ("authorization", f"Bearer {described.token}"),
            ("content-type", "application/json"),
        ]
        body = b"{}" if method == "post" else None
        reply = request(method.upper(), described.acme.url + place, fields, body)
        described.check(method, path, reply)


def test_every_page_is_answered_as_it_is_described(described: Described) -> None:
    described.acme.try_carnet("people", "add", PERSON)  # or she is known already
    described.acme.chat("hi", headers=[("x-tangle-runid", "conv_described")])
    task, question, talk = described.task(), described.question(), described.conversation()
    described.remember("once")
    described.triggers()
    for method, path in described.routes():
        if method == "get":
            place = filled(path, task=task, run="conv_described", question=question, talk=talk)
            reply = described.page(f"{place}?code=x" if path == FORM else place)
            # At the root it is the default agent that is asked, and the task is of another.
            expected = 404 if path == "/agent/task/{task}" else 200
            if path.startswith("/turn/"):  # with the bearer of a turn alone
                expected = 401
            status = described.check(method, path, reply)
            assert has_own_words(path) or status == expected, (path, reply)


def body_for(path: str, *, has_question: bool, has_talk: bool) -> bytes:
    """What is sent to a path so that it is answered."""
    named: dict[str, Any] = {
        "/rules": {"person": PERSON, "ceiling": "1"},
        "/people": {"name": f"{PERSON}-too", "roles": ["viewer"]},
        "/people/{person}/roles": {"roles": ["viewer"]},
        "/message": {"content": "hi", "agent": "words"},
    }
    named |= {path: {**new, "name": f"of-{PERSON}"} for path, new in NEW_TRIGGERS.items()}
    if path in named or path.startswith(tuple(NEW_TRIGGERS)):
        return json.dumps(named.get(path, {})).encode()
    if has_question:
        return b'{"outcome": "accepted"}'
    is_bare = has_talk or path.endswith(("/cancel", "/end", "/undo", "/session"))
    return b"" if is_bare else chat_body("hi", "words")


def test_every_call_is_answered_as_it_is_described(described: Described) -> None:
    described.acme.try_carnet("people", "add", PERSON)
    described.acme.chat("hi", headers=[("x-tangle-runid", "conv_ended")])
    fields = [("authorization", f"Bearer {described.token}"), ("content-type", "application/json")]
    described.remember("once")
    described.remember("again")
    for method, path in described.routes():
        if method != "post" or path == FORM:
            continue
        question = described.question() if "{id}" in path else ""
        rule = described.rule() if "{number}" in path else ""
        talk = described.conversation() if "{conversation}" in path else ""
        named = {"question": question, "rule": rule, "talk": talk}
        place = filled(path, task=described.task(), run="conv_ended", **named)
        if path.endswith("/agent/task/{task}/cancel"):
            reply = described.line.send(described.about("POST", place.replace("{name}", "words")))
        elif "/agent/" in path and not has_own_words(path):
            reply = described.line.send(described.signed(place))
        else:
            described.triggers()
            body = body_for(path, has_question=bool(question), has_talk=bool(talk))
            reply = request("POST", described.acme.url + place, fields, body)
        status = described.check(method, path, reply)
        # At the root the host names the default agent, and what is signed is for another one.
        is_elsewhere = path.startswith("/agent/") or path in EVENTS
        # And with the bearer of a turn alone.
        expected = {401} if path.startswith("/turn/") else {200, 201, 202}
        assert is_elsewhere or has_own_words(path) or status in expected, (path, reply)


def test_what_is_no_json_is_described_by_its_media_type(described: Described) -> None:
    for path, media in (("/metrics", "text/plain"), ("/agent/intro", "text/markdown")):
        assert list(described.operation_at("get", path)["responses"]["200"]["content"]) == [media]


_LISTED = "contextId status pageSize pageToken historyLength statusTimestampAfter includeArtifacts"
QUERIES = {
    "/a2a/tasks": _LISTED,
    "/agents/{name}/a2a/tasks": _LISTED,
    "/a2a/tasks/{task}": "historyLength",
    "/agents/{name}/a2a/tasks/{task}": "historyLength",
    "/a2a/tasks/{task}/pushNotificationConfigs": "pageSize pageToken",
    "/agents/{name}/a2a/tasks/{task}/pushNotificationConfigs": "pageSize pageToken",
    "/runs": "limit before agent actor speaker state code correlation payer since",
    "/runs/{run}": "full",
    "/approvals": "status limit before",
    "/conversations": "limit before search agent trigger since until unread archived",
    "/conversations/{conversation}": "limit before",
    "/conversations/{conversation}/export": "format",
    "/people": "limit after all",
    "/ledger": "limit before run",
    "/tasks": "limit before state agent",
    "/memory/{agent}": "full search",
    "/memory/{agent}/{path}": "version",
    "/agents-api/v1/pending-actions/{action}": "include_resolved",
    "/sign-in": "code",
    "/turn/memory": "folder search",
    "/turn/conversations": "search",
}


def test_every_query_that_is_read_is_described(described: Described) -> None:
    found = {
        path: " ".join(each["name"] for each in parameters if each["in"] == "query")
        for method, path in described.routes()
        if method == "get"
        and (parameters := described.operation_at(method, path).get("parameters"))
    }
    assert {path: names for path, names in found.items() if names} == QUERIES


def test_an_answer_for_the_future_is_described(described: Described) -> None:
    decision = described.api["components"]["schemas"]["Decision"]
    valid = jsonschema_rs.validator_for(decision).is_valid
    assert valid({"outcome": "accepted", "remember": {"ceiling": "1"}})
    assert valid({"outcome": "rejected", "value": "not now"})
    assert not valid({"outcome": "accepted", "remembr": {}})
    assert not valid({"outcome": "accepted", "remember": {"until": "tomorrow"}})


POLLED = "/agents/{name}/agent/task/{task}"


def test_where_polling_is_open_no_signature_is_asked_for(described: Described) -> None:
    assert "parameters" not in described.operation_at("get", POLLED)


def test_where_polling_is_signed_a_signature_is_asked_for(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    strict = Organisation(tmp_path_factory.mktemp("described"), DOMAIN)
    strict.configure(CONFIG, agents=AGENTS)
    config = strict.folder / "carnet.toml"
    config.write_text(
        config.read_text().replace("[gateway]\n", '[gateway]\ntask_polling = "signed"\n', 1)
    )
    strict.start()
    with Line(strict.port) as line:
        signed = Described(strict, line, "strict")
        parameters = signed.operation_at("get", POLLED)["parameters"]
        assert {each["name"] for each in parameters if each["required"]} == SIGNATURE
        place = filled(POLLED, task=signed.task(), run="")
        assert signed.check("get", POLLED, request("GET", strict.url + place)) == 401
        assert signed.check("get", POLLED, line.send(signed.about("GET", place))) == 200
        missing = filled(POLLED, task="no-such", run="")
        assert signed.check("get", POLLED, line.send(signed.about("GET", missing))) == 404
    assert strict.stop() == 0


def test_the_schemas_of_documents_are_served_to_everybody(described: Described) -> None:
    """R50: what is served is what the documents of this gateway are held to here."""
    url = described.acme.url
    pages = request("GET", url + "/-/schemas/").json["schemas"]
    assert pages == {name: f"/-/schemas/{name}" for name in ("answer", "card", "request", "task")}
    served = {name: request("GET", url + page).json for name, page in pages.items()}
    assert served == SCHEMAS
    assert request("GET", url + "/-/schemas/card.json").json == served["card"]
    shown = request("GET", url + "/agents/words/.well-known/agent.json").json
    assert valid("card", shown)
    sent = json.loads(described.signed("/agents/words/agent/message").body)
    assert valid("request", sent)
    for name in ("nothing", "..", "%2e%2e%2fschemas.py", "card.json.json"):
        assert request("GET", f"{url}/-/schemas/{name}").status == 404
