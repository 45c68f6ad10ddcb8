"""The people of one store: the port `carnet.ports.trust.people.People`.

Law 1. Who ends, ends with all that admits her in one transaction: tokens, sessions, delegations and
       those below them, keys, what would act for her later (rules, schedules, hooks), and her
       memory, of which nothing is left.
Law 2. What was ended is told as it is written, not as it was before.
Law 3. Looking one up touches no disk: all of them are in memory and at most a second old.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

import builtins
from typing import Final

from carnet.core.people.identity import owner_of, person_of
from carnet.core.people.person import MOST_ADDRESSES, Person, PersonAddress
from carnet.errors import PersonExists
from carnet.ports.trust.people import EndedPerson, EndedThing, NewPerson, NewRoles
from carnet.stores.database import Database, Row, Statement, marks

_LOAD: Final = (
    "SELECT n, name, display, number, roles, permissions, account, created, ended FROM person"
    " ORDER BY name, n"
)
_ADDRESSES: Final = "SELECT person, address, how, verified FROM address ORDER BY address"
_ADD: Final = (
    "INSERT INTO person (name, display, number, roles, permissions, account, state, created)"
    " SELECT ?, ?, ?, ?, ?, ?, 'live', ? WHERE NOT EXISTS"
    " (SELECT 1 FROM person WHERE ended IS NULL AND (name = ? OR number = ?))"
    " AND NOT EXISTS (SELECT 1 FROM address WHERE address IN ({})) ON CONFLICT DO NOTHING"
)
_ADD_ADDRESS: Final = (
    "INSERT INTO address (address, person, how, verified, added)"
    " SELECT ?, n, ?, ?, ? FROM person WHERE name = ? AND created = ? AND ended IS NULL"
    " ON CONFLICT DO NOTHING"
)
_LINK_ADDRESS: Final = (
    "INSERT INTO address (address, person, how, verified, added)"
    " SELECT ?, n, ?, ?, ? FROM person WHERE n = ? AND ended IS NULL"
    " AND (SELECT COUNT(*) FROM address a WHERE a.person = ? AND a.address <> ?) < ?"
    " ON CONFLICT (address) DO UPDATE SET how = excluded.how, verified = excluded.verified"
    " WHERE address.person = excluded.person"
)
_ADOPT: Final = (
    "UPDATE token SET person = ?, service = NULL WHERE name = ? AND revoked IS NULL"
    " AND (expires IS NULL OR expires > ?) AND peer IS NULL AND person IS NULL"
    " AND EXISTS (SELECT 1 FROM person p WHERE p.n = ? AND p.ended IS NULL)"
)
_ADOPT_KEY: Final = (
    "UPDATE pinned_key SET person = ? WHERE sender = ? AND revoked IS NULL AND person IS NULL"
    " AND EXISTS (SELECT 1 FROM person p WHERE p.n = ? AND p.ended IS NULL)"
)
# With it goes what its calls were asked, and the answers that it gave for the future.
_HERS: Final = "SELECT CAST(n AS TEXT) FROM token WHERE name = ? AND person = ?"
_ADOPT_QUESTIONS: Final = (
    "UPDATE interrupt SET owner = ? WHERE owner = ?"
    f" AND EXISTS (SELECT 1 FROM turn t WHERE t.n = interrupt.turn AND t.token IN ({_HERS}))"
)
_ADOPT_RULES: Final = f"UPDATE rule SET person = ?, owner = ? WHERE owner = ? AND EXISTS ({_HERS})"
# And what was said with it: the turns first, by which its answers are found.
_OF_SERVICE: Final = "SELECT n FROM conversation WHERE owner = ?"
_ADOPT_TURNS: Final = (
    "UPDATE turn SET person = ? WHERE person IS NULL AND actor = ? AND run IN (SELECT r.n"
    " FROM run r JOIN message m ON m.run = r.id AND r.named = 1"
    f" WHERE m.conversation IN ({_OF_SERVICE}))"
    f" AND EXISTS ({_HERS})"
)
_ADOPT_MESSAGES: Final = (
    f"UPDATE message SET owner = ? WHERE conversation IN ({_OF_SERVICE}) AND EXISTS ({_HERS})"
)
_ADOPT_ALL: Final = "UPDATE {} SET owner = ? WHERE owner = ?" + f" AND EXISTS ({_HERS})"

_SET_ROLES: Final = "UPDATE person SET roles = ?, permissions = ? WHERE n = ? AND ended IS NULL"
_END: Final = "UPDATE person SET state = 'ended', ended = ? WHERE n = ? AND ended IS NULL"
_TOKENS: Final = "SELECT n FROM token WHERE person = ?"
_BELOW: Final = (
    "WITH RECURSIVE below (n) AS (SELECT n FROM delegation"
    f" WHERE person = ? OR token IN ({_TOKENS})"
    " UNION SELECT d.n FROM delegation d JOIN below b ON d.parent = b.n) SELECT n FROM below"
)
# Nobody could read it any more, so nothing is left of it.
_END_MEMORY: Final = (
    "UPDATE memory_version SET data = NULL, size = 0, erased = ? WHERE erased IS NULL"
    " AND memory IN (SELECT n FROM memory WHERE person = ?)"
)
_MEMORY: Final = (
    "SELECT m.agent || '/' || m.path FROM memory m WHERE EXISTS (SELECT 1 FROM memory_version v"
    " WHERE v.memory = m.n AND v.erased {}) AND m.person = ? ORDER BY m.n"
)
# What ends: how, and how it is looked for. The first argument is when, the others are whose.
_ENDINGS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "token",
        "UPDATE token SET revoked = ? WHERE revoked IS NULL AND person = ?",
        "SELECT name FROM token WHERE revoked {} AND person = ? ORDER BY n",
    ),
    (
        "session",
        "UPDATE session SET ended = ? WHERE ended IS NULL AND person = ?",
        "SELECT 'session ' || n FROM session WHERE ended {} AND person = ? ORDER BY n",
    ),
    (
        "delegation",
        f"UPDATE delegation SET ended = ? WHERE ended IS NULL AND n IN ({_BELOW})",
        f"SELECT jti FROM delegation WHERE ended {{}} AND n IN ({_BELOW}) ORDER BY n",
    ),
    (
        "key",
        "UPDATE pinned_key SET revoked = ? WHERE revoked IS NULL AND person = ?",
        "SELECT sender FROM pinned_key WHERE revoked {} AND person = ? ORDER BY sender, kid",
    ),
    (
        "rule",
        "UPDATE rule SET ended = ? WHERE ended IS NULL AND person = ?",
        "SELECT kind FROM rule WHERE ended {} AND person = ? ORDER BY n",
    ),
    (
        "schedule",
        "UPDATE schedule SET paused = ? WHERE paused IS NULL AND person = ?",
        "SELECT name FROM schedule WHERE paused {} AND person = ? ORDER BY n",
    ),
    (
        "hook",
        "UPDATE hook SET paused = ? WHERE paused IS NULL AND person = ?",
        "SELECT name FROM hook WHERE paused {} AND person = ? ORDER BY n",
    ),
    ("memory", _END_MEMORY, _MEMORY),
)
_FORGET_ADDRESSES: Final = "DELETE FROM address WHERE person = ?"
_GOES_ON: Final = (
    "SELECT r.id, t.turn, t.state FROM turn t JOIN run r ON r.n = t.run WHERE t.state = '{}'"
    " AND (t.person = ? OR t.token IN (SELECT CAST(n AS TEXT) FROM token WHERE person = ?))"
    " ORDER BY t.n LIMIT ?"
)
MOST_LISTED: Final = 1000  # turns of each state that are told; all of them end


class StoredPeople:
    """Everybody that is known."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._by_name: dict[str, Person] = {}
        self._by_number: dict[int, Person] = {}

    def find(self, name: str) -> Person | None:
        """Who is called so and has not ended; from memory, at most a second old."""
        return self._by_name.get(name)

    def numbered(self, n: int) -> Person | None:
        """A person by her number, ended or not; from memory too."""
        return self._by_number.get(n)

    def owner(self, owner: str) -> Person | None:
        """The person who owns something; None where it is a machine's. From memory too."""
        n = person_of(owner)
        return None if n is None else self._by_number.get(n)

    def live(self) -> frozenset[int]:
        """The numbers of those who have not ended."""
        return frozenset(person.n for person in self._by_name.values())

    async def add(self, new: NewPerson, now: int) -> Person:
        """Make one. Raises PersonExists for a name, a number or an address that is taken."""
        addresses = new.addresses[:MOST_ADDRESSES]
        row = (
            *(new.name, new.display, new.number, " ".join(new.roles)),
            *(" ".join(sorted(new.permissions)), new.account, now, new.name, new.number),
            *([each.address for each in addresses] or [""]),
        )
        statements: list[Statement] = [(_ADD.format(marks(len(addresses) or 1)), row)]
        statements += [
            (_ADD_ADDRESS, (each.address, each.how, each.verified, now, new.name, now))
            for each in addresses
        ]
        made, *_ = await self._database.transact(statements)
        if not made:
            raise PersonExists
        await self.refresh()
        return self._by_name[new.name]

    async def set_roles(self, person: Person, new: NewRoles) -> Person | None:
        """Say what a person may do from now on; her as she is then, None if she has ended."""
        permissions = person.permissions if new.permissions is None else new.permissions
        row = (" ".join(new.roles), " ".join(sorted(permissions)), person.n)
        changed = await self._database.execute(_SET_ROLES, row)
        await self.refresh()
        return self._by_number[person.n] if changed else None

    async def link_token(self, person: Person, token: str, now: int) -> bool:
        """Give a live token that is a service's to a person, with what it was asked and answered.

        False if there is none such. Its conversations become hers.
        """
        hers, service = owners = (owner_of(person.n, ""), f"token:{token.partition('#')[0]}")
        whose = (token, person.n)
        linked, *_ = await self._database.transact(
            [
                (_ADOPT, (person.n, token, now, person.n)),
                (_ADOPT_QUESTIONS, (*owners, *whose)),
                (_ADOPT_RULES, (person.n, *owners, *whose)),
                (_ADOPT_TURNS, (person.n, service, service, *whose)),
                (_ADOPT_MESSAGES, (hers, service, *whose)),
                (_ADOPT_ALL.format("message_word"), (*owners, *whose)),
                (_ADOPT_ALL.format("conversation"), (*owners, *whose)),
            ]
        )
        return linked > 0

    async def link_key(self, person: Person, sender: str) -> bool:
        """Say that the pinned keys of a sender are a person's; False if there are none such."""
        return await self._database.execute(_ADOPT_KEY, (person.n, sender, person.n)) > 0

    async def link_address(self, person: Person, address: PersonAddress, now: int) -> bool:
        """Add an address, or say of one of hers that it was verified; False if it is another's."""
        row = (address.address, address.how, address.verified, now, person.n, person.n)
        args = (*row, address.address, MOST_ADDRESSES)
        linked = await self._database.execute(_LINK_ADDRESS, args)
        await self.refresh()
        return linked > 0

    async def end(self, name: str, now: int) -> EndedPerson | None:
        """End a person and all that admits her, in one transaction; None if there is none."""
        await self.refresh()
        person = self._by_name.get(name)
        if person is None:
            return None
        statements: list[Statement] = [(_END, (now, person.n))]
        statements += [(end, (now, *[person.n] * (end.count("?") - 1))) for _, end, _ in _ENDINGS]
        statements.append((_FORGET_ADDRESSES, (person.n,)))
        ended, *_ = await self._database.transact(statements)
        if not ended:
            return None
        things = [EndedThing("address", each.address) for each in person.addresses]
        things += await self._found(person, now)
        await self.refresh()
        return EndedPerson(self._by_number[person.n], (*things, *await self._running(person)))

    async def belongings(self, person: Person) -> builtins.list[EndedThing]:
        """What is hers and has not ended: what would end with her."""
        return [*await self._found(person, None), *await self._running(person)]

    async def _found(self, person: Person, ended: int | None) -> builtins.list[EndedThing]:
        """What of hers ended at that moment, or has not."""
        things: list[EndedThing] = []
        for kind, _, shown in _ENDINGS:
            query = shown.format("IS NULL" if ended is None else "= ?")
            args = (person.n,) * (query.count("?") - (ended is not None))
            rows = await self._database.fetch(query, args if ended is None else (ended, *args))
            state = "live" if ended is None else "ended"
            things += [EndedThing(kind, str(found), state) for (found,) in rows]
        return things

    async def _running(self, person: Person) -> builtins.list[EndedThing]:
        """The turns that go on for her, until the gateways end them."""
        found: list[EndedThing] = []
        for state in ("running", "queued", "waiting"):
            rows = await self._database.fetch(
                _GOES_ON.format(state), (person.n, person.n, MOST_LISTED)
            )
            found += [EndedThing("turn", f"{run} {turn}", of) for run, turn, of in rows]
        return found

    async def list(self) -> builtins.list[Person]:
        await self.refresh()
        return builtins.list(self._by_number.values())

    async def refresh(self) -> None:
        addresses: dict[int, list[PersonAddress]] = {}
        for person, address, how, verified in await self._database.fetch(_ADDRESSES):
            one = PersonAddress(address=address, how=how, verified=verified)
            addresses.setdefault(person, []).append(one)
        known = [_read(row, addresses.get(row[0], [])) for row in await self._database.fetch(_LOAD)]
        self._by_number = {person.n: person for person in known}
        self._by_name = {person.name: person for person in known if person.ended is None}


def _read(row: Row, addresses: builtins.list[PersonAddress]) -> Person:
    n, name, display, number, roles, permissions, account, created, ended = row
    return Person(
        n=n,
        name=name,
        display=display,
        number=number,
        roles=tuple(roles.split()),
        permissions=frozenset(permissions.split()),
        account=account,
        addresses=tuple(addresses),
        created=created,
        ended=ended,
    )
