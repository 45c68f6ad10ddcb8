"""The boundary vectors U01 to U12: what each dialect's chain amounts to, on one page.

A vector says what arrives and with which settings (the defaults), and what follows from it: the
depth, whether the hop is final, and what a callee is told in each dialect, or the refusal.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from carnet.core.chain.carnet import Carnet, Mark, check_depth, merge
from carnet.errors import (
    CarnetError,
    ChainFinal,
    ChainMismatch,
    DelegationExceeded,
    DepthExceeded,
    MalformedCallerContext,
)
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS, caller_context, mentionable, tangle

LIMITS = STAMPS.limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """One line of the table."""

    id: str
    tangle: dict[str, str] = field(default_factory=dict)
    agents_api: dict[str, str] = field(default_factory=dict)
    chain: dict[str, Any] | None = None
    delegated: int | None = None  # hops that a delegation token still grants
    depth: int = 0
    last_depth: int | None = None
    out: dict[str, Any] = field(default_factory=dict)
    cue: str | None = None
    refusal: type[CarnetError] | None = None
    facts: dict[str, int] = field(default_factory=dict)


def remote(depth: str, root: str = "run-1") -> dict[str, str]:
    return {
        "x-agents-api-caller-agent": "critic",
        "x-agents-api-caller-host": "https://globex.example",
        "x-agents-api-chain-depth": depth,
        "x-agents-api-chain-root": root,
    }


def hop(hop: int, max_hops: int, **more: bool) -> dict[str, Any]:
    return {"hop": hop, "max_hops": max_hops, **more}


def mention(hop: int, max_hops: int, *, is_final: bool) -> dict[str, Any]:
    return {"hop": hop, "max_hops": max_hops, "is_final": is_final}


DEPTH = "x-tangle-forwarded-depth"
RUN = "x-tangle-runid"

VECTORS = [
    Vector(id="U01", out={"T": "1", "W": "1", "M": mention(1, 4, is_final=False)}),
    Vector(id="U02", tangle={DEPTH: "3"}, depth=3, last_depth=3, out={"T": DepthExceeded}),
    Vector(id="U03", tangle={DEPTH: "4"}, refusal=DepthExceeded, facts={"observed": 4, "limit": 4}),
    Vector(id="U04", agents_api=remote("16"), depth=16, last_depth=16, out={"W": DepthExceeded}),
    Vector(
        id="U04-over",
        agents_api=remote("17"),
        refusal=DepthExceeded,
        facts={"observed": 17, "limit": 17},
    ),
    Vector(
        id="U05", chain=hop(2, 4), depth=2, last_depth=4, out={"M": mention(3, 4, is_final=False)}
    ),
    Vector(
        id="U06",
        chain=hop(3, 3, is_final=True),
        depth=3,
        last_depth=3,
        out={"M": ChainFinal},
        cue="FINAL hop (3 of 3)",
    ),
    Vector(
        id="U06-four",
        chain=hop(4, 4, is_final=True),
        depth=4,
        last_depth=4,
        out={"M": ChainFinal},
        cue="FINAL hop (4 of 4)",
    ),
    Vector(
        id="U07", chain=hop(1, 99), depth=1, last_depth=4, out={"M": mention(2, 4, is_final=False)}
    ),
    Vector(id="U08", chain=hop(5, 4), refusal=MalformedCallerContext),
    Vector(id="U08-zero", chain=hop(0, 4), refusal=MalformedCallerContext),
    Vector(
        id="U09",
        chain=hop(2, 4, is_final=True),
        depth=2,
        last_depth=4,
        out={"M": mention(3, 4, is_final=False)},
        cue="[2 hops remaining.]",
    ),
    Vector(id="U10", delegated=1, depth=0, last_depth=0, out={"T": DelegationExceeded}),
    Vector(
        id="U10-none", delegated=0, refusal=DepthExceeded
    ),  # SAMVAD has a code of its own for it
    Vector(
        id="U11",
        tangle={DEPTH: "1", RUN: "run-1"},
        agents_api=remote("2"),
        depth=2,
        last_depth=3,
        out={"T": "3", "W": "3"},
    ),
    Vector(
        id="U11-other-run",
        tangle={DEPTH: "1", RUN: "run-2"},
        agents_api=remote("2"),
        refusal=ChainMismatch,
    ),
    Vector(
        id="U12",
        tangle={DEPTH: "2", RUN: "run-1"},
        agents_api=remote("1"),
        chain=hop(2, 9),
        depth=2,
        last_depth=3,
        out={"T": "3", "W": "3", "M": mention(3, 3, is_final=True)},
    ),
]


def marks_of(vector: Vector) -> list[Mark]:
    """Every stamp of the request, read with the default limits."""
    lines = [(n.encode(), v.encode()) for n, v in (vector.tangle | vector.agents_api).items()]
    headers = Headers(lines)
    stamp = tangle.read(headers, last_depth=LIMITS.of("tangle"))
    _, context = caller_context.read(headers, last_depth=LIMITS.of("caller_context"))
    metadata = vector.chain and {"mentionable": {"agent_chain": vector.chain}}
    found = [
        stamp and stamp.mark,
        context,
        mentionable.read_agent_chain(metadata, max_hops=LIMITS.of("mentionable")),
    ]
    if vector.delegated is not None:
        last = min(LIMITS.of("tangle"), vector.delegated - 1)
        found.append(Mark(stamp="delegation", last_depth=last))
    return [mark for mark in found if mark]


def arrive(vector: Vector) -> Carnet:
    position = merge(marks_of(vector))
    check_depth(position)
    return Carnet(
        run=position.run or "run-0",
        turn="turn-0",
        depth=position.depth,
        last_depth=position.last_depth,
        bound_by=position.bound_by,
        run_is_ours=position.run is None,
    )


def leave(carnet: Carnet, dialect: str) -> object:
    """What the callee is told in a dialect."""
    if dialect == "M":
        return mentionable.next_chain(carnet, default=LIMITS.of("mentionable"))
    stamp = "tangle" if dialect == "T" else "caller_context"
    child = carnet.next_hop(index=0, speaker="critic", key=b"key", default=LIMITS.of(stamp))
    assert child.depth > carnet.depth
    assert child.run == carnet.run
    assert child.last_depth == carnet.bound(LIMITS.of(stamp))
    if dialect == "T":
        return tangle.write(child, forwarded=None)[0][DEPTH]
    written = caller_context.write(child, agent="critic", host="https://acme.example")
    return written["x-agents-api-chain-depth"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_every_boundary_holds(vector: Vector) -> None:
    if vector.refusal:
        with pytest.raises(vector.refusal) as refused:
            arrive(vector)
        assert refused.value.facts.items() >= vector.facts.items()
        return
    carnet = arrive(vector)
    assert (carnet.depth, carnet.last_depth) == (vector.depth, vector.last_depth)
    assert carnet.is_final(LIMITS.of("tangle")) is (vector.depth == vector.last_depth)
    for dialect, expected in vector.out.items():
        if isinstance(expected, type):
            with pytest.raises(expected):
                leave(carnet, dialect)
        else:
            assert leave(carnet, dialect) == expected
    if vector.cue:
        here = mentionable.AgentChain(carnet.depth, carnet.bound(LIMITS.of("mentionable")))
        assert vector.cue in mentionable.render_agent_chain(here)
