"""Sends requests byte by byte, and writes each exchange down by names that all runs share.

An area is a function that is given a stage and sends one request after another; what one answer
tells may be used by the next request. Nothing is sent at the same time as something else.
"""

import http.client
import json
import socket
from pathlib import Path
from typing import Any

from msgspec import Struct

from carnet.testing.wait import PATIENCE_SECONDS, until
from tests.exchanges.cases.names import Names
from tests.exchanges.scene import Scene
from tests.exchanges.tap import Fields, Passed
from tests.support.signing.signed import Signed

STARTER = "acme"  # the plain token of that gateway

Written = dict[str, Any]


class Answer(Struct, frozen=True, kw_only=True):
    """What came back, as it came."""

    status: int
    reason: str
    headers: Fields
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def field(self, name: str) -> str:
        return dict(self.headers)[name]


class Stage:
    """One area of the recording."""

    def __init__(self, scene: Scene, literals: dict[str, str]) -> None:
        self.scene = scene
        self.names = Names(literals)
        self.written: list[Written] = []
        self._numbers = 0

    # ------------------------------------------------------------------------- asking

    def send(
        self,
        title: str,
        request: Signed,
        *,
        to: str = "acme",
        host: str | None = None,
        hides: str = "",
        hides_passed: str = "",
        calls: int = 0,
    ) -> Answer:
        """Send a request and write the exchange down.

        `hides` says in place of the answer's body why that is not compared, `hides_passed` the
        same of what came to the taps; `calls` is how many requests must have come there, where
        they come later than the answer.
        """
        self.scene.passed.clear()
        answer = self.quietly(request, to=to, host=host)
        until(lambda: len(self.scene.passed) >= calls)
        written: Written = {"title": title, "to": to}
        written["request"] = self._request(request, self._host(to, host))
        passed = [self._passed(one, hides_passed) for one in _last_polls(self.scene.passed)]
        if passed:
            written["passed"] = passed
        written["answer"] = self._head(
            f"{answer.status} {answer.reason}", answer.headers, answer.body
        )
        written["answer"]["body"] = hides or self._body(answer.body)
        self.written.append(written)
        return answer

    def quietly(self, request: Signed, *, to: str = "acme", host: str | None = None) -> Answer:
        """Send a request that belongs to no exchange."""
        return exchange(self.scene.gateways[to].port, request, self._host(to, host))

    def _host(self, to: str, host: str | None) -> str:
        return f"127.0.0.1:{self.scene.gateways[to].port}" if host is None else host

    # ------------------------------------------------------------------------- requests

    def get(self, title: str, path: str, *headers: tuple[str, str], **how: Any) -> Answer:
        """GET it with a token."""
        return self.send(
            title, self.plain("GET", path, *headers, token=how.pop("token", "acme")), **how
        )

    def post(
        self, title: str, path: str, body: Any, *headers: tuple[str, str], **how: Any
    ) -> Answer:
        """POST JSON, or bytes, with a token."""
        token = how.pop("token", "acme")
        return self.send(title, self.plain("POST", path, *headers, token=token, body=body), **how)

    def chat(
        self,
        title: str,
        model: str | None,
        text: str = "good day",
        *headers: tuple[str, str],
        path: str = "/v1/chat/completions",
        body: dict[str, Any] | None = None,
        **how: Any,
    ) -> Answer:
        """Ask an agent by chat; `body` has more members of the request."""
        asked: dict[str, Any] = {"messages": [{"role": "user", "content": text}], **(body or {})}
        if model is not None:
            asked = {"model": model, **asked}
        return self.post(title, path, asked, *headers, **how)

    def plain(
        self,
        method: str,
        path: str,
        *headers: tuple[str, str],
        token: str | None = STARTER,
        body: Any = None,
    ) -> Signed:
        """A request with a token and, if it has a body, a type of it, unless it says otherwise."""
        fields = list(headers)
        given = {name.lower() for name, _ in headers}
        if token is not None and "authorization" not in given:
            fields.insert(0, ("authorization", f"Bearer {self.scene.tokens[token]}"))
        if body is not None and "content-type" not in given:
            fields.append(("content-type", "application/json"))
        data = body if isinstance(body, bytes) else b"" if body is None else _encoded(body)
        return Signed(method=method, target=path, headers=tuple(fields), body=data)

    def number(self) -> int:
        """One more than the last one of this area."""
        self._numbers += 1
        return self._numbers

    # ------------------------------------------------------------------------- agents that wait

    def has_begun(self, gate: str, at: str = "acme") -> None:
        """Wait until an agent waits at a gate."""
        until((self._folder(at) / f"{gate}.begun").exists)

    def open(self, gate: str, at: str = "acme") -> None:
        """Let it go on."""
        (self._folder(at) / f"{gate}.open").touch()

    def _folder(self, at: str) -> Path:
        return self.scene.gateways[at].folder

    # ------------------------------------------------------------------------- writing down

    def _request(self, request: Signed, host: str) -> Written:
        first = f"{request.method} {request.target}"
        fields = [("host", host), *request.headers]
        written = self._head(first, fields, request.body)
        if request.body:
            written["body"] = self._body(request.body)
        return written

    def _passed(self, one: Passed, hides: str) -> Written:
        received = one.received
        body = hides or (self._body(received.body) if received.body else None)
        request = self._head(
            f"{received.method} {received.target}", received.headers, received.body
        )
        if body is not None:
            request["body"] = body
        written: Written = {"by": one.by, "request": request}
        if one.answer.headers or one.answer.body:
            head = self._head(str(one.answer.status), one.answer.headers, one.answer.body)
            written["answer"] = {**head, "body": self._body(one.answer.body)}
        return written

    def _head(self, first: str, fields: Fields, body: bytes) -> Written:
        length = str(len(body))
        self.names.body(body)  # its digest is known when the head tells it
        lines = [first]
        for name, value in fields:
            is_length = name.lower() == "content-length" and value == length
            lines.append(f"{name}: {'<that of the body>' if is_length else value}")
        return {"head": [self.names.text(line) for line in lines]}

    def _body(self, body: bytes) -> str | list[str]:
        text = self.names.body(body)
        return text.split("\n") if "\n" in text else text


def exchange(port: int, request: Signed, host: str) -> Answer:
    """Send a request to a port of this machine, on a connection of its own."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as line:
        line.sendall(_raw(request, host))
        return _read(line, request.method)


def _last_polls(passed: list[Passed]) -> list[Passed]:
    """Of questions after a task that follow one another the last: how many depends on the time."""
    seen = tuple(passed)
    following = [*(one.received.target for one in seen[1:]), ""]
    return [
        one
        for one, after in zip(seen, following, strict=False)
        if one.received.method != "GET"
        or "/agent/task/" not in after
        or one.received.target != after
    ]


def _encoded(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


def _raw(request: Signed, host: str) -> bytes:
    fields = [("host", host), *request.headers]
    given = {name.lower() for name, _ in request.headers}
    if request.body and not given & {"content-length", "transfer-encoding"}:
        fields.append(("content-length", str(len(request.body))))
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    first = f"{request.method} {request.target} HTTP/1.1\r\n"
    return f"{first}{head}\r\n".encode("latin-1") + request.body


def _read(line: socket.socket, method: str) -> Answer:
    response = http.client.HTTPResponse(line, method=method)
    response.begin()
    return Answer(
        status=response.status,
        reason=response.reason,
        headers=response.getheaders(),
        body=response.read(),
    )
