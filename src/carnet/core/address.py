"""Where an agent lives: `@name@domain`, `agent://domain`, or a name on this gateway.

Law 1. One stored form of a domain: lower-case ASCII, at least two labels, no port, no trailing dot.
Law 2. `parse_handle(str(address)) == address`.
Not here: which of them we serve or may call. That is the router's and the guards' business.
"""

import re

from msgspec import Struct

from carnet.errors import AddressInvalid

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})+", re.ASCII)
_LOCAL = re.compile(r"[A-Za-z0-9_-](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)

MOST_DOMAIN = 253


class Address(Struct, frozen=True, order=True):
    """An agent of an organisation."""

    local: str
    domain: str

    def __str__(self) -> str:
        """The canonical spelling."""
        return f"@{self.local}@{self.domain}"


def check_domain(domain: str) -> str:
    """Return `domain` if it is in its stored form, else refuse it."""
    if not _DOMAIN.fullmatch(domain) or len(domain) > MOST_DOMAIN:
        raise AddressInvalid("the domain is not a lower-case DNS name of two or more labels")
    labels = domain.split(".")
    if _NUMBER.fullmatch(labels[-1]):  # resolvers take 127.1 and 0x7f.1 for addresses too
        raise AddressInvalid("an IP address is not a domain")
    for label in labels:
        if label.startswith("xn--"):
            _check_punycode(label)
    return domain


def _check_punycode(label: str) -> None:
    try:
        text = label[4:].encode().decode("punycode")
    except UnicodeError:
        raise AddressInvalid("the domain holds broken punycode") from None
    if text.isascii() or not text.isprintable():
        raise AddressInvalid("the domain holds broken punycode")


def check_local(local: str) -> str:
    """Return the local part if it is a name, else refuse it."""
    if not _LOCAL.fullmatch(local) or ".." in local:
        raise AddressInvalid("the name is not 1 to 64 letters, digits, '.', '_' or '-'")
    return local


def parse_handle(text: str) -> Address:
    """Read `@x@domain`, `x@domain` or `acct:x@domain`."""
    body = text[5:] if text[:5].lower() == "acct:" else text.removeprefix("@")
    local, at, domain = body.partition("@")
    if not at:
        raise AddressInvalid("it has no domain")
    return Address(check_local(local), check_domain(domain))


def is_handle(text: str) -> bool:
    """Whether a model name is meant as a mention of an agent elsewhere."""
    return text.startswith("@") or text[:5].lower() == "acct:"


def is_agent_uri(text: str) -> bool:
    """Whether a name is meant as a SAMVAD identity."""
    return text[:8].lower() == "agent://"


def parse_agent_uri(text: str) -> str:
    """Read `agent://domain` and give the domain."""
    if not text.startswith("agent://"):
        raise AddressInvalid("it does not begin with agent://")
    return check_domain(text[8:])


def local_name(model: str) -> str:
    """The name that a model path ends in: `researcher` of `bridge/sandbox/researcher`."""
    return model.rpartition("/")[2]
