"""An entry of `[egress] allow`: somewhere that a peer may send us although it is not public.

Law. An entry has one reading, for whoever checks a configuration and for whoever dials.
"""

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

_HOST_AND_PORT: Final = re.compile(
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+):(?P<port>[0-9]{1,5}|\*)", re.ASCII
)
_MOST_PORT: Final = 65_535
ANY_PORT: Final = 0  # what `host:*` is read as

Entry = tuple[str, int] | IPv4Network | IPv6Network


def read_entry(entry: str) -> Entry:
    """A host with its port or all of them, or a network; ValueError for anything else."""
    match = _HOST_AND_PORT.fullmatch(entry)
    if match is None:
        return ip_network(entry)
    host = match["host"].strip("[]").lower()
    if match["port"] == "*":
        return host, ANY_PORT
    port = int(match["port"])
    if not 0 < port <= _MOST_PORT:
        raise ValueError(entry)
    return host, port
