"""What the signature of a request must cover, in each of the two forms that are accepted.

Law 1. Whatever tells the chain, the payer or an identity is covered, or the request is refused: a
       middlebox could have written it.
Law 2. What is covered beyond that is nobody's harm.
"""

from collections.abc import Iterable
from typing import Final

from carnet.errors import HeaderNotSigned, InsufficientCoverage
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import Stamps

MINIMUM: Final = ("@method", "@path", "content-digest")
PROFILE: Final = ("@method", "@authority", "@path", "content-digest", "content-type")
QUERY: Final = "@query"


def protected_names(headers: Headers, stamps: Stamps) -> list[str]:
    """The fields of a request that must not stand outside its signature: those of all stamps.

    R9. A traceparent is not among them: proxies write it, and nothing is decided by it.
    """
    return headers.names(*stamps.protected)


def check_coverage(
    components: Iterable[str],
    least: Iterable[str],
    headers: Headers,
    *,
    has_query: bool,
    stamps: Stamps,
) -> None:
    """Refuse a signature that leaves out what it must cover.

    Args:
        components: What the signature covers.
        least: Those that it must have whatever the request holds: `MINIMUM` or `PROFILE`.
        headers: The fields of the request.
        has_query: Whether its target has a query.
        stamps: Whose fields are protected.
    """
    covered = frozenset(components)
    if not covered.issuperset(least):
        raise InsufficientCoverage
    if has_query and QUERY not in covered:
        raise HeaderNotSigned
    if not covered.issuperset(protected_names(headers, stamps)):
        raise HeaderNotSigned
