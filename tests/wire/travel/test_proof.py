"""The proof of a tree of calls, as gateways tell it to one another."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.errors import PeerResponseInvalid
from carnet.wire import travel
from carnet.wire.travel.proof import MOST_LEVELS, MOST_NODES
from tests.wire.travel.scene import sign
from tests.wire.travel.test_receipt import RECEIPT


def node(receipt: travel.Receipt = RECEIPT, *below: travel.ReceiptNode) -> travel.ReceiptNode:
    """A node whose receipt names those below it."""
    links = travel.links_to([travel.receipt_hash(each.text) for each in below])
    text = travel.write_receipt(replace(receipt, below=links), sign=sign)
    read = travel.read_receipt(text)
    return travel.ReceiptNode(turn="t", to="@x@b.example", text=text, receipt=read, below=below)


CHILD = replace(RECEIPT, issuer="c.example", audience="b.example", turn="u", parent="t", calls=1)
TREE = node(RECEIPT, node(CHILD), node(replace(CHILD, turn="v")))


def test_what_is_written_is_read_again() -> None:
    nodes = (TREE, replace(node(CHILD), code="peer_unknown"))
    assert travel.read_receipts(travel.write_receipts(nodes)) == nodes


def test_a_receipt_says_which_are_below_it_in_whichever_order() -> None:
    hashes = [travel.receipt_hash(each.text) for each in TREE.below]
    assert travel.links_to(hashes) == travel.links_to([*reversed(hashes), hashes[0]])
    assert TREE.receipt.below == travel.links_to(hashes)
    assert travel.links_to([]) is None
    assert TREE.below[0].receipt.parent == "t"


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        [1],
        [{}],
        [{"receipt": 1, "below": []}],
        [{"receipt": "x", "below": []}],
        [{"receipt": TREE.text}],
        travel.write_receipts([TREE]) * (MOST_NODES // 3 + 1),
    ],
)
def test_what_has_another_form_is_refused(given: object) -> None:
    with pytest.raises(PeerResponseInvalid):
        travel.read_receipts(given)


def test_it_is_read_so_deep_and_no_deeper() -> None:
    text = TREE.text
    nested: list[Any] = []
    for _ in range(MOST_LEVELS + 2):
        nested = [{"turn": "t", "to": 7, "receipt": text, "below": nested}]
    with pytest.raises(PeerResponseInvalid):
        travel.read_receipts(nested)
    assert travel.read_receipts(nested[0]["below"][0]["below"])[0].to == ""


def test_a_receipt_holds_for_those_that_it_names_and_no_others() -> None:
    assert travel.check_links(TREE) == []
    assert travel.check_links(node()) == []
    assert len(travel.check_links(replace(TREE, below=TREE.below[:1]))) == 1
    assert len(travel.check_links(replace(TREE, below=()))) == 1
    assert travel.check_links(replace(TREE, below=(), code="peer_unknown")) == []
    assert len(travel.check_links(replace(node(), below=(node(CHILD),)))) == 1


@pytest.mark.parametrize(
    "changed",
    [{"audience": "d.example"}, {"run": "other"}, {"calls": 9}, {"max_depth": 9}],
)
def test_what_is_below_fits_what_is_above(changed: dict[str, Any]) -> None:
    tree = node(RECEIPT, node(replace(CHILD, **changed)))
    assert len(travel.check_links(tree)) == 1
