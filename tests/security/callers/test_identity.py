"""Who somebody is: what a token says, and nothing that a header, a name or a page adds to it."""

import pytest

from tests.security.support.scene import (
    RUN,
    Scene,
    canary,
    forwarding,
    fresh,
    ids,
    leaks,
    nothing_done,
    post,
    runs_of,
    seen,
    send_raw,
)
from tests.support.http import chat_body, request

CLAIMS = [
    ("X-Actor-ID", "root"),
    ("X-Actor-Permissions", '{"allow": ["*"], "deny": []}'),
    ("X-Forwarded-For", "127.0.0.1"),
    ("X-Forwarded-Host", "globex.example"),
    ("X-Forwarded-User", "alice"),
    ("X-Forwarded-Authorization", "Bearer of-somebody"),
    ("Forwarded", "for=127.0.0.1;by=root"),
    ("X-Real-IP", "127.0.0.1"),
    ("X-Remote-User", "alice"),
    ("X-Original-URL", "/metrics"),
    ("Proxy-Authorization", "Bearer of-somebody"),
    ("Cookie", "session=of-somebody"),
    ("X-HTTP-Method-Override", "DELETE"),
]
OURS = {"host", "user-agent", "accept", "accept-encoding", "content-type", "content-length"}
CHAIN = {"x-tangle-forwarded-depth", "x-tangle-runid", "x-tangle-turnid", "x-tangle-speaker"}


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("plain-model", OURS),
        ("answer", OURS | CHAIN | {"authorization", "traceparent"}),
    ],
)
def test_an_upstream_sees_our_headers_and_none_of_the_callers(
    scene: Scene, agent: str, expected: set[str]
) -> None:
    """A36: neither claims of identity, nor the caller's own credential."""
    reply = scene.acme.chat("hi", agent, token=scene.alice, headers=CLAIMS)
    assert reply.text == "hi"
    received = scene.hostile.received[-1]
    assert set(received.headers) == expected
    assert scene.alice not in str(received.headers)
    assert "of-somebody" not in str(received.headers)


@pytest.mark.parametrize("path", ["/metrics", "/runs", "/runs/{run}", "/runs/{run}/events"])
def test_a_claimed_identity_opens_no_page(scene: Scene, path: str) -> None:
    """A36: the page is the one that the token gets without the claim."""
    run = fresh("claimed")
    scene.acme.chat("hi", token=scene.alice, headers=[(RUN, run)])
    page = path.format(run=run)
    plain = scene.acme.get(page, token=scene.lowly)
    claimed = scene.acme.get(page, token=scene.lowly, headers=CLAIMS)
    assert (claimed.status, claimed.body) == (plain.status, plain.body)
    assert claimed.code == "permission_missing"


@pytest.mark.parametrize(
    "name",
    [
        "X_Actor_ID",
        "X_ACTOR_PERMISSIONS",
        "X-Actor_Permissions",
        "X_Tangle_Forwarded_Authorization",
        "X-Tangle-Forwarded_Authorization",
        "X_TANGLE_FORWARDED_DEPTH",
        "X-Tangle_TurnId",
        "X_Agents_Api_Chain_Depth",
        "X-Forwarded_For",
        "X_Forwarded_Host",
        "Carnet_Resolution",
    ],
)
def test_a_name_that_a_proxy_would_read_as_another_is_refused(scene: Scene, name: str) -> None:
    """A36."""
    secret = canary()
    with nothing_done(scene):
        headers = [(name, f"Bearer {secret}")]
        reply = scene.acme.chat("hi", "paid", token=scene.bridge, headers=headers)
    assert (reply.status, reply.code) == (400, "malformed_caller_context")
    assert leaks(scene, secret, reply) == []


@pytest.mark.parametrize(
    "value",
    [
        "Bearer {}, Bearer {}",
        "Bearer {}\tx",
        "Bearer {} x",
        "Basic {}",
        "Bearer {}\xe9",
        "{}",
        "Bearer",
        "Bearer {}" + "x" * 12_000,
        "Bearer \xef\xbb\xbf{}",
    ],
)
def test_an_odd_authorization_is_nobodys(scene: Scene, value: str) -> None:
    """A36."""
    odd = [
        ("authorization", value.replace("{}", scene.alice)),
        ("content-type", "application/json"),
    ]
    url = scene.acme.url
    with nothing_done(scene):
        replies = [
            request("POST", url + "/v1/chat/completions", odd, chat_body()),
            request("GET", url + "/runs", odd),
        ]
    for reply in replies:  # what is not ASCII is refused before it is read
        assert (reply.status, reply.code) in {(401, "token_invalid"), (400, "malformed_request")}
    assert all(scene.alice.encode() not in seen(reply) for reply in replies)


