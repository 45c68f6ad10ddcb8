"""The travel document before the gate: whose it is, what it agrees with, and where it has been."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.chain.carnet import Mark
from carnet.core.people.proof import Document, Proof, Spending
from carnet.errors import (
    CarnetError,
    ChainMismatch,
    LoopDetected,
    ProviderTimeout,
    SignatureExpired,
    SignatureInvalid,
    TimestampOutOfWindow,
)
from carnet.guards.candidate import Candidate
from carnet.guards.proof.travel import Travelled, Unlooped, travels
from carnet.testing.clock import FakeClock
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from tests.guards.scene import DOMAIN, claim, target

SEED = bytes(range(32))
KEY = ed25519.public_of(SEED)
SECONDS = 1_800_000_000
NOW = SECONDS * 1_000_000
DOCUMENT = Document(
    issuer="b.example",
    audience=DOMAIN,
    issued=SECONDS,
    expires=SECONDS + 60,
    run="conv_1",
    turn="t1",
    parent_turn="t0",
    depth=1,
    last_depth=3,
    path=("@front@b.example",),
    budget=Spending(calls=4),
    deadline_ms=SECONDS * 1000 + 2500,
    on_behalf_of=("token:alice",),
    digest="sha-256=:eA==:",
    keyid="k1",
)


def candidate(
    document: Document | None = DOCUMENT,
    *marks: Mark,
    seed: bytes = SEED,
    sender: str = "agent://b.example",
    keyid: str = "k1",
) -> Candidate:
    if document is not None:
        document = travel.read(
            travel.write(document, sign=lambda message: ed25519.sign(seed, message))
        )
    proof = Proof(
        profile="carnet",
        sender=sender,
        keyid=keyid,
        signature=b"",
        bases=(),
        nonce="nonce-0001",
        at=NOW,
        document=document,
    )
    found = Candidate(replace(claim(marks=marks), proof=proof), NOW)
    found.key = KEY
    return found


def judge(found: Candidate) -> Candidate:
    clock = FakeClock(wall_us=NOW - 100_000_000)
    clock.jump(100)  # the clock that never jumps stands elsewhere than the one on the wall
    Travelled(clock)(found)
    return found


def test_what_a_document_of_the_sender_says_is_taken_over() -> None:
    found = judge(candidate())
    assert (found.path, found.on_behalf_of) == (DOCUMENT.path, DOCUMENT.on_behalf_of)
    assert found.budget == Spending(calls=4)
    assert found.deadline == SECONDS - 100 + 2.5


def test_a_claim_without_a_document_has_nothing_to_take_over() -> None:
    found = judge(candidate(None))
    assert (found.path, found.budget, found.deadline) == ((), None, None)


def test_a_document_without_a_deadline_sets_none() -> None:
    assert judge(candidate(replace(DOCUMENT, deadline_ms=None))).deadline is None


REFUSED: list[tuple[dict[str, Any], type[CarnetError]]] = [
    ({"seed": bytes(32)}, SignatureInvalid),
    ({"keyid": "k2"}, SignatureInvalid),
    ({"sender": "agent://c.example"}, SignatureInvalid),
    ({"sender": "agent://x.b.example"}, SignatureInvalid),
    ({"document": replace(DOCUMENT, deadline_ms=SECONDS * 1000)}, ProviderTimeout),
]


@pytest.mark.parametrize(("how", "error"), REFUSED)
def test_a_document_that_is_not_the_senders_or_too_late_is_refused(
    how: dict[str, Any], error: type[CarnetError]
) -> None:
    with pytest.raises(error):
        judge(candidate(**how))


@pytest.mark.parametrize(
    ("issued", "expires", "error"),
    [
        (SECONDS + 31, SECONDS + 60, TimestampOutOfWindow),
        (SECONDS - 60, SECONDS, SignatureExpired),
    ],
)
def test_a_document_holds_in_its_time(issued: int, expires: int, error: type[CarnetError]) -> None:
    with pytest.raises(error):
        judge(candidate(replace(DOCUMENT, issued=issued, expires=expires)))
    judge(candidate(replace(DOCUMENT, issued=SECONDS + 30, expires=SECONDS + 60)))
    judge(candidate(replace(DOCUMENT, issued=SECONDS - 60, expires=SECONDS + 1)))


SAME = Mark(stamp="tangle", run="conv_1", turn="t1", parent_turn="t0", depth=1, last_depth=9)


def test_stamps_that_tell_the_same_chain_agree_and_silent_ones_too() -> None:
    judge(candidate(DOCUMENT, SAME, Mark(stamp="caller_context")))


@pytest.mark.parametrize(
    "changed",
    [{"run": "conv_2"}, {"turn": "t2"}, {"parent_turn": "t9"}, {"depth": 2}, {"depth": 0}],
)
def test_a_stamp_that_tells_another_chain_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ChainMismatch):
        judge(candidate(DOCUMENT, replace(SAME, **changed)))


def passing(name: str, *path: str, **more: Any) -> None:
    found = candidate(None)
    found.path = path
    found.target = target(name, **more)
    Unlooped(DOMAIN)(found)


def test_an_agent_that_the_chain_has_passed_is_not_called_again() -> None:
    with pytest.raises(LoopDetected):
        passing("echo", "@front@b.example", f"@echo@{DOMAIN}")


def test_an_agent_that_allows_it_is_called_again() -> None:
    passing("echo", f"@echo@{DOMAIN}", reentry=True)


def test_another_agent_and_one_of_the_same_name_elsewhere_are_no_loop() -> None:
    passing("echo")
    passing("echo", "@echo@b.example", f"@critic@{DOMAIN}")
    passing("bridge/echo", f"@echo@{DOMAIN}")  # such a name has no address


@pytest.mark.parametrize("how", [how for how, error in REFUSED if error is SignatureInvalid])
def test_a_document_that_is_not_the_senders_is_refused_before_anything_else_is_read(
    how: dict[str, Any],
) -> None:
    with pytest.raises(SignatureInvalid):
        travels(candidate(**how))
    travels(candidate())
    travels(candidate(None))
