"""One receipt for all who read a turn, and only of what stands in its record."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.messages.events import OUTBOUND_CALL, Event, Extension, Failed, Text, Usage
from carnet.errors import CarnetError, Internal, Overloaded, RunNotFound, StorageUnavailable
from carnet.runtime.receipts.issue import Issuing, Receipted
from carnet.wire.dialects import openai
from carnet.wire.grammar.json import MAX_INTEGER
from tests.runtime.peers.test_signing import Keys, OneKey
from tests.runtime.receipts.test_issue import (
    ANSWER,
    FixedJournal,
    Kept,
    receipt_in,
    travelled,
    written,
)


class NewKey(OneKey):
    """The key that has replaced it."""

    kid = "k2"


class Rotated(Keys):
    """The keys a moment later."""

    def signer(self) -> OneKey:
        return NewKey()


def with_keys(kept: Kept, keys: Any, *events: Event) -> Receipted:
    issuing = Issuing(
        kept=kept, keys=keys, domain="b.example", currency="credits", url="http://b.example"
    )
    return Receipted(FixedJournal(*(events or ANSWER)), issuing, openai.digest_content)


def with_journal(kept: Kept, *events: Event) -> Receipted:
    return with_keys(kept, Keys(), *events)


async def test_who_made_another_one_meanwhile_gives_the_one_that_is_kept() -> None:
    kept = Kept()
    owner, reader = travelled(), replace(travelled(), known=True)
    answers = await asyncio.gather(
        with_keys(kept, Rotated()).whole(reader),
        with_keys(kept, Keys()).whole(owner),
        with_keys(kept, Rotated()).whole(reader),
    )
    receipts = [receipt_in(events) for events in answers]
    assert receipts[0] == receipts[1] == receipts[2]
    assert len(kept.receipts) == 1


@pytest.mark.parametrize("error", [Overloaded(), Internal(), RunNotFound(), StorageUnavailable()])
async def test_a_failure_to_read_a_turn_is_not_receipted_as_its_end(error: CarnetError) -> None:
    """Who reads it from another process may lose sight of it while it goes on and ends well."""
    kept = Kept()
    lost = (Text("well"), Usage(), Failed.of(error))  # what a reader is told whom the store fails
    events = await with_journal(kept, *lost).whole(replace(travelled(), known=True))
    assert (tuple(events), kept.receipts) == (lost, {})
    ended = await with_journal(kept, *ANSWER).whole(travelled())
    assert receipt_in(ended).code is None


async def test_a_recorded_end_is_receipted_whatever_its_code() -> None:
    failed = (Usage(None, None, 5, 5, "credits"), Failed.of(Overloaded()))
    receipt = receipt_in(await with_journal(Kept(), *failed).whole(travelled()))
    assert (receipt.code, receipt.cost) == ("overloaded", 5)


async def test_a_callee_that_counts_beyond_all_bounds_does_not_spoil_our_receipt() -> None:
    fields = {"turn": "t1", "to": "@x@c.example", "depth": 2, "status": "done"}
    call_record = Extension(OUTBOUND_CALL, {**fields, "receipt": written(calls=MAX_INTEGER)})
    events = (call_record, *ANSWER)
    receipt = receipt_in(await with_journal(Kept(), *events).whole(travelled()))
    assert receipt.calls == MAX_INTEGER
