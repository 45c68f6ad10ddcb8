"""What the end of a task tells its callback, and which addresses may be one."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from carnet.core.call import Call
from carnet.core.messages.events import RESULT, Done, Event, Extension, Failed, Text, Usage
from carnet.core.messages.interrupt import Interrupt
from carnet.core.people.identity import Standing
from carnet.core.people.person import Person, PersonAddress
from carnet.errors import AgentFailed, CallbackForbidden, Cancelled, EgressRefused
from carnet.ports.calls.tasks import Callback
from carnet.ports.world.outbox import Outcome
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.webhooks.callbacks import (
    CallbackAddresses,
    CallbackDeliveries,
    queue_of,
    receiver_of,
)
from carnet.wire.dialects import DIALECTS, openai, samvad
from carnet.wire.dialects.dialect import GatewayFacts
from tests.runtime.egress.test_addresses_destinations import FORBIDDEN
from tests.runtime.peer import leading_to, opened
from tests.runtime.scene import make_call
from tests.runtime.webhooks.deliveries import MemoryOutbox, delivery
from tests.support.schemas import valid

URL = "https://hooks.sender.example:8443/in?run=1"
SENDER = "agent://sender.example"
GATEWAY = GatewayFacts(domain="acme.example", currency="credits")
DELIVERIES = CallbackDeliveries(DIALECTS, GATEWAY, lambda: "1")
ONE = [Callback(url=URL)]
REASONS = {
    "it does not begin with https://",
    "its port is neither 443 nor 8443",
    "it is not a public address",
    "the URL holds a user name",
    "the URL holds a character that parsers read differently",
    "the URL names no host and port that can be dialled",
    "the host is an address in an unusual notation",
}


def task() -> Call:
    call = make_call()
    caller = msgspec.structs.replace(call.caller, standing=Standing(sender=SENDER))
    return msgspec.structs.replace(call, caller=caller, callback=URL, task="task-1")


def delivered_body(end: Done | Failed, *events: Event) -> dict[str, Any]:
    call = task()
    (delivery,) = DELIVERIES(call, events, end, None, ONE)
    found: dict[str, Any] = json.loads(delivery.body)
    return found


ASKED = [Interrupt(id="int_1", state="s" * 32, kind="approval", message="May I?")]


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ((), ("https://ops.example/in", "notify", False)),
        ((PersonAddress(address=URL),), ("https://ops.example/in", "notify", False)),
        ((PersonAddress(address=URL, how="verified"),), (URL, "person:7", True)),
    ],
)
def test_a_person_is_told_what_she_is_asked_at_an_address_of_her_own(
    addresses: tuple[PersonAddress, ...], expected: tuple[str, str, bool]
) -> None:
    alice = Person(n=7, name="alice", addresses=addresses)
    deliveries = CallbackDeliveries(DIALECTS, GATEWAY, lambda: "1", {"person:7": alice}.get)
    deliveries.notify = ["https://ops.example/in"]
    call = make_call()
    caller = msgspec.structs.replace(call.caller, person=7)
    (notice,) = deliveries.asked(msgspec.structs.replace(call, caller=caller), ASKED)
    assert (notice.url, notice.secret_of, notice.learned) == expected
    data = json.loads(notice.body)["data"]
    assert (data["owner"], "state" in data) == ("alice", False)


def test_a_task_without_a_callback_tells_nobody() -> None:
    assert DELIVERIES(task(), [Text("well")], Done(), None, []) == ()


def test_each_address_is_told_in_the_dialect_in_which_it_was_named() -> None:
    other = "https://other.sender.example/in"
    named = [Callback(url=URL, dialect="samvad"), Callback(url=other, dialect="openai", place=1)]
    first, second = DELIVERIES(task(), [Text("well")], Done(), Usage(3, 4, 50), named)
    assert (first.url, json.loads(first.body)["status"]) == (URL, "ok")
    assert (second.url, second.receiver) == (other, f"https://other.sender.example {SENDER}")
    assert json.loads(second.body)["choices"][0]["message"]["content"] == "well"


def test_a_delivery_is_addressed_to_the_callback_and_signed_for_the_sender() -> None:
    call = task()
    (delivery,) = DELIVERIES(call, [], Done(), None, ONE)
    assert (delivery.id, delivery.kind, delivery.url) == ("msg_1", "callback", URL)
    assert delivery.receiver == f"https://hooks.sender.example:8443 {SENDER}"
    assert delivery.host == "https://hooks.sender.example:8443"
    assert (delivery.task, delivery.secret_of, delivery.learned) == ("task-1", SENDER, True)


def test_a_task_of_a_chat_is_called_back_as_a_chat_completion() -> None:
    call = msgspec.structs.replace(task(), dialect="openai")
    usage = Usage(3, 4, 50)
    (delivery,) = DELIVERIES(call, [Text("well"), Usage(3, 4)], Done(), usage, ONE)
    assert delivery.body == openai.write_answer(
        call.record, [Text("well"), usage, Done()], model=call.agent, currency="credits"
    )
    body = json.loads(delivery.body)
    assert body["choices"][0]["message"]["content"] == "well"
    assert (body["usage"]["cost"], body["usage"]["run_cost"]) == ("0.00005", None)
    failed = Failed.of(AgentFailed("its own words"))
    (delivery,) = DELIVERIES(call, [Text("half")], failed, usage, ONE)
    body = json.loads(delivery.body)
    assert (body["code"], body["usage"]["cost"]) == ("agent_failed", "0.00005")
    assert b"its own words" not in delivery.body


def test_a_call_that_kept_no_dialect_is_called_back_in_an_envelope() -> None:
    for name in ("", "samvad", "one that is spoken no more"):
        call = msgspec.structs.replace(task(), dialect=name)
        (delivery,) = DELIVERIES(call, [Text("well")], Done(), None, ONE)
        assert json.loads(delivery.body)["status"] == "ok"


def test_a_delivery_says_what_a_caller_who_waited_would_have_got() -> None:
    call = task()
    events: list[Event] = [Text("one "), Text("two"), Extension(RESULT, {"n": 3}), Done()]
    (delivery,) = DELIVERIES(call, events, Done(), None, ONE)
    assert delivery.body == samvad.write_answer(call.record, events, trace_id=call.carnet.run)
    assert delivered_body(Done(), *events)["result"] == {"n": 3}


@pytest.mark.parametrize("error", [AgentFailed("its own words"), Cancelled()])
def test_a_failure_is_told_as_well_and_keeps_the_agents_words_to_itself(error: Any) -> None:
    body = delivered_body(Failed.of(error), Text("half"))
    assert body["status"] == "error"
    assert body["error"]["code"] == "AGENT_UNAVAILABLE"
    assert "its own words" not in json.dumps(body)
    assert "half" not in json.dumps(body)


@pytest.mark.parametrize("end", [Done(), Failed.of(AgentFailed())])
def test_a_delivery_fits_our_schema_of_the_protocol(end: Done | Failed) -> None:
    assert valid("answer", delivered_body(end, Text("well")))


@pytest.mark.parametrize(
    ("url", "receiver"),
    [
        ("https://a.example/x", "https://a.example"),
        ("https://a.example:443/y?z", "https://a.example"),
        ("https://A.example:8443", "https://a.example:8443"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
        ("https://[2600::1]/", "https://[2600::1]"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_receiver_is_the_origin_of_its_url(url: str, receiver: str) -> None:
    assert receiver_of(url) == receiver


def test_each_sender_has_a_queue_of_its_own_at_a_receiver() -> None:
    ours, theirs = queue_of(URL, SENDER), queue_of(URL, "agent://other.example")
    assert ours != theirs
    assert queue_of(URL + "/elsewhere", SENDER) == ours


# ------------------------------------------------------------------------- registration


async def forbidden(http: EgressClient, url: str, outbox: MemoryOutbox | None = None) -> str:
    """Why an address may not be registered."""
    with pytest.raises(CallbackForbidden) as refused:
        await CallbackAddresses(http, outbox or MemoryOutbox()).check(url, SENDER)
    return str(refused.value.facts["reason"])


@pytest.mark.parametrize("url", [*FORBIDDEN, "", "not-a-url", "https://", "//a.example/x"])
async def test_an_address_that_is_not_public_is_refused_and_not_looked_up(url: str) -> None:
    lookup, asked = leading_to("8.8.8.8")
    async with opened(lookup=lookup) as http:
        assert await forbidden(http, url) in REASONS
    assert asked == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://a.example/x", "it does not begin with https://"),
        ("http://127.0.0.1:9000/", "it does not begin with https://"),
        ("ftp://a.example/", "it does not begin with https://"),
        ("a.example/x", "it does not begin with https://"),
        ("https://a.example:9000/", "its port is neither 443 nor 8443"),
        ("https://127.0.0.1/", "it is not a public address"),
        ("https://localhost:8443/", "it is not a public address"),
        ("https://me:secret@a.example/", "the URL holds a user name"),
        ("https:///x", "the URL names no host and port that can be dialled"),
    ],
)
async def test_what_is_wrong_with_an_address_is_said_and_how_to_except_it(
    url: str, reason: str
) -> None:
    async with opened() as http:
        assert await forbidden(http, url) == reason
    assert "[egress] allow" in CallbackForbidden(reason=reason).next_step
    assert "[egress] allow" in (CallbackForbidden.__doc__ or "")


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "169.254.169.254", "::1"])
async def test_a_name_that_leads_inward_is_refused(address: str) -> None:
    lookup, asked = leading_to("8.8.8.8", address)
    async with opened(lookup=lookup) as http:
        assert await forbidden(http, URL) == "it is not a public address"
    assert len(asked) == 1


async def test_a_public_name_is_accepted_and_not_called() -> None:
    lookup, asked = leading_to("8.8.8.8")
    async with opened(lookup=lookup) as http:
        await CallbackAddresses(http, MemoryOutbox()).check(URL, SENDER)
    assert len(asked) == 1


async def test_a_name_that_cannot_be_looked_up_now_is_accepted() -> None:
    async def nowhere(*_: object) -> list[str]:
        raise OSError(2, "no such host")

    async with opened(lookup=nowhere) as http:
        await CallbackAddresses(http, MemoryOutbox()).check(URL, SENDER)


async def test_a_name_whose_server_is_silent_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: object) -> list[str]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr("carnet.runtime.egress.client.JUDGE_SECONDS", 0.01)
    async with opened(lookup=silent) as http:
        await CallbackAddresses(http, MemoryOutbox()).check(URL, SENDER)


async def test_what_the_operator_allows_may_be_called_back() -> None:
    async with opened(allow=["127.0.0.1:8099"]) as http:
        await CallbackAddresses(http, MemoryOutbox()).check("http://127.0.0.1:8099/in", SENDER)
        await forbidden(http, "http://127.0.0.1:8098/in")


async def test_an_address_that_said_410_is_refused() -> None:
    outbox = MemoryOutbox()
    outbox.gone.add((SENDER, URL))
    lookup, _ = leading_to("8.8.8.8")
    async with opened(lookup=lookup) as http:
        assert "410" in await forbidden(http, URL, outbox)


async def test_a_receiver_for_whom_too_many_wait_is_refused_until_they_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("carnet.runtime.webhooks.callbacks.MOST_WAITING", 2)
    outbox = MemoryOutbox()
    lookup, _ = leading_to("8.8.8.8")
    host = "https://hooks.sender.example:8443"
    await outbox.put([delivery("1", f"{host}/a"), delivery("2", f"{host}/b")], 0)
    async with opened(lookup=lookup) as http:
        assert await forbidden(http, URL, outbox) == "2 of your deliveries wait for it already"
        await CallbackAddresses(http, outbox).check("https://other.example/in", SENDER)
        (first, _) = await outbox.lease(0, until=1, at_most=2, per_receiver=2)
        await outbox.mark(first, Outcome(state="delivered", now=0))
        await CallbackAddresses(http, outbox).check(URL, SENDER)


async def test_an_address_of_two_kilobytes_is_too_long() -> None:
    async with opened() as http:
        assert "2048" in await forbidden(http, "https://a.example/" + "x" * 2048)


async def test_judging_a_url_refuses_as_dialling_it_would() -> None:
    async with opened() as http:
        with pytest.raises(EgressRefused):
            await http.judge("https://10.0.0.1/")
