"""The credential of one turn: what it says, and what is not taken for it."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.messages.interrupt import Resolution
from carnet.core.people.identity import Ceiling, Secret
from carnet.errors import TokenInvalid
from carnet.wire.crypto import jws
from carnet.wire.dialects.engine_chat.actor import EngineActor
from carnet.wire.dialects.engine_chat.bearer import (
    MOST_BYTES,
    RESOLVED,
    TYPE,
    TurnBearer,
    is_bearer,
    read_bearer,
    read_resolved,
    read_shown,
    write_bearer,
    write_resolved,
    write_shown,
)
from carnet.wire.grammar.headers import Headers

ALICE = EngineActor("alice", Ceiling(allow=frozenset({"tool:*"}), deny=frozenset({"tool:send"})))
YES = Resolution(outcome="accepted", value={"to": "Zoë"})
BEARER = TurnBearer(
    issuer="acme.example",
    actor=ALICE,
    turn="run.t0.a",
    expires=1_700_000_000,
    resolved={"c1": YES},
    agent="assistant",
    id="b-1",
    is_final=True,
)
CLAIMS: dict[str, Any] = {
    "iss": "a",
    "sub": "b",
    "turn": "t",
    "exp": 1,
    "allow": [],
    "deny": [],
    "resolved": {},
}


def sign(_: bytes) -> bytes:
    return b"\x07" * 64


def token(claims: object, typ: str = TYPE) -> str:
    return jws.write(claims, kid="k-1", typ=typ, sign=sign)  # type: ignore[arg-type]  # or nonsense


def test_what_is_written_is_read_as_the_same() -> None:
    written = write_bearer(BEARER, kid="k-1", sign=sign)
    assert is_bearer(written)
    read = read_bearer(written)
    assert (read.bearer, read.keyid, read.signature) == (BEARER, "k-1", b"\x07" * 64)
    assert written.startswith(read.signed.decode())


def test_who_has_no_list_may_all_that_is_not_denied() -> None:
    actor = EngineActor("a", Ceiling())
    bearer = TurnBearer(issuer="x", actor=actor, turn="t", expires=1)
    assert read_bearer(write_bearer(bearer, kid="k", sign=sign)).bearer.actor.may("tool:x")


@pytest.mark.parametrize(
    "text",
    [
        *("", "a.b.c", "ck_plain", "x" * (MOST_BYTES + 1)),
        token(CLAIMS, "JWT"),
        token(CLAIMS | {"more": 1}),
        token({name: CLAIMS[name] for name in CLAIMS if name != "exp"}),
        token(CLAIMS | {"exp": "1"}),
        token(CLAIMS | {"allow": "*"}),
        token(CLAIMS | {"resolved": {"c": {"outcome": "approved"}}}),
    ],
)
def test_what_is_not_in_its_form_is_nobodys(text: str) -> None:
    with pytest.raises(TokenInvalid):
        read_bearer(text)


def b64(text: str) -> str:
    return b64encode(text.encode()).decode()


def headers(*values: str) -> Headers:
    return Headers([(RESOLVED.encode(), value.encode()) for value in values])


@pytest.mark.parametrize(
    "values",
    [
        *(["{"], ["{}"], [b64("[]")], [b64("{")], [b64("{}"), b64("{}")]),
        [b64('{"c":{"outcome":"maybe"}}')],
    ],
)
def test_answers_that_auth_would_not_write_are_not_believed(values: list[str]) -> None:
    with pytest.raises(TokenInvalid):
        read_resolved(headers(*values))


outcomes = st.sampled_from(["accepted", "rejected"])
values = st.none() | st.text(st.characters(codec="utf-8"), max_size=9) | st.integers(0, 9)
answers = st.dictionaries(
    st.text(st.characters(categories=("L", "N")), min_size=1, max_size=9),
    st.builds(lambda outcome, value: Resolution(outcome=outcome, value=value), outcomes, values),
    max_size=3,
)


@given(answers)
def test_what_was_answered_reaches_the_loop_as_it_was(resolved: dict[str, Resolution]) -> None:
    written = write_resolved(resolved)
    assert read_resolved(headers(*written.values())) == resolved
    assert all(value.isascii() for value in written.values())


def test_a_loop_is_handed_the_bearer_of_its_turn_once() -> None:
    written = write_bearer(BEARER, kid="k-1", sign=sign)
    ((name, value),) = write_shown(Secret(written)).items()
    fields = [(name.encode(), value.encode())]
    assert read_shown(Headers(fields)) == (Secret(written), BEARER)
    assert read_shown(Headers([])) is None
    assert write_shown(None) == {}
    with pytest.raises(TokenInvalid):
        read_shown(Headers(fields * 2))


def test_whether_tokens_are_asked_for_is_said_where_they_are_bounded() -> None:
    bounded = replace(BEARER, asks_tokens=True)
    assert read_bearer(write_bearer(bounded, kid="k-1", sign=sign)).bearer == bounded
    assert "tokens" not in jws.read(write_bearer(BEARER, kid="k-1", sign=sign), typ=TYPE).payload
