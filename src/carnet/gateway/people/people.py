"""The endpoints about people (R25).

Law 1. Who may not know of people is refused before anybody is looked for: a name cannot be guessed.
Law 2. Nobody gives what it has not: whoever adds a person, or changes her roles, grants her no more
       than it may itself.
Law 3. When the end of a person is told, what let her in is closed here; other gateways see it
       within a second. What runs for her is cancelled then.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

from carnet.core.people.identity import Caller, Token
from carnet.core.people.permissions import rights_of
from carnet.core.people.person import Person
from carnet.errors import PermissionMissing, PersonNotFound
from carnet.gateway.people.forms import (
    Page,
    ended_page,
    person_page,
    read_new_person,
    read_new_roles,
    thing_page,
)
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.ports.trust.people import People
from carnet.ports.world.clock import Clock
from carnet.wire.grammar import json
from carnet.wire.grammar.query import read_flag, read_lines, read_query, read_word

MOST_BYTES: Final = 64 * 1024  # of what is asked for
MANAGES: Final = "admin:people"


class PeoplePages:
    """Everybody that is known, over HTTP."""

    def __init__(
        self,
        people: People,
        *,
        tokens: Callable[[], Collection[Token]],
        agents: Callable[[], Iterable[str]],
        domain: str,
        clock: Clock,
        reread: Callable[[], Awaitable[None]],
    ) -> None:
        """Of one gateway.

        Args:
            people: Who they are.
            tokens: All tokens, from memory.
            agents: The names of the agents here: no person is called like one.
            domain: Ours.
            clock: Tells when somebody is added, or ends.
            reread: Takes over what was written, so that it holds here at once.
        """
        self._people = people
        self._tokens = tokens
        self._agents = agents
        self._domain = domain
        self._clock = clock
        self._reread = reread

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /people: by name, those after `after`."""
        del caller  # the router has checked that it may
        query = read_query(exchange.query.decode("latin-1"))
        after, most = read_word(query, "after") or "", read_lines(query)
        with_ended = read_flag(query, "all")
        known = [
            person
            for person in await self._people.list()
            if person.name > after and (with_ended or person.ended is None)
        ]
        shown = known[:most]
        following = shown[-1].name if len(known) > most else None
        await reply_json(exchange, {"people": list(map(self._page, shown)), "next": following})

    async def show(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /people/{person}: who it is, and what is hers."""
        del caller
        person = self._people.find(name)
        if person is None:  # perhaps added a moment ago
            await self._people.list()
            person = self._people.find(name)
        if person is None:
            raise PersonNotFound
        things = [thing_page(thing) for thing in await self._people.belongings(person)]
        await reply_json(exchange, {**self._page(person), "things": things})

    async def add(self, exchange: Exchange, caller: Caller) -> None:
        """POST /people."""
        check_json_body(exchange.headers)
        asked = json.read_object(await exchange.read(MOST_BYTES))
        known = [one.name for one in await self._people.list() if one.ended is None]
        new = read_new_person(asked, domain=self._domain, people=known, agents=self._agents())
        check_granted(caller, rights_of(new.roles, new.permissions))
        person = await self._people.add(new, self._clock.wall_us())
        await reply_json(exchange, self._page(person), 201)

    async def set_roles(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /people/{person}/roles: what she may do from now on, and her tokens with her."""
        check_json_body(exchange.headers)
        new = read_new_roles(json.read_object(await exchange.read(MOST_BYTES)))
        await self._people.list()
        person = self._people.find(name)
        if person is None:
            raise PersonNotFound
        permissions = person.permissions if new.permissions is None else new.permissions
        check_granted(caller, rights_of(new.roles, permissions))
        changed = await self._people.set_roles(person, new)
        if changed is None:
            raise PersonNotFound
        await self._reread()
        await reply_json(exchange, self._page(changed))

    async def end(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /people/{person}/end: all of it, and what that was."""
        del caller
        ended = await self._people.end(name, self._clock.wall_us())
        if ended is None:
            raise PersonNotFound
        await self._reread()
        await reply_json(exchange, ended_page(ended, domain=self._domain))

    def _page(self, person: Person) -> Page:
        now = self._clock.wall_us()
        return person_page(person, self._tokens(), domain=self._domain, now=now)


def check_granted(caller: Caller, rights: Iterable[str]) -> None:
    """Refuse to give a person what who gives it has not."""
    for permission in sorted(rights):
        if not caller.may(permission):
            raise PermissionMissing(permission=permission)


ROUTES = (
    Row(
        method="GET",
        path="/people",
        endpoint=PeoplePages.list,
        permission=MANAGES,
        summary="List people",
        query=("limit", "after", "all"),
        answer="Page",
    ),
    Row(
        method="POST",
        path="/people",
        endpoint=PeoplePages.add,
        permission=MANAGES,
        summary="Add a person",
        body="NewPerson",
        answer="Page",
        status=201,
    ),
    Row(
        method="GET",
        path="/people/{person}",
        endpoint=PeoplePages.show,
        permission=MANAGES,
        summary="One person, and what is hers",
        answer="Page",
    ),
    Row(
        method="POST",
        path="/people/{person}/roles",
        endpoint=PeoplePages.set_roles,
        permission=MANAGES,
        summary="Change what a person may do",
        body="NewRoles",
        answer="Page",
    ),
    Row(
        method="POST",
        path="/people/{person}/end",
        endpoint=PeoplePages.end,
        permission=MANAGES,
        summary="End a person and all that is hers",
        answer="Page",
    ),
)
