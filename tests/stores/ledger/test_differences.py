"""Which calls to others are listed as unmatched."""

import pytest
from msgspec.structs import replace

from carnet.core.messages.outbound_call import OutboundCall
from carnet.ports.calls.turns import end_unknown
from carnet.stores.open import Store
from tests.stores.support.scenes import ALICE, a_claim, a_finish, claimed

SILENT = OutboundCall(
    ordinal=0,
    child_turn="r1.t0.critic",
    to="@critic@globex.example",
    depth=1,
    state="failed",
    dialect="tangle",
    code="provider_unavailable",
)
NOT_SENT = replace(SILENT, cost=0)
ANSWERED = replace(SILENT, state="done", code=None, cost=0)
REPORTED = replace(SILENT, peer_status=502, cost=0)


@pytest.mark.parametrize(
    ("attempts", "unmatched"),
    [
        ([NOT_SENT], 0),
        ([SILENT], 1),
        ([SILENT, NOT_SENT], 1),
        ([SILENT, SILENT], 1),
        ([SILENT, ANSWERED], 0),
        ([SILENT, REPORTED], 0),
        ([SILENT, replace(SILENT, cost=300)], 0),
        ([REPORTED, SILENT], 1),
        ([REPORTED, SILENT, REPORTED], 0),
    ],
    ids=[
        *("not sent", "silent", "then not sent", "twice", "answered", "reported", "broken off"),
        *("reported before", "reported before and after"),
    ],
)
async def test_a_call_is_unmatched_until_an_attempt_of_it_is_told_what_it_cost(
    attempts: list[OutboundCall], unmatched: int, store: Store
) -> None:
    calls = tuple(replace(each, ordinal=number) for number, each in enumerate(attempts))
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_finish(turn, state="failed", debits=(), outbound=calls))
    found = await store.differences(elsewhere=(), limit=10)
    assert [each.kind for each in found] == ["unmatched"] * unmatched


async def test_a_call_that_was_lost_with_us_is_unmatched_at_once(store: Store) -> None:
    asked = a_claim(agent="@critic@globex.example")
    refused = replace(SILENT, state="refused", peer_status=402)
    turn = claimed(await store.turns.claim(asked))
    await store.turns.finish(
        a_finish(turn, state="failed", debits=(), outbound=(refused,), retryable=True)
    )
    turn = claimed(await store.turns.claim(asked))
    await store.turns.finish(end_unknown(turn, ALICE, now=turn.created + 1000))
    (found,) = await store.differences(elsewhere=(), limit=10)
    assert (found.kind, found.other) == ("unmatched", "@critic@globex.example")


async def test_a_call_that_was_refused_before_and_then_got_no_answer_is_unmatched(
    store: Store,
) -> None:
    """The callee may have begun in the attempt that was silent, and have a posting of it."""
    asked = a_claim(agent="@critic@globex.example")
    for last in (REPORTED, SILENT):
        turn = claimed(await store.turns.claim(asked))
        await store.turns.finish(
            a_finish(turn, state="failed", debits=(), outbound=(last,), retryable=True)
        )
    (found,) = await store.differences(elsewhere=(), limit=10)
    assert (found.kind, found.other) == ("unmatched", "@critic@globex.example")


@pytest.mark.parametrize(
    ("then", "unmatched"),
    [((), 1), ((NOT_SENT,), 1), ((ANSWERED,), 0), ((REPORTED,), 0)],
    ids=["refused here", "not sent", "answered", "reported"],
)
async def test_a_lost_call_stays_unmatched_until_it_is_made_again_and_answered(
    then: tuple[OutboundCall, ...], unmatched: int, store: Store
) -> None:
    asked = a_claim(agent="@critic@globex.example")
    turn = claimed(await store.turns.claim(asked))
    await store.turns.finish(end_unknown(turn, ALICE, now=turn.created + 1000))
    turn = claimed(await store.turns.claim(asked))
    await store.turns.finish(a_finish(turn, state="failed", debits=(), outbound=then))
    found = await store.differences(elsewhere=(), limit=10)
    assert [each.kind for each in found] == ["unmatched"] * unmatched


async def test_a_lost_call_to_an_agent_here_is_not_listed(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim(agent="critic")))
    await store.turns.finish(end_unknown(turn, ALICE, now=turn.created + 1000))
    assert await store.differences(elsewhere=(), limit=10) == []
    (found,) = await store.differences(elsewhere=("critic",), limit=10)
    assert (found.kind, found.other) == ("unmatched", "critic")
    assert await store.records.outbound(turn.run, reader=None) == {}


async def test_a_call_that_was_accepted_and_never_made_is_not_listed(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim(agent="@critic@globex.example")))
    await store.turns.finish(end_unknown(turn, ALICE, now=turn.created + 1000, has_begun=False))
    assert await store.differences(elsewhere=(), limit=10) == []
