"""The travel document between two Carnets: what is signed, by whom, and how it is written.

It is pure. Whose key is whose, what time it is and whether a call goes on, others decide.

    document   read, read_beside, mark          → Document   document.py
               write                            ← Document
    profile    read_proof                       → Proof      profile.py
               cover                            ← what a signature must cover
    receipt    read_receipt, answer_digest      → Receipt    receipt.py
               write_receipt                    ← Receipt
    proof      read_receipts, check_links       → ReceiptNode  proof.py
               write_receipts                   ← ReceiptNode
    keys       read_well_known                  → WellKnown  well_known.py
               write_well_known                 ← WellKnown
    statement  read_statement                   → SignedStatement  statement.py
               write_statement                  ← Statement
    ended      read_ended                       → EndedList  ended.py
               write_ended                      ← EndedList
"""

from carnet.wire.travel.document import HEADER, MOST_PATH, mark, read, read_beside, write
from carnet.wire.travel.ended import MOST_ENDED, EndedList, read_ended, write_ended
from carnet.wire.travel.profile import COMPONENTS, TAG, cover, read_proof
from carnet.wire.travel.proof import (
    Faults,
    ReceiptNode,
    check_links,
    read_receipts,
    write_receipts,
)
from carnet.wire.travel.receipt import (
    MOST_LEVELS,
    RECEIPT_HEADER,
    Links,
    Receipt,
    answer_digest,
    links_to,
    read_comment,
    read_receipt,
    receipt_hash,
    write_comment,
    write_receipt,
)
from carnet.wire.travel.statement import (
    MOST_LINES,
    SignedStatement,
    read_statement,
    write_statement,
)
from carnet.wire.travel.well_known import (
    MOST_KEYS,
    PublishedKey,
    WellKnown,
    read_well_known,
    write_well_known,
)

__all__ = [
    "COMPONENTS",
    "HEADER",
    "MOST_ENDED",
    "MOST_KEYS",
    "MOST_LEVELS",
    "MOST_LINES",
    "MOST_PATH",
    "RECEIPT_HEADER",
    "TAG",
    "EndedList",
    "Faults",
    "Links",
    "PublishedKey",
    "Receipt",
    "ReceiptNode",
    "SignedStatement",
    "WellKnown",
    "answer_digest",
    "check_links",
    "cover",
    "links_to",
    "mark",
    "read",
    "read_beside",
    "read_comment",
    "read_ended",
    "read_proof",
    "read_receipt",
    "read_receipts",
    "read_statement",
    "read_well_known",
    "receipt_hash",
    "write",
    "write_comment",
    "write_ended",
    "write_receipt",
    "write_receipts",
    "write_statement",
    "write_well_known",
]
