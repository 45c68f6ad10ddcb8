"""The agent chain on A2A, from a caller's message to what leaves: R15, R23, U05-U09."""

import itertools
import json
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.interop.a2a_extensions.conftest import Answered, ask, send
from tests.interop.mentions.conftest import World, chain, speak

REFUSED, INVALID = -32050, -32602
_words = itertools.count()


def word() -> str:
    return f"say word {next(_words)}"


def within(**members: object) -> dict[str, object]:
    return {"agent_chain": chain(**members)}


def seen(answered: Answered) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answered.text)
    return found


@pytest.mark.parametrize(
    ("came", "left"),
    [
        (None, (1, 4, False)),  # U01
        ((1, 4), (2, 4, False)),
        ((2, 4), (3, 4, False)),  # U05
        ((3, 4), (4, 4, True)),  # M16
        ((1, 99), (2, 4, False)),  # U07
        ((1, 2), (2, 2, True)),
    ],
)
def test_a_chained_call_leaves_one_hop_further_under_the_same_cap(
    came: tuple[int, int] | None, left: tuple[int, int, bool], world: World
) -> None:
    written = {"hop": left[0], "max_hops": left[1], "is_final": left[2]}
    mentionable = None if came is None else {"agent_chain": chain(*came)}
    for agent, text in (("caller", word()), ("sdk", word())):  # one that calls it, and it itself
        asked = f"sdk {text}" if agent == "caller" else text
        answered = world.send(agent, asked, mentionable)
        assert answered.text == text.replace("say", "you said")
        assert world.asked(text) == [{"agent_chain": written}]
    (headers,) = [each["headers"] for each in world.sdk.asked(text=text)]
    assert headers["x-a2a-hop"] == str(left[0])
    assert "x-tangle-forwarded-depth" not in headers


@pytest.mark.parametrize("cap", [3, 4])
def test_the_final_hop_is_answered_and_calls_nobody(cap: int, world: World) -> None:  # U06
    mentionable = within(hop=cap, max_hops=cap, is_final=True)
    stated = seen(world.send("teller", "x", mentionable))
    assert stated["chain"] == [cap, cap, 0, True]
    assert stated["cue"] == (
        f"You are responding as the FINAL hop ({cap} of {cap}). "
        "Synthesize a conclusion \N{EM DASH} do not invite another agent."
    )
    for agent in ("caller", "sdk"):
        text = word()
        asked = f"sdk {text}" if agent == "caller" else text
        answered = world.send(agent, asked, mentionable)
        assert "chain_final" in json.dumps(answered.body)
        assert world.asked(text) == []  # before any I/O
    text = word()
    assert world.send("careful", text, mentionable).text == "from what I have"
    assert world.asked(text) == []


@pytest.mark.parametrize(
    ("hop", "cue"),
    [
        (2, "You are responding as hop 2 of a chain capped at 4 hops. [2 hops remaining.]"),
        (3, "You are responding as hop 3 of a chain capped at 4 hops. [1 hop remaining.]"),
    ],
)
def test_an_agent_is_told_its_hop(hop: int, cue: str, world: World) -> None:  # M20
    stated = seen(world.send("teller", "x", within(hop=hop, max_hops=4)))
    assert (stated["cue"], stated["chain"]) == (cue, [hop, 4, 4 - hop, False])


def test_without_a_chain_a_call_over_a2a_is_no_chained_one(world: World) -> None:  # M19, M23
    stated = seen(world.send("teller", "x"))
    assert (stated["chain"][0], stated["cue"], stated["via"]) == (0, None, "a2a")
    assert (stated["relay"], stated["recipient"]) == ("none", "@teller@acme.example")


@pytest.mark.parametrize(
    "mentionable",
    [
        *(within(hop=5, max_hops=4), within(hop=0, max_hops=4), within(hop=-1, max_hops=4)),
        *(within(hop="2", max_hops=4), within(hop=2.5, max_hops=4), within(hop=True, max_hops=4)),
        *({"agent_chain": None}, {"agent_chain": {"hop": 1}}, "x", []),
        {"recipient_capabilities": {"agent_chain": chain(9, 4)}},
        {"agent_chain": chain(1, 4), "recipient_capabilities": {"agent_chain": chain(9, 4)}},
    ],
)
def test_what_is_no_chain_is_refused_and_nothing_runs(mentionable: object, world: World) -> None:
    text = word()  # U08
    answered = world.send("caller", f"sdk {text}", mentionable)
    assert answered.error == (INVALID, "malformed_caller_context")
    assert world.asked(text) == []


SPELLINGS: list[Any] = [
    lambda given: {"mentionable": {"agent_chain": given}},
    lambda given: {"mentionable.agent_chain": given},
    lambda given: {"mentionable": {"recipient_capabilities": {"agent_chain": given}}},
    lambda given: {"mentionable.recipient_capabilities": {"agent_chain": given}},
    lambda given: {"mentionable.recipient_capabilities.agent_chain": given},
]


@pytest.mark.parametrize("spell", SPELLINGS)
def test_a_chain_is_read_in_every_spelling_of_message_and_request(spell: Any, world: World) -> None:
    stated = seen(send(world.acme, "teller", spell(chain(2, 4))))
    assert stated["chain"] == [2, 4, 2, False]
    message = {"messageId": word(), "role": "ROLE_USER", "parts": [{"text": "x"}]}
    params = {"message": message, "metadata": spell(chain(2.0, 4.0))}
    assert seen(ask(world.acme, "teller", "SendMessage", params))["chain"] == [2, 4, 2, False]
    both = {**params, "message": message | {"metadata": spell(chain(3, 4))}}
    refused = ask(world.acme, "teller", "SendMessage", both)
    assert refused.error == (INVALID, "chain_mismatch")


def test_a_chain_that_contradicts_itself_is_recomputed_and_logged(world: World) -> None:  # U09
    stated = seen(world.send("teller", "x", within(hop=2, max_hops=4, is_final=True)))
    assert stated["chain"] == [2, 4, 2, False]

    def noted() -> bool:
        lines = map(json.loads, world.acme.log_lines())
        found = [each for each in lines if each.get("message") == "chain contradicts itself"]
        return any(each["detail"] == "is_final True at hop 2 of 4" for each in found)

    until(noted)


def test_beside_a_chain_of_mentions_a_lower_limit_of_another_stamp_counts(world: World) -> None:
    deep = world.send("teller", "x", within(hop=1, max_hops=4), x_tangle_forwarded_depth="2")
    assert seen(deep)["chain"] == [2, 3, 1, False]
    hops = world.send("teller", "x", within(hop=4, max_hops=4), x_a2a_hop="4")
    assert seen(hops)["chain"] == [4, 4, 0, True]
    refused = world.send("teller", "x", within(hop=4, max_hops=4), x_tangle_forwarded_depth="4")
    assert refused.error == (REFUSED, "bridge_depth_exceeded")


def test_the_handles_of_the_seed_fan_out_over_a2a_with_the_chain(world: World) -> None:
    text = "find a free Tuesday and link the runbook"
    assert speak(world.acme, f"@scheduler @docs {text}").events[-1] == "done"
    place = {"agent_chain": chain(1, 4, is_final=False)}
    read_by = {"recipient_capabilities": {"mention_relay": {"kind": "inline"}, **place}}
    assert world.asked(text) == [place | read_by] * 2
