"""When deliveries are tried again, when they are given up, and what is told of it."""

import itertools
import json
import logging
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.errors import (
    CarnetError,
    EgressRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    StorageUnavailable,
)
from carnet.ports.world.outbox import StoredDelivery
from carnet.runtime.webhooks.dispatcher import AT_ONCE
from carnet.runtime.webhooks.schedule import SCHEDULE, DeliveryAttempt, DeliverySchedule
from carnet.telemetry import Metrics
from carnet.testing.clock import FakeClock, FakeIds
from tests.runtime.webhooks.deliveries import (
    MemoryOutbox,
    Response,
    ScriptedClient,
    deliver_all,
    delivery,
    dispatcher,
)

NOW = FakeClock().wall_us()
SECOND = 1_000_000


def stored(attempts: int = 0, *, failures: int = 0, created: int = NOW) -> StoredDelivery:
    return StoredDelivery(
        n=1, delivery=delivery(), attempts=attempts, due=NOW, created=created, failures=failures
    )


async def delivered(
    *answers: Response | CarnetError, **more: Any
) -> tuple[ScriptedClient, StoredDelivery]:
    """What one delivery goes through with these answers, and how it ends."""
    clock, outbox = FakeClock(), MemoryOutbox()
    http = ScriptedClient(clock, *answers)
    await outbox.put([delivery()], clock.wall_us())
    await deliver_all(dispatcher(outbox, http, clock, **more), outbox, clock)
    return http, outbox.stored["msg_1"]


async def test_a_delivery_is_tried_ten_times_by_the_schedule_and_is_then_dead() -> None:
    http, ended = await delivered(Response(500))
    assert http.times == list(itertools.accumulate(SCHEDULE))
    assert (ended.state, ended.attempts, ended.status) == ("dead", 10, 500)
    assert ended.reason == "it answered 500"


async def test_the_schedule_is_that_of_the_standard() -> None:
    minute, hour = 60, 3600
    hours = [2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour]
    assert list(SCHEDULE) == [0, 5, 5 * minute, 30 * minute, *hours]


@pytest.mark.parametrize(("fraction", "seconds"), [(0.0, 270.0), (0.5, 300.0), (0.999, 329.94)])
def test_the_jitter_is_a_tenth_either_way(fraction: float, seconds: float) -> None:
    plan = DeliverySchedule(SCHEDULE, FakeIds(fraction=fraction))
    outcome = plan.outcome(stored(1), DeliveryAttempt(status=500), NOW)
    assert outcome.due == NOW + int(seconds * SECOND)


async def test_every_attempt_has_the_same_id_and_a_time_of_its_own() -> None:
    http, ended = await delivered(Response(500), Response(503), Response(204))
    sent = [request.headers for _, request in http.sent]
    assert ended.state == "delivered"
    assert {headers["webhook-id"] for headers in sent} == {"msg_1"}
    times = [int(headers["webhook-timestamp"]) for headers in sent]
    assert [time - times[0] for time in times] == [0, 5, 305]
    assert len({headers["webhook-signature"] for headers in sent}) == 3
    assert len({headers["signature"] for headers in sent}) == 3


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_every_2xx_delivers(status: int) -> None:
    http, ended = await delivered(Response(status))
    assert (len(http.sent), ended.state, ended.status) == (1, "delivered", status)


@pytest.mark.parametrize("status", [100, 199, 301, 302, 304, 307, 308, 400, 401, 404, 409, 500])
async def test_nothing_else_does(status: int) -> None:
    http, ended = await delivered(Response(status, location="https://elsewhere.example/"))
    assert (len(http.sent), ended.state) == (10, "dead")
    assert {request.url for _, request in http.sent} == {"https://hooks.example/in"}


async def test_a_redirect_is_a_failure_that_says_so() -> None:
    _, ended = await delivered(Response(302, location="https://elsewhere.example/"))
    assert ended.reason == "it answered 302, and redirects are not followed"


async def test_410_ends_the_delivery_and_the_address() -> None:
    clock, outbox = FakeClock(), MemoryOutbox()
    http = ScriptedClient(clock, Response(410))
    await outbox.put([delivery()], clock.wall_us())
    await deliver_all(dispatcher(outbox, http, clock), outbox, clock)
    assert (len(http.sent), outbox.stored["msg_1"].state) == (1, "dead")
    assert await outbox.is_gone("https://hooks.example/in", delivery().secret_of)
    assert not await outbox.is_gone("https://hooks.example/in", "somebody else")


