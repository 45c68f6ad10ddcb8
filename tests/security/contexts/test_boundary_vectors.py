"""The boundary vectors of the model through real requests: what a chain says, and what comes of it.

Those of stamps that ride on the metadata of A2A (U05-U09) are where that dialect is served; of
delegations (U10), of payers (U15) and interrupts (U16, U18) where those are.
"""

from typing import Any

import pytest
from msgspec import Struct

from tests.security.contexts.requests import chain, fresh, last_used
from tests.support.organisation import Organisation
from tests.support.served import executions

DEPTH, RUN = "x-tangle-forwarded-depth", "x-tangle-runid"


class Vector(Struct, frozen=True, kw_only=True):
    """What is sent, and what must come of it."""

    id: str
    tangle: dict[str, str] = {}
    context: dict[str, str] = {}
    status: int = 200
    code: str | None = None
    depth: int | None = None  # it is answered at
    facts: dict[str, Any] = {}  # of the refusal
    calls_on: bool = True  # or it is final

    @property
    def headers(self) -> list[tuple[str, str]]:
        fields = chain(**self.context) if self.context else []
        return [*self.tangle.items(), *fields]


DEEP = "bridge_depth_exceeded"
VECTORS = [
    Vector(id="U01", depth=0),
    Vector(id="U02", tangle={DEPTH: "3", RUN: "u02"}, depth=3, calls_on=False),
    Vector(
        id="U03",
        tangle={DEPTH: "4"},
        status=429,
        code=DEEP,
        facts={"observed": 4, "limit": 4, "stamp": "tangle"},
    ),
    Vector(id="U04", context={"depth": "16"}, depth=16, calls_on=False),
    Vector(
        id="U04-beyond",
        context={"depth": "17"},
        status=429,
        code=DEEP,
        facts={"observed": 17, "limit": 17, "stamp": "caller_context"},
    ),
    Vector(
        id="U11",
        tangle={DEPTH: "1", RUN: "u11"},
        context={"root": "u11", "depth": "2"},
        depth=2,
    ),
    Vector(
        id="U11-other-run",
        tangle={DEPTH: "1", RUN: "u11"},
        context={"root": "other", "depth": "2"},
        status=400,
        code="chain_mismatch",
    ),
    Vector(
        id="U11-depth-0",
        tangle={DEPTH: "0", RUN: "u11"},
        context={"root": "u11", "depth": "2"},
        status=400,
        code="chain_mismatch",
    ),
    Vector(
        id="U13",
        tangle={DEPTH: "1", RUN: "u13"},
        context={"depth": "bogus"},
        status=400,
        code="malformed_caller_context",
    ),
]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_a_chain_is_read_bounded_and_carried_on_as_its_vector_says(
    site: Organisation, vector: Vector
) -> None:
    name = fresh("vector")
    token = site.new_token(name)
    before = executions(site.folder, "onward"), executions(site.folder, "echo")
    reply = site.chat("echo hi", "onward", token=token, headers=vector.headers)
    assert reply.status == vector.status, reply.body
    if vector.code is not None:
        assert reply.code == vector.code
        assert vector.facts.items() <= reply.json["error"].items()
        assert (executions(site.folder, "onward"), executions(site.folder, "echo")) == before
        assert last_used(site, name) is None  # U13: it was not used
        return
    depth = vector.depth or 0
    run = reply.headers[RUN]
    turn = next(
        turn
        for turn in site.get(f"/runs/{run}", token=token).json["turns"]
        if turn["agent"] == "onward"
    )
    assert turn["depth"] == depth
    if vector.calls_on:  # U12: a child is one deeper, in the same run, under no larger limit
        [child] = turn["children"]
        assert reply.text == f"{depth} > hi"
        assert (child["agent"], child["depth"]) == ("echo", depth + 1)
        assert child["limit"] <= (turn["limit"] or child["limit"])
    else:
        assert reply.text == f"stopped at {depth + 1} of {depth + 1}"
        assert turn["children"] == []
        assert executions(site.folder, "echo") == before[1]


def test_who_acts_is_never_taken_from_outside(site: Organisation) -> None:
    """U14."""
    reply = site.chat("hi", "about", headers=[("X-Actor-ID", "owner")])
    assert reply.status == 200
    assert '"auth_source": "user"' in reply.text  # of the token, and of nothing else


def test_a_payer_from_a_caller_that_is_not_listed_is_refused_and_nowhere_kept(
    site: Organisation,
) -> None:
    """U15."""
    canary = f"sk-tan-{fresh('canary')}"
    token = site.new_token(fresh("unlisted"))
    headers = [("x-tangle-forwarded-authorization", f"Bearer {canary}")]
    before = executions(site.folder, "paid")
    reply = site.chat("hi", "paid", token=token, headers=headers)
    assert (reply.status, reply.code) == (403, "forwarding_not_allowed")
    assert executions(site.folder, "paid") == before
    assert canary not in site.log.read_text()
