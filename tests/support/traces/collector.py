"""A collector of spans, by OTLP over HTTP: it reads as the authors of the protocol define it.

What is not of the protocol is an error here: an unknown member, an id of the wrong length, a time
that is none.
"""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


class Received(NamedTuple):
    """One span, and who sent it."""

    resource: dict[str, str]
    span: Any

    @property
    def attributes(self) -> dict[str, Any]:
        return {each.key: _value(each.value) for each in self.span.attributes}


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


def read_request(body: bytes) -> list[Received]:
    """What a request tells, strictly."""
    message = trace_service_pb2.ExportTraceServiceRequest()
    json_format.ParseDict(_with_bytes(json.loads(body)), message, ignore_unknown_fields=False)
    found = []
    for part in message.resource_spans:
        resource = {each.key: _value(each.value) for each in part.resource.attributes}
        for scope in part.scope_spans:
            found += [Received(resource, span) for span in scope.spans]
    return found


def _with_bytes(value: Any, name: str = "") -> Any:
    """Ids are hex digits in the protocol's JSON, and base64 in that of protobuf."""
    if isinstance(value, dict):
        return {key: _with_bytes(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_bytes(each) for each in value]
    if name in IDS and value:
        data = bytes.fromhex(value)
        assert len(data) == IDS[name], (name, value)
        return base64.b64encode(data).decode()
    return value


class Collector:
    """A real server on this machine."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.authorizations: list[str | None] = []
        self.spans: list[Received] = []
        self.status = 200
        outer = self

        class Asked(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert self.path == "/v1/traces"
                assert self.headers["content-type"] == "application/json"
                if outer.status == 200:
                    outer.spans += read_request(body)
                outer.bodies.append(body)
                outer.authorizations.append(self.headers["authorization"])
                self.send_response(outer.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def named(self, name: str) -> list[Received]:
        return [each for each in self.spans if each.span.name == name]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
