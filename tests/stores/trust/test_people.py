"""The record of people: who has which name, what her tokens may do, and what ends with her."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.people.identity import Account, Actor, Caller, Payer, owner_of
from carnet.core.people.person import Person, PersonAddress
from carnet.errors import PersonExists, UsageInvalid
from carnet.ports.calls.conversations import ConversationFilter
from carnet.ports.trust.people import EndedThing, NewPerson
from carnet.ports.trust.trust import NewToken
from carnet.stores.migration import migrations
from carnet.stores.open import Store
from tests.stores.conversations.test_conversations import kept
from tests.stores.support import scenes
from tests.stores.support.scenes import NOW, Place, a_claim, a_task, a_wait, claimed

ALICE = NewPerson(
    name="alice",
    display="Alice",
    number=7,
    roles=("operator",),
    permissions=frozenset({"admin:runs"}),
    account="alice",
    addresses=(PersonAddress(address="mailto:alice@acme.example"),),
)
THEIRS = Payer(account=Account("token:alice", "alice"), quota="p")
STATES = "SELECT r.id, t.state, t.code FROM turn t JOIN run r ON r.n = t.run ORDER BY t.n"
ASKED = "SELECT k.id, k.cancelled IS NOT NULL FROM task k ORDER BY k.turn"


async def a_token(store: Store, name: str, **more: Any) -> str:
    scopes = more.pop("scopes", frozenset({"call:*", "run:read"}))
    token, _ = await store.tokens.create(NewToken(name=name, scopes=scopes, **more), NOW)
    return token.number


def scopes_of(store: Store, name: str) -> frozenset[str]:
    return next(token.scopes for token in store.tokens.known() if token.name == name)


def hers(claim: Any, person: int, token: str | None = None) -> Any:
    caller = Caller(
        actor=Actor(name="token:laptop"), scopes=frozenset(), token=token, person=person
    )
    return replace(claim, admitted=replace(claim.admitted, caller=caller, payer=THEIRS))


async def test_a_person_is_found_by_name_until_she_ends(store: Store) -> None:
    made = await store.people.add(ALICE, NOW)
    assert store.people.find("alice") == made == store.people.numbered(made.n)
    assert made == Person(
        n=made.n,
        name="alice",
        display="Alice",
        number=7,
        roles=("operator",),
        permissions=frozenset({"admin:runs"}),
        account="alice",
        addresses=ALICE.addresses,
        created=NOW,
    )
    ended = await store.people.end("alice", NOW + 1)
    assert ended is not None
    assert store.people.find("alice") is None
    assert store.people.numbered(made.n) == ended.person
    assert (ended.person.state, ended.person.ended) == ("ended", NOW + 1)
    assert await store.people.list() == [ended.person]
    assert await store.people.end("alice", NOW + 2) is None
    assert await store.people.end("nobody", NOW) is None


@pytest.mark.parametrize(
    "other",
    [
        NewPerson(name="alice"),
        NewPerson(name="bob", number=7),
        NewPerson(name="bob", addresses=ALICE.addresses),
    ],
)
async def test_a_name_a_number_and_an_address_are_one_persons(
    store: Store, other: NewPerson
) -> None:
    await store.people.add(ALICE, NOW)
    with pytest.raises(PersonExists):
        await store.people.add(other, NOW)
    assert [person.name for person in await store.people.list()] == ["alice"]
    await store.people.end("alice", NOW)
    assert (await store.people.add(other, NOW + 1)).name == other.name


async def test_another_process_sees_who_was_added_and_who_has_ended(
    store: Store, place: Place
) -> None:
    other = await place.open(exclusive=False)
    await store.people.add(ALICE, NOW)
    assert await other.look()
    assert other.people.find("alice") == store.people.find("alice")
    await store.people.end("alice", NOW)
    assert await other.look()
    assert other.people.find("alice") is None
    await other.close()


async def test_a_token_of_a_person_may_do_what_both_allow(store: Store) -> None:
    alice = await store.people.add(ALICE, NOW)
    eve = await store.people.add(NewPerson(name="eve", roles=("viewer",)), NOW)
    wide = frozenset({"*"})
    await a_token(store, "a", person=alice.n, scopes=frozenset({"call:echo", "admin:people"}))
    await a_token(store, "b", person=alice.n, scopes=wide)
    await a_token(store, "c", person=eve.n)
    assert scopes_of(store, "a") == {"call:echo"}
    assert scopes_of(store, "b") == alice.rights
    assert scopes_of(store, "c") == {"run:read"}


async def test_a_token_is_of_a_person_or_a_service_or_a_peer(store: Store, place: Place) -> None:
    alice = await store.people.add(ALICE, NOW)
    await a_token(store, "laptop", person=alice.n, payer="alice")
    await a_token(store, "ci#2")
    await a_token(store, "theirs", peer="b.example")
    rows = place.rows("SELECT name, person, service, payer FROM token ORDER BY n")
    assert rows == [
        ("laptop", alice.n, None, "alice"),
        ("ci#2", None, "ci", None),
        ("theirs", None, None, None),
    ]
    found = next(token for token in store.tokens.known() if token.name == "laptop")
    assert (found.person, found.holder, found.payer) == (alice.n, "alice", "alice")


async def test_a_token_of_somebody_whose_record_is_gone_is_dead(store: Store, place: Place) -> None:
    alice = await store.people.add(ALICE, NOW)
    await a_token(store, "laptop", person=alice.n)
    place.rows("DELETE FROM person")
    await store.tokens.refresh()
    (token,) = store.tokens.known()
    assert not token.is_live(NOW)


async def test_nobody_who_has_ended_is_given_a_token(store: Store) -> None:
    alice = await store.people.add(ALICE, NOW)
    await store.people.end("alice", NOW)
    with pytest.raises(UsageInvalid):
        await a_token(store, "laptop", person=alice.n)


async def test_a_service_is_adopted_with_the_account_it_has(store: Store) -> None:
    alice = await store.people.add(ALICE, NOW)
    bob = await store.people.add(NewPerson(name="bob"), NOW)
    await a_token(store, "ci")
    await a_token(store, "theirs", peer="b.example")
    await a_token(store, "old", expires=NOW + 1)
    assert await store.people.link_token(alice, "ci", NOW)
    await store.tokens.refresh()
    found = next(token for token in store.tokens.known() if token.name == "ci")
    assert (found.holder, found.account, found.payer) == ("alice", "ci", None)
    for name in ("ci", "theirs", "unknown"):  # hers, a peer's, nobody's
        assert not await store.people.link_token(bob, name, NOW)
    assert not await store.people.link_token(bob, "old", NOW + 1)
    await store.people.end("bob", NOW)
    await a_token(store, "ci2")
    assert not await store.people.link_token(bob, "ci2", NOW)


async def test_with_a_service_that_is_adopted_its_conversations_become_hers(
    store: Store, place: Place
) -> None:
    """R25: else nobody could read them any more, and nobody delete them."""
    alice = await store.people.add(ALICE, NOW)
    await a_token(store, "ci")
    await a_token(store, "ci2")
    owner, words = owner_of(alice.n, ""), ConversationFilter(words=("hello",))
    begun = await kept(store, "a", owner="token:ci")
    await kept(store, "b", owner="token:ci2")
    turns = [
        claimed(
            await store.turns.claim(a_claim("conv_run_a", turn="turn_a", actor=actor, payer=payer))
        )
        for actor, payer in (("token:ci", scenes.ALICE), ("token:ci2", scenes.BOB))
    ]
    assert await store.people.link_token(alice, "ci", NOW)
    assert await store.conversations.find("token:ci", "cnv_a") is None
    found = await store.conversations.find(owner, "cnv_a")
    assert found is not None
    (listed,) = (await store.conversations.list(owner, words, limit=9, before=None)).found
    assert listed.id == "cnv_a"
    turn = await store.conversations.turn_of(owner, begun.answer)
    assert turn is not None
    assert turn.n == turns[0].n
    assert await store.conversations.deletion.delete(found, NOW)
    assert place.rows("SELECT n FROM turn WHERE wiped IS NOT NULL") == [(turns[0].n,)]
    assert await store.conversations.find("token:ci2", "cnv_b") is not None


async def test_an_address_is_added_verified_and_never_taken_from_somebody(store: Store) -> None:
    alice = await store.people.add(ALICE, NOW)
    bob = await store.people.add(NewPerson(name="bob"), NOW)
    (first,) = ALICE.addresses
    checked = PersonAddress(address=first.address, how="verified", verified=NOW)
    assert not await store.people.link_address(bob, checked, NOW)
    assert await store.people.link_address(alice, checked, NOW)
    known = store.people.find("alice")
    assert known is not None
    assert known.addresses == (checked,)
    for i in range(15):
        more = PersonAddress(address=f"mailto:a{i}@acme.example")
        assert await store.people.link_address(alice, more, NOW)
    assert not await store.people.link_address(
        alice, PersonAddress(address="mailto:b@acme.example"), NOW
    )


FILLED = """
INSERT INTO session (hash, key_id, person, token, created, until, last, device)
    VALUES ({h}, 'k', {n}, 1, 1, 2, 2, '');
