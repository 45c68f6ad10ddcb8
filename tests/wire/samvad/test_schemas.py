"""What we write is valid against the schemas of the protocol, where they are at hand."""

import json

import jsonschema_rs
import pytest
from msgspec.structs import replace

from carnet.core.events import RESULT, Done, Event, Extension
from carnet.errors import CarnetError, leaves
from carnet.wire import samvad
from carnet.wire.samvad.tasks import write_accepted, write_record
from tests.wire.samvad.recorded import VECTORS, load
from tests.wire.samvad.scene import TURN, fields
from tests.wire.samvad.test_card import FACTS
from tests.wire.samvad.test_refusals import made

pytestmark = pytest.mark.skipif(VECTORS is None, reason="CARNET_VECTORS names no folder")


TASK = "0d3c7f9e-3f4e-4c6f-8a56-3c9f5e1d2b7a"


def is_told(leaf: type[CarnetError]) -> bool:
    return leaf.__module__ == "carnet.errors"


def valid(schema: str, body: bytes) -> bool:
    return jsonschema_rs.validator_for(load(f"samvad_{schema}.schema.json")).is_valid(
        json.loads(body)
    )


def test_our_card_is_valid_against_the_schema() -> None:
    assert valid("agent-card", samvad.write_card(FACTS))
    assert valid("agent-card", samvad.write_card(replace(FACTS, tokens_per_sender_per_day=1000)))
    assert not valid("agent-card", samvad.write_card(replace(FACTS, skills=())))


def test_our_requests_are_valid_against_the_schema() -> None:
    body = json.dumps(fields(payload={"a": 1}, auth={"scheme": "bearer", "token": "t"})).encode()
    envelope = samvad.read_envelope(body, mode="sync")
    assert valid("request-envelope", samvad.write_request(envelope))


def test_our_answers_and_all_our_refusals_are_valid_against_the_schema() -> None:
    events: list[Event] = [Extension(RESULT, {"n": 1}), Done()]
    assert valid("response-envelope", samvad.write_answer(TURN, events, trace_id="t"))
    for leaf in filter(is_told, leaves()):
        assert valid("response-envelope", samvad.write_error(made(leaf))[2])


def test_the_records_of_our_tasks_are_valid_against_the_schema() -> None:
    told = [
        write_record(TASK, "pending"),
        *(write_record(TASK, "running", progress=progress) for progress in (None, 0, 333, 1000)),
        write_record(TASK, "done", result={"n": 1}),
        write_record(TASK, "done"),
        *(write_record(TASK, "failed", error=made(leaf)) for leaf in leaves() if is_told(leaf)),
    ]
    assert [record for record in told if not valid("task-status", record)] == []
    assert not valid("task-status", write_accepted(TASK))  # it has an answer of its own
