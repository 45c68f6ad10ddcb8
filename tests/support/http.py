"""A small blocking HTTP client that sends exactly the headers it is given."""

import http.client
import json
from collections.abc import Generator, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

HeaderList = Sequence[tuple[str, str]]


class Reply(Struct, frozen=True):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The text of a chat completion."""
        return str(self.json["choices"][0]["message"]["content"])

    @property
    def code(self) -> str:
        """The code of an error."""
        return str(self.json["code"])


def _open(
    method: str, url: str, headers: HeaderList, body: bytes | None
) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    connection.putrequest(method, path, skip_accept_encoding=True)
    names = {name.lower() for name, _ in headers}
    for name, value in headers:
        connection.putheader(name, value.encode("latin-1", "surrogateescape"))
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        connection.putheader("content-length", str(len(body)))
    try:
        connection.endheaders(body)
    except BaseException:  # who was called is gone between the connection and the request
        connection.close()
        raise
    return connection


def request(method: str, url: str, headers: HeaderList = (), body: bytes | None = None) -> Reply:
    """Send one request and read the whole answer."""
    connection = _open(method, url, headers, body)
    try:
        response = connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, fields, response.read())
    finally:
        connection.close()


def stream(
    method: str, url: str, headers: HeaderList = (), body: bytes | None = None
) -> Generator[bytes, None, None]:
    """Send one request and give its body line by line as it arrives; close to disconnect."""
    connection = _open(method, url, headers, body)
    try:
        response = connection.getresponse()
        assert response.status == 200, response.read()
        while line := response.readline():
            yield line
    finally:
        connection.close()


def chat_body(text: str = "hi", model: str | None = "echo", **more: Any) -> bytes:
    """A chat completion request."""
    body: dict[str, Any] = {"messages": [{"role": "user", "content": text}], **more}
    if model is not None:
        body["model"] = model
    return json.dumps(body).encode()