def test_two_tokens_on_one_request_are_nobodys(scene: Scene) -> None:
    """A36: nobody may choose which of the two is meant."""
    line = f"authorization: Bearer {scene.mallory}".encode()
    with nothing_done(scene):
        answer = send_raw(scene.acme, scene.alice, line, chat_body())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"malformed_caller_context" in answer


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/runs", 403, "permission_missing"),
        ("HEAD", "/runs", 403, None),
        ("GET", "/runs/{run}", 403, "permission_missing"),
        ("GET", "/runs/no-such-run", 403, "permission_missing"),
        ("GET", "/runs/{run}/events", 403, "permission_missing"),
        ("POST", "/runs/{run}/cancel", 403, "permission_missing"),
        ("GET", "/metrics", 403, "permission_missing"),
        ("DELETE", "/runs/{run}", 405, "method_not_allowed"),
        ("PUT", "/v1/chat/completions", 405, "method_not_allowed"),
        ("GET", "/runs/{run}/", 404, "not_found"),
        ("GET", "//runs", 404, "not_found"),
        ("GET", "/runs/../metrics", 404, "not_found"),
        ("GET", "/runs%2F{run}", 404, "not_found"),
        ("GET", "/engine/chat", 404, "not_found"),
        ("POST", "/engine/chat", 404, "not_found"),
        ("GET", "/admin", 404, "not_found"),
        ("GET", "/tokens", 404, "not_found"),
        ("GET", "/ledger", 403, "permission_missing"),
        ("GET", "/approvals", 403, "permission_missing"),
        ("GET", "/approvals/int_0", 403, "permission_missing"),
        ("POST", "/approvals/int_0", 403, "permission_missing"),
        ("GET", "/rules", 403, "permission_missing"),
        ("POST", "/rules", 403, "permission_missing"),
        ("POST", "/rules/1/end", 403, "permission_missing"),
        ("GET", "/people", 403, "permission_missing"),
        ("GET", "/people/owner", 403, "permission_missing"),
        ("GET", "/people/nobody", 403, "permission_missing"),
        ("POST", "/people", 403, "permission_missing"),
        ("POST", "/people/owner/end", 403, "permission_missing"),
    ],
)
def test_a_token_that_may_call_one_agent_may_do_nothing_else(
    scene: Scene, method: str, path: str, status: int, code: str | None
) -> None:
    """A36, A41: not even to its own run; whether a run exists makes no difference."""
    run = fresh("lowly")
    assert scene.acme.chat("hi", token=scene.lowly, headers=[(RUN, run)]).status == 200
    headers = [("authorization", f"Bearer {scene.lowly}")]
    body = b"" if method in {"POST", "PUT"} else None
    with nothing_done(scene):
        reply = request(method, scene.acme.url + path.format(run=run), headers, body)
    assert reply.status == status
    assert code is None or reply.code == code


def test_a_token_is_shown_the_agents_it_may_call_and_no_others(scene: Scene) -> None:
    """A36."""
    page = scene.acme.get("/v1/models", token=scene.lowly).json
    assert [model["id"] for model in page["data"]] == ["echo"]
    there, nowhere = [
        scene.acme.get(f"/v1/models/{name}", token=scene.lowly) for name in ("paid", "nobody")
    ]
    assert (there.status, there.body) == (nowhere.status, nowhere.body) == (404, nowhere.body)


@pytest.mark.parametrize(
    "agent", ["paid", "words", "relay", "answer", "model", "@echo@globex.example"]
)
def test_a_token_that_may_call_one_agent_may_call_no_other(scene: Scene, agent: str) -> None:
    """A36: by name, by path or by address."""
    with nothing_done(scene):
        reply = scene.acme.chat("hi", agent, token=scene.lowly)
        assert (reply.status, reply.code) == (403, "permission_missing")
        if not agent.startswith("@"):
            path = f"/agents/{agent}/v1/chat/completions"
            reply = scene.acme.chat("hi", "echo", token=scene.lowly, path=path)
            assert (reply.status, reply.code) == (403, "permission_missing")


