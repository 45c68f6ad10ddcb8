"""Receipts of signed-receipts/v1: what is issued holds, and nothing else does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.wire.crypto import ed25519
from carnet.wire.dialects.a2a.extensions.row import TaskFacts
from carnet.wire.dialects.a2a.extensions.signed_receipts import (
    KEY,
    RECEIPTS_URI,
    answer,
    holds,
    is_wanted,
    issue,
    task,
)

SEED = bytes(range(32))


def receipt(claims: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return issue(
        domain="acme.example",
        kid="k-1",
        public=ed25519.public_of(SEED),
        sign=lambda message: ed25519.sign(SEED, message),
        task="task-1",
        card="https://acme.example/.well-known/agent-card.json",
        claims=claims or [],
        at="2026-11-15T06:46:52Z",
    )


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3), max_size=3))
def test_what_is_issued_holds(claims: list[dict[str, Any]]) -> None:
    assert holds(receipt(claims))


@pytest.mark.parametrize("name", ["issuer", "task_id", "subject_card", "issued_at", "content_id"])
def test_what_was_changed_does_not_hold(name: str) -> None:
    assert not holds(receipt() | {name: "other"})


def test_a_receipt_is_told_on_a_task_and_read_as_a_claim() -> None:
    facts = TaskFacts(task="task-1", run="r", turn="t", statement=receipt())
    reading = answer(task(facts), "credits")
    assert reading is not None
    assert reading.claimed["signed_receipts"]["is_whole"] is True
    assert reading.receipt is None  # it settles nothing
    assert KEY not in task(TaskFacts(task="task-1", run="r", turn="t"))


def test_it_is_wanted_by_who_has_activated_it() -> None:
    assert is_wanted({"extensions": (RECEIPTS_URI,)})
    assert not is_wanted({})
    assert not is_wanted({"extensions": ["urn:other"]})
