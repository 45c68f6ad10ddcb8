"""A gateway whose agents have skills and a price, for the pages about it."""

from collections.abc import Iterator

import pytest

from tests.console.pages import a_viewer, an_admin
from tests.gateway.people.browser import Somebody
from tests.support.organisation import Organisation, shared_with_others
from tests.support.served import AGENTS, CONFIG

CLERK = '''
from dataclasses import dataclass

clerk = carnet.agent("clerk")


@dataclass
class Booking:
    day: str
    seats: int = 2


@clerk.skill("book")
async def book(booking: Booking) -> dict[str, str]:
    """Book a <b>table</b>."""
    return {"table": f"{booking.seats} on {booking.day}"}
'''
SECTION = '[agents.clerk]\nkind = "python"\ntarget = "agents:clerk"\ntrust = "public"\n'


@pytest.fixture(scope="session")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("operations"), "acme.example")
    gateway.configure(CONFIG + SECTION)
    (gateway.folder / "agents.py").write_text(AGENTS + CLERK)
    with shared_with_others():
        gateway.start()
    yield gateway
    assert gateway.stop() == 0


# Whoever is kept for a session belongs to one gateway: these are at this one.


@pytest.fixture(scope="session")
def viewer(acme: Organisation) -> Somebody:
    return a_viewer(acme)


@pytest.fixture(scope="session")
def operator(acme: Organisation) -> Somebody:
    return Somebody(acme)


@pytest.fixture(scope="session")
def admin(acme: Organisation) -> Somebody:
    return an_admin(acme)
