"""Who acts, as the loop is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.people.identity import Ceiling
from carnet.errors import TokenInvalid, TokenMissing
from carnet.wire.dialects.engine_chat.actor import (
    ACTOR_ID,
    MOST_PERMISSIONS_BYTES,
    PERMISSIONS,
    EngineActor,
    read_actor,
    write_actor,
)
from carnet.wire.grammar.headers import Headers


def headers(**fields: str) -> Headers:
    return Headers(
        [(name.replace("_", "-").encode(), value.encode()) for name, value in fields.items()]
    )


def test_both_headers_say_who_acts_and_deny_wins() -> None:
    actor = read_actor(
        headers(x_actor_id="alice", x_actor_permissions='{"allow":["tool:*"],"deny":["tool:send"]}')
    )
    assert actor.id == "alice"
    assert actor.may("tool:read")
    assert not actor.may("tool:send")
    assert not actor.may("admin:runs")


@pytest.mark.parametrize(
    "fields", [{}, {"x_actor_id": "a"}, {"x_actor_permissions": '{"allow":[]}'}]
)
def test_without_both_there_is_nobody(fields: dict[str, str]) -> None:
    with pytest.raises(TokenMissing):
        read_actor(headers(**fields))


@pytest.mark.parametrize(
    "permissions",
    [
        *("", "memory:*,tools:*", '{"type":"owner"}', '{"allow":"*"}', '{"allow":[1]}', "[]"),
        *('{"allow":[],"more":1}', '{"deny":[]}', '{"allow":[],"allow":["*"]}'),
        '{"allow":["' + "x" * MOST_PERMISSIONS_BYTES + '"]}',
    ],
)
def test_what_auth_would_not_write_is_not_believed(permissions: str) -> None:
    with pytest.raises((TokenInvalid, TokenMissing)):
        read_actor(headers(x_actor_id="a", x_actor_permissions=permissions))


def test_a_header_twice_is_not_believed() -> None:
    pairs = [
        (b"x-actor-id", b"a"),
        (b"x-actor-id", b"b"),
        (b"x-actor-permissions", b'{"allow":[]}'),
    ]
    with pytest.raises(TokenInvalid):
        read_actor(Headers(pairs))


def test_who_has_no_list_may_all_that_is_not_denied() -> None:
    written = write_actor(EngineActor("a", Ceiling(deny=frozenset({"pay"}))))
    assert written == {ACTOR_ID: "a", PERMISSIONS: '{"allow":["*"],"deny":["pay"]}'}


names = st.frozensets(st.sampled_from(["tool:*", "tool:a", "call:b", "pay", "*"]))


@given(names, names)
def test_what_is_written_is_read_as_the_same(allow: frozenset[str], deny: frozenset[str]) -> None:
    actor = EngineActor("peer:globex.example", Ceiling(allow=allow, deny=deny))
    pairs = [(name.encode(), value.encode()) for name, value in write_actor(actor).items()]
    assert read_actor(Headers(pairs)) == actor
