"""The answer to a request that never became a call, in the words of the dialect it was sent in.

Law. The path alone decides which words: a refusal can come before anything else was read.
"""

import re
from collections.abc import Callable, Sequence

from carnet.errors import CarnetError, MethodNotAllowed
from carnet.http.exchange import pattern_of
from carnet.wire.dialects.dialect import Dialect, Fields, Reply

Refuse = Callable[[CarnetError, bytes, Fields], Reply]  # at a path, with what is there of its head
Pages = Callable[[CarnetError, bytes, Reply], Reply]  # of a usual answer the one that people read


class Refusing:
    """Writes refusals."""

    def __init__(self, dialects: Sequence[Dialect], pages: Pages | None = None) -> None:
        """The first has the words for the paths that belong to no other.

        `pages` writes those that people look at.
        """
        self._pages = pages
        self._default = dialects[0]
        self._others = [(_paths_of(dialect), dialect) for dialect in dialects[1:]]

    def speaks(self, path: bytes) -> Dialect:
        """The dialect that a path belongs to."""
        for paths, dialect in self._others:
            if paths.fullmatch(path):
                return dialect
        return self._default

    def __call__(self, error: CarnetError, path: bytes, head: Fields | None = None) -> Reply:
        """The answer to a request at this path, whatever its head says."""
        del head
        reply = self.speaks(path).refusal(error)
        reply.headers.extend(error.fields)
        if isinstance(error, MethodNotAllowed):  # RFC 9110, 15.5.6
            reply.headers.append((b"allow", str(error.facts.get("allow") or "").encode()))
        return reply if self._pages is None else self._pages(error, path, reply)


def _paths_of(dialect: Dialect) -> re.Pattern[bytes]:
    """What matches the paths of a dialect, below the prefix of an agent as well."""
    roots = [re.escape(root.encode()) + rb"(?:/.*)?" for root in dialect.roots]
    paths = [pattern_of(way.path).pattern for way in dialect.ways]
    return re.compile(rb"(?:/agents/[^/]*)?(?:%b)" % b"|".join([*roots, *paths]))
