"""Two people with a token each, and what they make."""

from typing import Any

from carnet.core.people.identity import Secret
from carnet.ports.calls.triggers import Hook, NewFiring, NewHook, NewSchedule, Schedule
from carnet.ports.trust.people import NewPerson
from carnet.ports.trust.trust import NewToken
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW, SECOND

MOST = 3


async def a_person(store: Store, name: str) -> tuple[int, int]:
    """The numbers of a person and of her token."""
    person = await store.people.add(NewPerson(name=name, roles=("operator",)), NOW)
    new = NewToken(name=name, scopes=frozenset({"call:*"}), person=person.n)
    token, _ = await store.tokens.create(new, NOW)
    return person.n, token.n


async def a_schedule(store: Store, who: tuple[int, int], name: str = "digest") -> Schedule:
    new = NewSchedule(
        name=name,
        person=who[0],
        token=who[1],
        agent="echo",
        content="Write it.",
        cron="* * * * *",
        zone="UTC",
        missed="all",
        next=NOW,
    )
    return await store.triggers.schedules.add(new, most=MOST, now=NOW)


async def a_hook(store: Store, who: tuple[int, int], name: str = "orders") -> Hook:
    new = NewHook(
        name=name, person=who[0], token=who[1], agent="echo", scheme="github", template="{{ body }}"
    )
    return await store.triggers.hooks.add(new, Secret("s" * 32), most=MOST, now=NOW)


def a_firing(key: str) -> NewFiring:
    return NewFiring(key=key, content="An order came.", tick=NOW)


async def receive(store: Store, hook: Hook, event: str, key: str, **more: Any) -> bool:
    now = more.pop("now", NOW)
    expires = more.pop("expires", now + 60 * SECOND)
    return await store.triggers.hooks.receive(
        hook, event, a_firing(key), expires=expires, most=more.pop("most", 10), now=now
    )
