"""Auth by itself: who comes through, as whom, and what lies behind sees of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from carnet.auth.middleware import (
    Auth,
    BearerVerifier,
    KnownActor,
    LiveVerifier,
    SessionVerifier,
    Verify,
)
from carnet.core.messages.interrupt import Resolution
from carnet.core.people.identity import Ceiling, Secret
from carnet.core.people.session import PersonSession
from carnet.engine.endpoint import refuse
from carnet.errors import TokenInvalid
from carnet.guards.caller.failures import Failures
from carnet.guards.caller.session import SignedIn, session_cookie
from carnet.guards.caller.turn_bearer import TurnBearers
from carnet.http.exchange import Message, Receive, Scope, Send
from carnet.http.link import LINE, Line
from carnet.ports.trust.keys import KeyState, OwnKey
from carnet.testing.clock import FakeClock
from carnet.wire.crypto import ed25519
from carnet.wire.dialects.engine_chat.actor import EngineActor, read_actor
from carnet.wire.dialects.engine_chat.bearer import TurnBearer, read_resolved, write_bearer
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers

ALICE = EngineActor("alice", Ceiling(allow=frozenset({"tool:read"})))


async def verify(credential: Secret) -> KnownActor:
    if credential.reveal() != "Bearer good":
        raise TokenInvalid
    return KnownActor(ALICE)


class Tokens:
    """Lends the one that is good."""

    @contextmanager
    def lent(self, n: int, session: int | None = None) -> Iterator[Secret]:
        yield Secret("good" if (n, session) == (7, 3) else "bad")


class Sessions:
    """Knows one."""

    async def find(self, secret: Secret, now: int) -> PersonSession | None:
        hers = PersonSession(
            n=3, person=1, token=7, created=1, begun=1, used=1, until=2**60, last=2**60
        )
        return hers if secret.reveal() == "good" and hers.is_live(now) else None

    async def touch(self, session: PersonSession, now: int) -> None:
        del session, now

    def csrf(self, session: PersonSession) -> str:
        return f"csrf {session.n}"


class Asked:
    """Auth before an application that remembers what it saw."""

    def __init__(self, *, limit: int = 100) -> None:
        self.seen: list[Headers] = []
        self.sent: list[Message] = []
        self.auth = self.made(verify, Failures(limit))

    def made(self, by: Verify, failures: Failures) -> Auth:
        clock = FakeClock()
        signed_in = SignedIn(Sessions(), session_cookie("http://127.0.0.1:8701"), clock)
        sessions = SessionVerifier(signed_in, Tokens(), by)
        return Auth(
            self.app, by, sessions=sessions, refusing=refuse, failures=failures, clock=clock
        )

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


@pytest.mark.parametrize(
    "fields",
    [
        [(b"authorization", b"Bearer good")],
        [(b"x-api-key", b"good")],
        [(b"cookie", b"carnet_session_8701=good"), (b"x-csrf-token", b"csrf 3")],
    ],
)
async def test_who_is_known_comes_through_as_who_it_is(fields: list[tuple[bytes, bytes]]) -> None:
    asked = Asked()
    await asked(
        *fields,
        (b"x-actor-id", b"root"),
        (b"x_actor_permissions", b'{"allow":["*"]}'),
        (b"x-actor-resolved", b"e30="),
        (b"X-Actor_Bearer", b"a.b.c"),
    )
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
        ((b"cookie", b"carnet_session_8701=bad"),),
        ((b"cookie", b"carnet_session_8701=good"), (b"authorization", b"Bearer good")),
        ((b"cookie", b"carnet_session_8701=good; carnet_session_8701=good"),),
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


@pytest.mark.parametrize(
    "fields",
    [
        (),
        ((b"x-csrf-token", b"csrf 4"),),
        ((b"x-csrf-token", b"csrf 3"), (b"origin", b"https://evil.example")),
    ],
)
async def test_who_is_signed_in_is_nobody_for_the_page_of_another_site(
    fields: tuple[tuple[bytes, bytes], ...],
) -> None:
    asked = Asked()
    await asked((b"cookie", b"carnet_session_8701=good"), *fields)
    assert asked.seen == []
    assert asked.refusal[0] == 403
    assert asked.refusal[1]["code"] == "forbidden"


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


# ------------------------------------------------------------------ bearers of turns

SEED = b"\x01" * 32
YES = Resolution(outcome="accepted")


class Keys:
    """The keys of a gateway, of which some are revoked."""

    def __init__(self, *, state: KeyState = "active", is_new: bool = False) -> None:
        self._state = state
        self._is_new = is_new

    def look_again(self) -> bool:
        was_new, self._is_new = self._is_new, False
        return was_new

    def published(self, now: int) -> list[OwnKey]:
        if self._is_new:
            return []
        return [OwnKey(kid="k-1", public=ed25519.public_of(SEED), state=self._state, created=now)]


def turn_bearer(*, kid: str = "k-1", seed: bytes = SEED, **fields: Any) -> str:
    given = {"issuer": "acme.example", "actor": ALICE, "turn": "t", "expires": 2_000_000_000}
    bearer = TurnBearer(**{**given, "resolved": {"c1": YES}, **fields})
    return write_bearer(bearer, kid=kid, sign=ed25519.signer(seed))


async def verified(credential: str, keys: Keys | None = None) -> KnownActor:
    clock = FakeClock(wall_us=1_900_000_000_000_000)
    known: Any = keys or Keys()

    async def look_again() -> bool:
        return bool(known.look_again())

    bearers = TurnBearers(known, clock, look_again, domain="acme.example")
    verifier = BearerVerifier(bearers, others=verify)
    return await verifier(Secret(f"Bearer {credential}"))


async def test_a_bearer_that_the_gateway_signed_says_who_acts_and_what_was_approved() -> None:
    text = turn_bearer()
    assert await verified(text) == KnownActor(ALICE, {"c1": YES}, Secret(text))
    assert await verified("good") == KnownActor(ALICE)


@pytest.mark.parametrize(
    "credential",
    [
        turn_bearer(seed=b"\x02" * 32),
        turn_bearer(kid="k-2"),
        turn_bearer(issuer="globex.example"),
        turn_bearer(expires=1_899_999_999),
        turn_bearer()[:-4] + "AAAA",
        "a.b.c",
    ],
)
async def test_one_that_is_anothers_late_or_changed_is_nobodys(credential: str) -> None:
    with pytest.raises(TokenInvalid):
        await verified(credential)


async def test_one_is_for_one_request() -> None:
    """A114: whoever has seen it has nothing."""
    bearers = TurnBearers(
        cast("Any", Keys()), FakeClock(wall_us=1_900_000_000_000_000), no, domain="acme.example"
    )
    verifier = BearerVerifier(bearers, others=verify)
    first, second = (Secret(f"Bearer {turn_bearer(id=id)}") for id in ("b-1", "b-2"))
    assert (await verifier(first)).actor == ALICE
    with pytest.raises(TokenInvalid):
        await verifier(first)
    assert (await verifier(second)).actor == ALICE


async def no() -> bool:
    return False


async def test_one_of_a_key_that_was_made_a_moment_ago_is_looked_for() -> None:
    assert (await verified(turn_bearer(), Keys(is_new=True))).actor == ALICE


async def test_one_of_a_revoked_key_is_nobodys() -> None:
    with pytest.raises(TokenInvalid):
        await verified(turn_bearer(), Keys(state="revoked"))


async def test_what_was_approved_is_told_to_the_loop_by_auth_alone() -> None:
    asked = Asked()

    async def approved(_: Secret) -> KnownActor:
        return KnownActor(ALICE, {"c1": YES})

    asked.auth = asked.made(approved, Failures(9))
    await asked((b"authorization", b"Bearer x"), (b"x-actor-resolved", b"e30="))
    assert read_resolved(asked.seen[0]) == {"c1": YES}


class KnownNames:
    """People by their names; those of `late` are found at the second look."""

    def __init__(self, *names: str, late: tuple[str, ...] = ()) -> None:
        self._names = names
        self._late = late

    def find(self, name: str) -> str | None:
        return name if name in self._names else None

    async def look_again(self) -> bool:
        self._names, is_new = (*self._names, *self._late), bool(self._late)
        return is_new


async def live(people: KnownNames, actor: str = "alice") -> KnownActor:
    async def proved(_: Secret) -> KnownActor:
        return KnownActor(EngineActor(actor, ALICE.ceiling))

    known: Any = people
    return await LiveVerifier(proved, known, people.look_again)(Secret("Bearer x"))


async def test_a_person_who_has_ended_is_nobody_whatever_proves_her() -> None:
    assert (await live(KnownNames("alice"))).actor.id == "alice"
    assert (await live(KnownNames(late=("alice",)))).actor.id == "alice"
    for people in (KnownNames("bob"), KnownNames(late=("bob",))):
        with pytest.raises(TokenInvalid):
            await live(people)


async def test_a_machine_is_no_person() -> None:
    for name in ("service:ci", "peer:globex.example", "agent:helper"):
        assert (await live(KnownNames(), name)).actor.id == name
