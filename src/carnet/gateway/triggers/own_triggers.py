"""What a person does with her hooks and schedules, by whichever way: HTTP, or an agent of hers.

What schedules do in another way than hooks is in `schedules` and `hooks`.

Law 1. Everything is looked up as hers. What is another's does not exist for her.
Law 2. Nobody has something begun that it could not ask for itself: an agent that it may not call
       is refused when a trigger is made, let go on, begun by hand or given another secret, and
       judged again each time.
Law 3. A trigger runs with the token that made it, or that let it go on or gave it a secret last;
       what is begun by hand with the token that says so. One token of hers lends its rights to no
       other. When its token has ended a trigger rests, and is shown as paused with the reason,
       until she lets it go on with another one.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.people.identity import Caller
from carnet.errors import PersonRequired, TriggerNotFound, TriggerPaused
from carnet.gateway.triggers.forms import FindZone, Page, recent_page
from carnet.guards.target.target import permit
from carnet.ports.calls.agent import Router
from carnet.ports.calls.triggers import (
    EndReason,
    Firings,
    Hook,
    Hooks,
    NewFiring,
    Owned,
    Schedule,
    Schedules,
    TokenEnds,
    TriggerKind,
)
from carnet.ports.trust.people import People
from carnet.ports.world.clock import Clock, Ids

SHOWN_FIRINGS: Final = 10

_Kept = TypeVar("_Kept", bound=Schedule | Hook)


class TriggerBounds(Struct, frozen=True, kw_only=True):
    """How much one person may have."""

    schedules: int
    hooks: int
    firings: int  # that are still to begin


class LetRest(Protocol):
    """Lets a trigger rest whose token has ended, and tells its owner."""

    async def __call__(self, kind: TriggerKind, trigger: Hook, reason: EndReason, /) -> None:
        """Once, however often it is asked to."""


class TriggerParts(Struct, frozen=True, kw_only=True, eq=False):
    """What triggers are kept in, and judged with."""

    schedules: Schedules
    hooks: Hooks
    firings: Firings
    people: People
    router: Router
    find_zone: FindZone
    clock: Clock
    ids: Ids
    bounds: TriggerBounds
    public_url: str
    wake: Callable[[], None]  # when something is to begin
    ends: TokenEnds
    rest: LetRest

    def agent(self, caller: Caller, name: str) -> str:
        """The stored name of an agent that the caller may have asked."""
        target = self.router.find(name)
        permit(caller, target)
        return target.name

    def firing(self, content: str) -> NewFiring:
        """What is to be begun now."""
        return NewFiring(key=self.ids.uuid(), content=content, tick=self.clock.wall_us())


class TriggerNoun(Protocol[_Kept]):
    """What schedules, or hooks, do in their own way."""

    kind: TriggerKind
    plural: str

    @property
    def owned(self) -> Owned[_Kept]:
        """Those of everybody."""

    async def add(self, caller: Caller, whose: tuple[int, int], asked: Mapping[str, Any]) -> Page:
        """Make one; `whose` are the numbers of a person and of her token."""

    def page(self, trigger: _Kept) -> Page:
        """One as it is listed."""

    def details(self, trigger: _Kept) -> Page:
        """What else is shown of one."""

    async def resume(self, trigger: _Kept, token: int) -> bool:
        """Let one go on with this token; False if there is none."""

    async def fire(self, trigger: _Kept, event: Mapping[str, Any]) -> None:
        """Have one begin now, as if this had happened."""


class OwnTriggers(Generic[_Kept]):
    """The schedules, or the hooks, of whoever asks."""

    def __init__(self, parts: TriggerParts, noun: TriggerNoun[_Kept]) -> None:
        """`noun` says which."""
        self._parts = parts
        self._noun = noun

    async def add(self, caller: Caller, asked: Mapping[str, Any]) -> Page:
        """Make one."""
        return await self._noun.add(caller, whose(caller), asked)

    async def list(self, caller: Caller) -> Page:
        """All of hers."""
        found = await self._noun.owned.list(whose(caller)[0])
        return {self._noun.plural: [self._noun.page(each) for each in found]}

    async def show(self, caller: Caller, name: str) -> Page:
        """One of hers, and what became of what it began."""
        found, noun = await self.find(caller, name), self._noun
        recent = await self._parts.firings.recent(noun.kind, found.person, name, SHOWN_FIRINGS)
        return {**noun.page(found), **noun.details(found), "recent": recent_page(recent)}

    async def pause(self, caller: Caller, name: str) -> Page:
        """Let one rest."""
        owned, now = self._noun.owned, self._parts.clock.wall_us()
        need(await owned.pause(whose(caller)[0], name, now))
        return self._noun.page(await self.find(caller, name))

    async def resume(self, caller: Caller, name: str) -> Page:
        """Let one go on, from now, with the token of who says so."""
        found = await self.find(caller, name)
        if found.paused is not None or self._parts.ends.known(found.token) is not None:
            self._parts.agent(caller, found.agent)
            need(await self._noun.resume(found, whose(caller)[1]))
        return self._noun.page(await self.find(caller, name))

    async def fire(self, caller: Caller, name: str, event: Mapping[str, Any]) -> Page:
        """Have one begin now, beside what else makes it."""
        found = await self.find(caller, name)
        if await self._parts.ends(found.token) is not None:
            raise TriggerPaused
        self._parts.agent(caller, found.agent)
        await self._noun.fire(replace(found, token=whose(caller)[1]), event)
        self._parts.wake()
        return {"name": name, "state": "due"}

    async def delete(self, caller: Caller, name: str) -> Page:
        """Forget one."""
        need(await self._noun.owned.delete(whose(caller)[0], name))
        return {"name": name, "state": "deleted"}

    async def find(self, caller: Caller, name: str) -> _Kept:
        """One of hers."""
        found = await self._noun.owned.find(whose(caller)[0], name)
        if found is None:
            raise TriggerNotFound
        return found


def whose(caller: Caller) -> tuple[int, int]:
    """The numbers of the person who asks, and of her token."""
    if caller.person is None or caller.token is None:
        raise PersonRequired
    return caller.person, int(caller.token)


def need(is_there: bool) -> None:  # noqa: FBT001  the one thing it asks
    """Refuse what there is not."""
    if not is_there:
        raise TriggerNotFound
