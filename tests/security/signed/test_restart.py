"""A gateway that dies forgets no nonce, and takes none that it did not answer for (A11, F02)."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.support.signing import REPLAY
from tests.support.federation import organisation
from tests.support.organisation import Organisation
from tests.support.signing.signed import Line, Sender, Signed, message, refusal, result

ME = "agent://acme.example"


@pytest.fixture(scope="module")
def sender() -> Sender:
    return Sender("agent://client-patient")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, sender: Sender) -> Iterator[Organisation]:
    gateway = organisation(tmp_path_factory.mktemp("restart"), "acme.example")
    gateway.carnet("peers", "add", sender.identity, "--key", sender.public)
    yield gateway
    assert gateway.stop() == 0


def send(gateway: Organisation, request: Signed) -> tuple[int, str]:
    """The status and the code; (0, "") if the gateway died of it."""
    try:
        with Line(gateway.port) as line:
            reply = line.send(request)
    except (OSError, http.client.HTTPException):
        return 0, ""
    return (reply.status, "") if reply.status == 200 else refusal(reply)


def ran(gateway: Organisation) -> int:
    trace = Path(gateway.folder / "ran.txt")
    return len(trace.read_text().splitlines()) if trace.exists() else 0


def test_a_request_that_was_answered_is_refused_after_a_kill(
    gateway: Organisation, sender: Sender
) -> None:
    """A11."""
    gateway.start()
    request = message(sender, ME)
    with Line(gateway.port) as line:
        assert result(line.send(request)) == {"text": "hi"}
    before = ran(gateway)
    gateway.kill()
    gateway.start()
    assert send(gateway, request) == REPLAY
    assert ran(gateway) == before
    assert send(gateway, message(sender, ME)) == (200, "")
    gateway.kill()


@pytest.mark.parametrize(
    ("point", "then"),
    [("t1.nonce", (200, "")), ("t1.before_commit", (200, "")), ("t1.after_commit", REPLAY)],
)
def test_a_kill_takes_nonce_and_claim_together_or_neither(
    gateway: Organisation, sender: Sender, point: str, then: tuple[int, str]
) -> None:
    """F02: what was not committed can be sent again; what was is spent, though nobody was told."""
    request = message(sender, ME, traceId=f"killed-{point}")
    gateway.start(env={"CRASH_AT": point})
    before = ran(gateway)
    assert send(gateway, request) == (0, "")
    assert gateway.died()
    gateway.start()
    assert send(gateway, request) == then
    assert send(gateway, request) == REPLAY
    assert ran(gateway) == before + (then == (200, ""))
    page = json.loads(gateway.carnet("--format", "json", "runs").stdout)
    states = [run["state"] for run in page["runs"] if run["run"] == f"killed-{point}"]
    assert len(states) == 1
    gateway.kill()
