"""Names of issuers that say where their keys are: `did:web:connector.example`.

Law. A name leads to one page of one domain: to `/.well-known/did.json`, or below a path. One with a
     port, a single label, an address or an escape leads nowhere.
"""

import re
from typing import Final

from msgspec import Struct

from carnet.core.people.address import DID_WEB, check_domain
from carnet.errors import AddressInvalid

MOST_DID: Final = 512

_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", re.ASCII)


class WebDid(Struct, frozen=True):
    """Where the document of a name lies."""

    domain: str
    path: str  # of its document


def is_did(name: str) -> bool:
    """Whether a name is one of these, of whatever method."""
    return name.startswith("did:")


def did_of(domain: str) -> str:
    """The name of a domain."""
    return DID_WEB + domain


def read_did(name: str) -> WebDid:
    """Where a name leads; AddressInvalid where that is nowhere."""
    if not name.startswith(DID_WEB) or len(name) > MOST_DID:
        raise AddressInvalid("it is no name of did:web")
    domain, *segments = name.removeprefix(DID_WEB).split(":")
    if not all(_SEGMENT.fullmatch(each) for each in segments):
        raise AddressInvalid("it has a path that is none")
    path = "/".join(segments) if segments else ".well-known"
    return WebDid(check_domain(domain), f"/{path}/did.json")
