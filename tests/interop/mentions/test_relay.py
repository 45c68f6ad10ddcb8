"""What whoever reads an answer can do, told over A2A, and the relay of the front: R37, R39."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from carnet.testing.stage import Organisation, Stage
from tests.interop.a2a_extensions.conftest import send
from tests.interop.mentions.conftest import AGENTS, SECTIONS, World, chain, speak

INVALID = -32602
# The seed's own example: a Slack connector that calls agent B over A2A.
SLACK: dict[str, Any] = {
    "recipient_capabilities": {
        "mention_relay": {"kind": "inline"},
        "agent_chain": {"hop": 1, "max_hops": 4, "is_final": False},
    }
}


def test_what_the_connector_of_the_seed_sends_is_what_the_agent_sees(world: World) -> None:  # M22
    stated = json.loads(world.send("teller", "x", SLACK).text)
    assert (stated["relay"], stated["chain"]) == ("inline", [1, 4, 3, False])
    assert stated["cue"] == (
        "You are responding as hop 1 of a chain capped at 4 hops. [3 hops remaining.]"
    )


@pytest.mark.parametrize(
    ("relay", "seen"),
    [
        ("inline", ("inline", {})),
        ("none", ("none", {})),
        ({"kind": "none"}, ("none", {})),
        ({"kind": "thread", "limit": 3}, ("thread", {"limit": 3})),
    ],
)
def test_the_relay_is_told_by_its_kind_alone_or_with_more(
    relay: object, seen: tuple[str, object], world: World
) -> None:
    capabilities = {"recipient_capabilities": {"mention_relay": relay, "buttons": ["ok"]}}
    stated = json.loads(world.send("teller", "x", capabilities).text)
    assert (stated["relay"], stated["beside"]) == seen
    assert (stated["others"], stated["chain"][0]) == ({"buttons": ["ok"]}, 0)


@pytest.mark.parametrize(
    "capabilities",
    [
        *("inline", ["inline"], {"mention_relay": {}}, {"mention_relay": {"kind": 1}}),
        *({"mention_relay": {"kind": "a b"}}, {"mention_relay": None}),
        {"mention_relay": "none", "more": "x" * 5000},
    ],
)
def test_capabilities_that_are_none_are_refused(capabilities: object, world: World) -> None:
    answered = world.send("teller", "x", {"recipient_capabilities": capabilities})
    assert answered.error == (INVALID, "malformed_caller_context")


def test_two_that_differ_are_refused(world: World) -> None:
    one = {"recipient_capabilities": {"mention_relay": "inline"}}
    metadata = {"mentionable": one, "mentionable.recipient_capabilities.mention_relay": "none"}
    assert send(world.acme, "teller", metadata).error == (INVALID, "malformed_caller_context")


def test_a_call_that_is_passed_on_tells_on_what_was_told(world: World) -> None:
    stated = SLACK["recipient_capabilities"] | {"buttons": ["ok"]}
    world.send("sdk", "say passed on", {"recipient_capabilities": stated})
    (left,) = world.asked("say passed on")
    further = chain(2, 4, is_final=False)
    assert left == {
        "agent_chain": further,
        "recipient_capabilities": stated | {"agent_chain": further},
    }


def test_a_call_that_an_agent_makes_itself_is_relayed_by_nobody(world: World) -> None:
    stated = SLACK["recipient_capabilities"] | {"buttons": ["ok"]}
    world.send("caller", "sdk say of its own", {"recipient_capabilities": stated})
    (left,) = world.asked("say of its own")
    assert left["recipient_capabilities"] == {
        "mention_relay": {"kind": "none"},
        "buttons": ["ok"],
        "agent_chain": chain(2, 4, is_final=False),
    }


def test_the_front_says_that_it_relays_also_to_an_agent_behind_a2a(world: World) -> None:
    assert json.loads(speak(world.acme, "x", agent="teller").voices[0][1])["relay"] == "inline"
    spoken = speak(world.acme, "say nothing else", agent="sdk")
    assert spoken.voices == [("", "you said nothing else")]
    assert world.asked("say nothing else") == [
        {
            "agent_chain": chain(1, 4, is_final=False),
            "recipient_capabilities": {
                "mention_relay": {"kind": "inline"},
                "agent_chain": chain(1, 4, is_final=False),
            },
        }
    ]


def test_a_mention_in_an_answer_over_a2a_is_relayed_at_the_next_hop(world: World) -> None:
    spoken = speak(world.acme, "say ask @teller and @teller@acme.example, (@teller)", agent="sdk")
    assert spoken.events == ["text-delta", "relay", "text-delta", "done"]  # once for the pair
    author, text = spoken.voices[1]
    stated = json.loads(text)
    assert author == "teller"
    assert (stated["chain"], stated["relay"]) == ([2, 4, 2, False], "inline")
    assert stated["cue"] == (
        "You are responding as hop 2 of a chain capped at 4 hops. [2 hops remaining.]"
    )


def test_a_mention_of_an_agent_behind_a2a_leaves_with_its_chain(world: World) -> None:
    spoken = speak(world.acme, "the plan", agent="mentions")
    assert [author for author, _ in spoken.voices] == ["", "scheduler"]
    (left,) = world.asked("mentions says: Ask @scheduler about the plan")
    assert left["agent_chain"] == chain(1, 4, is_final=False)
    assert left["recipient_capabilities"]["mention_relay"] == {"kind": "inline"}


@pytest.fixture(scope="module")
def short(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """A gateway whose chains have one hop."""
    with Stage(tmp_path_factory.mktemp("short")) as stage:
        config = SECTIONS.replace("{url}", world.sdk.url)
        made = stage.organisation("short.example", config=config, agents=AGENTS)
        path = made.folder / "carnet.toml"
        path.write_text(path.read_text().replace("[gateway]", "[gateway]\nmax_hops = 1", 1))
        made.start()
        yield made


def test_from_the_final_hop_nobody_is_relayed_to(short: Organisation, world: World) -> None:
    spoken = speak(short, "say ask @teller at once", agent="sdk")  # M17
    assert spoken.voices == [("", "you said ask @teller at once")]
    (left,) = world.asked("say ask @teller at once")
    assert left["agent_chain"] == chain(1, 1, is_final=True)
