"""A gateway with small bounds for the tests of this folder, and one that has little patience."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from carnet.testing.address import Address
from carnet.testing.wait import until
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG

FLOOD = '''

async def flood(visit):
    """Talk without end; leave a trace when somebody stops it."""
    note(visit)
    try:
        while True:
            yield "x" * 32_768
            await asyncio.sleep(0)
    finally:
        with RAN.open("a") as trace:
            trace.write(f"flood-stopped {visit.carnet.turn} 0\\n")
'''

STREAMS = 60  # that one caller may have open
FAILURES = 5  # wrong tokens that one address may send
NOBODY = Address()  # listens there
PROXY = "127.0.0.1"  # where the tests connect from, if they do not say otherwise

LIMITS = f"""
[agents.flood]
kind = "python"
target = "agents:flood"

[agents.gone]
kind = "openai"
url = "{NOBODY.url}/v1"

[limits]
write_stall_seconds = 2
chat_body_bytes = 1048576
streams_per_caller = {STREAMS}
auth_failures = {FAILURES}
"""
HASTE = """
header_seconds = 1
body_seconds = 2
"""


@contextmanager
def started(folder: Path, limits: str) -> Iterator[Organisation]:
    gateway = Organisation(folder, "acme.example")
    gateway.configure(CONFIG + limits, agents=AGENTS + FLOOD)
    gateway.start(env={"CARNET__GATEWAY__TRUSTED_PROXIES": PROXY})
    yield gateway
    assert gateway.stop() == 0
    assert [line for line in gateway.log_lines() if '"level":"error"' in line] == []


@pytest.fixture(scope="session")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    with started(tmp_path_factory.mktemp("edge"), LIMITS) as gateway:
        yield gateway


@pytest.fixture(scope="session")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """It waits for no head and no body as long as others do."""
    with started(tmp_path_factory.mktemp("hasty"), LIMITS + HASTE) as gateway:
        yield gateway


@pytest.fixture(scope="session")
def logged(acme: Organisation) -> Callable[[str], list[dict[str, Any]]]:
    """The log lines that hold a word, once there is one."""

    def find(word: str) -> list[dict[str, Any]]:
        until(lambda: any(word in line for line in acme.log_lines()))
        return [json.loads(line) for line in acme.log_lines() if word in line]

    return find


@pytest.fixture(scope="session")
def refused(acme: Organisation) -> Callable[[str], int]:
    """How many requests the gateway has refused with a code."""
    token = acme.new_token("scraper", "--scope", "metrics")

    def count(code: str) -> int:
        name = f'carnet_refusals_total{{code="{code}"}} '
        lines = acme.get("/metrics", token=token).body.decode().splitlines()
        return sum(int(float(line.removeprefix(name))) for line in lines if line.startswith(name))

    return count
