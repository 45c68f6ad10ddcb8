"""Sessions in a store: begun by a token, or once by a code; bounded; ended with their tokens."""

import asyncio

import pytest
from msgspec.structs import replace

from carnet.core.people.identity import Caller, Secret, Token
from carnet.core.people.session import PersonSession
from carnet.errors import SignInCodeInvalid, TokenInvalid
from carnet.guards.caller.authentication import caller_of
from carnet.ports.trust.people import NewPerson
from carnet.ports.trust.trust import NewToken
from carnet.stores.open import Store
from carnet.stores.trust.sessions import HOUR, KNOWN_SECONDS
from tests.stores.support.scenes import NOW, SECOND, Place

SCOPES = frozenset({"call:*", "run:read"})


async def a_token(store: Store, name: str = "laptop", person: str = "alice") -> Token:
    found = store.people.find(person) or await store.people.add(NewPerson(name=person), NOW)
    new = NewToken(name=name, scopes=SCOPES, person=found.n, forwardable=True)
    return (await store.tokens.create(new, NOW))[0]


async def begun(store: Store, token: Token, now: int = NOW) -> tuple[PersonSession, Secret]:
    return await store.sessions.begin(token, "a browser", now)


def reader(token: Token, session: int) -> Caller:
    return caller_of(replace(token, session=session))


async def test_a_session_is_found_by_its_cookie_until_it_is_over(store: Store) -> None:
    token = await a_token(store)
    session, secret = await begun(store, token)
    assert (session.token, session.person, session.device) == (token.n, token.person, "a browser")
    assert await store.sessions.find(secret, NOW) == session
    assert await store.sessions.list(token.person, NOW) == [session]
    assert session.until == NOW + 24 * HOUR
    assert await store.sessions.find(secret, session.until - 1) == session
    assert await store.sessions.find(secret, session.until) is None
    assert await store.sessions.list(None, session.until) == []


async def test_who_uses_it_stays_signed_in_but_not_for_ever(store: Store, place: Place) -> None:
    session, secret = await begun(store, await a_token(store))
    await store.sessions.touch(session, NOW + 30 * SECOND)  # that was a moment ago
    at = NOW
    while (found := await store.sessions.find(secret, at)) is not None:
        await store.sessions.touch(found, at)
        at += 20 * HOUR
        place.clock.advance(KNOWN_SECONDS)
    assert session.last <= at < session.last + 20 * HOUR
    assert place.rows("SELECT until, last FROM session") == [(session.last, session.last)]


async def test_nothing_of_a_cookie_or_a_code_is_kept(store: Store, place: Place) -> None:
    token = await a_token(store)
    _, secret = await begun(store, token)
    _, code = await store.sessions.offer(token, NOW)
    kept = repr(place.rows("SELECT * FROM session"))
    for text in (secret, code):
        assert text.reveal()[3:20] not in kept


