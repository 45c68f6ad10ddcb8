"""Runs and their events, models, health, metrics, what is published, and what is not there."""

import threading

from tests.exchanges.cases.chains import CHAT, RUN, TURN
from tests.exchanges.stage import Stage

PLAIN_PATHS = (
    "/healthz",
    "/readyz",
    "/.well-known/agent.json",
    "/.well-known/carnet.json",
    "/agent/intro",
    "/agent/health",
    "/agents/clerk/.well-known/agent.json",
    "/agents/clerk/agent/intro",
    "/agents/clerk/agent/health",
    "/agents/a%2Fb/.well-known/agent.json",
    "/agents/own_pocket/.well-known/agent.json",
    "/agents/desk/.well-known/agent.json",
    "/agents/metered/.well-known/agent.json",
    "/agents/nobody/.well-known/agent.json",
    "/agents/desk/.well-known/carnet.json",
    "/agents/nobody/.well-known/carnet.json",
    "/agents/nobody/agent/intro",
    "/agents/nobody/agent/health",
    "/-/errors/bridge_depth_exceeded",
    "/-/errors/nothing",
    "/.well-known/webfinger?resource=acct:echo@acme.example",
    "/.well-known/agent-card.json",
    "/",
    "/favicon.ico",
    "/v1/chat/completions/",
    "//healthz",
    "/healthz?x=1",
    "/agents//agent/intro",
    "/agents/a%00b/agent/intro",
)

METHODS = (
    ("HEAD", "/healthz"),
    ("HEAD", "/.well-known/agent.json"),
    ("HEAD", "/v1/chat/completions"),
    ("OPTIONS", "/v1/chat/completions"),
    ("GET", "/v1/chat/completions"),
    ("PUT", "/runs"),
    ("DELETE", "/tasks/x"),
    ("POST", "/healthz"),
    ("GET", "/agent/message"),
    ("PATCH", "/agents/echo/agent/message"),
    ("TRACE", "/healthz"),
)

EDGE: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("a path that is too long", "/" + "p" * 3000, ()),
    ("a header that is too long", "/healthz", (("x-long", "v" * 17000),)),
    ("too many headers", "/healthz", tuple((f"x-{n}", "v") for n in range(101))),
    ("two lengths", "/healthz", (("content-length", "0"), ("content-length", "1"))),
    (
        "a length and chunks",
        "/healthz",
        (("content-length", "1"), ("transfer-encoding", "chunked")),
    ),
    ("an unknown coding", "/healthz", (("transfer-encoding", "gzip"),)),
    ("two hosts", "/healthz", (("host", "other.example"),)),
    ("an upgrade", "/healthz", (("connection", "upgrade"), ("upgrade", "websocket"))),
    ("a request that expects", "/healthz", (("expect", "100-continue"),)),
    ("a whole URL", "http://acme.example/healthz", ()),
    ("a path with a fragment", "/healthz#x", ()),
)


_ASKED = b'{"messages":[{"role":"user","content":"hi"}]}'
CHUNKS: tuple[tuple[str, bytes], ...] = (
    ("a body in chunks", b"%x\r\n%b\r\n0\r\n\r\n" % (len(_ASKED), _ASKED)),
    ("chunks that are no chunks", b"zz\r\n{}\r\n0\r\n\r\n"),
    ("trailers", b"2\r\n{}\r\n0\r\nx-late: 1\r\n\r\n"),
)


def published(stage: Stage) -> None:
    """What anybody may read."""
    for path in PLAIN_PATHS:
        stage.send(f"GET {path}", stage.plain("GET", path, token=None))
    for method, path in METHODS:
        stage.send(f"{method} {path}", stage.plain(method, path, token=None))
    stage.send(
        "GET /openapi.json", stage.plain("GET", "/openapi.json", token=None), hides="<openapi>"
    )
    card = stage.plain("GET", "/.well-known/agent.json", token=None)
    for host in ("clerk.acme.example", "CLERK.acme.example:443", "nobody.acme.example"):
        stage.send(f"the card at {host}", card, host=host)
    stage.send(
        "the keys of Globex",
        stage.plain("GET", "/.well-known/carnet.json", token=None),
        to="globex",
    )
    stage.send("the card of Globex", card, to="globex")


