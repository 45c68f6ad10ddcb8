"""The trace in metadata is the trace of the headers."""

from carnet.core.chain.carnet import Carnet, Trace
from carnet.wire.dialects.a2a.extensions.row import OutboundFacts
from carnet.wire.dialects.a2a.extensions.trace_context import TRACE_URI, read, send
from carnet.wire.stamps.stamp import write_trace

TRACE = Trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "01", "a=b")
CARNET = Carnet(run="r", turn="t")


def test_a_trace_is_read_as_it_was_sent() -> None:
    claimed = read([send(OutboundFacts(carnet=CARNET, trace=write_trace(TRACE, TRACE.span_id)))], 3)
    assert claimed is not None
    assert claimed.trace == TRACE
    assert send(OutboundFacts(carnet=CARNET)) == {}
    assert read([{"other": 1}], 3) is None
    assert TRACE_URI not in send(OutboundFacts(carnet=CARNET))
