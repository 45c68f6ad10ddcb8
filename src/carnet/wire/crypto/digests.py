"""The digest of a body in its `Content-Digest` header (RFC 9530).

Law 1. `check(write(body), body)` passes, and no header passes for a body it was not made for.
Law 2. Every digest that we can compute must match; of those we cannot, one that we can must stand
       beside them.
Law 3. A header that cannot be read is `DigestInvalid`; one that was made for another body is
       `DigestMismatch`.
"""

from binascii import b2a_base64
from hashlib import sha256, sha512
from typing import Final

from carnet.errors import DigestInvalid, DigestMismatch
from carnet.wire.grammar.structured import Item, Member, StructuredInvalid, read_dictionary

MAX_BYTES: Final = 1024

_PIECE: Final = 2047  # bytes: hashlib lets the lock go for more
_MOST_IN_PIECES: Final = 32 * 1024

_ALGORITHMS: Final = {"sha-256": sha256, "sha-512": sha512}


def write(body: bytes) -> str:
    """The header for a body: its SHA-256.

    A small one is fed in pieces for which Python keeps its lock: letting the lock go and waiting
    for it again costs more than the digest of a few kilobytes.
    """
    size = len(body)
    first = _PIECE if size <= _MOST_IN_PIECES else size
    digest = sha256(body[:first])
    for start in range(first, size, _PIECE):
        digest.update(body[start : start + _PIECE])
    return f"sha-256=:{str(b2a_base64(digest.digest(), newline=False), 'ascii')}:"


def check(value: str | None, body: bytes) -> None:
    """Refuse a body that is not the one its header was made for.

    Args:
        value: The header, its lines joined; None or blank where there is none.
        body: The whole body as received.
    """
    if value != write(body):  # the form that everybody sends, character by character
        _check_any(value, body)


def _check_any(value: str | None, body: bytes) -> None:
    """Judge any header, by the grammar."""
    if not value or len(value) > MAX_BYTES:
        raise DigestInvalid
    try:
        members = read_dictionary(value, unique=True)
    except StructuredInvalid:
        raise DigestInvalid from None
    digests = {name: _read_digest(member) for name, member in members.items()}
    known = [name for name in digests if name in _ALGORITHMS]
    if not known:
        raise DigestInvalid
    for name in known:
        expected = _ALGORITHMS[name](body).digest()
        if digests[name] != expected:
            # Two that disagree were not made for any body.
            only = len(known) == 1 and len(digests[name]) == len(expected)
            raise DigestMismatch if only else DigestInvalid


def _read_digest(member: Member) -> bytes:
    if isinstance(member, Item) and isinstance(member.value, bytes) and not member.parameters:
        return member.value
    raise DigestInvalid
