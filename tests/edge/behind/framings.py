"""Requests that one reader may take for one request and another for two.

Each is a head, a framing and bytes behind it in which a second request stands, on a connection of
its own. Both are named (`x-correlation-id`), so that whoever reads it can tell what it has read.
"""

from collections.abc import Iterator

LENGTHS = (
    b"",
    b"content-length: 0\r\n",
    b"content-length: {n}\r\n",
    b"content-length: +{n}\r\n",
    b"content-length: {n}, {n}\r\n",
    b"content-length: 5\r\ncontent-length: {n}\r\n",
    b"content-length : {n}\r\n",
    b"x: y\ncontent-length: {n}\r\n",
)
CODINGS = (
    b"",
    b"transfer-encoding: chunked\r\n",
    b"transfer-encoding: xchunked\r\n",
    b"transfer-encoding: identity, chunked\r\n",
    b"transfer-encoding: chunked, identity\r\n",
    b"transfer-encoding: gzip, chunked\r\n",
    b"transfer-encoding : chunked\r\n",
    b"transfer-encoding:\x0bchunked\r\n",
    b"transfer-encoding:\r\n chunked\r\n",
    b"transfer-encoding: chunked\r\ntransfer-encoding: x\r\n",
    b"x: y\ntransfer-encoding: chunked\r\n",
    b"x: y\rtransfer-encoding: chunked\r\n",
    b'transfer-encoding: "chunked"\r\n',
)
BODIES = (
    b"",  # the second request follows at once
    b"0\r\n\r\n",
    b"5\r\nabcde\r\n0\r\n\r\n",
    b"5;x=\ny\r\nabcde\r\n0\r\n\r\n",
    b"5\nabcde\n0\n\n",
    b"fffffffffffffffff0\r\n",
)
LAST = b"GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n"
# What has more than one reading beside its length.
HEADS = {
    "absolute": b"GET http://a/{path} HTTP/1.1\r\nhost: a\r\n",
    "other host": b"GET http://b/{path} HTTP/1.1\r\nhost: a\r\n",
    "two hosts": b"GET /{path} HTTP/1.1\r\nhost: a\r\nhost: b\r\n",
    "no host": b"GET /{path} HTTP/1.1\r\n",
    "old": b"GET /{path} HTTP/1.0\r\nhost: a\r\n",
    "new": b"GET /{path} HTTP/1.2\r\nhost: a\r\n",
    "bare": b"GET /{path} HTTP/1.1\nhost: a\r\n",
    "folded": b"GET /{path} HTTP/1.1\r\nhost: a\r\nx: y\r\n z\r\n",
    "upgrade": b"GET /{path} HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n",
    "websocket": b"GET /{path} HTTP/1.1\r\nhost: a\r\n"
    b"connection: upgrade\r\nupgrade: websocket\r\n",
    "connect": b"CONNECT /{path} HTTP/1.1\r\nhost: a\r\n",
    "tabs": b"GET\t/{path}\tHTTP/1.1\r\nhost: a\r\n",
    "spaces": b"GET  /{path}  HTTP/1.1\r\nhost: a\r\n",
    "blank line first": b"\r\nGET /{path} HTTP/1.1\r\nhost: a\r\n",
    "nul": b"GET /{path} HTTP/1.1\r\nhost: a\r\nx: \0\r\n",
    "expecting": b"POST /{path} HTTP/1.1\r\nhost: a\r\n"
    b"expect: 100-continue\r\ncontent-length: 0\r\n",
    "connection named": b"GET /{path} HTTP/1.1\r\nhost: a\r\nconnection: content-length\r\n",
    "lower": b"get /{path} HTTP/1.1\r\nhost: a\r\n",
}


def framings() -> dict[str, bytes]:
    """All of them, by the names of their first requests."""
    found = {}
    for number, (head, body) in enumerate(_all()):
        name = f"r{number}"
        data = body + _named(LAST, f"{name}-hidden")
        found[name] = _named(head.replace(b"{n}", b"%d" % len(data)), name) + data
        found[name] += _named(LAST, f"{name}-last")  # whoever has read it closes the connection
    return found


def _all() -> Iterator[tuple[bytes, bytes]]:
    start = b"POST /outer HTTP/1.1\r\nhost: a\r\n"
    for length in LENGTHS:
        for coding in CODINGS:
            for body in BODIES if coding else BODIES[:2]:
                yield start + length + coding, body
    for head in HEADS.values():
        for body in BODIES[:2]:
            yield head.replace(b"{path}", b"outer"), body


def _named(head: bytes, name: str) -> bytes:
    """The request with a name; it stands last, where every reader has believed the rest."""
    return head + b"x-correlation-id: " + name.encode() + b"\r\n\r\n"
