"""A114: the bearer of a turn, in the hands of who should not have it, or would have more of it."""

import json
import signal
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from carnet.testing.wait import until
from carnet.wire.crypto import ed25519
from carnet.wire.dialects.engine_chat.bearer import read_bearer, write_bearer
from tests.engine.process import EngineProcess, asking, events_of
from tests.support.http import HeaderList, Reply, request
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation, shared_with_others

TOOLS = """
from pathlib import Path


def send_mail(to: str) -> str:
    "Sends a mail."
    with Path("sent.txt").open("a") as sent:
        sent.write(to + "\\n")
    return "sent"
"""
CONFIG = """
[agents.front]
kind = "engine"

[agents.other]
kind = "engine"

[models.small]
url = "{url}/v1"
retries = 0

[engine]
listen = "{listen}"
tools = ["tools:send_mail"]
ask_before = ["send_mail"]
"""
CALL = ("tool-call", {"id": "c1", "name": "send_mail", "arguments": {"to": "bob"}})
STOP = ("done", {"finish_reason": "stop"})
WAITS = ("done", {"finish_reason": "approval_required"})
Frames = list[tuple[str, dict[str, Any]]]


class Loop:
    """A loop elsewhere that does as a test says while its stream is open."""

    def __init__(self) -> None:
        loop = self

        class Connection(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                loop.bearers.append(self.headers["authorization"].removeprefix("Bearer "))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for name, data in loop.act(loop.bearers[-1]):
                    frame = f"event: {name}\ndata: {json.dumps(data)}\n\n"
                    self.wfile.write(frame.encode())

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.bearers: list[str] = []
        self.act: Callable[[str], Frames] = lambda _: [STOP]
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Connection)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    @contextmanager
    def serving(self) -> Iterator["Loop"]:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self.server.shutdown()
            self.server.server_close()


class House:
    """A gateway whose loop is somebody's, and what is tried with its bearers."""

    def __init__(self, gateway: Organisation, loop: Loop, model: Model) -> None:
        self.gateway, self.loop, self.model = gateway, loop, model

    def call(self, bearer: str, agent: str = "echo", headers: HeaderList = ()) -> Reply:
        return self.gateway.chat("Hi", agent, token=bearer, headers=headers)

    def during(self, act: Callable[[str], Any], **more: Any) -> tuple[Any, Reply]:
        """What comes of something that is done while a turn is open, and its answer."""
        found: list[Any] = []

        def acting(bearer: str) -> Frames:
            found.append(act(bearer))
            return [STOP]

        self.loop.act = acting
        reply = self.gateway.chat("Go", "front", **more)
        assert found, reply.body
        return found[0], reply

    def turns(self, reply: Reply) -> list[dict[str, Any]]:
        run = reply.headers["x-tangle-runid"]
        pages: list[dict[str, Any]] = self.gateway.get(f"/runs/{run}").json["turns"]
        return [child for page in pages for child in page["children"]]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with Loop().serving() as loop, Model().serving() as model, shared_with_others():
        gateway = Organisation(tmp_path_factory.mktemp("bearers"), "acme.example")
        gateway.configure(CONFIG.format(listen=loop.url, url=model.url))
        (gateway.folder / "tools.py").write_text(TOOLS)
        gateway.start(env={"CARNET__LIMITS__AUTH_FAILURES": "100000"})
        yield House(gateway, loop, model)
        assert gateway.stop() == 0


def test_it_calls_others_while_its_turn_is_open_and_never_afterwards(house: House) -> None:
    called, reply = house.during(house.call)
    assert (called.status, reply.status) == (200, 200)
    assert "Hi" in called.text
    (child,) = house.turns(reply)
    assert (child["agent"], child["actor"], child["depth"]) == ("echo", "agent:front", 1)
    late = house.call(house.loop.bearers[-1])
    assert (late.status, late.code) == (401, "token_invalid")


