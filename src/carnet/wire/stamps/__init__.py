"""All stamps, in one tuple.

Law. There is one list, and a gateway is assembled with it or with another one. A stamp that is
added here is read, enforced, protected and written; see `stamp`.
"""

from typing import Final

from carnet.wire.stamps import caller_context, hops, mentionable, tangle
from carnet.wire.stamps.stamp import Stamp, Stamps

ROWS: Final = (
    tangle.STAMP,
    caller_context.STAMP,
    mentionable.STAMP,
    hops.A2A_STAMP,
    hops.CONTEXTFORGE_STAMP,
    # Bound to the body, so `travel` reads it beside the proof of the request; and our receipts.
    Stamp(name="travel", prefixes=("carnet",)),
    # What a gateway tells its own agents. Nothing of it is believed from outside (R18).
    Stamp(name="actor", prefixes=("x-actor-",)),
)

STAMPS: Final = Stamps(ROWS)
