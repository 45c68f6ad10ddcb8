"""Who really called, as a reverse proxy tells it.

`X-Forwarded-For` and `Forwarded` are lists that every hop adds to on the right, and whatever stands
on the left was written by somebody we do not know.

Law 1. Only what comes from the address of a trusted proxy is read at all.
Law 2. The caller is the right-most address that is not a trusted proxy's: what it wrote itself
       stands further to the left and is never looked for.
Law 3. A list that cannot be read strictly, or two that contradict one another, is refused. A proxy
       that writes one of the two fields passes the other on as the caller wrote it.
"""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from carnet.errors import MalformedRequest
from carnet.http.link import Fields

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MOST_HOPS: Final = 32

_FOR, _PROTO, _BOTH = b"x-forwarded-for", b"x-forwarded-proto", b"forwarded"
_PORT: Final = r"(?::[0-9]{1,5})?"
_V6: Final = r"([0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{1,40})"
_NODE: Final = re.compile(rf"([0-9.]{{7,15}}){_PORT}|\[{_V6}\]{_PORT}|{_V6}", re.ASCII)
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105  a token of RFC 9110
_PAIR: Final = re.compile(rf'[ \t]*({_TOKEN})=({_TOKEN}|"[^"\\]*")[ \t]*(;|,|\Z)', re.ASCII)
_HIDDEN: Final = re.compile(r"unknown|_[A-Za-z0-9._-]+", re.ASCII)
_SCHEMES: Final = ("http", "https")


class Origin(NamedTuple):
    """Where a request began, as far as that is known."""

    address: str
    scheme: str | None = None


class _Hop(NamedTuple):
    address: Address | None  # None if the hop before keeps it to itself
    scheme: str | None


class Proxies:
    """The reverse proxies that are believed."""

    def __init__(self, networks: Sequence[str] = ()) -> None:
        """`networks` are addresses or ranges."""
        self._networks = [ipaddress.ip_network(network) for network in networks]

    def trusts(self, address: str) -> bool:
        """Whether the other end of a connection is one of them."""
        try:
            return bool(self._networks) and self._is_proxy(_plain(ipaddress.ip_address(address)))
        except ValueError:
            return False

    def _is_proxy(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def origin(self, peer: str, fields: Fields) -> Origin:
        """The caller behind the trusted proxy `peer`; the proxy itself if it names nobody."""
        listed, forwarded = _all(fields, _FOR), _all(fields, _BOTH)
        by_list = self._pick(peer, [_Hop(_address(node), None) for node in _split(listed)])
        by_forwarded = self._pick(peer, list(_elements(forwarded))) if forwarded else by_list
        if listed and forwarded and by_list.address != by_forwarded.address:
            raise MalformedRequest("its forwarding fields contradict one another")
        return Origin(by_forwarded.address, _scheme(_all(fields, _PROTO)) or by_forwarded.scheme)

    def _pick(self, peer: str, hops: list[_Hop]) -> Origin:
        if len(hops) > MOST_HOPS:
            raise MalformedRequest(f"it names more than {MOST_HOPS} hops before this one")
        found = Origin(str(_plain(ipaddress.ip_address(peer))))
        for hop in reversed(hops):
            if hop.address is None:
                break
            found = Origin(str(hop.address), hop.scheme)
            if not self._is_proxy(hop.address):
                break
        return found


def _all(fields: Fields, name: bytes) -> str:
    """The lines of a list field as one."""
    return ",".join(value.decode("latin-1") for key, value in fields if key == name)


def _split(listed: str) -> list[str]:
    return [node.strip(" \t") for node in listed.split(",")] if listed else []


def _address(node: str) -> Address:
    match = _NODE.fullmatch(node)
    try:
        return _plain(ipaddress.ip_address(match[match.lastindex or 0] if match else ""))
    except ValueError:
        raise MalformedRequest("a hop before this one has no valid address") from None


def _plain(address: Address) -> Address:
    """An IPv4 address in its own form, also where a socket of both kinds gave it."""
    return getattr(address, "ipv4_mapped", None) or address


def _elements(forwarded: str) -> Iterator[_Hop]:
    """The hops of a Forwarded field (RFC 7239)."""
    pairs: dict[str, str] = {}
    at = 0
    while at <= len(forwarded):
        match = _PAIR.match(forwarded, at)
        if match is None or match[1].lower() in pairs:
            raise MalformedRequest("its field 'forwarded' cannot be read")
        pairs[match[1].lower()] = match[2].strip('"')
        at = match.end() + (match[3] == "")
        if match[3] != ";":
            yield _hop(pairs)
            pairs = {}


def _hop(pairs: dict[str, str]) -> _Hop:
    node = pairs.get("for", "unknown")
    address = None if _HIDDEN.fullmatch(node) else _address(node)
    return _Hop(address, _scheme(pairs.get("proto", "")))


def _scheme(forwarded: str) -> str | None:
    if not forwarded:
        return None
    if forwarded.lower() not in _SCHEMES:
        raise MalformedRequest("the scheme it was sent with is neither http nor https")
    return forwarded.lower()