def test_a_long_message_is_taken_with_it_and_no_long_body_without(house: House) -> None:
    """A75: a body that is waited for, or large, is one of who is known."""
    text = "x" * 100_000

    def tried(bearer: str) -> list[int]:
        bearers = (bearer, f"{bearer[:-4]}AAAA")
        return [house.gateway.chat(text, "echo", token=each).status for each in bearers]

    statuses, _ = house.during(tried)
    assert statuses == [200, 401]


def test_it_opens_nothing_else(house: House) -> None:
    def tried(bearer: str) -> list[int]:
        fields = [("authorization", f"Bearer {bearer}"), ("content-type", "application/json")]
        rows = [
            ("GET", "/runs", None),
            ("GET", "/approvals", None),
            ("POST", "/approvals/int_1", b'{"outcome":"accepted"}'),
            ("POST", "/tasks", b'{"model":"echo","messages":[{"role":"user","content":"x"}]}'),
            ("GET", "/v1/models", None),
        ]
        at = house.gateway.url
        return [request(method, at + path, fields, body).status for method, path, body in rows]

    statuses, _ = house.during(tried)
    assert statuses == [401] * 5


def test_it_opens_the_memory_of_its_turn_and_no_other(house: House) -> None:
    """A114: whose it is comes from the turn, and it is over with it."""
    gateway = house.gateway
    gateway.carnet("people", "add", "keeper")
    token = gateway.new_token("keepers", "--person", "keeper")
    reader = gateway.new_token(
        "readers", "--person", "keeper", "--scope", "call:*", "--scope", "memory:read"
    )

    def ask(bearer: str, method: str = "GET", path: str = "/turn/memory/AGENT.md") -> Reply:
        fields = [("authorization", f"Bearer {bearer}"), ("content-type", "application/json")]
        body = b'{"content":"hers"}' if method == "PUT" else None
        return request(method, gateway.url + path, fields, body)

    def tried(bearer: str) -> list[int]:
        rows = [ask(bearer, "PUT"), ask(bearer), ask(bearer, path="/memory/front/AGENT.md")]
        return [*(reply.status for reply in rows), ask(bearer, path="/turn/memory/..%2Fa").status]

    statuses, _ = house.during(tried, token=token)
    assert statuses == [200, 200, 401, 400]
    assert gateway.get("/memory/front/AGENT.md", token=token).json["content"] == "hers"
    assert gateway.get("/memory/other/AGENT.md", token=token).json["version"] == 0
    assert ask(house.loop.bearers[-1]).status == 401
    assert ask(token).status == 401
    refused, _ = house.during(lambda bearer: ask(bearer, "PUT"), token=reader)
    assert (refused.status, refused.code) == (403, "permission_missing")
    machine = gateway.new_token("machine-front", "--scope", "call:*", "--scope", "memory:read")
    nobody, _ = house.during(ask, token=machine)
    assert (nobody.status, nobody.code) == (403, "person_required")


