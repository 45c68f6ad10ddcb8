"""How one configured value is read: what it must be, in words, and the typed value it becomes.

A reader knows nothing of keys, files or sections; whoever asks it adds those to the complaint.

Law 1. A reader gives a value of its type or raises `Wrong`; it never guesses and never coerces.
Law 2. A complaint about a secret never repeats what was written.
"""

import ipaddress
import re
import tomllib
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from carnet.core.egress_rule import read_entry
from carnet.core.money.amount import parse_amount
from carnet.core.people.address import check_domain, check_identity
from carnet.errors import AddressInvalid, InvalidRequest, KeyInvalid
from carnet.wire.crypto.ed25519 import read_public_key

_WHOLE: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
TARGET: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
_ORIGIN: Final = re.compile(  # as browsers write it: without a path, nor the port of its scheme
    r"(?:https(?!.*:443\Z)|http(?!.*:80\Z))://(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[1-9][0-9]{0,4})?",
    re.ASCII,
)
_SPAN: Final = re.compile(r"([1-9][0-9]{0,4})([mhd])", re.ASCII)
_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400}
_MOST_SHOWN: Final = 60
_MOST_ATTEMPTS: Final = 32  # to deliver one webhook


class Wrong(Exception):
    """The value cannot be used; the text says what it should be."""


class SecretRef(Struct, frozen=True, kw_only=True):
    """Where a secret is kept. The configuration never holds the secret itself."""

    env: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        """As it is written in TOML."""
        return f'{{env = "{self.env}"}}' if self.env else f'{{file = "{self.file}"}}'


class ValueReader(Struct, frozen=True):
    """Reads one value. `read_text` reads the same from an environment variable."""

    expects: str
    read: Callable[[Any], Any]
    read_text: Callable[[str], Any]


