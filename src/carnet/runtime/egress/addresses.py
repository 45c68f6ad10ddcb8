"""Where a request may go: the classes of addresses, and the reading of a destination.

Pure: nothing is looked up and nothing is dialled here. `runtime.egress.client` asks, for a URL
before it does anything and for every address before it connects.

Law 1. Global is what this table calls global. `ipaddress.is_global` is not asked: it takes NAT64,
       6to4 and v4-compatible loopback and multicast for global.
Law 2. An address that carries an IPv4 address is judged by that one.
Law 3. A URL has one reading or none: what two parsers could read differently is refused.
Law 4. A destination that was learned from a peer is a public name or a public address, over https,
       on a port of https, unless the operator's list says otherwise.
Law 5. Plain http leaves for networks of the operator's own alone, and for what the list holds. The
       addresses at which clouds tell secrets, and those of the link, are dialled only where the
       operator wrote down the address itself: no name leads there.
"""

import re
from collections.abc import Callable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
)
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from carnet.core.egress_rule import ANY_PORT, read_entry
from carnet.core.people.address import check_domain
from carnet.errors import AddressInvalid, ConfigInvalid, EgressRefused

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

LEARNED_PORTS: Final = frozenset({443, 8443})

_NOT_GLOBAL_4: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host; a connection to it arrives at loopback
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers, and by clusters for their pods
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, and the metadata of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, and the metadata of one cloud
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # the relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_GLOBAL_6: Final = IPv6Network("2000::/3")  # all that was ever given out as global unicast
_NOT_GLOBAL_6: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "3ffe::/16",  # the 6bone, given back
        "3fff::/20",  # documentation
    )
)
_PRIVATE_4: Final = tuple(
    IPv4Network(network)
    for network in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
        "100.64.0.0/10",  # of clusters and overlay networks
    )
)
_PRIVATE_6: Final = (IPv6Network("::1/128"), IPv6Network("fc00::/7"))
_LINK_4: Final = IPv4Network("169.254.0.0/16")
_LINK_6: Final = IPv6Network("fe80::/10")
_METADATA_4: Final = tuple(
    IPv4Network(network)
    for network in ("192.0.0.0/24", "100.100.100.200/32", "168.63.129.16/32")  # beside the link
)
_METADATA_6: Final = (IPv6Network("fd00:ec2::254/128"), IPv6Network("fd20:ce::254/128"))

# Each carries an IPv4 address, this many bits above its end.
_CARRIERS: Final = (
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
    (IPv6Network("::/96"), 0),  # v4-compatible
)
_V4_MASK: Final = 0xFFFF_FFFF

