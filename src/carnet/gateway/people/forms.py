"""A person on the way between a page and the store: what is asked for, and what is shown.

Law. Whatever is wrong with a person is refused here, for the command line and for HTTP alike, by
     the field that it is in.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

from carnet.core.people.address import check_local
from carnet.core.people.identity import OPERATOR_NAME, Token
from carnet.core.people.permissions import OPERATOR_ROLE, ROLES, is_permission, written_out
from carnet.core.people.person import (
    MOST_ADDRESSES,
    Person,
    PersonAddress,
    check_display,
    check_person_address,
    check_person_name,
    check_unlike,
)
from carnet.core.people.session import PersonSession
from carnet.errors import AddressInvalid, InvalidRequest, PersonExists
from carnet.ports.trust.people import EndedPerson, EndedThing, NewPerson, NewRoles
from carnet.wire.grammar.times import when

T = TypeVar("T")
Page = dict[str, Any]

MOST_NUMBER: Final = 2**53 - 1
MOST_PERMISSIONS: Final = 64  # of one person, beside her roles

_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}

# What `POST /people` and `POST /people/{person}/roles` take, as /openapi.json shows it.
SCHEMAS: Final[dict[str, Any]] = {
    "NewPerson": {
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {
            "name": _TEXT,
            "display": _TEXT,
            "number": {"type": "integer", "minimum": 1, "maximum": MOST_NUMBER},
            "roles": {**_TEXTS, "items": {"enum": list(ROLES)}},
            "permissions": {**_TEXTS, "maxItems": MOST_PERMISSIONS},
            "addresses": {**_TEXTS, "maxItems": MOST_ADDRESSES},
            "account": _TEXT,
        },
    },
    "NewRoles": {
        "type": "object",
        "required": ["roles"],
        "additionalProperties": False,
        "properties": {
            "roles": {**_TEXTS, "items": {"enum": list(ROLES)}, "minItems": 1},
            "permissions": {**_TEXTS, "maxItems": MOST_PERMISSIONS},
        },
    },
}
FIELDS: Final = tuple(SCHEMAS["NewPerson"]["properties"])


def read_new_person(
    asked: Mapping[str, Any], *, domain: str, people: Collection[str], agents: Iterable[str]
) -> NewPerson:
    """The person that is asked for; `people` and `agents` are the names that are known."""
    _refuse_unknown(asked, FIELDS)
    name = _checked("name", check_person_name, asked.get("name") or "")
    if name in people:
        raise PersonExists
    _checked("name", lambda text: check_unlike(text, [*people, *agents]), name)
    display, account = asked.get("display"), asked.get("account")
    addresses = _texts("addresses", asked.get("addresses"), MOST_ADDRESSES)
    return NewPerson(
        name=name,
        display=None if display is None else _checked("display", check_display, display),
        number=_number(asked.get("number")),
        roles=_roles(_texts("roles", asked.get("roles"), len(ROLES)) or [OPERATOR_ROLE]),
        permissions=_permissions(_texts("permissions", asked.get("permissions"), MOST_PERMISSIONS)),
        account=None if account is None else _checked("account", check_account, account),
        addresses=tuple(
            PersonAddress(
                address=_checked(
                    "addresses", lambda text: check_person_address(text, domain=domain), each
                )
            )
            for each in dict.fromkeys(addresses)
        ),
    )


def read_new_roles(asked: Mapping[str, Any]) -> NewRoles:
    """What a person is to be allowed; permissions that are not named stay as they are."""
    _refuse_unknown(asked, ("roles", "permissions"))
    roles, permissions = asked.get("roles"), asked.get("permissions")
    names = _texts("roles", roles, len(ROLES))
    if not names:
        raise InvalidRequest("roles", f"must be of {', '.join(ROLES)}")
    granted = _texts("permissions", permissions, MOST_PERMISSIONS)
    return NewRoles(
        roles=_roles(names), permissions=None if permissions is None else _permissions(granted)
    )


def _refuse_unknown(asked: Mapping[str, Any], fields: Collection[str]) -> None:
    unknown = sorted(set(asked) - set(fields))
    if unknown:
        raise InvalidRequest(unknown[0][:64], "is not a field of a person")


def _checked(field: str, check: Callable[[str], str], text: object) -> str:
    if not isinstance(text, str):
        raise InvalidRequest(field, "must be a text")
    try:
        return check(text)
    except AddressInvalid as error:
        raise InvalidRequest(field, str(error.facts["reason"])) from None


def check_account(account: str) -> str:
    """Return an account of this organisation that a person may pay from, else refuse it."""
    if account == OPERATOR_NAME:
        raise AddressInvalid("it is the account of the commands")
    return check_local(account)


def _texts(field: str, given: object, most: int) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, list | tuple) or len(given) > most:
        raise InvalidRequest(field, f"must be a list of {most} at the most")
    for each in given:
        if not isinstance(each, str):
            raise InvalidRequest(field, "must be a list of texts")
    return [str(each) for each in given]


def _number(given: object) -> int | None:
    if given is None:
        return None
    if type(given) is not int or not 0 < given <= MOST_NUMBER:
        raise InvalidRequest("number", "must be a whole number above 0")
    return given


def _roles(names: Collection[str]) -> tuple[str, ...]:
    for name in names:
        if name not in ROLES:
            raise InvalidRequest("roles", f"must be of {', '.join(ROLES)}")
    return tuple(role for role in ROLES if role in names)


def _permissions(names: Iterable[str]) -> frozenset[str]:
    granted = frozenset(names)
    for name in granted:
        if not is_permission(name):  # R28
            raise InvalidRequest("permissions", "holds a name that nothing here asks for")
    return written_out(granted)


def person_page(person: Person, tokens: Iterable[Token], *, domain: str, now: int) -> Page:
    """A person as she is listed."""
    hers = [token for token in tokens if token.person == person.n and token.is_live(now)]
    return {
        "name": person.name,
        "handle": person.handle(domain),
        "display": person.display,
        "number": person.number,
        "roles": list(person.roles),
        "permissions": sorted(person.permissions),
        "may": sorted(person.rights),
        "account": person.account,
        "addresses": [
            {"address": each.address, "how": each.how, "verified": when(each.verified)}
            for each in person.addresses
        ],
        "tokens": [token.name for token in hers],
        "state": person.state,
        "created": when(person.created),
        "ended": when(person.ended),
    }


def ended_page(ended: EndedPerson, *, domain: str) -> Page:
    """What ended with a person."""
    return {
        "name": ended.person.name,
        "handle": ended.person.handle(domain),
        "ended": when(ended.person.ended),
        "things": [thing_page(thing) for thing in ended.things],
    }


def thing_page(thing: EndedThing) -> Page:
    """One thing that is, or was, a person's."""
    return {"kind": thing.kind, "name": thing.name, "state": thing.state}


def session_page(session: PersonSession, token: str | None, current: int | None) -> Page:
    """A session as it is listed; `current` is the number of the one that asks."""
    return {
        "id": session.n,
        "token": token,
        "device": session.device,
        "begun": when(session.begun),
        "used": when(session.used),
        "until": when(session.until),
        "last": when(session.last),
        "current": session.n == current,
    }
