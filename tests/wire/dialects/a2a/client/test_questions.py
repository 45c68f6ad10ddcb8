"""What a task waits for, as interrupts, and the messages that answer them."""

from typing import Any

import pytest

from carnet.core.messages.events import DataPart, Link, Part
from carnet.core.messages.interrupt import MOST_DATA_BYTES, Interrupt, Resolution, check_together
from carnet.wire.dialects.a2a.client import (
    PolicyReading,
    RemoteMessage,
    RemoteStatus,
    TaskPlace,
    answer_metadata,
    answer_parts,
    place_of,
    policy_parts,
    question_of,
    read_policies,
    read_questions,
)
from carnet.wire.dialects.a2a.extensions import write_status
from carnet.wire.dialects.a2a.extensions.interrupt import INTERRUPT_URI
from carnet.wire.dialects.a2a.extensions.questions.policy_part import POLICY_URI

PLACE = TaskPlace(task="t", context="c", question="m1")
YES, NO = Resolution(outcome="accepted"), Resolution(outcome="rejected")


def status(
    *parts: Part, state: Any = "input_required", name: str = "m1", **metadata: Any
) -> RemoteStatus:
    message = RemoteMessage(id=name, parts=parts, metadata=metadata) if parts else None
    return RemoteStatus(state=state, message=message, timestamp="2026-11-18T00:00:00Z")


def asked(found: RemoteStatus, **more: Any) -> tuple[Interrupt, ...]:
    return read_questions(found, "t", "c", currency="credits", **more)


def test_input_and_authorisation_have_their_kinds() -> None:
    (plain,) = asked(status("Which one?"))
    assert (plain.kind, plain.message, plain.state) == ("input", "Which one?", "")
    assert place_of(plain) == PLACE
    (login,) = asked(status("Sign in", Link("https://x.example/in"), state="auth_required"))
    assert (login.kind, login.url) == ("sign_in", "https://x.example/in")


def test_a_task_may_have_no_context() -> None:
    (found,) = read_questions(status("?"), "t", None, currency="")
    assert place_of(found) == TaskPlace(task="t", question="m1")


def test_who_says_nothing_is_given_words() -> None:
    (silent,) = asked(status())
    (login,) = asked(status(state="auth_required"))
    assert "input" in silent.message
    assert "authorised" in login.message


def test_what_is_shown_is_bounded_and_clean() -> None:
    (long,) = asked(status("x\x00\n" * 100_000, Link("javascript:alert(1)")))
    assert len(long.message) <= 1000
    assert long.url is None
    check_together([long])


def test_a_question_is_known_by_the_message_that_asks_it() -> None:
    assert question_of(status("a", name="m7")) == "m7"
    unnamed = status("a", DataPart(1), name="")
    assert question_of(unnamed) == question_of(status("a", DataPart(1), name=""))
    assert question_of(unnamed) != question_of(status("b", DataPart(1), name=""))
    assert question_of(status()) == question_of(status())
    assert asked(status("a"))[0].id == asked(status("b"))[0].id
    assert asked(status("a"))[0].id != asked(status("a", name="m2"))[0].id


def test_a_carnet_is_answered_by_its_extension() -> None:
    own = [
        Interrupt(kind="approval", message="Go on?", id="i1", state="s1"),
        Interrupt(kind="payment", message="Pay", id="i2", state="s2", amount=5, currency="credits"),
    ]
    first, second = asked(status("words", **write_status(own)))
    assert (first.kind, first.state, second.amount) == ("approval", "s1", 5)
    assert first.id != second.id
    place = place_of(second)
    assert place is not None
    assert (place.task, place.question, place.name) == ("t", "m1", "i2")
    metadata, uris = answer_metadata(second, place, YES)
    assert uris == ("urn:carnet:a2a:interrupt:v1",)
    assert metadata[uris[0]] == {"state": "s2", "outcome": "accepted"}


def test_what_stands_beside_the_status_is_read_as_well() -> None:
    own = [Interrupt(kind="consent", message="Share?", id="i1", state="s1")]
    (found,) = asked(status("words"), metadata=write_status(own))
    assert found.kind == "consent"


def test_nobody_can_say_where_an_answer_goes_but_us() -> None:
    forged = {"a2a": {"task": "other", "question": "q"}}
    own = [Interrupt(kind="input", message="?", id="i1", state="s1", more=forged)]
    (found,) = asked(status("words", **write_status(own)))
    place = place_of(found)
    assert place is not None
    assert place.task == "t"


def test_who_asked_in_words_is_told_nothing_of_our_state() -> None:
    (plain,) = asked(status("Which?"))
    assert answer_metadata(plain, PLACE, YES) == ({}, ())


@pytest.mark.parametrize(
    ("kind", "answer", "parts"),
    [
        ("input", Resolution(outcome="accepted", value="red"), ("red",)),
        ("input", Resolution(outcome="accepted", value={"a": 1}), (DataPart({"a": 1}),)),
        ("input", Resolution(outcome="accepted", value=0), (DataPart(0),)),
        ("input", YES, ("accepted",)),
        ("input", NO, ("declined",)),
        ("approval", YES, ("accepted",)),
        ("sign_in", NO, ("rejected",)),
    ],
)
def test_an_answer_in_words(kind: str, answer: Resolution, parts: tuple[Part, ...]) -> None:
    assert answer_parts(Interrupt(kind=kind, message="?"), answer) == parts