async def test_a_code_signs_in_once_and_for_some_minutes(store: Store) -> None:
    token = await a_token(store)
    offered, code = await store.sessions.offer(token, NOW)
    assert await store.sessions.find(code, NOW) is None  # it is no cookie
    assert await store.sessions.list(None, NOW) == []
    session, secret = await store.sessions.redeem(code, "phone", NOW + 1)
    assert (session.n, session.begun, session.device) == (offered.n, NOW + 1, "phone")
    assert await store.sessions.find(secret, NOW + 1) == session
    for late in (code, secret):
        with pytest.raises(SignInCodeInvalid):
            await store.sessions.redeem(late, "", NOW + 2)
    _, another = await store.sessions.offer(token, NOW)
    with pytest.raises(SignInCodeInvalid):
        await store.sessions.redeem(another, "", NOW + HOUR // 6)


async def test_of_many_who_show_one_code_at_once_one_is_let_in(store: Store, place: Place) -> None:
    _, code = await store.sessions.offer(await a_token(store), NOW)
    other = await place.open(exclusive=False)
    try:
        tries = [
            each.sessions.redeem(code, "", NOW + 1) for each in (store, other) for _ in range(8)
        ]
        came = await asyncio.gather(*tries, return_exceptions=True)
    finally:
        await other.close()
    assert sum(not isinstance(one, BaseException) for one in came) == 1
    assert {type(one) for one in came if isinstance(one, BaseException)} == {SignInCodeInvalid}


async def test_a_text_that_is_none_of_ours_is_not_looked_for(store: Store, place: Place) -> None:
    _, secret = await begun(store, await a_token(store))
    text = secret.reveal()
    place.rows("ALTER TABLE session RENAME TO away")  # who looks for it fails
    changed = text[:-1] + ("A" if text[-1] != "A" else "B")
    for other in (
        "",
        "cs_",
        ".",
        text[:-2],
        changed,
        f"cs_x{text[3:]}",
        "cs_\xe9.\xe9",
        f"{text}.",
    ):
        assert await store.sessions.find(Secret(other), NOW) is None
        with pytest.raises(SignInCodeInvalid):
            await store.sessions.redeem(Secret(other), "", NOW)
    place.rows("ALTER TABLE away RENAME TO session")
    assert await store.sessions.find(secret, NOW) is not None


@pytest.mark.parametrize("what", ["token", "person"])
async def test_with_its_token_and_its_person_it_ends_and_none_begins(
    store: Store, what: str
) -> None:
    token = await a_token(store)
    session, secret = await begun(store, token)
    _, code = await store.sessions.offer(token, NOW)
    if what == "token":
        assert await store.tokens.revoke("laptop", NOW + 1)
    else:
        ended = await store.people.end("alice", NOW + 1)
        assert ended is not None
        assert ("session", f"session {session.n}") in [(t.kind, t.name) for t in ended.things]
    assert await store.sessions.list(None, NOW + 2) == []
    with pytest.raises(SignInCodeInvalid):
        await store.sessions.redeem(code, "", NOW + 2)
    for make in (store.sessions.offer(token, NOW + 2), begun(store, token, NOW + 2)):
        with pytest.raises(TokenInvalid):
            await make
    # What it stands for is not lent any more, however late the session is looked at.
    with store.tokens.lent(session.token, session.n) as lent:
        await store.refresh()
        found = store.tokens.find(lent)
        assert found is None or not found.is_live(NOW + 2)
    del secret


async def test_it_stands_for_its_token_and_is_never_forwarded(store: Store) -> None:
    token = await a_token(store)
    session, _ = await begun(store, token)
    with store.tokens.lent(session.token, session.n) as lent:
        found = store.tokens.find(lent)
    assert found == replace(token, forwardable=False, session=session.n)
    assert store.tokens.find(lent) is None


async def test_a_person_has_so_many_and_the_longest_unused_end(store: Store) -> None:
    store.sessions.bounds = replace(store.sessions.bounds, per_person=3)
    alices, bobs = await a_token(store), await a_token(store, "desk", "bob")
    kept, _ = await begun(store, bobs)
    first, _ = await begun(store, alices, NOW)
    second, _ = await begun(store, alices, NOW + 1)
    await store.sessions.touch(first, NOW + 100 * SECOND)
    _, code = await store.sessions.offer(alices, NOW + 101 * SECOND)
    third, _ = await begun(store, alices, NOW + 102 * SECOND)
    live = [one.n for one in await store.sessions.list(alices.person, NOW + 103 * SECOND)]
    assert live == [third.n, first.n]
    assert second.n not in live
    for at in range(3):
        await begun(store, alices, NOW + (200 + at) * SECOND)
    with pytest.raises(SignInCodeInvalid):
        await store.sessions.redeem(code, "", NOW + 210 * SECOND)
    assert [one.n for one in await store.sessions.list(bobs.person, NOW)] == [kept.n]


async def test_one_is_ended_and_only_by_whose_it_is(store: Store) -> None:
    token, other = await a_token(store), await a_token(store, "desk", "bob")
    session, secret = await begun(store, token)
    assert not await store.sessions.end(session.n, NOW + 1, person=other.person)
    assert await store.sessions.find(secret, NOW + 1) == session
    assert await store.sessions.end(session.n, NOW + 1, person=token.person)
    assert await store.sessions.find(secret, NOW + 1) is None
    assert not await store.sessions.end(session.n, NOW + 2)
    _, code = await store.sessions.offer(token, NOW)
    await begun(store, token)
    assert await store.sessions.end_all(token.person or 0, NOW + 3) == 1
    with pytest.raises(SignInCodeInvalid):
        await store.sessions.redeem(code, "", NOW + 4)
    assert await store.sessions.list(None, NOW + 4) == []


async def test_who_reads_by_one_that_ended_elsewhere_has_left(store: Store, place: Place) -> None:
    token = await a_token(store)
    session, secret = await begun(store, token)
    assert await store.sessions.find(secret, NOW) is not None
    with store.sessions.watched(session.n):
        await store.sessions.keep()
        assert not store.revocations.has_left(reader(token, session.n))
        other = await place.open(exclusive=False)
        assert await other.sessions.end(session.n, NOW + 1)
        await other.close()
        await store.upkeep()
        assert store.revocations.has_left(reader(token, session.n))
    place.clock.advance(KNOWN_SECONDS)
    assert await store.sessions.find(secret, NOW + 1) is None
    assert not store.sessions.is_over(session.n)  # nobody watches it: nothing is held


async def test_each_has_a_csrf_token_of_its_own(store: Store, place: Place) -> None:
    token = await a_token(store)
    one, two = [(await begun(store, token))[0] for _ in range(2)]
    assert store.sessions.csrf(one) != store.sessions.csrf(two)
    other = await place.open(exclusive=False)
    assert other.sessions.csrf(one) == store.sessions.csrf(one)  # on every replica
    await other.close()


async def test_who_is_given_a_number_that_was_anothers_has_another_csrf_token(
    store: Store, place: Place
) -> None:
    hers, _ = await begun(store, await a_token(store))
    known = store.sessions.csrf(hers)
    place.rows("DELETE FROM session")  # as it is forgotten
    his, _ = await begun(store, await a_token(store, "phone", "bob"), NOW + 1)
    assert store.sessions.csrf(replace(his, n=hers.n)) != known


async def test_those_that_are_over_are_forgotten(store: Store, place: Place) -> None:
    token = await a_token(store)
    session, _ = await begun(store, token)
    await begun(store, token)
    await store.sessions.end(session.n, NOW + 1)
    place.clock.advance(3 * 24 * 3600)
    await store.prune(turn_days=1, event_days=1)
    assert place.rows("SELECT COUNT(*) FROM session") == [(0,)]
