"""Where a name leads."""

import pytest

from carnet.errors import AddressInvalid, AgentNotFound, PeerUnknown
from carnet.ports.calls.agent import Target
from carnet.ports.trust.trust import Peer
from carnet.runtime.visit.routing import Routing
from carnet.testing.trust import MemoryPeers
from tests.guards.scene import target


class Scene:
    """A router over three agents and a peer."""

    def __init__(self) -> None:
        self.reached: list[tuple[str, str]] = []
        self.peers = MemoryPeers(Peer(domain="b.example", url="http://127.0.0.1:1"))
        names = ["echo", "critic", "bridge/sandbox/critic"]
        agents = {name: target(name, default=name == "echo") for name in names}
        self.router = Routing(
            agents=agents, peers=self.peers, domain="acme.example", reach=self.reach
        )

    def reach(self, peer: Peer, local: str, name: str) -> Target:
        self.reached.append((peer.domain, local))
        return target(name, is_remote=True, credit=f"peer:{peer.domain}")

    def find(self, name: str) -> str:
        return self.router.find(name).name


@pytest.mark.parametrize(
    ("name", "leads_to"),
    [
        ("echo", "echo"),
        ("", "echo"),
        ("bridge/sandbox/critic", "bridge/sandbox/critic"),
        ("bridge/other/critic", "critic"),
        ("@critic@acme.example", "critic"),
        ("acct:critic@acme.example", "critic"),
        ("agent://acme.example", "echo"),
        ("agent://critic.acme.example", "critic"),
        ("@critic@b.example", "@critic@b.example"),
        ("agent://b.example", "agent://b.example"),
        ("agent://critic.b.example", "@critic@b.example"),
    ],
)
def test_names_paths_and_addresses_lead_to_agents(name: str, leads_to: str) -> None:
    assert Scene().find(name) == leads_to


@pytest.mark.parametrize("name", ["nobody", "@nobody@acme.example", "agent://nobody.acme.example"])
def test_what_is_not_served_here_is_not_found(name: str) -> None:
    with pytest.raises(AgentNotFound):
        Scene().find(name)


OWN = ["echo", "", "bridge/other/critic", "@critic@acme.example", "agent://acme.example"]
ELSEWHERE = [
    *("@critic@b.example", "agent://b.example", "agent://critic.b.example"),  # of a peer
    *("@critic@c.example", "agent://c.example", "@critic@x.acme.example"),
    *("nobody", "@nobody@acme.example", "agent://nobody.acme.example", "@@", "agent://"),
]


@pytest.mark.parametrize("name", [*OWN, "agent://critic.acme.example"])
def test_an_agent_of_ours_is_found_by_all_its_names(name: str) -> None:
    scene = Scene()
    assert scene.router.own(name) is scene.router.find(name)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_who_looks_for_agents_of_ours_does_not_learn_who_is_a_peer(name: str) -> None:
    scene = Scene()
    with pytest.raises(AgentNotFound) as refused:
        scene.router.own(name)
    assert refused.value.public_facts() == {}
    assert scene.reached == []


def test_without_a_default_agent_the_domain_is_nobody() -> None:
    peers = MemoryPeers(Peer(domain="example", url="http://127.0.0.1:1"))
    agents = {"echo": target("echo")}
    router = Routing(agents=agents, peers=peers, domain="acme.example", reach=Scene().reach)
    for name in ("", "agent://acme.example"):
        with pytest.raises(AgentNotFound):
            router.own(name)


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(AgentNotFound) as refused:
        Scene().find("critik")
    assert "'critic'" in refused.value.safe_text


@pytest.mark.parametrize("name", ["@x@unknown.example", "agent://unknown.example"])
def test_a_domain_that_is_no_peer_is_refused(name: str) -> None:
    with pytest.raises(PeerUnknown):
        Scene().find(name)


def test_a_broken_address_is_refused_as_such() -> None:
    with pytest.raises(AddressInvalid):
        Scene().find("@x@B.example")


async def test_a_target_elsewhere_is_built_once_until_its_peer_changes() -> None:
    scene = Scene()
    first = scene.router.find("@critic@b.example")
    assert scene.router.find("@critic@b.example") is first
    await scene.peers.put(Peer(domain="b.example", url="http://127.0.0.1:2"))
    assert scene.router.find("@critic@b.example") is not first
    assert len(scene.reached) == 2


def test_agents_are_listed_in_the_order_they_were_given() -> None:
    assert [found.name for found in Scene().router.local()][:2] == ["echo", "critic"]


def test_the_identity_of_a_peer_is_its_default_agent_and_below_it_are_its_agents() -> None:
    scene = Scene()
    for name in ("agent://b.example", "agent://critic.b.example", "@critic@b.example"):
        scene.find(name)
    assert scene.reached == [("b.example", ""), ("b.example", "critic")]  # one agent by two names