def test_an_agent_lends_nobody_its_rights(scene: Scene) -> None:
    """A36, A35: what a caller may not call, an agent may not call for it."""
    only_relay = scene.acme.new_token(
        "only-relay", "--scope", "call:relay", "--scope", "call:onward"
    )
    run = fresh("deputy")
    for address in ("echo", "paid", "answer", "@echo@globex.example"):
        received = len(scene.hostile.received)
        reply = scene.acme.chat(f"{address} hi", "relay", token=only_relay, headers=[(RUN, run)])
        assert (reply.status, reply.code) == (403, "permission_missing")
        assert len(scene.hostile.received) == received
    assert [runs_of(scene.acme, agent, run) for agent in ("echo", "paid")] == [0, 0]
    assert runs_of(scene.globex, "echo", run) == 0
    outbound_calls = [
        turn["legs"][0]["code"] for turn in scene.acme.json("run", "show", run)["turns"]
    ]
    assert outbound_calls == ["permission_missing"] * 4
    reply = scene.acme.chat("onward echo hi", "relay", token=only_relay, headers=[(RUN, run)])
    assert (reply.status, reply.code) == (403, "permission_missing")
    assert (runs_of(scene.acme, "onward", run), runs_of(scene.acme, "echo", run)) == (1, 0)


ERRORS = [
    ("GET", "/{}", [], None),
    ("GET", "/-/errors/{}", [], None),
    ("GET", "/runs/{}", [], None),
    ("GET", "/runs/{}/events", [], None),
    ("GET", "/runs?limit={}", [], None),
    ("GET", "/runs?before={}", [], None),
    ("GET", "/runs/x/events", [("last-event-id", "{}")], None),
    ("POST", "/runs/{}/cancel", [], b""),
    ("POST", "/agents/{}/v1/chat/completions", [], chat_body()),
    ("POST", "/v1/chat/completions", [], chat_body("hi", "{}")),
    ("POST", "/v1/chat/completions", [], chat_body("hi", "@{}@nobody.example")),
    ("POST", "/v1/chat/completions", [], chat_body("hi", "@echo@{}")),
    ("POST", "/v1/chat/completions", [], chat_body("hi", "agent://{}")),
    ("POST", "/v1/chat/completions", [], b'{"{}": {}'),
    ("POST", "/v1/chat/completions", [], b'{"{}": "{}"}'),
    ("POST", "/v1/chat/completions", [], b'{"messages": [{"role": "{}", "content": "x"}]}'),
    ("POST", "/v1/chat/completions", [], chat_body("hi", stream="{}")),
    ("POST", "/v1/chat/completions", [("content-encoding", "{}")], chat_body()),
    ("POST", "/v1/chat/completions", [("x-tangle-forwarded-depth", "{}")], chat_body()),
    ("POST", "/v1/chat/completions", [("x-tangle-protocol-version", "{}")], chat_body()),
    ("POST", "/v1/chat/completions", [("x-agents-api-chain-depth", "{}")], chat_body()),
    ("POST", "/v1/chat/completions", [("x-agents-api-caller-host", "{}")], chat_body()),
    ("POST", "/v1/chat/completions", [("x_tangle_{}", "{}")], chat_body()),
    ("POST", "/v1/chat/completions", [("traceparent", "{}"), ("accept", "{}")], chat_body()),
]


@pytest.mark.parametrize(("method", "path", "headers", "body"), ERRORS)
def test_no_error_says_back_what_it_was_told(
    scene: Scene, method: str, path: str, headers: list[tuple[str, str]], body: bytes | None
) -> None:
    """A33, A36: a credential in the wrong place is told to nobody, and written nowhere."""
    secret = canary()
    fields = [("authorization", f"Bearer {scene.alice}"), ("content-type", "application/json")]
    fields += [(name.replace("{}", secret), value.replace("{}", secret)) for name, value in headers]
    data = None if body is None else body.replace(b"{}", secret.encode())
    reply = request(method, scene.acme.url + path.replace("{}", secret), fields, data)
    assert reply.status == 200 if "traceparent" in str(headers) else 400 <= reply.status < 500
    assert leaks(scene, secret, reply) == []


def test_a_forwarded_credential_is_ignored_where_nothing_is_paid(scene: Scene) -> None:
    """A33: on a page it is neither honoured nor kept."""
    run, secret = fresh("page"), canary()
    scene.acme.chat("hi", token=scene.alice, headers=ids(run))
    headers = [forwarding(secret)]
    for page in (f"/runs/{run}", f"/runs/{run}/events", "/v1/models"):
        reply = scene.acme.get(page, token=scene.alice, headers=headers)
        assert reply.status == 200
        assert secret.encode() not in seen(reply)
    headers = [forwarding(scene.alice)]
    reply = scene.acme.get(f"/runs/{run}", token=scene.mallory, headers=headers)
    assert reply.code == "run_not_found"
    assert post(scene.acme, f"/runs/{run}/cancel", scene.mallory, headers).status == 404
    assert leaks(scene, secret) == []
