"""A chain of mentions through organisations that call one another over A2A, to its last hop."""

import json
from collections.abc import Iterator

import pytest

from carnet.testing.stage import Organisation, Stage
from tests.interop.a2a.test_two_hops import behind
from tests.interop.a2a_extensions.conftest import send
from tests.interop.mentions.conftest import chain

AGENTS = """
import json

import carnet


async def hops(visit, onward):
    own = [visit.chain.hop, visit.chain.cap, visit.cue]
    if onward is None or visit.is_final:
        yield json.dumps([own])
        return
    told = json.loads(await visit.peer(onward).ask(visit.text))
    yield json.dumps([own, *told])


@carnet.agent("first")
async def first(visit):
    async for each in hops(visit, "to_second"):
        yield each


@carnet.agent("second")
async def second(visit):
    async for each in hops(visit, "to_third"):
        yield each


@carnet.agent("third")
async def third(visit):
    async for each in hops(visit, "to_fourth"):
        yield each


@carnet.agent("fourth")
async def fourth(visit):
    async for each in hops(visit, "to_fifth"):
        yield each


@carnet.agent("fifth")
async def fifth(visit):
    async for each in hops(visit, None):
        yield each
"""


FINAL = (
    "You are responding as the FINAL hop (4 of 4). "
    "Synthesize a conclusion \N{EM DASH} do not invite another agent."
)


def _own(*names: str) -> str:
    return "".join(
        f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n' for name in names
    )


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """Two organisations whose agents call one another, each over A2A and with a token."""
    with Stage(tmp_path_factory.mktemp("hops")) as stage:
        odd = stage.organisation("acme.example", agents=AGENTS)
        even = stage.organisation("globex.example", agents=AGENTS)
        to_odd, to_even = odd.new_token("globex"), even.new_token("acme")
        odd.configure(
            _own("first", "third", "fifth")
            + behind("to_second", even, "second", to_even)
            + behind("to_fourth", even, "fourth", to_even)
        )
        even.configure(
            _own("second", "fourth")
            + behind("to_third", odd, "third", to_odd)
            + behind("to_fifth", odd, "fifth", to_odd)
        )
        odd.start()
        even.start()
        yield odd


def test_a_chain_goes_through_four_hops_and_ends_with_the_final_cue(acme: Organisation) -> None:
    stated = json.loads(send(acme, "first").text)
    assert [(hop, cap) for hop, cap, _ in stated[1:]] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert stated[0][2] is None
    assert [cue for _, _, cue in stated[1:]] == [
        "You are responding as hop 1 of a chain capped at 4 hops. [3 hops remaining.]",
        "You are responding as hop 2 of a chain capped at 4 hops. [2 hops remaining.]",
        "You are responding as hop 3 of a chain capped at 4 hops. [1 hop remaining.]",
        FINAL,
    ]


def test_a_chain_that_came_with_fewer_hops_ends_sooner(acme: Organisation) -> None:
    metadata = {"mentionable": {"agent_chain": chain(1, 3)}}
    stated = json.loads(send(acme, "first", metadata).text)
    assert [(hop, cap) for hop, cap, _ in stated] == [(1, 3), (2, 3), (3, 3)]
