"""The hosts whose caller contexts are believed, and the policy that may deny a call."""

import re
import tomllib
from typing import Annotated, Any, Final

from msgspec import Struct

from carnet.config import readers as read
from carnet.config.readers import SecretRef, ValueReader, Wrong

MOST_METADATA: Final = 16  # members of what is written down about one host
MOST_VALUE: Final = 256  # characters of each
MOST_RATE: Final = 1_000_000
MOST_POLICY_SECONDS: Final = 60

_FIELD: Final = re.compile(r"[a-z][a-z0-9-]{0,63}", re.ASCII)
_FINGERPRINT: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_SUBJECT: Final = re.compile(r"[ -~]{1,1024}", re.ASCII)
_MEMBER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", re.ASCII)


def one_certificate() -> ValueReader:
    """A certificate, by its fingerprint or by its subject."""
    return read.text_reader(
        'a fingerprint "sha256:HEX", or the subject as the proxy writes it', read_certificate
    )


def read_certificate(value: str) -> str:
    """A certificate that was written down, as it is compared; ValueError where it is none."""
    is_hashed = value.lower().startswith("sha256:")
    found = value.strip()
    if is_hashed:  # as it is shown by others: in capitals, with colons or spaces
        found = "sha256:" + value[7:].lower().replace(":", "").replace(" ", "")
    if not (_FINGERPRINT if is_hashed else _SUBJECT).fullmatch(found):
        raise ValueError
    return found


def field_name() -> ValueReader:
    """The name of a header."""

    def check(value: str) -> str:
        if not _FIELD.fullmatch(value.lower()):
            raise ValueError
        return value.lower()

    return read.text_reader('the name of a header, such as "client-cert"', check)


def some_words() -> ValueReader:
    """A few words about a host, by name."""
    expects = f'a table of at most {MOST_METADATA} texts, such as {{team = "docs"}}'

    def take(value: Any) -> dict[str, str]:
        if not isinstance(value, dict) or not is_metadata(value):
            raise Wrong(f"should be {expects}")
        return value

    def take_text(value: str) -> dict[str, str]:
        try:
            return take(tomllib.loads(f"value = {value}")["value"])
        except tomllib.TOMLDecodeError:
            raise Wrong(f"should be {expects}") from None

    return ValueReader(expects, take, take_text)


def is_metadata(value: dict[str, Any]) -> bool:
    """Whether what is written down about a host is in its form."""
    return len(value) <= MOST_METADATA and all(
        _MEMBER.fullmatch(name) and isinstance(each, str) and len(each) <= MOST_VALUE
        for name, each in value.items()
    )


class CallerSettings(Struct, frozen=True, kw_only=True):
    """One `[callers."https://site"]` section."""

    key: Annotated[
        SecretRef | None, read.secret(), "The key that it shows in X-Agents-Api-Caller-Key."
    ] = None
    certificate: Annotated[
        str | None,
        one_certificate(),
        "Or its client certificate, as a trusted proxy tells it: sha256:HEX, or the subject.",
    ] = None
    metadata: Annotated[
        dict[str, str],
        some_words(),
        "What agents and the policy are told about it; nothing of it travels.",
    ] = {}
    calls_per_minute: Annotated[
        int | None,
        read.whole(1, MOST_RATE),
        "Calls of all its tokens together; by default as [limits] sender_calls_per_minute.",
    ] = None


class PolicySettings(Struct, frozen=True, kw_only=True):
    """The `[policy]` section: the operator's own rules."""

    target: Annotated[
        str | None,
        read.target(),
        "module:function, given principal, caller context and action before each call and tool; "
        "it may only deny.",
    ] = None
    seconds: Annotated[
        float,
        read.seconds(most=MOST_POLICY_SECONDS),
        "How long it may take; what it has not answered by then it has denied.",
    ] = 2.0
