"""Claims and calls: two types, so that an agent cannot be given what nobody checked."""

import msgspec
import pytest

from carnet.core.call import Admitted, Ask, Call, Claim, call_of
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Message
from carnet.core.people.identity import Account, Actor, Caller, Payer, Secret
from carnet.runtime.turns.execution import absent

CREDENTIAL = "Bearer sk-tan-user-123"


def test_the_text_of_an_ask_is_the_last_thing_the_user_said() -> None:
    messages = (
        Message("system", ("be brief",)),
        Message("user", ("first",)),
        Message("user", ("second",), "alice"),
        Message("assistant", ("well",)),
    )
    assert Ask(messages=messages).text == "second"
    assert Ask(messages=messages[:1]).text == ""
    assert Ask(messages=()).text == ""


def test_a_claim_shows_no_credential() -> None:
    claim = Claim(
        dialect="openai",
        agent="echo",
        ask=Ask(messages=()),
        digest=b"",
        request=b"",
        authorization=Secret(CREDENTIAL),
        forwarded=Secret(CREDENTIAL),
    )
    assert CREDENTIAL not in repr(claim)
    with pytest.raises(TypeError):
        msgspec.json.encode(claim)


def test_a_claim_is_not_a_call() -> None:
    assert not issubclass(Claim, Call)
    assert not issubclass(Call, Claim)


def test_what_was_read_cannot_be_changed_afterwards() -> None:
    ask = Ask(messages=())
    with pytest.raises(AttributeError):
        ask.stream = True  # type: ignore[misc]


def test_a_call_gives_back_what_was_admitted_and_nothing_of_its_record() -> None:
    alice = Account("acme.example", "alice")
    admitted = Admitted(
        agent="echo",
        ask=Ask(messages=()),
        carnet=Carnet(run="run_1", turn="t0", depth=0, last_depth=3),
        caller=Caller(actor=Actor(name="token:alice"), scopes=frozenset()),
        payer=Payer(account=alice, quota="token:alice"),
        reserve=7,
        task_quota="tasks/echo/alice",
    )
    record = Turn(n=1, agent="echo", run="run_1", turn="t0", payer=alice, created=1)
    call = call_of(admitted, absent("echo"), record, known=True, task="t-1")
    assert (call.reserve, call.known, call.task) == (7, True, "t-1")
    assert type(call.admitted) is Admitted
    assert call.admitted == admitted
