"""The Mentionable stamp: one chain, believed only where it lowers what we allow."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.chain.carnet import Carnet, Mark, merge
from carnet.errors import ChainFinal, ChainMismatch, DepthExceeded, MalformedCallerContext
from carnet.wire.stamps.mentionable import (
    DEFAULT_MAX_HOPS,
    AgentChain,
    next_chain,
    read_agent_chain,
    render_agent_chain,
)


def chain(hop: object, max_hops: object, **more: object) -> dict[str, object]:
    return {"hop": hop, "max_hops": max_hops, **more}


def with_chain(value: object) -> dict[str, object]:
    return {"mentionable": {"agent_chain": value}}


def mark(hop: int, last: int) -> Mark:
    return Mark(stamp="mentionable", depth=hop, last_depth=last)


CONCLUDE = " Synthesize a conclusion \u2014 do not invite another agent."
SPELLINGS: list[Any] = [
    lambda value: {"mentionable": {"agent_chain": value}},
    lambda value: {"mentionable.agent_chain": value},
    lambda value: {"mentionable": {"recipient_capabilities": {"agent_chain": value}}},
    lambda value: {"mentionable.recipient_capabilities": {"agent_chain": value}},
    lambda value: {"mentionable.recipient_capabilities.agent_chain": value},
    lambda value: {"mentionable": {"recipient_capabilities.agent_chain": value}},
]


@pytest.mark.parametrize("spell", SPELLINGS)
def test_a_chain_is_read_in_every_spelling(spell: Any) -> None:
    metadata = {"other": 1, **spell(chain(2, 4, is_final=False))}
    assert read_agent_chain(metadata, max_hops=4) == mark(2, 4)


@pytest.mark.parametrize(
    "metadata",
    [
        *(None, {}, {"other": {"agent_chain": 5}}, {"mentionable": {}}),
        {"mentionable": {"recipient_capabilities": {"mention_relay": {"kind": "inline"}}}},
        {"mentionable.identity_evidence": []},
    ],
)
def test_absent_is_a_direct_call(metadata: object) -> None:
    assert read_agent_chain(metadata, max_hops=4) is None


def test_what_a_client_that_relays_mentions_sends_is_read() -> None:  # M22
    capabilities = {
        "mention_relay": {"kind": "inline"},
        "agent_chain": {"hop": 1, "max_hops": 4, "is_final": False},
    }
    metadata = {"mentionable": {"recipient_capabilities": capabilities}}
    assert read_agent_chain(metadata, max_hops=4) == mark(1, 4)


@pytest.mark.parametrize("first", SPELLINGS)
@pytest.mark.parametrize("second", SPELLINGS)
def test_two_spellings_may_agree_and_must_not_contradict(first: Any, second: Any) -> None:
    same = chain(2, 4)
    assert read_agent_chain(first(same), second(same), max_hops=4) == mark(2, 4)
    for other in (chain(3, 4), chain(2, 5)):
        with pytest.raises(ChainMismatch, match="two different agent chains"):
            read_agent_chain(first(same), second(other), max_hops=4)


def test_a_contradiction_within_one_metadata_object_is_seen() -> None:
    both = {
        "mentionable": {"agent_chain": chain(1, 4)},
        "mentionable.agent_chain": chain(3, 4),
    }
    with pytest.raises(ChainMismatch):
        read_agent_chain(both, max_hops=4)
    nested = {"agent_chain": chain(1, 4), "recipient_capabilities": {"agent_chain": chain(2, 4)}}
    with pytest.raises(ChainMismatch):
        read_agent_chain({"mentionable": nested}, max_hops=4)


@pytest.mark.parametrize(
    "metadata",
    [
        *(
            with_chain(chain(5, 4)),
            with_chain(chain(0, 4)),
            with_chain(chain(-1, 4)),
            with_chain(chain(1, 0)),
        ),
        *(
            with_chain(chain("2", 4)),
            with_chain(chain(2, "4")),
            with_chain(chain(2.5, 4)),
            with_chain(chain(2, float("inf"))),
            with_chain({"hop": True, "max_hops": 4}),
        ),
        *(
            with_chain(chain(None, 4)),
            with_chain({"hop": 1}),
            with_chain({"max_hops": 4}),
            with_chain({}),
        ),
        *(
            with_chain(None),
            with_chain([1, 4]),
            with_chain("1/4"),
            with_chain(chain(1, 4, is_final="false")),
        ),
        *(with_chain(chain(1, 4, is_final=None)), with_chain(chain(1, 4, is_final=0))),
        *("text", [], 5, {"mentionable": None}, {"mentionable": "x"}),
        {"mentionable": {"recipient_capabilities": ["x"]}},
    ],
)
def test_what_is_there_and_not_whole_is_refused(metadata: object) -> None:
    with pytest.raises(MalformedCallerContext) as caught:
        read_agent_chain(metadata, max_hops=4)
    assert caught.value.status == 400


def test_a_malformed_chain_is_refused_also_beside_a_good_one() -> None:
    with pytest.raises(MalformedCallerContext):
        read_agent_chain(with_chain(chain(1, 4)), with_chain(chain(9, 4)), max_hops=4)


def test_whole_numbers_that_came_through_a_protobuf_struct_are_read() -> None:
    assert read_agent_chain(with_chain(chain(2.0, 4.0)), max_hops=4) == mark(2, 4)


def test_fields_of_later_versions_are_ignored() -> None:
    assert read_agent_chain(with_chain(chain(1, 4, root="x")), max_hops=4) == mark(1, 4)


@pytest.mark.parametrize("claimed", [True, False])
def test_is_final_is_computed_and_not_believed(*, claimed: bool) -> None:
    assert AgentChain(2, 4, claimed).is_final is False
    assert AgentChain(4, 4, claimed).is_final is True
    found = read_agent_chain(with_chain(chain(2, 4, is_final=claimed)), max_hops=4)
    assert found is not None
    assert (found.depth, found.last_depth) == (2, 4)
    assert found.doubt == ("is_final True at hop 2 of 4" if claimed else None)


@given(hop=st.integers(1, 30), more=st.integers(0, 30), ours=st.integers(1, 30))
def test_a_peer_can_lower_our_limit_and_never_raise_it(hop: int, more: int, ours: int) -> None:
    found = read_agent_chain(with_chain(chain(hop, hop + more)), max_hops=ours)
    assert found == mark(hop, min(ours, hop + more))


@pytest.mark.parametrize(("hop", "max_hops"), [(0, 4), (5, 4), (-1, -1), (1, 0)])
def test_an_impossible_chain_cannot_be_made(hop: int, max_hops: int) -> None:
    with pytest.raises(MalformedCallerContext):
        AgentChain(hop, max_hops)


def carnet(depth: int, last: int | None, bound_by: str | None = "mentionable") -> Carnet:
    return Carnet(run="r", turn="t", depth=depth, last_depth=last, bound_by=bound_by)


@pytest.mark.parametrize(
    ("depth", "last", "written"),
    [
        (0, None, {"hop": 1, "max_hops": 4, "is_final": False}),
        (1, 4, {"hop": 2, "max_hops": 4, "is_final": False}),
        (3, 4, {"hop": 4, "max_hops": 4, "is_final": True}),
        (0, 1, {"hop": 1, "max_hops": 1, "is_final": True}),
        (1, 3, {"hop": 2, "max_hops": 3, "is_final": False}),
    ],
)
def test_the_next_chain_is_one_hop_further_under_the_same_cap(  # M16 M17
    depth: int, last: int | None, written: dict[str, object]
) -> None:
    assert next_chain(carnet(depth, last), default=DEFAULT_MAX_HOPS) == written


def test_from_the_final_hop_nothing_is_written() -> None:  # M16
    with pytest.raises(ChainFinal) as caught:
        next_chain(carnet(4, 4), default=DEFAULT_MAX_HOPS)
    assert caught.value.status == 429
    with pytest.raises(DepthExceeded):
        next_chain(carnet(3, 3, "tangle"), default=DEFAULT_MAX_HOPS)


@given(depth=st.integers(0, 10), last=st.integers(1, 11))
def test_the_chain_is_read_as_it_was_written(depth: int, last: int) -> None:
    document = carnet(depth, last)
    if document.is_final(last):
        return
    written = next_chain(document, default=99)
    found = read_agent_chain(with_chain(written), max_hops=last)
    assert found == mark(depth + 1, last)
    assert merge([found]).depth == depth + 1
    assert AgentChain(**written).is_final is written["is_final"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hop", "max_hops", "cue"),
    [
        (1, 9, "You are responding as hop 1 of a chain capped at 9 hops. [8 hops remaining.]"),
        (2, 4, "You are responding as hop 2 of a chain capped at 4 hops. [2 hops remaining.]"),
        (3, 4, "You are responding as hop 3 of a chain capped at 4 hops. [1 hop remaining.]"),
        (4, 4, "You are responding as the FINAL hop (4 of 4)." + CONCLUDE),
        (1, 1, "You are responding as the FINAL hop (1 of 1)." + CONCLUDE),
    ],
)
def test_the_cue_tells_a_model_where_it_stands(hop: int, max_hops: int, cue: str) -> None:  # M20
    assert render_agent_chain(AgentChain(hop, max_hops)) == cue
