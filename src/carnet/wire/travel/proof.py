"""The proof of a tree of calls: receipts, each with those that it names.

What one gateway tells another of it is a list of nodes, `{"turn", "to", "receipt", "below"}`;
`below` is such a list, or a code where nobody could tell.

Law 1. `read_receipts(write_receipts(nodes)) == nodes`.
Law 2. What is read is bounded: so many nodes, so deep. Nothing of it is believed.
Law 3. A receipt holds for those below it only if it names exactly these: given to whoever it is
       from, in the same run, with no more calls than it says and none that went deeper.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from carnet.errors import PeerResponseInvalid
from carnet.wire.travel.receipt import Receipt, links_to, read_receipt, receipt_hash

MOST_NODES: Final = 1000
MOST_LEVELS: Final = 32
MOST_TEXT: Final = 512  # characters of what is told beside a receipt

Faults = list[str]


class ReceiptNode(Struct, frozen=True, kw_only=True):
    """One receipt, and what it was shown to name."""

    turn: str  # as the caller calls the call
    to: str
    text: str  # the receipt as it was given
    receipt: Receipt
    below: "tuple[ReceiptNode, ...]" = ()
    code: str | None = None  # why nothing is known of what is below


def write_receipts(nodes: Sequence[ReceiptNode]) -> list[dict[str, Any]]:
    """The nodes as a list for JSON."""
    return [
        {
            "turn": node.turn,
            "to": node.to,
            "receipt": node.text,
            "below": write_receipts(node.below) if node.code is None else node.code,
        }
        for node in nodes
    ]


def read_receipts(given: object) -> tuple[ReceiptNode, ...]:
    """Read what another gateway tells; `PeerResponseInvalid` for what is no such list."""
    return _Reading().nodes(given, 0)


class _Reading:
    """Reads nodes, and counts them."""

    def __init__(self) -> None:
        self._count = 0

    def nodes(self, given: object, level: int) -> tuple[ReceiptNode, ...]:
        if not isinstance(given, list) or level > MOST_LEVELS:
            raise PeerResponseInvalid("what it tells of receipts has another form")
        return tuple([self._node(each, level) for each in given])

    def _node(self, given: object, level: int) -> ReceiptNode:
        self._count += 1
        if self._count > MOST_NODES or not isinstance(given, dict):
            raise PeerResponseInvalid("what it tells of receipts has another form")
        text, below = given.get("receipt"), given.get("below")
        if not isinstance(text, str):
            raise PeerResponseInvalid("what it tells of receipts holds none")
        is_unknown = isinstance(below, str)
        return ReceiptNode(
            turn=_word(given.get("turn")),
            to=_word(given.get("to")),
            text=text,
            receipt=read_receipt(text),
            below=() if is_unknown else self.nodes(below, level + 1),
            code=_word(below) if is_unknown else None,
        )


def _word(given: object) -> str:
    return given[:MOST_TEXT] if isinstance(given, str) else ""


def check_links(node: ReceiptNode) -> Faults:
    """What is wrong between a receipt and those below it; nothing where these are not known."""
    if node.code is not None:
        return []
    receipt, below = node.receipt, [each.receipt for each in node.below]
    faults = {
        "it names other receipts than those that were shown": receipt.below
        != links_to([receipt_hash(each.text) for each in node.below]),
        "a receipt below it was given to another": any(
            each.audience != receipt.issuer for each in below
        ),
        "a receipt below it is of another run": any(each.run != receipt.run for each in below),
        "more calls were made below it than it says": sum(each.calls for each in below)
        > receipt.calls,
        "calls below it went deeper than it says": any(
            each.max_depth > receipt.max_depth for each in below
        ),
    }
    return [fault for fault, is_there in faults.items() if is_there]
