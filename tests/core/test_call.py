"""Claims and calls: two types, so that an agent cannot be given what nobody checked."""

import msgspec
import pytest

from carnet.core.call import Ask, Call, Claim
from carnet.core.messages.events import Message
from carnet.core.people.identity import Secret

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
