"""The hop counters of other gateways: two headers with a number, and nothing else.

    X-A2A-Hop                 of gateways and sidecars that speak A2A; written toward A2A agents
    X-Contextforge-UAID-Hop   of ContextForge; read alone

Law 1. A count is read as every depth is (R3): ASCII digits, once, saturating. Blank is absent, and
       anything else is refused: read as 0 it would lift the bound for all behind us.
Law 2. Of several depths the largest counts; who merges the stamps sees to it.
Law 3. `read(write(carnet))` tells the same depth.
"""

from typing import Final

from carnet.core.chain.carnet import Carnet, Mark
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import Leaving, Metadata, Reading, Stamp, StampReader, Written

A2A_HOP: Final = "x-a2a-hop"
CONTEXTFORGE_HOP: Final = "x-contextforge-uaid-hop"


def _reader(stamp: str, header: str) -> StampReader:
    def read(headers: Headers, metadata: Metadata, /, *, last_depth: int) -> Reading | None:
        del metadata
        depth = headers.read_count(header)
        if depth is None:
            return None
        return Reading(mark=Mark(stamp=stamp, depth=depth, last_depth=last_depth, is_usual=True))

    return read


def _write(carnet: Carnet, leaving: Leaving, /) -> Written:
    del leaving
    return Written(headers={A2A_HOP: str(carnet.depth)})


A2A_STAMP: Final = Stamp(
    name="a2a_hop",
    prefixes=(A2A_HOP,),
    read=_reader("a2a_hop", A2A_HOP),
    write=_write,
    toward="a2a",
)
CONTEXTFORGE_STAMP: Final = Stamp(
    name="contextforge_hop",
    prefixes=(CONTEXTFORGE_HOP,),
    read=_reader("contextforge_hop", CONTEXTFORGE_HOP),
)
