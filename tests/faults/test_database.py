"""A gateway on PostgreSQL whose database goes away, and comes back (F14)."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.faults.scene import HELD, HELD_CONFIG, PRICE, billed, ids, turns
from tests.faults.stores import move_to, number
from tests.stores.support import servers
from tests.stores.support.proxies import Proxy
from tests.support.federation import organisation
from tests.support.http import Reply
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, executions

BOUND_SECONDS = 30  # for what takes a moment, on a machine that is busy


class Wired:
    """A gateway whose wire to its database can be cut."""

    def __init__(self, gateway: Organisation, proxy: Proxy) -> None:
        self.gateway = gateway
        self.proxy = proxy

    def ask(self, run: str) -> Reply:
        return self.gateway.chat("hi", "paid", headers=ids(run))

    def is_ready(self) -> bool:
        return self.gateway.get("/readyz").status == 200

    @contextmanager
    def cut(self) -> Iterator[None]:
        """No connection to the database, and none to be had."""
        servers.elsewhere(self.proxy.down())
        try:
            yield
        finally:
            servers.elsewhere(self.proxy.up())


@pytest.fixture
def wired(server: servers.Server, tmp_path: Path) -> Iterator[Wired]:
    database = server.create()
    gateway = organisation(tmp_path / "acme", "acme.example")
    gateway.configure(HELD_CONFIG, agents=AGENTS + HELD)

    async def make() -> Proxy:
        proxy = Proxy(database, tmp_path)
        await proxy.up()
        return proxy

    proxy = servers.elsewhere(make())
    move_to(gateway, proxy.url)
    gateway.start()
    yield Wired(gateway, proxy)
    gateway.kill()
    servers.elsewhere(proxy.down())
    server.drop(database)


def test_f14_a_database_that_is_down_is_503_at_once_and_passes_without_a_restart(
    wired: Wired,
) -> None:
    gateway, first = wired.gateway, wired.ask("conv_before")
    with wired.cut():
        began = time.monotonic()
        replies = [wired.ask(f"conv_down_{n}") for n in range(3)]
        assert time.monotonic() - began < BOUND_SECONDS  # no wait for what does not come
        assert {(reply.status, reply.code) for reply in replies} == {(503, "storage_unavailable")}
        until(lambda: not wired.is_ready())
        assert gateway.get("/healthz").status == 200
        again = wired.ask("conv_before")  # it cannot be told whether it was answered before
        assert (again.status, again.code) == (503, "storage_unavailable")
        assert executions(gateway.folder, "paid") == ["conv_before.t0.x"]
    until(wired.is_ready)
    assert wired.ask("conv_before").body == first.body
    for run in ("conv_down_0", "conv_after"):
        assert wired.ask(run).status == 200
        assert billed(gateway, run) == PRICE
    assert number(gateway, "SELECT COUNT(*) FROM ledger") == 3
    assert gateway.stop() == 0


def test_f14_while_the_database_is_down_the_log_says_so_once_and_then_counts(wired: Wired) -> None:
    gateway = wired.gateway

    def warnings() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in gateway.log_lines()]
        return [line for line in lines if line["level"] == "warning" and line["run"] is None]

    with wired.cut():
        until(warnings, lambda found: any("count" in line for line in found))
        first = [str(line | {"timestamp": ""}) for line in warnings() if "count" not in line]
        counted = [line for line in warnings() if "count" in line]
        assert len(first) == len(set(first))
        assert all(line["message"].endswith(" (again)") for line in counted)
    until(wired.is_ready)
    assert gateway.stop() == 0


def test_f14_a_turn_whose_database_goes_away_is_not_told_as_done(wired: Wired) -> None:
    gateway = wired.gateway
    replies: list[Reply] = []

    def ask() -> None:
        replies.append(gateway.chat("go", "held", headers=ids("conv_cut")))

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: turns(gateway, "conv_cut") == [("running", None)])
    with wired.cut():
        (gateway.folder / "go").touch()
        asking.join(BOUND_SECONDS)
        assert replies[0].status == 503
        assert replies[0].code in {"storage_unavailable", "outcome_unknown"}
    until(lambda: turns(gateway, "conv_cut")[0][0] != "running")
    assert turns(gateway, "conv_cut") == [("unknown", "outcome_unknown")]
    assert gateway.chat("go", "held", headers=ids("conv_cut")).text == "half whole "
    assert billed(gateway, "conv_cut") == PRICE
