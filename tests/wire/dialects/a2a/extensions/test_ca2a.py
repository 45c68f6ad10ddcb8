"""cA2A: what we send is the record of a call; nothing of a chain gives a right."""

from carnet.core.chain.carnet import Carnet
from carnet.wire.dialects.a2a.extensions.ca2a import ABOVE, RECORD, read, send
from carnet.wire.dialects.a2a.extensions.row import OutboundFacts

CARNET = Carnet(run="r", turn="t")


def test_a_call_names_its_record_and_the_one_above() -> None:
    assert send(OutboundFacts(carnet=CARNET, record="rec-1", above="ab")) == {
        RECORD: "rec-1",
        ABOVE: "ab",
    }
    root = send(OutboundFacts(carnet=CARNET, record="rec-1"))
    assert root == {RECORD: "rec-1", ABOVE: None}
    claimed = read([root], 3)
    assert claimed is not None
    assert claimed.shown == {"links": [], "joined": True, "record_id": "rec-1"}
    assert send(OutboundFacts(carnet=CARNET)) == {}
