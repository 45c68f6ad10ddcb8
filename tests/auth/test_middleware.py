"""Auth by itself: who comes through, as whom, and what lies behind sees of it."""

from typing import Any

import pytest

from carnet.auth.middleware import Auth
from carnet.core.people.identity import Ceiling, Secret
from carnet.engine.endpoint import refuse
from carnet.errors import TokenInvalid
from carnet.guards.caller.failures import Failures
from carnet.http.exchange import Message, Receive, Scope, Send
from carnet.http.link import LINE, Line
from carnet.testing.clock import FakeClock
from carnet.wire.dialects.engine_chat.actor import EngineActor, read_actor
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers

ALICE = EngineActor("alice", Ceiling(allow=frozenset({"tool:read"})))


async def verify(credential: Secret) -> EngineActor:
    if credential.reveal() != "Bearer good":
        raise TokenInvalid
    return ALICE


class Asked:
    """Auth before an application that remembers what it saw."""

    def __init__(self, *, limit: int = 100) -> None:
        self.seen: list[Headers] = []
        self.sent: list[Message] = []
        failures = Failures(limit)
        self.auth = Auth(self.app, verify, refusing=refuse, failures=failures, clock=FakeClock())

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send
        self.seen.append(Headers(scope["headers"]))

    async def __call__(self, *fields: tuple[bytes, bytes], path: bytes = b"/engine/chat") -> None:
        scope: dict[str, Any] = {
            "type": "http",
            "client": ("192.0.2.1", 1),
            "method": "POST",
            "raw_path": path,
            "query_string": b"",
            "scheme": "http",
            "headers": list(fields),
            LINE: Line(),
        }
        await self.auth(scope, self.receive, self.send)

    async def receive(self) -> Message:
        raise AssertionError("a body is not waited for")

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def refusal(self) -> tuple[int, dict[str, object]]:
        start, *bodies = self.sent
        body = b"".join(message["body"] for message in bodies)
        return start["status"], json.read_object(body)


@pytest.mark.parametrize("field", [(b"authorization", b"Bearer good"), (b"x-api-key", b"good")])
async def test_who_is_known_comes_through_as_who_it_is(field: tuple[bytes, bytes]) -> None:
    asked = Asked()
    await asked(field, (b"x-actor-id", b"root"), (b"x_actor_permissions", b'{"allow":["*"]}'))
    (seen,) = asked.seen
    assert read_actor(seen) == ALICE
    assert [name for name, _ in seen] == ["x-actor-id", "x-actor-permissions"]
    assert asked.sent == []


@pytest.mark.parametrize("path", [b"/engine/chat", b"/healthz", b"/"])
@pytest.mark.parametrize(
    "fields",
    [
        (),
        ((b"x-actor-id", b"root"), (b"x-actor-permissions", b'{"allow":["*"]}')),
        ((b"authorization", b"Bearer bad"),),
        ((b"authorization", b"Bearer good"), (b"x-api-key", b"good")),
    ],
)
async def test_nobody_else_does_at_any_path(
    fields: tuple[tuple[bytes, bytes], ...], path: bytes
) -> None:
    asked = Asked()
    await asked(*fields, path=path)
    assert asked.seen == []
    assert asked.refusal == (
        401,
        {"code": "unauthorized", "message": "The request needs a valid credential."},
    )


async def test_who_guesses_too_often_is_told_so_and_locks_nobody_out() -> None:
    asked = Asked(limit=2)
    for _ in range(4):
        asked.sent.clear()
        await asked((b"authorization", b"Bearer guess"))
    assert asked.refusal[0] == 429
    await asked((b"authorization", b"Bearer good"))
    assert len(asked.seen) == 1


async def test_it_speaks_http_alone() -> None:
    with pytest.raises(RuntimeError):
        await Asked().auth({"type": "websocket"}, Asked().receive, Asked().send)