@pytest.mark.parametrize("status", [429, 503])
async def test_who_says_how_long_to_wait_is_waited_for(status: int) -> None:
    http, ended = await delivered(Response(status, retry_after="90"), Response(200))
    assert (http.times, ended.state) == ([0, 90], "delivered")


async def test_a_date_is_as_good_as_a_number() -> None:
    late = {"date": "Sun, 15 Nov 2026 06:00:00 GMT", "retry_after": "Sun, 15 Nov 2026 06:02:00 GMT"}
    http, _ = await delivered(Response(429, **late), Response(200))
    assert http.times == [0, 120]


async def test_nobody_is_waited_for_longer_than_a_day() -> None:
    http, ended = await delivered(Response(429, retry_after="900000"), Response(200))
    assert (http.times, ended.state) == ([0, 86_400], "delivered")


async def test_a_wait_that_is_shorter_than_the_schedule_or_of_another_status_counts_less() -> None:
    assert (await delivered(Response(429, retry_after="1"), Response(200)))[0].times == [0, 5]
    assert (await delivered(Response(500, retry_after="900"), Response(200)))[0].times == [0, 5]


async def test_a_delivery_that_is_sent_again_after_weeks_has_its_whole_schedule_once_more() -> None:
    long_ago = stored(1, created=NOW - 30 * 86_400 * SECOND)
    plan = DeliverySchedule(SCHEDULE, FakeIds())
    assert plan.outcome(long_ago, DeliveryAttempt(status=500), NOW).state == "dead"
    again = replace(long_ago, replayed=NOW)
    assert plan.outcome(again, DeliveryAttempt(status=500), NOW).state == "pending"


async def test_a_delivery_that_was_put_off_again_and_again_dies_an_hour_after_the_schedule() -> (
    None
):
    http, ended = await delivered(Response(503, retry_after="86400"))
    lasts = sum(SCHEDULE) * 1.1 + 3600
    assert ended.state == "dead"
    assert http.times[-1] <= lasts
    assert len(http.sent) < 10


def test_a_receiver_that_fails_is_left_alone_for_longer_each_time() -> None:
    plan = DeliverySchedule(SCHEDULE, FakeIds())
    pauses = []
    for failures in range(12):
        outcome = plan.outcome(stored(1, failures=failures), DeliveryAttempt(reason="down"), NOW)
        assert outcome.pause_until is not None
        pauses.append((outcome.pause_until - NOW) / SECOND)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300]


def test_a_receiver_that_asks_for_time_gets_it() -> None:
    outcome = DeliverySchedule(SCHEDULE, FakeIds()).outcome(
        stored(), DeliveryAttempt(status=429, wait=7200), NOW
    )
    assert outcome.pause_until == NOW + 7200 * SECOND


def test_with_a_short_schedule_the_pauses_are_short() -> None:
    plan = DeliverySchedule((0, 0.2, 0.4), FakeIds())
    ends = [
        plan.outcome(stored(failures=failures), DeliveryAttempt(status=500), NOW).pause_until
        for failures in (0, 1, 5)
    ]
    assert ends == [NOW + 200_000, NOW + 400_000, NOW + 400_000]


def test_a_schedule_of_one_attempt_is_one() -> None:
    plan = DeliverySchedule((0,), FakeIds())
    assert plan.outcome(stored(), DeliveryAttempt(status=500), NOW).state == "dead"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (EgressRefused("the address may not be dialled"), "its address may not be dialled"),
        (ProviderTimeout("no answer in time"), "it did not answer in time"),
        (ProviderUnavailable("refused"), "it could not be reached (refused)"),
        (ProviderUnavailable(), "it could not be reached"),
        (ProviderError("what a peer said"), "its answer could not be read"),
        (StorageUnavailable("no key"), "it could not be sent (storage_unavailable)"),
    ],
)
async def test_what_has_no_answer_is_tried_again_and_says_why(
    error: CarnetError, reason: str
) -> None:
    http, ended = await delivered(error, schedule=(0, 1))
    assert (len(http.sent), ended.state, ended.reason) == (2, "dead", reason)


