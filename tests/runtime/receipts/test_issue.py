"""Receipts that we give, and those that we ask for."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    CHILD,
    OUTBOUND_CALL,
    RECEIPT,
    Done,
    End,
    Event,
    Extension,
    Failed,
    Text,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.core.messages.output import Sink
from carnet.core.people.proof import Document
from carnet.errors import (
    AgentFailed,
    CarnetError,
    OutcomeUnknown,
    PeerRefused,
    PeerResponseInvalid,
    PeerUnreachable,
    StorageUnavailable,
)
from carnet.ports.trust.keys import KeyRing
from carnet.runtime.peers.answer_reader import tell
from carnet.runtime.receipts.issue import Issuing, Receipted
from carnet.runtime.receipts.outbound_calls import Tally, tally
from carnet.runtime.receipts.verification import ExpectedReceipt, Verifying
from carnet.testing.clock import FakeClock
from carnet.testing.keys import MemoryRing
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.dialects import openai
from carnet.wire.dialects.policy import digest_content
from tests.runtime.peers.test_signing import PUBLIC, SEED, Keys
from tests.runtime.scene import Paper, make_call

END: tuple[Event, ...] = (Usage(1, 2, 200, 200, "credits"), Done())
ANSWER: tuple[Event, ...] = (Text("well"), *END)
DOCUMENT = Document(
    issuer="a.example",
    audience="b.example",
    issued=0,
    expires=60,
    run="run_1",
    turn="run_1.t0.critic",
    depth=1,
    last_depth=3,
    digest="x",
    keyid="k",
)


class Kept:
    """Receipts in memory; none where it is `full`."""

    def __init__(self, *, full: bool = False) -> None:
        self.receipts: dict[tuple[int, int], str] = {}
        self.puts = 0
        self._full = full

    async def put(self, turn: Turn, jws: str) -> str:
        await asyncio.sleep(0)
        if self._full:
            raise StorageUnavailable
        self.puts += 1
        return self.receipts.setdefault((turn.n, turn.attempt), jws)

    async def get(self, turn: Turn) -> str | None:
        await asyncio.sleep(0)
        return self.receipts.get((turn.n, turn.attempt))


class FixedJournal:
    """A journal that says the same each time, one event a batch but for the last."""

    def __init__(self, *events: Event) -> None:
        self._events = events

    async def batches(
        self, call: Call, /, heartbeat: float | None = None
    ) -> AsyncGenerator[Sequence[Event], None]:
        del call, heartbeat
        for event in self._events[:-2]:
            yield (event,)
        yield ()
        yield self._events[-2:]

    async def size(self, call: Call, /) -> int:
        del call
        return 0

    async def whole(self, call: Call, /) -> Sequence[Event]:
        del call
        return list(self._events)

    async def cancel(self, turns: Collection[int]) -> int:
        return len(turns)


def receipted(kept: Kept, *events: Event) -> Receipted:
    keys: Any = Keys()
    issuing = Issuing(
        kept=kept, keys=keys, domain="b.example", currency="credits", url="http://b.example"
    )
    return Receipted(FixedJournal(*events), issuing, openai.digest_content)


def travelled() -> Call:
    return replace(make_call(), document=DOCUMENT)


def receipt_in(events: Sequence[Event]) -> travel.Receipt:
    *_, extension, _ = events
    assert isinstance(extension, Extension)
    assert extension.name == RECEIPT
    return travel.read_receipt(extension.payload)


async def test_the_receipt_stands_before_the_end_of_a_whole_answer() -> None:
    receipt = receipt_in(await receipted(Kept(), *ANSWER).whole(travelled()))
    assert (receipt.issuer, receipt.audience) == ("b.example", "a.example")
    assert (receipt.run, receipt.turn, receipt.cost) == ("run_1", "run_1.t0.critic", 200)
    assert receipt.digest == travel.answer_digest({"text": "well"})
    assert ed25519.holds(PUBLIC, receipt.signed, receipt.signature)


async def test_a_stream_has_the_same_receipt_in_its_last_batch() -> None:
    kept = Kept()
    whole = receipt_in(await receipted(kept, *ANSWER).whole(travelled()))
    batches = [batch async for batch in receipted(kept, *ANSWER).batches(travelled())]
    assert [len(batch) for batch in batches] == [1, 0, 3]
    assert receipt_in(batches[-1]) == whole


async def test_readers_that_come_together_get_one_receipt() -> None:
    kept = Kept()
    journal = receipted(kept, *ANSWER)
    answers = await asyncio.gather(*[journal.whole(travelled()) for _ in range(5)])
    assert len({receipt_in(answer).signature for answer in answers}) == 1
    assert len(kept.receipts) == 1


async def test_who_came_without_a_document_gets_what_was_said() -> None:
    kept = Kept()
    journal = receipted(kept, *ANSWER)
    assert list(await journal.whole(make_call())) == list(ANSWER)
    assert [event async for batch in journal.batches(make_call()) for event in batch] == list(
        ANSWER
    )
    assert (kept.puts, await journal.cancel({1, 2})) == (0, 2)


async def test_a_failure_is_receipted_with_its_code_unless_nobody_knows_how_it_ended() -> None:
    failed = receipt_in(
        await receipted(Kept(), Usage(cost=5), Failed.of(AgentFailed())).whole(travelled())
    )
    assert (failed.code, failed.cost, failed.digest) == ("agent_failed", 5, None)
    unknown = (Usage(), Failed.of(OutcomeUnknown()))
    assert await receipted(Kept(), *unknown).whole(travelled()) == unknown


ASKED = Waiting((Interrupt(id="i", state="s", kind="payment", message="May I?"),))


async def test_a_turn_that_waits_is_receipted_so_far_and_its_end_with_another() -> None:
    kept = Kept()
    waits = receipt_in(await receipted(kept, Usage(cost=5), ASKED).whole(travelled()))
    assert (waits.code, waits.cost) == (None, 5)
    assert waits.digest == travel.answer_digest(digest_content(ASKED))
    assert kept.puts == 0
    done = receipt_in(await receipted(kept, *ANSWER).whole(replace(travelled(), known=True)))
    assert (done.code, done.digest) == (None, travel.answer_digest({"text": "well"}))


async def test_a_repeat_gets_the_receipt_that_was_kept() -> None:
    kept = Kept()
    again = replace(travelled(), known=True)
    first = receipt_in(
        await receipted(kept, *ANSWER).whole(again)
    )  # a crash came before it was kept
    changed = (Text("well"), Usage(cost=999), Done())
    assert receipt_in(await receipted(kept, *changed).whole(again)) == first
    assert kept.puts == 1


async def test_nothing_is_answered_with_a_receipt_that_could_not_be_kept() -> None:
    with pytest.raises(StorageUnavailable):
        await receipted(Kept(full=True), *ANSWER).whole(travelled())


# ------------------------------------------------------------------------- what they count


def call_record(turn: str, depth: int, **more: Any) -> Event:
    fields = {"turn": turn, "to": "@x@c.example", "depth": depth, "status": "done", **more}
    return Extension(OUTBOUND_CALL, fields)


def test_calls_are_counted_once_however_often_they_were_tried() -> None:
    child = Extension(CHILD, {"cost": 0, "calls": 3, "deepest": 4})
    tried = [
        call_record("t1", 2, status="failed"),
        call_record("t1", 2),
        call_record("t2", 2, status="refused"),
    ]
    assert tally(1, [Text("x"), *tried, child]) == Tally(5, 4)
    assert tally(2, [call_record("t1", 2)]) == Tally(1, 2)  # the turn is that call itself
    assert tally(1, [Extension("else", None), Extension(CHILD, {"cost": 0})]) == Tally(2, 1)


def test_what_another_organisation_has_signed_for_is_counted_as_it_says() -> None:
    receipt = written(calls=7, max_depth=3)
    named = frozenset({travel.receipt_hash(receipt)})
    assert tally(1, [call_record("t1", 2, receipt=receipt)]) == Tally(8, 3, named)


# --------------------------------------------------------------------- those we ask for


def written(**changed: Any) -> str:
    receipt = travel.Receipt(
        issuer="b.example",
        audience="a.example",
        issued=0,
        run="run_1",
        turn="run_1.t0.critic",
        cost=200,
        currency="credits",
        calls=1,
        max_depth=1,
        digest=travel.answer_digest({"text": "well"}),
        keyid="k-1",
    )
    seed = changed.pop("seed", SEED)
    receipt = replace(receipt, **changed)
    return travel.write_receipt(receipt, sign=lambda message: ed25519.sign(seed, message))


def reading(
    *events: Event, error: CarnetError | None = None
) -> Callable[[Sink], Awaitable[Done | Waiting]]:
    async def read(sink: Sink) -> Done | Waiting:
        if error is None:
            return await tell(events, sink)
        await tell((*events, Done()), sink)
        raise error

    return read


def known() -> MemoryRing:
    """A key ring that first has to look."""
    ring = MemoryRing()
    ring.publish("agent://b.example", "k-1", PUBLIC)
    return ring


async def proven(
    presented: str | None,
    *events: Event,
    ring: KeyRing | None = None,
    error: CarnetError | None = None,
) -> tuple[list[Event], ExpectedReceipt]:
    keys = ring or known()
    verifying = Verifying(keys, domain="a.example", currency="credits", clock=FakeClock())
    receipt = ExpectedReceipt()
    receipt.presented = presented
    paper, carnet = Paper(), make_call().carnet
    read = reading(*events, error=error)
    end: End
    try:
        end = await verifying.proven(
            read, carnet, receipt, paper, peer="b.example", result_of=openai.digest_content
        )
    except CarnetError as raised:
        end = Failed.of(raised)
    return [*paper.events, end], receipt


async def test_an_answer_with_its_receipt_costs_what_the_receipt_says() -> None:
    events, receipt = await proven(
        written(), Text("well"), Usage(1, 2, 999, 999, "credits"), Done()
    )
    assert events == [Text("well"), Usage(1, 2, 200, 999, "credits"), Done()]
    assert receipt.proved == receipt.presented


async def test_a_cost_in_another_currency_is_unknown() -> None:
    events, _ = await proven(written(currency="pearls"), Text("well"), *END)
    assert events[1] == Usage(1, 2)


WRONG = [
    None,
    "a.b.c",
    written(seed=bytes(32)),
    written(issuer="c.example"),
    written(audience="c.example"),
    written(run="run_2"),
    written(turn="t"),
    written(digest=travel.answer_digest({"text": "other"})),
    written(digest=None, code="agent_failed"),
]


@pytest.mark.parametrize("presented", WRONG)
async def test_an_answer_without_a_right_receipt_ends_unbilled(presented: str | None) -> None:
    events, receipt = await proven(presented, *ANSWER)
    assert events == [Text("well"), Failed.of(PeerResponseInvalid())]
    assert receipt.proved is None


async def test_a_key_that_is_not_the_peers_proves_nothing() -> None:
    revoked = known()
    revoked.revoke("agent://b.example", "k-1")
    for ring in (MemoryRing(), revoked):
        events, _ = await proven(written(), *ANSWER, ring=ring)
        assert events[-1] == Failed.of(PeerResponseInvalid())


OF_QUESTION = travel.answer_digest(digest_content(ASKED))


@pytest.mark.parametrize(
    "presented", [written(digest=OF_QUESTION), None, written(), written(digest=None, code="x")]
)
async def test_what_a_call_waits_for_is_proved_as_an_answer_is(presented: str | None) -> None:
    """A27: somebody on the way could ask for money, or for more of it."""

    async def read(sink: Sink) -> Waiting:
        sink.usage(Usage(cost=999, currency="credits"))
        return ASKED

    verifying = Verifying(known(), domain="a.example", currency="credits", clock=FakeClock())
    receipt, paper, carnet = ExpectedReceipt(), Paper(), make_call().carnet
    receipt.presented = presented
    more: dict[str, Any] = {"peer": "b.example", "result_of": openai.digest_content}
    if presented != written(digest=OF_QUESTION):
        with pytest.raises(PeerResponseInvalid):
            await verifying.proven(read, carnet, receipt, paper, **more)
        assert (paper.events, receipt.proved) == ([], None)
    else:
        assert await verifying.proven(read, carnet, receipt, paper, **more) == ASKED
        assert paper.events == [Usage(cost=200, currency="credits")]
        assert receipt.proved == presented


async def test_a_failure_costs_what_is_signed_and_nothing_else() -> None:
    refused = PeerRefused(peer_status=500, peer_code="internal")
    charge = Usage(cost=200, currency="credits")
    signed = written(digest=None, code="internal")
    events, receipt = await proven(signed, charge, error=refused)
    assert events == [Usage(cost=200, currency="credits"), Failed.of(refused)]
    assert receipt.proved == signed
    for presented in (None, "a.b.c", written()):
        events, receipt = await proven(presented, charge, error=refused)
        assert (events, receipt.proved) == ([Failed.of(refused)], None)
    assert (await proven(signed, charge, error=refused, ring=Gone()))[0] == [Failed.of(refused)]


class Gone(MemoryRing):
    """Cards that cannot be fetched."""

    async def learn(self, sender: str) -> None:
        raise PeerUnreachable(sender)


def test_the_receipt_of_a_stream_is_its_last_comment_of_that_name() -> None:
    receipt = ExpectedReceipt()
    for comment in ("keep-alive", "carnet-receipt a.b.c", "keep-alive"):
        receipt.read_comment(comment)
    assert receipt.presented == "a.b.c"
