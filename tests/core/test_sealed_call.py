"""What is kept of a call so that it can run later."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.call import Admitted, Ask, call_of
from carnet.core.chain.allowance import Allowance
from carnet.core.chain.carnet import Carnet, Trace
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Message
from carnet.core.people.delegation import Delegation
from carnet.core.people.identity import Account, Actor, Caller, Ceiling, Payer, Secret, Standing
from carnet.core.people.proof import Document, Spending
from carnet.core.sealed_call import (
    FORM,
    SealedCall,
    read_sealed_call,
    sealed_call_of,
    write_sealed_call,
)
from carnet.errors import Internal
from carnet.runtime.turns.execution import absent

ALICE = Account("acme.example", "alice")
CARNET = Carnet(
    run="run_1",
    turn="run_1.t0.critic",
    depth=1,
    last_depth=3,
    bound_by="samvad",
    path=("@a@b.example",),
    on_behalf_of=("agent://b.example",),
    budget=Spending(money=5, currency="credits", calls=3),
    trace=Trace("1" * 32, "2" * 16),
)
DELEGATION = Delegation(
    issuer="agent://a.example",
    subject="agent://b.example",
    scope=("chat",),
    hops=2,
    issued=1,
    expires=2,
    signed=b"\x00\xff",
    signature=b"\x01",
)
ADMITTED = Admitted(
    agent="critic",
    dialect="samvad",
    correlation="order-7",
    ask=Ask(
        messages=(Message("user", ("hi",)),),
        skill="chat",
        payload={"text": "hi", "n": 1.5, "deep": [{"a": None}]},
    ),
    carnet=CARNET,
    caller=Caller(
        actor=Actor(name="sender:agent://b.example", how="signature"),
        scopes=frozenset({"call:critic"}),
        ceiling=Ceiling(deny=frozenset({"pay"})),
        standing=Standing(sender="agent://b.example", listed=True),
    ),
    payer=Payer(account=ALICE, quota="token:alice", limit=10),
    onward=replace(CARNET, depth=2),
    document=Document(
        issuer="b.example",
        audience="acme.example",
        issued=1,
        expires=2,
        run="run_1",
        turn="run_1.t0.critic",
        depth=1,
        last_depth=3,
        digest="sha-256=:x:",
        keyid="k1",
        signed=b"\x00\xfe",
    ),
    set_aside=1,
    credential=Secret("Bearer sk-secret"),
    reserve=9,
    delegation=replace(DELEGATION, parent=replace(DELEGATION, hops=3)),
    callback="https://receiver.example/x",
    quota="tokens/2026-11-15/critic/agent://b.example",
    task_quota="tasks/critic/agent://b.example",
)
SEALED_CALL = SealedCall(
    admitted=ADMITTED,
    budget=Spending(money=4, currency="credits", calls=2),
    deadline=1_800_000_000.25,
)
TARGET = absent("critic")
RECORD = Turn(
    n=7, agent="critic", run="run_1", turn="run_1.t0.critic", payer=ALICE, created=1, attempt=2
)


def test_what_is_read_is_what_was_written() -> None:
    assert read_sealed_call(write_sealed_call(SEALED_CALL)) == SEALED_CALL


def test_a_deadline_of_the_clock_that_is_never_set_is_not_kept() -> None:
    late = replace(CARNET, deadline=5.0)
    timed = replace(SEALED_CALL, admitted=replace(ADMITTED, carnet=late, onward=late))
    kept = read_sealed_call(write_sealed_call(timed)).admitted
    assert kept.onward is not None
    assert (kept.carnet.deadline, kept.onward.deadline) == (None, None)


def test_the_call_is_the_one_that_was_admitted() -> None:
    call = read_sealed_call(write_sealed_call(SEALED_CALL)).call(
        TARGET, RECORD, task="t-1", deadline=42.0
    )
    assert (call.agent, call.target, call.record, call.task) == ("critic", TARGET, RECORD, "t-1")
    assert (call.dialect, call.correlation) == ("samvad", "order-7")
    assert call.onward is not None
    assert (call.carnet.deadline, call.onward.deadline) == (42.0, 42.0)
    assert call.credential is not None
    assert call.credential.reveal() == "Bearer sk-secret"
    assert "sk-secret" not in repr(call)
    assert call.allowance is not None
    assert call.allowance.left() == SEALED_CALL.budget
    assert (call.reserve, call.set_aside) == (9, 1)
    assert (call.callback, call.quota, call.task_quota) == (
        ADMITTED.callback,
        ADMITTED.quota,
        ADMITTED.task_quota,
    )
    assert call.delegation == ADMITTED.delegation
    assert (call.known, call.is_child) == (False, False)


@pytest.mark.parametrize(
    "change",
    [
        {"form": FORM + 1},
        {"admitted": {"ask": {"messages": 3}}},
        {"more": 1},
        {"deadline": "9"},
        {"admitted": None},
    ],
)
def test_what_is_none_of_ours_is_refused_as_a_whole(change: dict[str, object]) -> None:
    plain = msgspec.msgpack.decode(write_sealed_call(SEALED_CALL)) | change
    with pytest.raises(Internal):
        read_sealed_call(msgspec.msgpack.encode(plain))


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_refused(data: bytes) -> None:
    with pytest.raises(Internal):
        read_sealed_call(data)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_a_payload_comes_back_as_it_was(value: object) -> None:
    ask = replace(ADMITTED.ask, payload={"value": value})
    asked = replace(SEALED_CALL, admitted=replace(ADMITTED, ask=ask))
    assert read_sealed_call(write_sealed_call(asked)).admitted.ask == ask


def test_the_former_form_is_read_as_it_was_meant() -> None:
    """F36: what was accepted before an upgrade runs after it."""
    written = msgspec.msgpack.decode(write_sealed_call(SEALED_CALL))
    former = written.pop("admitted")
    for name in ("agent", "dialect", "correlation", "granted"):
        former.pop(name)
    former["ask"]["messages"] = [{"role": "user", "content": "hi", "name": None}]
    read = read_sealed_call(msgspec.msgpack.encode({**written, **former, "form": 1}))
    admitted = replace(ADMITTED, agent="", correlation=None)
    assert read == replace(SEALED_CALL, admitted=admitted)
    assert read.call(TARGET, RECORD, task="t-1").agent == "critic"


def test_a_former_form_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(Internal):
        read_sealed_call(msgspec.msgpack.encode({"form": 1, "more": 1}))


def test_a_credential_that_is_no_text_is_refused_like_anything_else_that_is_none_of_ours() -> None:
    plain = msgspec.msgpack.decode(write_sealed_call(SEALED_CALL))
    plain["admitted"]["credential"] = 7
    with pytest.raises(Internal):
        read_sealed_call(msgspec.msgpack.encode(plain))


def test_what_cannot_be_read_again_is_not_written() -> None:
    ask = replace(ADMITTED.ask, payload={"value": object()})
    with pytest.raises(NotImplementedError, match="object"):
        write_sealed_call(replace(SEALED_CALL, admitted=replace(ADMITTED, ask=ask)))


@pytest.mark.parametrize(
    ("set_aside", "spent", "left"),
    [
        *((6, 2, (7, 4)), (6, 0, (9, 6))),
        (6, 50, (0, 1)),  # with none left it is still bounded
        (0, 2, (7, 0)),
    ],
)
def test_a_call_that_waits_keeps_what_it_has_not_spent(
    set_aside: int, spent: int, left: tuple[int, int]
) -> None:
    bounded = replace(ADMITTED, set_aside=set_aside)
    allowance = Allowance(Spending(money=4, currency="credits", calls=2))
    call = call_of(bounded, TARGET, RECORD, allowance=allowance)
    kept = sealed_call_of(call, spent)
    assert kept.admitted == replace(bounded, reserve=left[0], set_aside=left[1])
    assert kept.budget == Spending(money=4, currency="credits", calls=2)
    assert sealed_call_of(call_of(bounded, TARGET, RECORD), spent).budget is None


def test_a_budget_of_which_nothing_is_spent_is_written_as_the_build_before_reads_it() -> None:
    """A replica of it on the same store refuses a field that it does not know."""
    whole = Allowance(Spending(money=4, currency="credits", calls=2))
    call = call_of(ADMITTED, TARGET, RECORD, allowance=whole)
    fields = {"form", "admitted", "budget", "deadline"}
    assert set(msgspec.msgpack.decode(write_sealed_call(sealed_call_of(call, 0)))) == fields
    assert set(msgspec.msgpack.decode(write_sealed_call(SEALED_CALL))) == fields


def test_a_budget_of_which_some_is_spent_is_told_with_its_limit_afterwards() -> None:
    spent = Allowance(Spending(money=4, currency="credits", calls=2))
    spent.take(1, "credits")
    call = call_of(ADMITTED, TARGET, RECORD, allowance=spent)
    kept = read_sealed_call(write_sealed_call(sealed_call_of(call, 0)))
    again = kept.call(TARGET, RECORD, task="t-1").allowance
    assert again is not None
    assert (again.left(), again.given) == (spent.left(), spent.given)
