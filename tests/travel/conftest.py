"""Two Carnets that know one another by their keys, with somebody between them."""

from collections.abc import Iterator

import pytest
from msgspec import Struct

from tests.support.federation import organisation
from tests.support.organisation import Organisation
from tests.support.served import AGENTS
from tests.travel.middlebox import Middlebox, middlebox, untouched
from tests.travel.scene import HELD, OTHER_AGENTS, SIGNED_DIALECT, Peer, acquaint


class Scene(Struct):
    """`a` calls `b` through the box; `c` is a third Carnet, `peer` a gateway of another make."""

    a: Organisation
    b: Organisation
    c: Organisation
    box: Middlebox
    peer: Peer
    stranger: Peer


@pytest.fixture(scope="package")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("travel")
    a, b, c = (organisation(folder / name, f"{name}.example") for name in "abc")
    for each in (a, b):
        each.configure(OTHER_AGENTS, agents=AGENTS + HELD)
    peer, stranger = Peer("peer.example"), Peer("stranger.example")
    with middlebox(b.port) as box:
        acquaint(a, b, url=box.url)
        acquaint(a, c, url=c.url, link=SIGNED_DIALECT)
        acquaint(b, c)
        for known in (b, c):
            peer.known_to(known)
        stranger.known_to(b, credit=None)
        for each in (a, b, c):
            each.start()
        yield Scene(a, b, c, box, peer, stranger)
        assert (a.stop(), b.stop(), c.stop()) == (0, 0, 0)


@pytest.fixture
def scene(gateways: Scene) -> Iterator[Scene]:
    """The same three gateways for every test; nobody touches what passes, at first."""
    gateways.box.asked.clear()
    gateways.box.answered.clear()
    yield gateways
    gateways.box.ask = gateways.box.answer = untouched