INSERT INTO delegation (jti, person, audience, scopes, until) VALUES ('d{n}', {n}, 'a', '', 9);
INSERT INTO delegation (jti, parent, audience, scopes, until)
    SELECT 'below-' || jti, n, 'b', '', 9 FROM delegation WHERE jti = 'd{n}';
INSERT INTO delegation (jti, parent, audience, scopes, until)
    SELECT 'deep-' || jti, n, 'b', '', 9 FROM delegation WHERE jti = 'below-d{n}';
INSERT INTO rule (person, kind, created) VALUES ({n}, 'payment', 1);
INSERT INTO schedule (name, person, token, agent, cron, zone, missed, content, created)
    VALUES ('s{n}', {n}, 1, 'a', '* * * * *', 'UTC', 'skip', '', 1);
INSERT INTO hook (name, person, token, agent, scheme, sealed, key_id, template, created)
    VALUES ('h{n}', {n}, 1, 'a', 'x', {h}, 'k', '', 1);
INSERT INTO pinned_key (sender, kid, public, added, person)
    VALUES ('agent://client-{n}', '', {h}, 1, {n})
"""


def fill(place: Place, person: int) -> None:
    """What may belong to a person, of everything."""
    hashed = f"'\\x0{person}'" if place.postgres else f"x'0{person}'"
    for statement in FILLED.split(";"):
        place.rows(statement.format(n=person, h=hashed))


async def test_with_a_person_ends_all_that_is_hers_and_it_is_told(
    store: Store, place: Place
) -> None:
    alice = await store.people.add(ALICE, NOW)
    bob = await store.people.add(NewPerson(name="bob"), NOW)
    number = await a_token(store, "laptop", person=alice.n)
    other = await a_token(store, "desk", person=bob.n)
    for person in (alice.n, bob.n):
        fill(place, person)
    await store.turns.claim(hers(a_task("r1"), alice.n, number))
    await store.turns.claim(hers(a_task("r2"), bob.n, other))
    ended = await store.people.end("alice", NOW + 5)
    assert ended is not None
    d = f"d{alice.n}"
    assert list(ended.things) == [
        EndedThing("address", "mailto:alice@acme.example"),
        EndedThing("token", "laptop"),
        EndedThing("session", "session 1"),
        EndedThing("delegation", d),
        EndedThing("delegation", f"below-{d}"),
        EndedThing("delegation", f"deep-below-{d}"),
        EndedThing("key", f"agent://client-{alice.n}"),
        EndedThing("rule", "payment"),
        EndedThing("schedule", f"s{alice.n}"),
        EndedThing("hook", f"h{alice.n}"),
        EndedThing("turn", "r1 r1.t0.echo", "queued"),
    ]
    for table, column in (
        *(("token", "revoked"), ("session", "ended"), ("rule", "ended"), ("schedule", "paused")),
        *(("hook", "paused"), ("pinned_key", "revoked"), ("person", "ended")),
    ):
        whose = "n" if table == "person" else "person"
        rows = place.rows(f"SELECT {whose}, {column} FROM {table} ORDER BY {whose}")  # noqa: S608
        assert rows == [(alice.n, NOW + 5), (bob.n, None)], table
    left = place.rows("SELECT jti FROM delegation WHERE ended IS NULL ORDER BY n")
    assert left == [(f"{word}d{bob.n}",) for word in ("", "below-", "deep-below-")]


async def test_what_waits_for_a_person_who_ended_is_cancelled_and_nothing_else(
    store: Store, place: Place
) -> None:
    alice = await store.people.add(ALICE, NOW)
    bob = await store.people.add(NewPerson(name="bob"), NOW)
    for person in (alice.n, bob.n):  # without a token: she alone let it in
        await store.turns.claim(hers(a_task(f"r{person}"), person))
        turn = claimed(await store.turns.claim(hers(a_claim(f"w{person}"), person)))
        await store.turns.finish(a_wait(turn, payer=THEIRS))
    await store.people.end("alice", NOW)
    store.revocations.listen(lambda: None)
    store.revocations.read()
    await store.revocations.keep()
    assert place.rows(ASKED) == [(f"task-r{alice.n}", True), (f"task-r{bob.n}", False)]
    states = {run: (state, code) for run, state, code in place.rows(STATES)}
    assert states[f"w{alice.n}"] == ("failed", "cancelled")
    assert states[f"w{bob.n}"] == ("waiting", None)


async def test_a_call_has_ended_with_its_person(store: Store) -> None:
    alice = await store.people.add(ALICE, NOW)
    call = hers(a_claim("r1"), alice.n).admitted
    assert not store.revocations.has_ended(call)
    await store.people.end("alice", NOW)
    store.revocations.read()
    assert store.revocations.has_ended(call)


PLAIN = "call:* call:remote pay run:cancel run:read"
ALL = "admin:reload admin:runs call:* call:remote metrics pay run:cancel run:read"
BEFORE = (  # what a token could do, what it can do then, and what was taken back
    ("everything", "*", ALL, None),
    ("runs", "admin:* pay run:*", "admin:reload admin:runs pay run:cancel run:read", None),
    ("early", "admin:people approve call:x tool:* tool:rm", "call:x", "admin:people approve"),
    ("odd", 'call:"a\\b', 'call:"a\\b', None),
    ("none", "tool:*", "", "tool:*"),
    ("plain", PLAIN, PLAIN, None),
)


async def test_what_stood_for_all_is_written_out_and_what_meant_nothing_is_taken_back(
    store: Store, place: Place, driver: str
) -> None:
    for name, scopes, _, _ in BEFORE:
        await a_token(store, name, scopes=frozenset(scopes.split()))
    (mine,) = [each for each in migrations(driver) if each.name == "people"]
    for statement in mine.statements:
        if "SET scopes" in statement or "SET taken_back" in statement:
            place.rows(statement)
    found = {name: row for name, *row in place.rows("SELECT name, scopes, taken_back FROM token")}
    for name, _, after, taken in BEFORE:
        scopes, back = found[name]
        assert " ".join(sorted(scopes.split())) == after
        assert (back or "").startswith(taken or ""), name
        assert (back is None) == (taken is None), name
    await store.tokens.refresh()
    early = next(token for token in store.tokens.known() if token.name == "early")
    assert early.taken_back == ("admin:people", "approve", "tool:*", "tool:rm")