# Names that mean something else on every network: no answer about them is to be trusted.
_INNER_SUFFIXES: Final = frozenset(
    {"internal", "local", "localhost", "localdomain", "lan", "home", "corp", "intranet", "private"}
    | {"arpa", "onion", "invalid"}
)
_VISIBLE: Final = re.compile(r"[!-~]+", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*", re.ASCII)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def unwrap(ip: IPAddress) -> IPAddress:
    """The IPv4 address that an IPv6 address carries, or the address itself."""
    if isinstance(ip, IPv4Address) or ip in _PRIVATE_6[0]:
        return ip
    for network, shift in _CARRIERS:
        if ip in network:
            return IPv4Address(int(ip) >> shift & _V4_MASK)
    return ip


def is_global(ip: IPAddress) -> bool:
    """Whether an address is one host of the public internet."""
    inner = unwrap(ip)
    if isinstance(inner, IPv4Address):
        return not any(inner in network for network in _NOT_GLOBAL_4)
    return inner in _GLOBAL_6 and not any(inner in network for network in _NOT_GLOBAL_6)


def is_private_or_loopback(ip: IPAddress) -> bool:
    """Whether an address is on this machine or on a network of the operator's own."""
    inner = unwrap(ip)
    if isinstance(inner, IPv4Address):
        return any(inner in network for network in _PRIVATE_4)
    return any(inner in network for network in _PRIVATE_6)


def is_link_local(ip: IPAddress) -> bool:
    """Whether an address is good on one link alone, as those of most clouds' metadata are."""
    inner = unwrap(ip)
    return inner in _LINK_4 if isinstance(inner, IPv4Address) else inner in _LINK_6


def is_metadata(ip: IPAddress) -> bool:
    """Whether a cloud may tell secrets at an address: the link, and where else they do."""
    inner = unwrap(ip)
    if isinstance(inner, IPv4Address):
        return inner in _LINK_4 or any(inner in network for network in _METADATA_4)
    return inner in _LINK_6 or any(inner in network for network in _METADATA_6)


def parse_ip(text: str) -> IPAddress | None:
    """An address in its usual notation; None for `127.1`, `0177.0.0.1`, `0x7f000001` and names."""
    try:
        return ip_address(text)
    except ValueError:
        return None


class Destination(Struct, frozen=True, kw_only=True):
    """A URL in its one reading."""

    url: str
    scheme: str  # http | https
    host: str  # a name in lower case, or an address without its brackets
    port: int
    target: str  # the path and the query, as they are sent
    ip: IPAddress | None  # if the host is an address

    @property
    def authority(self) -> str:
        """The host as the Host header names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def read_destination(url: str) -> Destination:
    """Read a URL, or refuse it."""
    if not _VISIBLE.fullmatch(url) or "\\" in url or "#" in url:
        raise EgressRefused("the URL holds a character that parsers read differently")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise EgressRefused("the URL cannot be read") from None
    host = _read_host(parts)
    return Destination(
        url=url,
        scheme=parts.scheme,
        host=host,
        port=_DEFAULT_PORTS[parts.scheme] if port is None else port,
        target=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        ip=parse_ip(host),
    )


def _read_host(parts: SplitResult) -> str:
    if parts.scheme not in _DEFAULT_PORTS:
        raise EgressRefused("the scheme is neither http nor https")
    if "@" in parts.netloc:
        raise EgressRefused("the URL holds a user name")
    host = parts.hostname
    if not host or "%" in host or parts.port == 0:
        raise EgressRefused("the URL names no host and port that can be dialled")
    if parse_ip(host) is None and _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise EgressRefused("the host is an address in an unusual notation")
    return host


def check_learned(destination: Destination) -> None:
    """Refuse what no peer may make us call. What a name leads to is judged when it is dialled."""
    if destination.scheme != "https":
        raise EgressRefused("a learned destination needs https")
    if destination.port not in LEARNED_PORTS:
        raise EgressRefused("a learned destination is called on port 443 or 8443")
    if destination.ip is not None:
        return
    try:
        check_domain(destination.host)
    except AddressInvalid as error:
        raise EgressRefused(error.safe_text) from None
    if destination.host.rpartition(".")[2] in _INNER_SUFFIXES:
        raise EgressRefused("the name belongs to an inner network")


class Allowed:
    """The operator's exceptions for learned destinations: `host:port` entries and networks.

    A `host:port` entry, where `*` is every port, and an address within a listed network, may be
    called like a destination that the operator wrote down. A name that leads into a listed network
    still needs https.
    """

    def __init__(self, entries: Sequence[str] = ()) -> None:
        self._hosts: set[tuple[str, int]] = set()
        self._networks: list[IPNetwork] = []
        for entry in entries:
            self._add(entry)

    def _add(self, entry: str) -> None:
        try:
            found = read_entry(entry)
        except ValueError:
            raise ConfigInvalid(
                key="egress.allow", reason=f"{entry!r} is neither host:port nor a network"
            ) from None
        if isinstance(found, tuple):
            self._hosts.add(found)
        else:
            self._networks.append(found)

    def names(self, destination: Destination) -> bool:
        """Whether the operator wrote this destination down."""
        host = destination.host
        if (host, destination.port) in self._hosts or (host, ANY_PORT) in self._hosts:
            return True
        return destination.ip is not None and self.holds(destination.ip)

    def holds(self, ip: IPAddress) -> bool:
        """Whether an address is within a listed network."""
        return any(
            candidate in network for network in self._networks for candidate in (ip, unwrap(ip))
        )


class EgressRoute:
    """Where requests for one URL go, and which addresses may be dialled for them."""

    __slots__ = ("destination", "may_dial", "reuse", "socket", "target", "where")

    def __init__(
        self, destination: Destination, may_dial: Callable[[IPAddress], bool], *, reuse: bool
    ) -> None:
        """Refuse an address that may not be dialled; those of a name are not known yet."""
        self.destination = destination
        self.may_dial = may_dial
        self.reuse = reuse  # whether a connection may serve the next request as well
        self.socket: str | None = None  # the file that stands behind the name of the host
        self.target = destination.target
        self.where = (destination.scheme, destination.host, destination.port)
        if destination.ip is not None:
            self.check(destination.ip)

    def check(self, ip: IPAddress) -> None:
        """Refuse an address that may not be dialled; the log says what would allow it."""
        if self.may_dial(ip):
            return
        at = self.destination
        what = f"{at.host} is" if at.ip is not None else f"{at.host} leads to {ip}:"
        if is_metadata(ip) and at.ip is None:
            reason = "no name may lead there; write the address itself in the URL if it is meant"
        elif at.scheme == "http" and not self.reuse:
            reason = "no private address; what others name needs https there"
        else:
            entry = f"{ip}/{ip.max_prefixlen}"
            reason = f'no address that may be dialled so; [egress] allow = ["{entry}"] would let it'
        raise EgressRefused(f"{what} {reason}")


def find_route(url: str, kind: Literal["named", "learned"], allowed: Allowed) -> EgressRoute:
    """The route of a destination of its class, or EgressRefused."""
    destination = read_destination(url)
    if kind == "named" or allowed.names(destination):
        may_dial = _by_address if destination.ip is not None else _by_name
        listed = allowed.holds if kind == "named" else _nowhere
        plain = destination.scheme == "http"
        return EgressRoute(
            destination, lambda ip: may_dial(ip, listed, plain=plain), reuse=kind == "named"
        )
    check_learned(destination)
    return EgressRoute(destination, lambda ip: is_global(ip) or allowed.holds(ip), reuse=False)


_Listed = Callable[[IPAddress], bool]


def _by_address(ip: IPAddress, is_listed: _Listed, *, plain: bool) -> bool:
    """Whether an address that was written down may be dialled."""
    return not plain or is_private_or_loopback(ip) or is_link_local(ip) or is_listed(ip)


def _by_name(ip: IPAddress, is_listed: _Listed, *, plain: bool) -> bool:
    """Whether an address may be dialled to which a name leads that was written down."""
    return not is_metadata(ip) and (not plain or is_private_or_loopback(ip) or is_listed(ip))


def _nowhere(_: IPAddress) -> bool:
    return False
