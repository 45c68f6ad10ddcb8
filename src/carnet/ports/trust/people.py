"""The people that a gateway knows, and what ends with one of them (R25)."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from carnet.core.people.person import Person, PersonAddress


class NewPerson(Struct, frozen=True, kw_only=True):
    """What `people add` asks for; every part of it was checked."""

    name: str
    display: str | None = None
    number: int | None = None
    roles: tuple[str, ...] = ()
    permissions: frozenset[str] = frozenset()
    account: str | None = None
    addresses: tuple[PersonAddress, ...] = ()


class NewRoles(Struct, frozen=True, kw_only=True):
    """What a person is to be allowed from now on."""

    roles: tuple[str, ...]
    permissions: frozenset[str] | None = None  # beside those; None: those that she has


class EndedThing(Struct, frozen=True):
    """One thing that ended with a person."""

    kind: (
        str  # token | session | delegation | key | rule | schedule | hook | memory | address | turn
    )
    name: str
    state: str = "ended"  # of a turn: what it was in, until it is cancelled


class EndedPerson(Struct, frozen=True):
    """A person that has ended, and all that ended with her."""

    person: Person
    things: tuple[EndedThing, ...]


class People(Protocol):
    """The people of one gateway."""

    def find(self, name: str) -> Person | None:
        """Who is called so and has not ended; from memory, at most a second old."""

    def numbered(self, n: int) -> Person | None:
        """A person by her number, ended or not; from memory too."""

    def owner(self, owner: str) -> Person | None:
        """The person who owns something; None where it is a machine's. From memory too."""

    async def add(self, new: NewPerson, now: int) -> Person:
        """Make one. Raises PersonExists for a name, a number or an address that is taken."""

    async def set_roles(self, person: Person, new: NewRoles) -> Person | None:
        """Say what a person may do from now on; her as she is then, None if she has ended."""

    async def link_token(self, person: Person, token: str, now: int) -> bool:
        """Give a live token that is a service's to a person; False if there is none such.

        It goes on to bill the account it has.
        """

    async def link_key(self, person: Person, sender: str) -> bool:
        """Say that the pinned keys of a sender are a person's; False if there are none such."""

    async def link_address(self, person: Person, address: PersonAddress, now: int) -> bool:
        """Add an address, or say of one of hers that it was verified; False if it is another's."""

    async def end(self, name: str, now: int) -> EndedPerson | None:
        """End a person and all that admits her, in one transaction; None if there is none.

        What runs for her is listed as it was: the gateways cancel it when they see that she ended.
        """

    async def belongings(self, person: Person) -> Sequence[EndedThing]:
        """What is hers and has not ended: what would end with her."""

    async def list(self) -> Sequence[Person]:
        """All of them, ended ones too, by name."""
