"""Reading the members of A2A objects, as ProtoJSON spells them.

Law 1. A member is read by its name in camel case, or in snake case as ProtoJSON lets it be written;
       `null` is absent. Members that we do not know are left alone.
Law 2. A member has its type and its size or the request is refused; the refusal names the place and
       never the value.
"""

import re
from typing import Any, Final

from carnet.errors import InvalidRequest

MOST_ID: Final = 256  # characters of an id that somebody else chose
MOST_TEXT: Final = 1024  # of a name, a media type, a URI
MOST_URL: Final = 2048

_URL: Final = re.compile(r"[!-~]{1,2048}", re.ASCII)
_BIG: Final = re.compile(r"(?<=[a-z])[A-Z]", re.ASCII)
_SMALL: Final = re.compile(r"_([a-z])", re.ASCII)


def snake(name: str) -> str:
    """The other name of a member."""
    return _BIG.sub(lambda found: f"_{found[0].lower()}", name)


class _Snakes(dict[str, str]):
    """The other names, each made once: they are names of ours."""

    def __missing__(self, name: str) -> str:
        other = self[name] = snake(name)
        return other


_SNAKES: Final = _Snakes()


def member(value: dict[str, Any], name: str) -> Any:
    """A member, however it is spelled; None if it is not there."""
    if name in value:
        return value[name]
    other = _SNAKES[name]
    return value.get(other)


def in_camel(value: dict[str, Any]) -> dict[str, Any]:
    """An object with its members by their names in camel case too, for who reads many of them."""
    if "_" not in "".join(value):  # nearly every object
        return value
    named = {}
    for name, each in value.items():
        other = _SMALL.sub(lambda found: found[1].upper(), name)
        if snake(other) == name:
            named[other] = each
    return named | value


def read_object(value: object, place: str) -> dict[str, Any]:
    """An object that must be there."""
    if not isinstance(value, dict):
        raise InvalidRequest(place, "must be an object")
    return value


def read_optional(value: dict[str, Any], name: str, place: str) -> dict[str, Any]:
    """An object that may be there; empty if it is not."""
    found = member(value, name)
    return {} if found is None else read_object(found, join(place, name))


def join(place: str, name: str) -> str:
    """The place of a member."""
    return f"{place}.{name}" if place else name


def read_text(value: dict[str, Any], name: str, place: str, most: int = MOST_TEXT) -> str | None:
    """A text that may be there, of printable characters."""
    found = member(value, name)
    return None if found is None else text_of(found, name, place, most)


def text_of(found: object, name: str, place: str, most: int = MOST_TEXT) -> str | None:
    """A member that was found, as a text; None for an empty one, which is absent."""
    if found == "":
        return None
    if not isinstance(found, str) or len(found) > most or not found.isprintable():
        raise InvalidRequest(join(place, name), f"must be a text of at most {most} characters")
    return found


def read_id(value: dict[str, Any], name: str, place: str) -> str | None:
    """An id that may be there."""
    return read_text(value, name, place, MOST_ID)


def need_id(value: dict[str, Any], name: str, place: str) -> str:
    """An id that must be there."""
    found = read_id(value, name, place)
    if found is None:
        raise InvalidRequest(join(place, name), "is missing")
    return found


def read_url(value: dict[str, Any], name: str, place: str) -> str:
    """An address that must be there; whether it may be called is judged elsewhere."""
    found = member(value, name)
    if not isinstance(found, str) or not _URL.fullmatch(found):
        raise InvalidRequest(join(place, name), f"must be a URL of at most {MOST_URL} characters")
    return found


def read_flag(value: dict[str, Any], name: str, place: str) -> bool:
    """True or false; false if it is not there."""
    found = member(value, name)
    if found is None:
        return False
    if not isinstance(found, bool):
        raise InvalidRequest(join(place, name), "must be true or false")
    return found


def read_count(
    value: dict[str, Any], name: str, place: str, *, least: int = 0, most: int
) -> int | None:
    """A whole number that may be there."""
    found = member(value, name)
    if found is None:
        return None
    if type(found) is not int or not least <= found <= most:
        raise InvalidRequest(join(place, name), f"must be a whole number from {least} to {most}")
    return found


def read_list(value: dict[str, Any], name: str, place: str, most: int) -> list[Any]:
    """A list that may be there; empty if it is not."""
    found = member(value, name)
    return [] if found is None else list_of(found, name, place, most)


def list_of(found: object, name: str, place: str, most: int) -> list[Any]:
    """A member that was found, as a list."""
    if not isinstance(found, list) or len(found) > most:
        raise InvalidRequest(join(place, name), f"must be a list of at most {most}")
    return found


def read_texts(value: dict[str, Any], name: str, place: str, most: int) -> tuple[str, ...]:
    """A list of texts that may be there."""
    found = read_list(value, name, place, most)
    return texts_of(found, name, place, most) if found else ()


def texts_of(found: object, name: str, place: str, most: int) -> tuple[str, ...]:
    """A member that was found, as a list of texts."""
    found = list_of(found, name, place, most)
    if not all(isinstance(each, str) and len(each) <= MOST_TEXT for each in found):
        raise InvalidRequest(join(place, name), "must be a list of texts")
    return tuple(found)
