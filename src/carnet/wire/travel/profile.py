"""What a signature between two Carnets must cover (RFC 9421, `tag="carnet"`), and how it is read.

Law 1. Everything that decides about a call is covered: whom it goes to, its body, and every header
       that tells the chain, the payer or an identity. What stands beside the signature unsigned is
       refused, never ignored.
Law 2. The sender is the issuer of the travel document, whose key must have signed both.
Law 3. Without a signature of ours and without a document there is no proof; half of one is refused.
"""

import re
from typing import Final

from carnet.core.people.address import AGENT
from carnet.core.people.proof import SECOND_US, Document, Proof
from carnet.errors import (
    InsufficientCoverage,
    NonceInvalid,
    SignatureExpired,
    SignatureInvalid,
    TimestampInvalid,
)
from carnet.wire.crypto import digests, signatures
from carnet.wire.crypto.signatures import Presented, Request
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import (
    PROFILE,
    QUERY,
    Stamps,
    check_coverage,
    protected_names,
)
from carnet.wire.travel.document import HEADER, read_beside

TAG: Final = "carnet"
COMPONENTS: Final = PROFILE

_TAGGED: Final = f';tag="{TAG}"'
_NONCE: Final = re.compile(r"[\x21-\x7e]{8,64}")


def cover(request: Request, stamps: Stamps) -> tuple[str, ...]:
    """The components that we sign of a request: all that it must have, and no other.

    A trace is none of them (A93): proxies on the way write their own, and nothing is decided by it.
    """
    query = () if request.query is None else (QUERY,)
    return (*COMPONENTS, *query, *protected_names(request.headers, stamps))


def read_proof(request: Request, body: bytes | None, stamps: Stamps) -> Proof | None:
    """The proof that a request brings along, strictly; None where it brings none.

    Without a body it is that of the head alone: the signature covers the digest of the body.
    """
    headers = request.headers
    if headers.get(HEADER) is None and not _is_tagged(headers):
        return None
    presented = signatures.read(headers)
    if presented.tag != TAG:
        raise SignatureInvalid("the signature beside a travel document has another tag")
    has_query = request.query is not None
    check_coverage(presented.components, COMPONENTS, headers, has_query=has_query, stamps=stamps)
    base = signatures.base(presented, request)  # a document that was taken away is missed here
    if body is not None:
        digests.check(", ".join(headers.get_all("content-digest")), body)
    document = read_beside(headers, body)
    if document is None:
        raise InsufficientCoverage("there is no travel document")
    return _proof(presented, base, document)


def _is_tagged(headers: Headers) -> bool:
    return any(_TAGGED in value for value in headers.get_all("signature-input"))


def _proof(presented: Presented, base: bytes, document: Document) -> Proof:
    created, expires, keyid = presented.created, presented.expires, presented.keyid
    if not keyid:
        raise SignatureInvalid("no key is named")
    if presented.nonce is None or _NONCE.fullmatch(presented.nonce) is None:  # A15
        raise NonceInvalid
    if created is None:
        raise TimestampInvalid
    if expires is not None and expires < created:  # A17
        raise SignatureExpired
    return Proof(
        profile="carnet",
        sender=AGENT + document.issuer,
        keyid=keyid,
        signature=presented.signature,
        bases=(base,),
        nonce=presented.nonce,
        at=created * SECOND_US,
        expires=expires,
        document=document,
    )