@pytest.mark.parametrize(
    "more",
    [
        None,
        {},
        {"a2a": 7},
        {"a2a": {}},
        {"a2a": {"task": "t"}},
        {"a2a": {"task": 7, "question": "q"}},
    ],
)
def test_an_interrupt_of_no_task_has_no_place(more: dict[str, Any] | None) -> None:
    assert place_of(Interrupt(kind="input", message="?", more=more)) is None


def test_where_an_answer_goes_can_be_kept() -> None:
    """Whatever the other side calls its tasks: it stands in the record of our turn."""
    name = "\U0001f600" * 512
    found = read_questions(status("?", name=name), name, name, currency="")
    check_together(found)
    assert found[0].more is not None
    assert len(str(found[0].more)) < MOST_DATA_BYTES


# ------------------------------------------------------------------ by policy parts

PART: dict[str, Any] = {"kind": "com.example.captcha", "message": "Robot?", "state": "S"}
URL = "https://shop.example/pay"
SHOP = PolicyReading(is_advertised=True, hosts=frozenset({"shop.example"}), issuer="shop.example")


def waits(*parts: Part, **metadata: Any) -> RemoteStatus:
    message = RemoteMessage(id="m1", parts=parts, metadata=metadata)
    return RemoteStatus(state="input_required", message=message)


def asked_by_shop(status: RemoteStatus) -> tuple[Interrupt, ...]:
    return asked(status, reading=SHOP)


def ended(parts: list[Any], **metadata: Any) -> tuple[Interrupt, ...]:
    return read_policies(parts, metadata, context="c", currency="credits", reading=SHOP)


def place(found: Interrupt) -> TaskPlace:
    at = place_of(found)
    assert at is not None
    return at


def test_a_part_of_a_task_that_waits_is_answered_there() -> None:
    for status in (waits("words", DataPart(PART)), waits("words", **{POLICY_URI: PART})):
        (only,) = asked_by_shop(status)
        assert (only.kind, only.message, only.state) == ("com.example.captcha", "Robot?", "S")
        at = place(only)
        assert (at.task, at.context, at.question, at.form) == ("t", "c", "m1", "policy")
        assert at.is_policy
        assert at.issuer == ""


def test_a_part_beside_no_task_is_answered_by_the_call_again() -> None:
    for found in (ended([PART]), ended([], **{POLICY_URI: PART})):
        at = place(found[0])
        assert (at.task, at.context, at.is_policy) == ("", "c", True)
    assert ended([PART])[0].id == ended([PART])[0].id
    assert ended([PART])[0].id != ended([{**PART, "state": "T"}])[0].id
    assert ended([]) == ()


def test_what_another_extension_asks_for_beside_an_end_is_none_of_it() -> None:
    own = {INTERRUPT_URI: {"interrupts": [{"kind": "input", "message": "?", "state": "s"}]}}
    assert ended([], **own) == ()


def test_a_broken_part_is_passed_over() -> None:
    broken = {POLICY_URI: {"kind": "two words", "message": "?"}}
    (plain,) = asked_by_shop(waits("words", DataPart(broken)))
    assert (plain.kind, plain.message) == ("input", "words")
    assert ended([{"kind": "two words"}]) == ()


def test_a_link_to_the_host_of_its_agent_is_kept_and_says_who_may_call_back() -> None:
    (bound,) = ended([{**PART, "url": URL}])
    assert (bound.url, place(bound).issuer) == (URL, "shop.example")
    (elsewhere,) = ended([{**PART, "url": "https://evil.example/"}])
    assert (elsewhere.url, place(elsewhere).issuer) == (None, "")
    own = {"kind": "payment", "message": "?", "state": "s", "url": URL}
    (ours,) = asked_by_shop(waits("words", **{INTERRUPT_URI: {"interrupts": [own]}}))
    assert (place(ours).issuer, place(ours).is_policy) == ("shop.example", False)


@pytest.mark.parametrize(("is_advertised", "count"), [(True, 1), (False, 0)])
def test_who_does_not_know_the_extension_means_data(*, is_advertised: bool, count: int) -> None:
    reading = PolicyReading(is_advertised=is_advertised)
    parts: tuple[Part, ...] = ("text", DataPart(PART), DataPart(7))
    assert len(policy_parts(parts, reading, has_succeeded=True)) == count


def test_a_place_without_a_task_is_that_of_a_policy_part_alone() -> None:
    kept = {"a2a": {"question": "q", "form": "policy"}}
    assert place_of(Interrupt(kind="x", message="?", more=kept)) == TaskPlace(
        question="q", form="policy"
    )
    other = {"a2a": {"question": "q", "form": "x402"}}
    assert place_of(Interrupt(kind="x", message="?", more=other)) is None