def _shown(value: object) -> str:
    text = f"'{value}'" if isinstance(value, str) else str(value).lower()
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def text_reader(expects: str, check: Callable[[str], Any]) -> ValueReader:
    """A reader of text; `check` gives the value or raises Wrong, AddressInvalid, InvalidRequest."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise Wrong(f"should be {expects}, but is {_shown(value)}, which is not text")
        try:
            return check(value)
        except (ValueError, AddressInvalid, InvalidRequest):
            raise Wrong(f"should be {expects}, but is {_shown(value)}") from None

    return ValueReader(expects, read, read)


def text() -> ValueReader:
    """Any text that is not blank."""

    def check(value: str) -> str:
        if not value.strip():
            raise ValueError
        return value

    return text_reader("a text that is not blank", check)


def one_of(
    *words: str, later: Sequence[str] = (), instead: str = "Use one that is served now"
) -> ValueReader:
    """One of a few words; `later` ones are known and refused with that reason."""
    expects = f"one of {', '.join(words)}" if len(words) > 1 else f"'{words[0]}'"

    def check(value: str) -> str:
        if value in later:
            raise Wrong(f"'{value}' comes in a later release. {instead}: {', '.join(words)}")
        if value not in words:
            raise ValueError
        return value

    return text_reader(expects, check)


def whole(least: int, most: int | None = None) -> ValueReader:
    """A whole number within bounds."""
    expects = f"a whole number from {least} " + (f"to {most}" if most is not None else "up")

    def read(value: Any) -> int:
        if type(value) is not int or value < least or (most is not None and value > most):
            raise Wrong(f"should be {expects}, but is {_shown(value)}")
        return value

    def read_text(value: str) -> int:
        # int() alone would also take ' 4', '1_0' and the digits of other scripts.
        if not _WHOLE.fullmatch(value):
            raise Wrong(f"should be {expects}, but is {_shown(value)}")
        return read(int(value))

    return ValueReader(expects, read, read_text)


def seconds(*, most: int = 86_400, least: int = 0) -> ValueReader:
    """A duration in seconds, above zero."""
    bound = f"of at least {least}" if least else "above 0"
    expects = f"a number of seconds {bound} and at most {most}"

    def read(value: Any) -> float:
        if type(value) not in {int, float} or not (0 < value <= most and value >= least):
            raise Wrong(f"should be {expects}, but is {_shown(value)}")
        return float(value)

    return ValueReader(expects, read, lambda value: read(_toml_value(value, expects)))


def span(*, most_days: int) -> ValueReader:
    """A length of time with its unit, or never; it stays as it is written."""

    def check(value: str) -> str:
        seconds = span_seconds(value)
        if seconds is not None and seconds > most_days * _UNITS["d"]:
            raise ValueError
        return value

    return text_reader(f"a time from 1m to {most_days}d, such as 30m, 1h or 1d, or never", check)


def span_seconds(value: str) -> int | None:
    """The seconds of what `span` has read; None for never."""
    if value == "never":
        return None
    if (match := _SPAN.fullmatch(value)) is None:
        raise ValueError
    return int(match[1]) * _UNITS[match[2]]


def truth() -> ValueReader:
    """True or false."""
    expects = "true or false"

    def read(value: Any) -> bool:
        if type(value) is not bool:
            raise Wrong(f"should be {expects} (without quotes), but is {_shown(value)}")
        return value

    return ValueReader(expects, read, lambda value: read(_toml_value(value, expects)))


def amount() -> ValueReader:
    """An amount of money as decimal text, read into micro-units."""
    return text_reader(
        'an amount as text with at most six decimals, such as "0.0002"', parse_amount
    )


def target() -> ValueReader:
    """`module:function`."""

    def check(value: str) -> str:
        if not TARGET.fullmatch(value):
            raise ValueError
        return value

    return text_reader('"module:function", such as "agents:echo"', check)


def domain() -> ValueReader:
    """A domain in its stored form."""
    return text_reader("a lower-case DNS name of two or more labels", check_domain)


def identity() -> ValueReader:
    """An identity in its stored form."""
    return text_reader('an identity, such as "agent://globex.example"', check_identity)


def url() -> ValueReader:
    """An http or https URL without credentials or query; a slash at its end is dropped."""

    def check(value: str) -> str:
        parts = urlsplit(value)
        if parts.password is not None or parts.username is not None:
            raise Wrong("holds a credential; put it in token or api_key as {env} or {file}")
        if parts.scheme not in {"http", "https"} or not parts.hostname or not value.isascii():
            raise ValueError
        if parts.query or parts.fragment or any(c.isspace() for c in value) or parts.port == 0:
            raise ValueError
        return value.rstrip("/")

    return text_reader('an http or https URL, such as "https://gw.globex.example"', check)


def store_url() -> ValueReader:
    """Where records are kept."""

    def check(value: str) -> str:
        if value.startswith("postgresql://"):
            return _postgres_url(value)
        if not value.removeprefix("sqlite:").strip() or not value.startswith("sqlite:"):
            raise ValueError
        return value

    expects = '"sqlite:PATH", such as "sqlite:var/carnet.db", or "postgresql://USER@HOST/DATABASE"'
    return text_reader(expects, check)


def _postgres_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.password or "password=" in parts.query:
        raise Wrong("holds a password; put it in PGPASSWORD, or in the file that PGPASSFILE names")
    if parts.path in {"", "/"} or any(c.isspace() for c in value):
        raise ValueError
    return value


def many(expects: str, check: Callable[[str], str]) -> ValueReader:
    """A list of texts. In the environment: a TOML list, or texts with commas between them."""
    expects = f"a list of {expects}"

    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Wrong(f"should be {expects}, but is {_shown(value)}")
        return tuple(checked(item) for item in value)

    def checked(item: str) -> str:
        try:
            return check(item)
        except ValueError:
            raise Wrong(f"should be {expects}, but holds {_shown(item)}") from None

    def read_text(value: str) -> tuple[str, ...]:
        if value.lstrip().startswith("["):
            return read(_toml_value(value, expects))
        return read([item.strip() for item in value.split(",") if item.strip()])

    return ValueReader(expects, read, read_text)


def hooks() -> ValueReader:
    """URLs that something is posted to: a list, or one of them."""

    def check(value: str) -> str:
        parts = urlsplit(value)
        if parts.password is not None or parts.username is not None:
            raise Wrong("holds a credential; a receiver knows us by our signature")
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
            raise ValueError
        if parts.fragment or not (value.isascii() and value.isprintable()) or " " in value:
            raise ValueError
        return value

    listed = many('http or https URLs, such as "https://ops.acme.example/carnet"', check)

    def read(value: Any) -> tuple[str, ...]:
        found: tuple[str, ...] = listed.read([value] if isinstance(value, str) else value)
        return found

    return ValueReader(listed.expects, read, listed.read_text)


def schedule(*, most: int) -> ValueReader:
    """The seconds before each of several attempts; the first may be made at once."""
    expects = f"a list of 1 to {_MOST_ATTEMPTS} numbers of seconds from 0 to {most}"

    def read(value: Any) -> tuple[float, ...]:
        if not isinstance(value, list) or not 0 < len(value) <= _MOST_ATTEMPTS:
            raise Wrong(f"should be {expects}, but is {_shown(value)}")
        if not all(type(item) in {int, float} and 0 <= item <= most for item in value):
            raise Wrong(f"should be {expects}, but is {_shown(value)}")
        return tuple(float(item) for item in value)

    return ValueReader(expects, read, lambda value: read(_toml_value(value, expects)))


def destinations() -> ValueReader:
    """Destinations: `host:port` or CIDR, read as the HTTP client will read them."""

    def check(value: str) -> str:
        read_entry(value)
        return value

    expects = '"host:port" or ranges without a scheme, such as "127.0.0.1:8701" or "10.0.0.0/8"'
    return many(expects, check)


def members() -> ValueReader:
    """Names of members of a request, or the sign for all of them."""

    def check(value: str) -> str:
        if not (value == "*" or value.isidentifier()):
            raise ValueError
        return value

    return many('names of members, such as "temperature", or "*"', check)


def networks() -> ValueReader:
    """Addresses and ranges, written as the range begins."""

    def check(value: str) -> str:
        return str(ipaddress.ip_network(value))

    return many('addresses or ranges, such as "10.0.0.7" or "10.0.0.0/8"', check)


def origins() -> ValueReader:
    """Origins of web pages, as browsers write them; or every one."""

    def check(value: str) -> str:
        if value != "*" and not _ORIGIN.fullmatch(value):
            raise ValueError
        return value

    return many('origins of pages, such as "https://app.example", or "*"', check)


def public_keys() -> ValueReader:
    """Pinned Ed25519 keys in base64."""

    def check(value: str) -> str:
        try:
            read_public_key(value)
        except KeyInvalid:
            raise ValueError from None
        return value

    return many("Ed25519 public keys (32 bytes) in base64", check)


def secret() -> ValueReader:
    """A reference to a secret, never the secret."""
    expects = 'a reference, {env = "NAME"} or {file = "PATH"}'
    fix = (
        "holds the secret itself. Secrets are kept outside the configuration: put it in a file"
        ' and write {file = "var/NAME.key"}, or in a variable and write {env = "NAME"}'
    )

    def read(value: Any) -> SecretRef:
        if isinstance(value, str):
            raise Wrong(fix)
        if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= {"env", "file"}:
            raise Wrong(f"should be {expects}")
        (where,) = value.values()
        if not isinstance(where, str) or not where.strip():
            raise Wrong(f"should be {expects}")
        return SecretRef(**value)

    def read_text(value: str) -> SecretRef:
        if not value.lstrip().startswith("{"):
            raise Wrong(fix)
        try:
            return read(tomllib.loads(f"value = {value}")["value"])
        except tomllib.TOMLDecodeError:
            raise Wrong(f"should be {expects}") from None

    return ValueReader(expects, read, read_text)


def _toml_value(value: str, expects: str) -> Literal[True, False] | int | float | list[Any]:
    try:
        (found,) = tomllib.loads(f"value = {value}").values()
    except (tomllib.TOMLDecodeError, ValueError):
        raise Wrong(f"should be {expects}, but is {_shown(value)}") from None
    return found  # type: ignore[no-any-return]  # the reader that asked checks the type