def edge(stage: Stage) -> None:
    """Requests that are refused by their heads."""
    for title, path, headers in EDGE:
        stage.send(title, stage.plain("GET", path, *headers, token=None))
    for title, body in CHUNKS:
        stage.send(title, stage.plain("POST", CHAT, ("transfer-encoding", "chunked"), body=body))


def operators(stage: Stage) -> None:
    """What a token may read of the gateway itself."""
    stage.get("models", "/v1/models")
    stage.get("models of a token for one agent", "/v1/models", token="bare")
    stage.get("models without a token", "/v1/models", token=None)
    stage.get("one model", "/v1/models/echo")
    stage.get("one model that there is not", "/v1/models/nobody")
    stage.get("readiness for an operator", "/readyz", token="overseer")
    stage.get("readiness for a plain token", "/readyz")
    stage.get("readiness with a wrong token", "/readyz", ("authorization", "Bearer wrong"))
    stage.get("metrics", "/metrics", token="overseer", hides="<metrics>")
    stage.get("metrics for a plain token", "/metrics")
    stage.get("metrics without a token", "/metrics", token=None)


def runs(stage: Stage) -> None:
    """What happened."""
    stage.chat("a run of three turns", "twice", "x", (RUN, "shown"), (TURN, "top"), token="roaming")
    stage.chat(
        "a call out of a turn of it",
        "paid",
        "x",
        (RUN, "shown"),
        (TURN, "below"),
        ("x-tangle-parent-turnid", "top"),
        ("x-tangle-forwarded-depth", "1"),
        token="roaming",
    )
    stage.chat(
        "a turn of it that fails", "half", "x", (RUN, "shown"), (TURN, "failed"), token="roaming"
    )
    stage.open("open")
    stage.chat(
        "a turn of it with tokens",
        "works",
        "open",
        (RUN, "shown"),
        (TURN, "tokens"),
        token="roaming",
    )
    stage.get("the run", "/runs/shown", token="roaming")
    stage.get("the run for an operator", "/runs/shown", token="overseer")
    stage.get("the run for somebody else", "/runs/shown")
    stage.get("the run for who may not read", "/runs/shown", token="bare")
    stage.get("the runs of a token", "/runs", token="roaming")
    stage.get("the newest run", "/runs?limit=1", token="roaming")
    stage.get("no number", "/runs?limit=x")
    stage.get("two numbers", "/runs?limit=1&limit=2")
    stage.get("runs before the first", "/runs?before=1")
    stage.get("no run", "/runs/nothing")
    stage.get("the events of the run", "/runs/shown/events", token="roaming")
    stage.get("the events of no run", "/runs/nothing/events")
    stage.get(
        "events from a place that is none",
        "/runs/shown/events",
        ("last-event-id", "x"),
        token="roaming",
    )
    stage.chat("a short run", "words", "one two", (RUN, "short"), (TURN, "t"), token="roaming")
    reply = stage.get("the events of a short run", "/runs/short/events", token="roaming")
    ids = [
        line.removeprefix(b"id: ").decode()
        for line in reply.body.split(b"\n")
        if line.startswith(b"id: ")
    ]
    stage.get(
        "its events from the second",
        "/runs/short/events",
        ("last-event-id", ids[1]),
        token="roaming",
    )
    stage.get(
        "its events from the last",
        "/runs/short/events",
        ("last-event-id", ids[-1]),
        token="roaming",
    )
    stage.send("the head of its events", stage.plain("HEAD", "/runs/short/events", token="roaming"))
    cancelled(stage)


def cancelled(stage: Stage) -> None:
    """A run that is stopped while it runs."""
    stage.post("cancelling what has ended", "/runs/short/cancel", b"", token="roaming")
    stage.post("cancelling nothing", "/runs/nothing/cancel", b"")
    stage.post("cancelling without the right", "/runs/short/cancel", b"", token="reader")
    body = {"model": "gated", "messages": [{"role": "user", "content": "never"}], "stream": True}
    request = stage.plain("POST", CHAT, (RUN, "stopped"), (TURN, "t"), body=body)
    running = threading.Thread(target=stage.quietly, args=(request,))
    running.start()
    stage.has_begun("never")
    stage.post("cancelling a run", "/runs/stopped/cancel", b"")
    running.join()
    stage.get("a run that was cancelled", "/runs/stopped")
    stage.get("its events", "/runs/stopped/events")