def test_it_opens_the_schedules_and_hooks_of_its_person_and_no_other(house: House) -> None:
    """A114: whose they are, and which token they run with, come from the turn; no secret passes."""
    gateway = house.gateway
    gateway.carnet("people", "add", "sower")
    gateway.carnet("people", "add", "reaper")
    token = gateway.new_token("sowers", "--person", "sower")
    reaper = gateway.new_token("reapers", "--person", "reaper")
    mine = {"name": "digest", "agent": "echo", "cron": "@yearly", "message": "Write."}
    hook = {"name": "shop", "agent": "echo", "scheme": "url"}

    def ask(bearer: str, path: str, page: object | None = None) -> Reply:
        fields = [("authorization", f"Bearer {bearer}"), ("content-type", "application/json")]
        body = None if page is None else json.dumps(page).encode()
        method = "GET" if page is None else "POST"
        return request(method, gateway.url + path, fields, body)

    def tried(bearer: str) -> list[Reply]:
        return [
            ask(bearer, "/turn/schedules", mine),
            ask(bearer, "/turn/hooks", hook),
            ask(bearer, "/turn/hooks", {**hook, "name": "other", "secret": "s" * 24}),
            ask(bearer, "/turn/schedules"),
            ask(bearer, "/schedules"),
            ask(bearer, "/schedules/digest/fire", {}),
            ask(bearer, "/turn/hooks/none/delete", {}),
        ]

    replies, _ = house.during(tried, token=token)
    assert [each.status for each in replies] == [200, 200, 400, 200, 401, 401, 404]
    assert "secret" not in replies[1].json
    assert replies[1].json["address"].endswith("/SECRET")
    assert [each["name"] for each in replies[3].json["schedules"]] == ["digest"]
    assert [each["name"] for each in gateway.get("/hooks", token=token).json["hooks"]] == ["shop"]
    assert gateway.get("/schedules", token=reaper).json == {"schedules": []}
    stolen, _ = house.during(
        lambda bearer: ask(bearer, "/turn/schedules/digest/delete", {}), token=reaper
    )
    assert (stolen.status, stolen.code) == (404, "trigger_not_found")
    for late in (house.loop.bearers[-1], token):
        assert ask(late, "/turn/schedules").status == 401
    lowly = gateway.new_token("lowly-sower", "--person", "sower", "--scope", "call:*")
    refused, _ = house.during(lambda bearer: ask(bearer, "/turn/schedules", mine), token=lowly)
    assert (refused.status, refused.code) == (403, "permission_missing")
    machine = gateway.new_token("machine-sower", "--scope", "call:*", "--scope", "triggers")
    nobody, _ = house.during(lambda bearer: ask(bearer, "/turn/schedules"), token=machine)
    assert (nobody.status, nobody.code) == (403, "person_required")


def test_nothing_beside_it_widens_what_its_turn_may(house: House) -> None:
    beside = [
        ("x-tangle-forwarded-depth", "0"),
        ("x-tangle-runid", "another"),
        ("x-tangle-turnid", "another.t0"),
        ("x-tangle-forwarded-authorization", f"Bearer {house.gateway.token}"),
        ("carnet-resolution", "x;outcome=accepted"),
        ("x-actor-id", "root"),
    ]
    scopes = ("call:front", "call:other")
    words = [word for scope in scopes for word in ("--scope", scope)]
    lowly = house.gateway.new_token("lowly-front", *words)
    refused, _ = house.during(lambda bearer: house.call(bearer, headers=beside), token=lowly)
    assert (refused.status, refused.code) == (403, "permission_missing")
    final, _ = house.during(
        lambda bearer: house.call(bearer, headers=beside),
        headers=[("x-tangle-forwarded-depth", "3")],
    )
    assert (final.status, final.code) == (429, "bridge_depth_exceeded")


def test_one_that_is_forged_changed_or_anothers_calls_nobody(house: House) -> None:
    def tried(bearer: str) -> list[Reply]:
        signed = read_bearer(bearer)
        head, claims, signature = bearer.split(".")
        data = json.loads(urlsafe_b64decode(claims + "=="))
        changed = [
            {"agent": "other"},
            {"sub": "root"},
            {"allow": ["*"]},
            {"final": False, "exp": 1},
        ]
        written = [
            urlsafe_b64encode(json.dumps(data | each).encode()).decode().rstrip("=")
            for each in changed
        ]
        foreign = write_bearer(signed.bearer, kid=signed.keyid, sign=ed25519.signer(b"\x07" * 32))
        forged = [f"{head}.{each}.{signature}" for each in written]
        return [house.call(each) for each in (*forged, foreign, f"{head}.{claims}.")]

    replies, reply = house.during(tried)
    assert {(each.status, each.code) for each in replies} == {(401, "token_invalid")}
    assert house.turns(reply) == []


