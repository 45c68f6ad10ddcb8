"""Requests of A2A as the dialect reads them, and calls whose answers it writes."""

from typing import Any

from msgspec.structs import replace

from carnet.core.call import Ask, Call, Claim
from carnet.core.messages.events import Message
from carnet.wire.crypto.components import Request
from carnet.wire.dialects.a2a import DIALECT, HTTP_DIALECT
from carnet.wire.dialects.a2a.form import Form
from carnet.wire.dialects.dialect import Arrival, TaskQuestion, Way
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS
from tests.wire.dialects import scene

MESSAGE: dict[str, Any] = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
FORMER: dict[str, Any] = {
    "kind": "message",
    "messageId": "m1",
    "role": "user",
    "parts": [{"kind": "text", "text": "hello"}],
}


def came(way: Way, body: bytes = b"", fields: dict[str, str] | None = None, **more: Any) -> Arrival:
    """A request that came one way, with its body."""
    lines = [(name.encode(), value.encode()) for name, value in (fields or {}).items()]
    head = Request(
        method=way.method,
        authority="acme.example",
        path=way.path,
        query=more.pop("query", None),
        headers=Headers(lines),
    )
    arrival = Arrival(way, head.headers, head=lambda: head, stamps=STAMPS, **more)
    arrival.body = body
    return arrival


def rpc(
    method: object, params: object = None, fields: dict[str, str] | None = None, **more: Any
) -> Any:
    """What a JSON-RPC request asks; `more` are members of it."""
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params, **more}
    return DIALECT.read(came(DIALECT.ways[0], json.write(body), fields, agent="echo"))


def http(
    method: str, path: str, body: object = None, fields: dict[str, str] | None = None, **more: Any
) -> Any:
    """What a request of the other binding asks."""
    (way,) = [
        each for each in HTTP_DIALECT.ways if (each.method, each.path) == (method, f"/a2a{path}")
    ]
    content = b"" if body is None else json.write(body)
    return HTTP_DIALECT.read(came(way, content, fields, agent="echo", **more))


def send(metadata: object = None, fields: dict[str, str] | None = None, **more: Any) -> Claim:
    """The claim of a message; `more` are members of it."""
    message = {**MESSAGE, **({} if metadata is None else {"metadata": metadata}), **more}
    claim = rpc("SendMessage", {"message": message}, fields)
    assert isinstance(claim, Claim)
    return claim


def form_in(question: TaskQuestion | Claim) -> dict[str, Any]:
    """How what was read was written."""
    kept = question.form if isinstance(question, TaskQuestion) else question.ask.form
    assert kept is not None
    return kept


def call(form: Form | None = None, **more: Any) -> Call:
    """A call whose answer is written."""
    form = Form(message=MESSAGE) if form is None else form
    ask = Ask(messages=(Message("user", ("hello",)),), context="ctx_1", form=form.kept())
    made = scene.call(ask, task="task_1")
    return replace(made, **more) if more else made
