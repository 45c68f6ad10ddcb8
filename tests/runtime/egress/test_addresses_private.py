"""Plain http to where the operator wrote down (R52): what is refused says what would allow it."""

from collections.abc import Iterator

import pytest

from carnet.testing.address import Address
from carnet.testing.wait import until
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

NOBODY = Address()  # listens there
FAR = "198.51.100.7"  # of documentation: nobody's


def model(name: str, host: str) -> str:
    return (
        f'[agents.{name}]\nkind = "openai"\nurl = "http://{host}:{NOBODY.port}/v1"\nretries = 0\n'
    )


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("private"), "acme.example")
    models = {"near": "localhost", "here": "127.0.0.2", "far": FAR, "listed": "0.0.0.0"}  # noqa: S104
    sections = "".join(model(name, host) for name, host in models.items())
    gateway.configure(sections + '[egress]\nallow = ["0.0.0.0/32"]\n', agents=AGENTS)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


@pytest.mark.parametrize("agent", ["near", "here", "listed"])
def test_what_the_operator_wrote_down_at_home_is_dialled(acme: Organisation, agent: str) -> None:
    """R52: a name or an address there, and what the list has beside."""
    assert acme.chat("hi", agent).json["code"] == "provider_unavailable"  # nobody listens


def test_what_may_not_be_dialled_names_the_entry_that_would_allow_it_in_the_log(
    acme: Organisation,
) -> None:
    """R52: the operator reads where; a caller does not."""
    reply = acme.chat("hi", "far")
    assert (reply.status, reply.json["code"]) == (502, "egress_refused")
    assert FAR.encode() not in reply.body
    entry = f'[egress] allow = ["{FAR}/32"]'.replace('"', '\\"')
    until(lambda: any(entry in line for line in acme.log_lines()))