def test_what_was_approved_in_one_is_done_once(house: House) -> None:
    """A loop that is shown the same bearer again does nothing, whatever stands in the messages."""
    gateway = house.gateway
    streams: Iterator[Frames] = iter([[CALL, WAITS], [CALL, WAITS], [STOP]])
    house.loop.act = lambda _: next(streams)
    scopes = ("call:*", "run:read", "tool:*")
    token = gateway.new_token("mails", *[word for each in scopes for word in ("--scope", each)])
    ids = [("x-tangle-runid", "run-approved"), ("x-tangle-turnid", "t1")]

    def ask() -> Reply:
        return gateway.chat("Mail", "front", token=token, headers=ids)

    assert ask().status == 403
    (question,) = gateway.get("/approvals?status=open", token=token).json["approvals"]
    gateway.carnet("inbox", "approve", question["id"], "--as", token)
    # Our loop would not ask again under the same name, and this one may not.
    ended = until(ask, lambda reply: reply.status != 403)
    assert (ended.status, ended.code) == (502, "provider_error")
    approved = house.loop.bearers[-1]
    assert list(read_bearer(approved).bearer.resolved) == ["c1"]
    engine = EngineProcess(gateway)
    try:
        engine.start()
        house.model.reply = lambda _: streamed("Done.")
        call = {"id": "c1", "name": "send_mail", "arguments": {"to": "bob"}}
        written = {"role": "assistant", "content": "", "tool_calls": [call]}
        events_of(engine.post(asking(written), fields=engine.fields(approved)))
        call["arguments"] = {"to": "mallory"}
        again = engine.post(asking(written), fields=engine.fields(approved))
        assert again.status == 401
    finally:
        engine.close()
    assert (gateway.folder / "sent.txt").read_text().splitlines() == ["bob"]


def test_while_a_gateway_drains_what_runs_may_still_call_others(house: House) -> None:
    gateway = house.gateway

    def tried(bearer: str) -> Reply:
        gateway.signal(signal.SIGTERM)
        until(lambda: gateway.chat("Hi", "echo"), lambda reply: reply.status == 503)
        return house.call(bearer)

    called, reply = house.during(tried)
    assert (called.status, reply.status) == (200, 200)
    assert gateway.ended() == 0
    gateway.start(env={"CARNET__LIMITS__AUTH_FAILURES": "100000"})


def policy(house: House, bearer: str, body: object) -> Reply:
    fields = [("authorization", f"Bearer {bearer}"), ("content-type", "application/json")]
    url = f"{house.gateway.url}/turn/policy"
    return request("POST", url, fields, json.dumps(body).encode())


def test_it_asks_about_a_tool_while_its_turn_is_open_and_by_its_name_alone(house: House) -> None:
    names: tuple[object, ...] = ("send_mail", None, 7, "x" * 257, "ü")
    tried = [{"tool": name} for name in names]
    replies, _ = house.during(lambda bearer: [policy(house, bearer, each) for each in tried])
    assert replies[0].json == {"tool": "send_mail", "denied": False}  # there is no policy here
    assert [reply.status for reply in replies[1:]] == [400] * 4
    late = policy(house, house.loop.bearers[-1], tried[0])
    assert (late.status, late.code) == (401, "token_invalid")


def tokens(house: House, bearer: str, body: object) -> Reply:
    fields = [("authorization", f"Bearer {bearer}"), ("content-type", "application/json")]
    url = f"{house.gateway.url}/turn/tokens"
    return request("POST", url, fields, json.dumps(body).encode())


def test_it_asks_what_is_left_of_its_tokens_while_its_turn_is_open(house: House) -> None:
    used: tuple[object, ...] = (7, None, -1, 1.5, "7", True, 10**12 + 1)
    tried = [{"used": each} for each in used]
    replies, _ = house.during(lambda bearer: [tokens(house, bearer, each) for each in tried])
    assert replies[0].json == {"left": None}  # no budget bounds them here
    assert [reply.status for reply in replies[1:]] == [400] * 6
    for bearer in (house.loop.bearers[-1], house.gateway.token):
        late = tokens(house, bearer, tried[0])
        assert (late.status, late.code) == (401, "token_invalid")
