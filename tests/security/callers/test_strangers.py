"""What somebody without a token is told: that we live, and what an error means. Nothing else."""

import re

import pytest

import carnet
from tests.edge.wire import HEAD, say
from tests.security.support.scene import Scene, nothing_done, seen
from tests.support.http import Reply, request

CLOSED = ["/metrics", "/runs", "/runs/x", "/runs/x/events", "/v1/models", "/v1/models/echo"]
NOWHERE = [
    "/",
    "/admin",
    "/engine/chat",
    "/debug",
    "/docs",
    "/redoc",
    "/server-status",
    "/.env",
    "/.git/config",
    "/var/carnet.db",
    "/carnet.toml",
    "/..%2fcarnet.toml",
    "/agents",
    "/static/../carnet.toml",
]
OPEN = ["/healthz", "/readyz", "/openapi.json", "/-/errors/internal"]
# Whatever names a program or its version; `date` and the framing are HTTP's own.
EXPECTED = {
    *("date", "content-type", "content-length", "cache-control", "connection", "allow"),
    *("www-authenticate", "retry-after", "x-should-retry", "x-tangle-runid", "x-tangle-turnid"),
    *("x-correlation-id", "x-request-id", "x-content-type-options"),
}


def bare(scene: Scene, path: str, method: str = "GET") -> Reply:
    return request(method, scene.acme.url + path)


@pytest.mark.parametrize("path", CLOSED)
def test_a_page_behind_a_token_is_closed_to_strangers(scene: Scene, path: str) -> None:
    """A70."""
    reply = bare(scene, path)
    assert (reply.status, reply.code) == (401, "token_missing")
    assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", NOWHERE)
def test_what_is_not_served_is_not_there_whoever_asks(scene: Scene, path: str) -> None:
    """A70, A37: also with a token."""
    for reply in (bare(scene, path), scene.acme.get(path, token=scene.alice)):
        assert (reply.status, reply.code) == (404, "not_found")


@pytest.mark.parametrize("page", ["health", "intro", "task/x"])
def test_who_is_a_peer_is_not_told_to_whoever_asks_for_its_agents(scene: Scene, page: str) -> None:
    """A70: an address of a peer and one of nobody are answered alike."""
    for name in ("%40echo%40{}", "agent%3A%2F%2F{}", "agent%3A%2F%2Fecho.{}"):
        replies = [
            bare(scene, f"/agents/{name.format(domain)}/agent/{page}")
            for domain in ("globex.example", "nobody.example")
        ]
        assert [reply.status for reply in replies] == [404, 404]
        assert without_ids(replies[0]) == without_ids(replies[1])


def without_ids(reply: Reply) -> tuple[dict[str, str], bytes]:
    drawn = {"date", "x-correlation-id", "x-request-id"}
    headers = {name: value for name, value in reply.headers.items() if name not in drawn}
    return headers, re.sub(rb'"spanId":"[^"]*"', b"", reply.body)


def test_metrics_need_their_own_permission(scene: Scene) -> None:
    """A70: the token of a caller does not open them."""
    reply = scene.acme.get("/metrics", token=scene.alice)
    assert (reply.status, reply.code) == (403, "permission_missing")


def test_health_and_readiness_say_one_word(scene: Scene) -> None:
    """A70: no check, no version, no host."""
    assert bare(scene, "/healthz").json == {"status": "ok"}
    assert bare(scene, "/readyz").json.keys() == {"status"}
    assert bare(scene, "/readyz").json["status"] in {"ready", "degraded"}


@pytest.mark.parametrize("path", [*OPEN, *CLOSED, *NOWHERE, "/v1/chat/completions"])
def test_no_answer_names_its_server_or_a_version(scene: Scene, path: str) -> None:
    """A70: whatever the path, the method and the status."""
    with nothing_done(scene):
        for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS"):
            reply = bare(scene, path, method)
            assert set(reply.headers) <= EXPECTED
            text = "\n".join(reply.headers.values()).lower()
            for word in ("uvicorn", "python", "carnet", carnet.__version__):
                assert word not in text


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /%s HTTP/1.1\r\n" % (b"a" * 3000) + HEAD + b"\r\n",
        b"GET / HTTP/1.1\r\n" + HEAD + b"X-A: %s\r\n\r\n" % (b"a" * 20_000),
        b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 99999999999\r\n\r\n",
    ],
    ids=["400", "1.0", "tls", "414", "431", "413"],
)
def test_nor_does_a_refusal_of_the_edge(scene: Scene, raw: bytes) -> None:
    """A70."""
    (answer,) = say(scene.acme.port, raw)
    assert answer.status >= 400
    assert set(answer.headers) <= EXPECTED
    text = (str(answer.headers).encode() + answer.body).lower()
    for word in (b"uvicorn", b"httptools", b"python", b"traceback", b"/src/"):
        assert word not in text


def test_a_wrong_token_and_an_odd_page_tell_strangers_nothing_of_the_house(scene: Scene) -> None:
    """A70: neither folders, nor agents, nor peers."""
    replies = [bare(scene, path) for path in [*OPEN, *CLOSED, *NOWHERE]]
    replies += [scene.acme.get(path, token="ck_wrong") for path in CLOSED]
    text = b"".join(map(seen, replies))
    for word in (str(scene.acme.folder), "globex.example", "dearest-model", "sqlite"):
        assert word.encode() not in text
