"""The SAMVAD dialect, version 1.2: signed envelopes, cards and streams, on both sides.

It is pure: it reads what arrives and writes what leaves. Whether a signature holds, a nonce is new
and a sender is trusted, the guards decide.

    inbound    read_claim                      → Claim    claim.py (envelope.py, proof.py)
               write_answer, span_of           ← events   answer.py, spans.py
               StreamWriter, KEEP_ALIVE        ← events   stream.py
               REFUSALS, error_object, write_error        refusals.py
               write_card, write_intro, write_health      card.py
               write_accepted, write_record, read_asking  tasks.py
    outbound   Envelope, write_envelope                   envelope.py
               read_answer, result_of          → events   answer.py
               FrameReader                     → events   stream.py
               read_refusal                    → error    reports.py
               read_card                       → Card     card.py
               read_accepted, read_task        → record   task_reports.py
"""

from carnet.wire.dialects.dialect import AgentKey as CardKey
from carnet.wire.dialects.results import result_of
from carnet.wire.dialects.samvad.answer import read_answer, span_from, span_of, write_answer
from carnet.wire.dialects.samvad.card import (
    DEFAULT_TTL,
    Card,
    CardFacts,
    Model,
    read_card,
    write_card,
    write_health,
    write_intro,
)
from carnet.wire.dialects.samvad.claim import NAME, read_claim
from carnet.wire.dialects.samvad.dialect import DIALECT
from carnet.wire.dialects.samvad.envelope import Envelope, read_envelope, write_envelope
from carnet.wire.dialects.samvad.refusals import (
    CODE_HEADER,
    FIELD_HEADER,
    REFUSALS,
    error_object,
    write_error,
)
from carnet.wire.dialects.samvad.reports import MEANINGS, STATUSES, read_refusal
from carnet.wire.dialects.samvad.stream import KEEP_ALIVE, FrameReader, StreamWriter
from carnet.wire.dialects.samvad.task_reports import (
    TaskRecord,
    is_task_id,
    is_unknown_task,
    read_accepted,
    read_task,
    task_events,
)
from carnet.wire.dialects.samvad.tasks import (
    read_asking,
    write_accepted,
    write_not_found,
    write_record,
)

write_request = write_envelope  # as the other dialects call it

__all__ = [
    "CODE_HEADER",
    "DEFAULT_TTL",
    "DIALECT",
    "FIELD_HEADER",
    "KEEP_ALIVE",
    "MEANINGS",
    "NAME",
    "REFUSALS",
    "STATUSES",
    "Card",
    "CardFacts",
    "CardKey",
    "Envelope",
    "FrameReader",
    "Model",
    "StreamWriter",
    "TaskRecord",
    "error_object",
    "is_task_id",
    "is_unknown_task",
    "read_accepted",
    "read_answer",
    "read_asking",
    "read_card",
    "read_claim",
    "read_envelope",
    "read_refusal",
    "read_task",
    "result_of",
    "span_from",
    "span_of",
    "task_events",
    "write_accepted",
    "write_answer",
    "write_card",
    "write_envelope",
    "write_error",
    "write_health",
    "write_intro",
    "write_not_found",
    "write_record",
    "write_request",
]
