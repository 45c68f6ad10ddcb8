"""Spans on their way to a collector: within bounds, whatever the collector does."""

from collections.abc import AsyncIterator, Iterator

import pytest

from carnet.runtime.egress.client import EgressClient
from carnet.runtime.traces import exporter as module
from carnet.runtime.traces.exporter import SpanExporter
from carnet.testing.address import Address
from carnet.testing.wait import until_so
from tests.support.traces.collector import Collector

SPAN = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "invoke_agent echo", "kind": 2}


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture
async def http() -> AsyncIterator[EgressClient]:
    client = EgressClient()
    yield client
    await client.close()


def exporter(http: EgressClient, url: str, most: int = 10) -> SpanExporter:
    return SpanExporter(http, url, domain="acme.example", most=most)


async def test_what_is_offered_arrives(http: EgressClient, collector: Collector) -> None:
    sends = exporter(http, f"{collector.url}/")
    sends.start()
    for _ in range(3):
        sends.offer(SPAN)
    await until_so(lambda: len(collector.spans) == 3)
    await sends.close()
    assert sends.counts == {"sent": 3, "dropped": 0, "failed": 0}
    assert collector.spans[0].resource["service.namespace"] == "acme.example"


async def test_what_waits_is_bounded_and_the_rest_is_counted(http: EgressClient) -> None:
    with Address() as nobody:
        sends = exporter(http, nobody.url, most=2)
        for _ in range(5):
            sends.offer(SPAN)
        assert sends.counts["dropped"] == 3
        await sends.close()
    assert sends.counts == {"sent": 0, "dropped": 3, "failed": 2}


async def test_a_collector_that_refuses_is_given_up_and_told_of_once(
    http: EgressClient,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.001)
    collector.status = 503
    sends = exporter(http, collector.url)
    sends.start()
    sends.offer(SPAN)
    await until_so(lambda: sends.counts["failed"] == 1)
    sends.offer(SPAN)
    await until_so(lambda: sends.counts["failed"] == 2)
    assert len(collector.bodies) == 2 * module.TRIES
    assert [record.message for record in caplog.records] == ["spans are not taken"]
    collector.status = 200
    sends.offer(SPAN)
    await until_so(lambda: sends.counts["sent"] == 1)
    await sends.close()


async def test_what_waits_at_the_end_is_sent(http: EgressClient, collector: Collector) -> None:
    sends = exporter(http, collector.url)
    sends.offer(SPAN)
    await sends.close()
    assert len(collector.spans) == 1
