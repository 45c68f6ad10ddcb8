"""What operations ask: claims of messages, and questions about tasks."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.people.proof import Spending
from carnet.errors import InvalidRequest, MalformedCallerContext
from carnet.wire.dialects.a2a import DIALECT
from carnet.wire.dialects.a2a.extensions.own import CHAIN_URI
from carnet.wire.dialects.a2a.extensions.questions.policy_part import POLICY_URI
from carnet.wire.dialects.a2a.extensions.skill import SKILL_URI
from carnet.wire.dialects.a2a.extensions.trace_context import TRACE_URI
from carnet.wire.dialects.a2a.request import MOST_HISTORY, USUAL_PAGE, write_page
from carnet.wire.grammar import json
from tests.wire.dialects.a2a.scene import MESSAGE, came, form_in, rpc, send

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def sending(configuration: object = None, metadata: object = None, **message: Any) -> Claim:
    params = {"message": {**MESSAGE, **message}, "metadata": metadata}
    claim = rpc("SendMessage", params | {"configuration": configuration})
    assert isinstance(claim, Claim)
    return claim


def test_the_same_message_is_the_same_call_and_another_is_another() -> None:
    first, same = send(), send()
    assert (first.digest, first.key, first.ask.context) == (same.digest, same.key, same.ask.context)
    assert send(taskId="t").digest == first.digest  # what it goes on with is no part of it
    others = [send(messageId="m2"), send({"a": 1}), send(contextId="c"), sending(metadata={"a": 1})]
    assert len({claim.digest for claim in (first, *others)}) == 5
    assert send(contextId="c").ask.context == "c"
    assert send(taskId="t").continues == "t"


def test_who_calls_and_whom_is_read_of_the_head() -> None:
    claim = send(fields={"authorization": "Bearer x", "x-tangle-forwarded-depth": "2"})
    assert claim.authorization is not None
    assert claim.authorization.reveal() == "Bearer x"
    assert [mark.depth for mark in claim.marks] == [2]
    body = json.write({"jsonrpc": "2.0", "method": "SendMessage", "params": {"message": MESSAGE}})
    by_host = DIALECT.read(came(DIALECT.ways[0], body, by_host=lambda: "named"))
    assert isinstance(by_host, Claim)
    assert by_host.agent == "named"


def test_what_extensions_say_joins_the_claim_and_is_recorded_as_claimed() -> None:
    metadata = {
        CHAIN_URI: {"run": "conv_1", "depth": 1},
        SKILL_URI: {"skill": "add", "payload": {"a": 1}},
        TRACE_URI: {"traceparent": PARENT},
        "datalayer": {"execution": {"depth": 2}, "budget": {"cost": 2, "currency": "credits"}},
        "other": 7,
    }
    claim = send(metadata, {"x-a2a-hop": "1"})
    assert [(mark.stamp, mark.depth) for mark in claim.marks] == [
        ("a2a_hop", 1),
        ("chain", 1),
        ("datalayer", 2),
    ]
    assert {mark.last_depth for mark in claim.marks} == {3}
    assert (claim.ask.skill, claim.ask.payload) == ("add", {"a": 1})
    assert claim.trace is not None
    assert claim.budget == Spending(money=2_000_000, currency="credits")
    recorded = msgspec.json.decode(claim.request)
    assert {*recorded["claimed"]} == {"chain", "skill", "trace_context", "datalayer"}
    assert recorded["message"]["metadata"] == metadata
    assert "claimed" not in json.read_object(send().request)


def test_a_recorded_request_makes_the_same_claim_again() -> None:
    metadata = {CHAIN_URI: {"run": "conv_1", "depth": 1}, SKILL_URI: {"skill": "add"}}
    first = send(metadata, taskId="t")
    again = DIALECT.reread(first.request, came(DIALECT.ways[0], agent="echo"))
    names = ("digest", "key", "marks", "request", "agent")
    assert [getattr(again, name) for name in names] == [getattr(first, name) for name in names]
    assert (again.ask.context, again.ask.skill) == (first.ask.context, "add")


@pytest.mark.parametrize(
    "first",
    [
        send(),
        send({SKILL_URI: {"skill": "add", "payload": {"a": 1}}}, contextId="c"),
        send({"mentionable": {"recipient_capabilities": {"colours": 2}}}),
        sending(metadata={CHAIN_URI: {"run": "conv_1", "depth": 1, "limit": 3}}),
    ],
)
def test_a_recorded_request_says_what_was_asked(first: Claim) -> None:
    asked = DIALECT.asked(first.request)
    assert asked == replace(first.ask, form=asked.form)  # how it is answered is not recorded


def test_nobody_can_write_what_is_claimed_for_another() -> None:
    claim = sending(metadata={"claimed": {"chain": "forged"}}, claimed={"chain": "forged"})
    assert "claimed" not in json.read_object(claim.request)


@pytest.mark.parametrize("chain", [7, {"depth": -1}, {"run": ""}, {"limit": 0}])
def test_a_broken_chain_is_refused(chain: object) -> None:
    with pytest.raises(MalformedCallerContext):
        send({CHAIN_URI: chain})


def test_wishes_are_read() -> None:
    push = {"url": "https://x/", "token": "t", "authentication": {"scheme": "Bearer"}}
    claim = sending({"returnImmediately": True, "taskPushNotificationConfig": push})
    assert claim.is_task
    assert claim.wish is not None
    assert (claim.callback, claim.wish.token, claim.wish.dialect) == ("https://x/", "t", "a2a_http")
    assert claim.wish.authorization is not None
    assert claim.wish.authorization.reveal() == "Bearer"
    assert form_in(sending({"historyLength": 10**6}))["history"] == MOST_HISTORY
    assert sending(None).wish is None
    stream = rpc(
        "SendStreamingMessage",
        {"message": MESSAGE, "configuration": {"return_immediately": True}},
    )
    assert (stream.is_task, stream.ask.stream) == (False, True)


@pytest.mark.parametrize(
    "configuration",
    [
        7,
        {"returnImmediately": "yes"},
        {"historyLength": -1},
        {"historyLength": True},
        {"taskPushNotificationConfig": 7},
        {"taskPushNotificationConfig": {}},
        {"taskPushNotificationConfig": {"url": "https://x/", "authentication": 7}},
    ],
)
def test_wishes_that_are_none_are_refused(configuration: object) -> None:
    with pytest.raises(InvalidRequest):
        sending(configuration)


def test_a_list_is_asked_for() -> None:
    moment = "2026-11-18T10:00:00Z"
    asked = rpc(
        "ListTasks",
        {
            "contextId": "c",
            "status": "TASK_STATE_CANCELED",
            "pageSize": 3,
            "pageToken": write_page(12, 5),
            "statusTimestampAfter": moment,
            "includeArtifacts": True,
        },
    )
    assert (asked.context, asked.states, asked.codes) == ("c", ("failed",), ("cancelled",))
    assert (asked.limit, asked.page, asked.agent) == (3, (12, 5), "echo")
    assert asked.since == 1_794_996_000_000_000
    usual = rpc("ListTasks", {"status": "TASK_STATE_UNSPECIFIED"})
    assert (usual.limit, usual.page, usual.states, usual.codes) == (USUAL_PAGE, None, (), None)


@pytest.mark.parametrize(
    "params",
    [
        {"pageSize": 0},
        {"pageSize": 101},
        {"status": "working"},
        {"status": 7},
        {"statusTimestampAfter": "yesterday"},
        {"pageToken": "x"},
        {"pageToken": "1-"},
        {"pageToken": "-1"},
        {"pageToken": "١-١"},
        {"pageToken": "1" * 65},
        {"includeArtifacts": 1},
        {"historyLength": "1"},
    ],
)
def test_a_list_that_is_none_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        rpc("ListTasks", params)


def test_who_was_away_says_which_frame_it_has_seen() -> None:
    fields = {"last-event-id": "1." + "9" * 99}
    assert form_in(rpc("SubscribeToTask", {"id": "t"}, fields))["seen"] == ("1." + "9" * 62)
    assert "seen" not in form_in(rpc("SubscribeToTask", {"id": "t"}))
    assert "seen" not in form_in(rpc("GetTask", {"id": "t"}, fields))


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("GetTask", {}),
        ("CancelTask", {"id": 7}),
        ("GetTaskPushNotificationConfig", {"taskId": "t"}),
        ("CreateTaskPushNotificationConfig", {"taskId": "t"}),
        ("ListTaskPushNotificationConfigs", {}),
    ],
)
def test_a_question_that_names_nothing_is_refused(operation: str, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        rpc(operation, params)


def test_who_speaks_mentionable_is_told_policy_parts() -> None:
    spoken = {"mentionable": {"agent_chain": {"hop": 1, "max_hops": 4}}}
    assert form_in(send(spoken))["extensions"] == (POLICY_URI,)
    assert form_in(sending(metadata=spoken))["extensions"] == (POLICY_URI,)
    assert "extensions" not in form_in(send())
