"""How much one sender may ask for: counted for whoever signed, after it was found to be true."""

from collections.abc import Iterator

import pytest

from tests.security.support.signing import REPLAY
from tests.support.federation import organisation
from tests.support.organisation import Organisation
from tests.support.signing.signed import Line, Sender, Signed, message, refusal

ME = "agent://acme.example"
ALLOWED = 3
LIMITED = (429, "RATE_LIMITED")
ALICE, BOB = Sender("agent://client-alice"), Sender("agent://client-bob")
MALLORY = Sender("agent://client-alice")  # who says so


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = organisation(tmp_path_factory.mktemp("rates"), "acme.example")
    for sender in (ALICE, BOB):
        gateway.carnet("peers", "add", sender.identity, "--key", sender.public)
    gateway.start(env={"CARNET__LIMITS__SENDER_CALLS_PER_MINUTE": str(ALLOWED)})
    yield gateway
    assert gateway.stop() == 0


def test_a_sender_spends_its_own_quota_and_nobody_elses(gateway: Organisation) -> None:
    """A13, R10: forgeries spend none, refusals burn no nonce, and a replay is told as one."""
    accepted = [message(ALICE, ME) for _ in range(ALLOWED)]
    late = message(ALICE, ME)
    with Line(gateway.port) as line:

        def outcome(request: Signed) -> tuple[int, str]:
            reply = line.send(request)
            return (200, "") if reply.status == 200 else refusal(reply)

        forged = [outcome(message(MALLORY, ME)) for _ in range(60)]
        assert set(forged) == {(401, "AUTH_FAILED")}
        assert [outcome(request) for request in accepted] == [(200, "")] * ALLOWED
        assert [outcome(late) for _ in range(3)] == [LIMITED] * 3
        assert outcome(accepted[0]) == REPLAY
        assert outcome(message(ALICE, ME, skill="nothing")) == LIMITED  # before what it asks for
        assert int(line.send(late).headers["retry-after"]) in range(1, 61)
        assert [outcome(message(BOB, ME)) for _ in range(ALLOWED)] == [(200, "")] * ALLOWED
