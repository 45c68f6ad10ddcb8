"""A person as she is typed: what is wrong is told as a mistake of the command."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from carnet.core.people.identity import allows
from carnet.core.people.person import Person, PersonAddress, check_person_address
from carnet.errors import AddressInvalid, InvalidRequest, PersonExists, UsageInvalid
from carnet.gateway.people.forms import read_new_person, read_new_roles
from carnet.ports.trust.people import NewPerson, NewRoles
from carnet.ports.trust.trust import NewToken

_OPTIONS = {"roles": "--role", "permissions": "--permission", "addresses": "--address"}


def new_person(
    asked: Mapping[str, Any], *, domain: str, people: Collection[str], agents: Iterable[str]
) -> NewPerson:
    """What `people add` was asked for."""
    try:
        return read_new_person(asked, domain=domain, people=people, agents=agents)
    except PersonExists:
        raise UsageInvalid(
            reason=f"NAME: '{asked['name']}' is known here.",
            fix="Choose another one. 'carnet people roles' changes what she may do.",
        ) from None
    except InvalidRequest as error:
        raise _usage(error, "add") from None


def new_roles(asked: Mapping[str, Any]) -> NewRoles:
    """What `people roles` was asked for."""
    try:
        return read_new_roles(asked)
    except InvalidRequest as error:
        raise _usage(error, "roles") from None


def _usage(error: InvalidRequest, command: str) -> UsageInvalid:
    field, reason = str(error.facts["field"]), error.facts["reason"]
    option = "NAME" if field == "name" else _OPTIONS.get(field, f"--{field}")
    return UsageInvalid(
        reason=f"{option}: {reason}.", fix=f"'carnet people {command} --help' shows what it takes."
    )


def check_link(options: Mapping[str, Any]) -> None:
    """Refuse anything but one thing to link."""
    if sum(bool(options[name]) for name in ("token", "key", "address")) != 1:
        raise UsageInvalid(
            reason="One thing is linked at a time.",
            fix="Give --token T, --key agent://HOST or --address A.",
        )


def address_of(options: Mapping[str, Any], *, domain: str, now: int) -> PersonAddress:
    """The address that was typed."""
    try:
        address = check_person_address(options["address"], domain=domain)
    except AddressInvalid as error:
        raise UsageInvalid(
            reason=f"'{options['address']}': {error.facts['reason']}.",
            fix="Write it such as mailto:alice@acme.example.",
        ) from None
    if options["verified"]:
        return PersonAddress(address=address, how="verified", verified=now)
    return PersonAddress(address=address)


def of_person(new: NewToken, person: Person, asked: Iterable[str]) -> NewToken:
    """A token as a person's: it bills her account if she has one, and asks for no more than hers.

    `asked` are the scopes that were named; a plain token is narrowed without a word.
    """
    if new.peer is not None:
        raise UsageInvalid(
            reason="A token is a person's or a peer's.", fix="Give --person or --peer."
        )
    beyond = sorted(scope for scope in asked if not allows(person.rights, scope))
    if beyond:
        raise UsageInvalid(
            reason=f"{person.name} may not {beyond[0]}, so no token of hers may.",
            fix=f"She may: {', '.join(sorted(person.rights)) or 'nothing'}.",
        )
    return replace(new, person=person.n, payer=person.account)
