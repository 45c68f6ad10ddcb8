"""Pending actions, written and read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import Waiting
from carnet.core.messages.interrupt import MOST_DATA_BYTES, Interrupt, InterruptRecord
from carnet.wire.dialects.agents_api.actions import (
    KEPT,
    ActionPlace,
    place_of,
    read_actions,
    write_action,
    write_envelopes,
    write_record,
)
from carnet.wire.dialects.policy import MOST_INTERRUPTS, MOST_SHOWN
from tests.wire.dialects.agents_api.test_parts import VALUES

CREATED = 1_700_000_000_000_000
ASKED = Interrupt(
    kind="approval",
    message="May I publish?",
    id="int_1",
    state="a-secret-state",
    expires_at="2030-01-01T00:00:00Z",
    origin="@editor@acme.example",
    more={"preview": {"title": "T"}, "arguments": {"post": 7}},
)
PLACE = {"action": "task-1.int_1"}


def read_one(payload: object, **more: Any) -> Interrupt | None:
    envelope = {"type": "approval_required", "payload": payload, **more}
    found = read_actions([envelope], currency="credits")
    return found[0] if found else None


def test_an_action_says_what_is_asked_and_not_its_secret() -> None:
    action = write_action(ASKED, "task-1", created=CREATED)
    assert action.pop("metadata")["carnet"]["kind"] == "approval"
    assert action == {
        "action_id": "task-1.int_1",
        "kind": "approval",
        "summary": "May I publish?",
        "preview": {"title": "T"},
        "apply_input": {"post": 7},
        "created_at": "2023-11-14T22:13:20.000+00:00",
        "status": "pending",
        "expires_at": "2030-01-01T00:00:00Z",
        "agent": "@editor@acme.example",
    }
    assert "a-secret-state" not in str(write_action(ASKED, "task-1", created=None))


def test_an_action_that_a_carnet_writes_is_read_as_the_same() -> None:
    (envelope,) = write_envelopes(Waiting((ASKED,)), "task-1", created=CREATED)
    assert (envelope["schema"], envelope["version"]) == ("agents-api.message", 1)
    assert (envelope["role"], envelope["content"]) == ("tool", "May I publish?")
    (found,) = read_actions([envelope], currency="credits")
    assert (found.kind, found.message, found.origin) == (ASKED.kind, ASKED.message, ASKED.origin)
    assert (found.id, found.state, found.expires_at) == ("task-1.int_1", "", ASKED.expires_at)
    assert found.more == {**(ASKED.more or {}), KEPT: PLACE}
    assert place_of(found) == ActionPlace("task-1.int_1")


@given(
    st.sampled_from(["approval", "payment", "consent", "sign_in", "input"]),
    st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=40),
)
def test_every_kind_is_read_as_it_was_written(kind: str, message: str) -> None:
    asked = Interrupt(kind=kind, message=message, id="int_1", state="s" * 22)
    (found,) = read_actions(
        write_envelopes(Waiting((asked,)), "t", created=None), currency="credits"
    )
    assert (found.kind, found.message) == (kind, message)


def test_an_action_of_anybody_is_approved_or_it_is_not() -> None:
    payload = {"action_id": "a-1", "kind": "publish", "summary": "Publish?", "preview": {}}
    found = read_one(payload)
    assert found is not None
    assert (found.kind, found.message, found.more) == (
        "approval",
        "Publish?",
        {KEPT: {"action": "a-1"}},
    )
    silent = read_one({"action_id": "a-1", "summary": 7, "apply_input": {"x": 1}})
    assert silent is not None
    assert "waits for a decision" in silent.message
    assert silent.more == {KEPT: {"action": "a-1"}, "arguments": {"x": 1}}


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"action_id": 7},
        {"action_id": ""},
        {"action_id": "a\nb"},
        {"action_id": "x" * 513},
    ],
)
def test_what_names_no_action_is_none(payload: object) -> None:
    assert read_one(payload) is None
    assert read_actions(["x", {"type": "text"}], currency="credits") == ()


def test_where_it_is_decided_is_kept_also_of_one_that_is_too_wide() -> None:
    wide = {"action_id": "a-1", "summary": "?", "preview": {"x": "y" * (MOST_DATA_BYTES + 1)}}
    found = read_one(wide)
    assert found is not None
    assert found.more == {KEPT: {"action": "a-1"}}
    deep: Any = {}
    for _ in range(100):
        deep = {"x": deep}
    found = read_one({"action_id": "a-1", "summary": "?", "apply_input": deep})
    assert found is not None
    assert place_of(found) == ActionPlace("a-1")


def test_so_many_are_read_and_each_once() -> None:
    one = {"type": "approval_required", "payload": {"action_id": "a", "summary": "?"}}
    assert len(read_actions([one, one], currency="credits")) == 1
    many = [
        {"type": "approval_required", "payload": {"action_id": f"a{n}", "summary": "?"}}
        for n in range(20)
    ]
    assert len(read_actions(many, currency="credits")) == MOST_INTERRUPTS
    waiting = Waiting(tuple(Interrupt(kind="approval", message="?", id=f"i{n}") for n in range(50)))
    assert len(write_envelopes(waiting, "t", created=None)) == MOST_SHOWN


@pytest.mark.parametrize(
    ("status", "outcome", "shown_as"),
    [
        ("open", None, "pending"),
        ("expired", None, "expired"),
        ("resolved", "accepted", "accepted"),
        ("resolved", None, "rejected"),
    ],
)
def test_an_action_is_shown_as_it_is(status: Any, outcome: Any, shown_as: str) -> None:
    record = InterruptRecord(
        interrupt=ASKED, status=status, expires=CREATED, outcome=outcome, asked=CREATED
    )
    action = write_record(record, "task-1")
    assert (action["status"], action["created_at"]) == (shown_as, "2023-11-14T22:13:20.000+00:00")
    assert action["expires_at"] == "2023-11-14T22:13:20.000+00:00"
    assert "resolver" not in action


@given(VALUES)
def test_no_envelope_breaks_the_reader(value: object) -> None:
    found = read_actions([value, {"type": "approval_required", "payload": value}], currency="x")
    assert all(place_of(each) is not None for each in found)


@pytest.mark.parametrize("more", [None, {}, {KEPT: 7}, {KEPT: {}}, {KEPT: {"action": ""}}])
def test_an_interrupt_of_another_kind_is_decided_elsewhere(more: dict[str, Any] | None) -> None:
    assert place_of(Interrupt(kind="approval", message="?", more=more)) is None
