"""All dialects, in one tuple.

Law. There is one list, and a gateway is assembled with it or with another one. The first has the
words for everything that belongs to no other.
"""

from collections.abc import Sequence
from typing import Final

from carnet.wire.dialects import a2a, agents_api, openai, samvad
from carnet.wire.dialects.dialect import Dialect

DIALECTS: Final[tuple[Dialect, ...]] = (
    openai.DIALECT,
    samvad.DIALECT,
    a2a.DIALECT,
    a2a.HTTP_DIALECT,
    agents_api.DIALECT,
    agents_api.HTTP_DIALECT,
)


def by_peer(dialects: Sequence[Dialect] = DIALECTS) -> dict[str, Dialect]:
    """Those that peers can be called in, by the name that a peer is listed with."""
    return {each.spoken.name: each for each in dialects if each.spoken is not None}
