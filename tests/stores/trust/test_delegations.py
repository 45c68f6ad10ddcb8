"""Delegations that were granted: whose they are, and that all below one end with it (R59)."""

import asyncio

import asyncpg
from msgspec.structs import replace

from carnet.core.people.delegation import Delegation
from carnet.core.people.identity import Actor, Caller
from carnet.core.people.proof import Spending
from carnet.ports.trust.people import NewPerson
from carnet.stores.open import Store
from carnet.testing.wait import until_so
from tests.stores.support.scenes import NOW, Place, a_claim, a_task

ACME = "agent://acme.example"
END = NOW // 1_000_000 + 900
ASKED = "SELECT k.id, k.cancelled IS NOT NULL FROM task k ORDER BY k.turn"


def a_delegation(id: str, parent: Delegation | None = None) -> Delegation:
    return Delegation(
        issuer=ACME,
        subject="agent://bob.example",
        scope=("chat", "other"),
        hops=1,
        issued=0,
        expires=END,
        audience=ACME,
        token_id=id,
        budget=Spending(money=5, currency="credits"),
        parent=parent,
    )


async def test_with_a_delegation_ends_every_one_below_it_and_no_other(store: Store) -> None:
    first = a_delegation("d1")
    second = a_delegation("d2", first)
    third, other = a_delegation("d3", second), a_delegation("o1")
    foreign = a_delegation("of-somebody-else", second)  # which was derived elsewhere
    for each in (first, second, third, other):
        assert await store.delegations.record(each)
    assert store.delegations.ended_link(third) is None
    assert await store.delegations.end("d2", NOW) == ["d2", "d3"]
    assert store.delegations.ended_link(first) is None
    assert store.delegations.ended_link(third) == 2
    assert store.delegations.ended_link(foreign) == 2
    assert store.delegations.ended_link(other) is None
    assert await store.delegations.end("d2", NOW) == []
    assert await store.delegations.end("unknown", NOW) == []
    listed = await store.delegations.list(NOW, limit=9)
    assert [(one.id, one.parent, one.ended) for one in listed] == [
        *(("o1", None, None), ("d3", "d2", NOW), ("d2", "d1", NOW), ("d1", None, None)),
    ]


async def test_a_delegation_is_a_persons_and_ends_with_her(store: Store) -> None:
    alice = await store.people.add(NewPerson(name="alice"), NOW)
    hers = a_delegation("d1")
    assert await store.delegations.record(hers, alice.n)
    (listed,) = await store.delegations.list(NOW, limit=9)
    assert (listed.person, listed.scope, listed.until) == (
        *("alice", ("chat", "other"), END * 1_000_000),
    )
    await store.people.end("alice", NOW)
    await store.reread()
    assert store.delegations.ended_link(hers) == 1
    assert not await store.delegations.record(a_delegation("d2"), alice.n)


async def test_a_delegation_that_postgres_records_while_its_person_ends_is_not_left(
    store: Store, place: Place
) -> None:
    """R59: the end that has begun is waited for; it would not find what is written after it."""
    alice = await store.people.add(NewPerson(name="alice"), NOW)
    ending = await asyncpg.connect(place.postgres)
    try:
        async with ending.transaction():
            await ending.execute("UPDATE person SET ended = $1 WHERE n = $2", NOW, alice.n)
            recording = asyncio.ensure_future(store.delegations.record(a_delegation("d1"), alice.n))
            blocked = (
                "SELECT COUNT(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            await until_so(lambda: place.rows(blocked), lambda found: found == [(1,)])
        assert not await recording
    finally:
        await ending.close()
    assert place.rows("SELECT COUNT(*) FROM delegation") == [(0,)]


async def test_what_has_ended_is_seen_by_others_and_forgotten_when_it_would_have_expired(
    store: Store, place: Place
) -> None:
    other = await place.open(exclusive=False)
    one = a_delegation("d1")
    await store.delegations.record(one)
    await store.delegations.end("d1", NOW)
    assert await other.look()
    assert other.delegations.ended_link(one) == 1
    assert other.delegations.ended() == {"d1": END * 1_000_000}
    place.clock.advance(961)
    await other.refresh()
    assert other.delegations.ended() == {}
    await other.close()


async def test_a_call_and_a_task_end_with_a_link_of_their_delegation(
    store: Store, place: Place
) -> None:
    first = a_delegation("d1")
    below = a_delegation("of-somebody-else", first)
    await store.delegations.record(first)
    caller = Caller(actor=Actor(name="sender:agent://bob.example"), scopes=frozenset())
    claims = [a_task("r1"), a_task("r2"), a_claim("r3")]
    admitted = [replace(claim.admitted, caller=caller) for claim in claims]
    under = replace(admitted[0], delegation=below)
    await store.turns.claim(replace(claims[0], admitted=under))
    await store.turns.claim(replace(claims[1], admitted=admitted[1]))
    assert not store.revocations.has_ended(under)
    await store.delegations.end("d1", NOW)
    store.revocations.listen(lambda: None)
    store.revocations.read()
    await store.revocations.keep()
    assert store.revocations.has_ended(under)
    assert not store.revocations.has_ended(admitted[2])
    assert dict(place.rows(ASKED))["task-r1"]


async def test_what_has_expired_is_forgotten_by_a_prune(store: Store, place: Place) -> None:
    old, young = a_delegation("d1"), replace(a_delegation("d2"), expires=END + 10 * 86_400)
    for each in (old, young):
        await store.delegations.record(each)
    place.clock.advance(3 * 86_400)
    await store.prune(turn_days=2, event_days=1)
    assert place.rows("SELECT jti FROM delegation") == [("d2",)]