async def test_a_delivery_that_cannot_be_sent_at_all_is_not_tried_for_ever() -> None:
    clock, outbox = FakeClock(), MemoryOutbox()
    http = ScriptedClient(clock, Response(200))
    dispatching = dispatcher(outbox, http, clock, schedule=(0, 1))
    object.__setattr__(dispatching, "_webhooks", None)  # whatever it is that breaks
    await outbox.put([delivery()], clock.wall_us())
    await deliver_all(dispatching, outbox, clock)
    assert outbox.stored["msg_1"].reason == "it could not be sent"


async def test_at_most_sixteen_are_on_their_way() -> None:
    clock, outbox = FakeClock(), MemoryOutbox()
    http = ScriptedClient(clock, Response(200))
    many = [delivery(str(n), f"https://r{n}.example/") for n in range(AT_ONCE + 5)]
    await outbox.put(many, clock.wall_us())
    dispatching = dispatcher(outbox, http, clock)
    await dispatching.look()
    assert await dispatching.look() == 1.0  # there is no room
    await dispatching.settled()
    assert len(http.sent) == AT_ONCE
    await deliver_all(dispatching, outbox, clock)
    assert len(http.sent) == AT_ONCE + 5


# ------------------------------------------------------------------------- what is told of it


async def test_the_operator_is_told_of_what_died_and_of_a_dead_notice_nobody_is() -> None:
    clock, outbox = FakeClock(), MemoryOutbox()
    http = ScriptedClient(clock, Response(404))
    notify = ("https://ops.example/carnet?key=1", "http://127.0.0.1:9/x")
    await outbox.put([delivery()], clock.wall_us())
    dispatching = dispatcher(outbox, http, clock, schedule=(0, 1), notify=notify)
    await deliver_all(dispatching, outbox, clock)
    notices = [one for one in outbox.stored.values() if one.delivery.kind == "notice"]
    assert [one.delivery.url for one in notices] == list(notify)
    assert [one.delivery.host for one in notices] == ["https://ops.example", "http://127.0.0.1:9"]
    assert {(one.state, one.delivery.secret_of, one.delivery.learned) for one in notices} == {
        ("dead", "notify", False)
    }
    kinds = {request.kind for _, request in http.sent if request.url in notify}
    assert kinds == {"named"}
    body = json.loads(notices[0].delivery.body)
    assert body["type"] == "outbox.dead"
    assert body["data"] == {
        "delivery": "msg_1",
        "taskId": "task-1",
        "receiver": "https://hooks.example",
        "attempts": 2,
        "status": 404,
        "reason": "it answered 404",
        "gone": False,
    }


async def test_the_operator_is_told_of_an_address_that_is_gone() -> None:
    clock, outbox = FakeClock(), MemoryOutbox()
    http = ScriptedClient(clock, Response(410), Response(200))
    await outbox.put([delivery()], clock.wall_us())
    dispatching = dispatcher(outbox, http, clock, notify=("https://ops.example/",))
    await deliver_all(dispatching, outbox, clock)
    (notice,) = [one for one in outbox.stored.values() if one.delivery.kind == "notice"]
    assert notice.state == "delivered"
    assert json.loads(notice.delivery.body)["data"]["gone"] is True


async def test_every_attempt_is_logged_and_counted_and_no_secret_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    secret_path = "https://hooks.example/in/path-secret?token=query-secret"
    clock, outbox = FakeClock(), MemoryOutbox()
    http = ScriptedClient(clock, Response(500), Response(200))
    await outbox.put([delivery(url=secret_path)], clock.wall_us())
    with caplog.at_level(logging.INFO, logger="carnet.outbox"):
        dispatching = dispatcher(outbox, http, clock, metrics=metrics)
        await deliver_all(dispatching, outbox, clock)
    lines: list[Any] = [record for record in caplog.records if record.name == "carnet.outbox"]
    assert [(line.getMessage(), line.count, line.status, line.peer) for line in lines] == [
        ("webhook failed", 1, 500, "https://hooks.example"),
        ("webhook delivered", 2, 200, "https://hooks.example"),
    ]
    written = " ".join(str(vars(line)) for line in lines)
    assert "path-secret" not in written
    assert "query-secret" not in written
    assert "whsec_" not in written
    text = metrics.text().decode()
    assert 'carnet_webhook_deliveries_total{kind="callback",state="failed"} 1.0' in text
    assert 'carnet_webhook_deliveries_total{kind="callback",state="delivered"} 1.0' in text
