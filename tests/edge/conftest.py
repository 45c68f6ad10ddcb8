"""One gateway with short deadlines and small bounds for the tests of this folder."""

from collections.abc import Callable, Iterator

import pytest

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

LIMITS = """
[agents.flood]
kind = "python"
target = "agents:flood"

[limits]
header_seconds = 1
body_seconds = 2
write_stall_seconds = 1
chat_body_bytes = 1048576
streams_per_caller = 2
"""


@pytest.fixture(scope="session")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("edge"), "acme.example")
    gateway.configure(CONFIG + LIMITS, agents=AGENTS + FLOOD)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0
    lines = (gateway.folder / "log.jsonl").read_text().splitlines()
    assert [line for line in lines if '"level":"error"' in line] == []


@pytest.fixture(scope="session")
def refused(acme: Organisation) -> Callable[[str], int]:
    """How many requests the gateway has refused with a code."""
    token = acme.new_token("scraper", "--scope", "metrics")

    def count(code: str) -> int:
        name = f'carnet_refusals_total{{code="{code}"}} '
        lines = acme.get("/metrics", token=token).body.decode().splitlines()
        return sum(int(float(line.removeprefix(name))) for line in lines if line.startswith(name))

    return count
