"""All stamps in one list: what is protected, refused, read and written follows from it."""

import pytest

from carnet.core.chain.carnet import Carnet, Mark
from carnet.core.people.identity import Secret, StatedContext
from carnet.errors import ChainMismatch, HeaderNotSigned, MalformedCallerContext
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import ROWS, STAMPS
from carnet.wire.stamps.stamp import (
    MINIMUM,
    Leaving,
    Metadata,
    Reading,
    Stamp,
    Stamped,
    Stamps,
    Written,
    check_coverage,
    protected_names,
)

OUT = Carnet(run="r", turn="t", depth=2, last_depth=3)


def read(headers: Headers, metadata: Metadata, /, *, last_depth: int) -> Reading | None:
    del metadata
    depth = headers.read_count("x-mine-depth")
    return Reading(
        mark=Mark(stamp="mine", depth=depth, last_depth=last_depth),
        forwarded=Secret("Bearer mine"),
    )


def write(carnet: Carnet, leaving: Leaving, /) -> Written:
    return Written(headers={"x-mine-depth": str(carnet.depth)}, metadata={"mine": leaving.agent})


MINE = Stamp(name="mine", prefixes=("x-mine-",), last_depth=1, read=read, write=write)
BOTH = Stamps((*ROWS, MINE))


def fields(**given: str) -> Headers:
    return Headers(
        [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
    )


def test_the_fields_of_every_stamp_must_be_covered_by_a_signature() -> None:
    for stamp in ROWS:
        for prefix in stamp.prefixes:
            beside = Headers([(f"{prefix}x".encode(), b"1")])
            with pytest.raises(HeaderNotSigned):
                check_coverage(MINIMUM, MINIMUM, beside, has_query=False, stamps=STAMPS)
    assert STAMPS.protected == (
        *(b"x-tangle-", b"x-agents-api-", b"x-a2a-hop", b"x-contextforge-uaid-hop"),
        *(b"carnet", b"x-actor-"),
    )


def test_one_row_more_is_protected_and_tolerated_and_has_look_alikes() -> None:
    beside = fields(x_mine_depth="1")
    assert protected_names(beside, STAMPS) == []
    assert protected_names(beside, BOTH) == ["x-mine-depth"]
    assert BOTH.tolerated == (*STAMPS.tolerated, b"x-mine-")
    with pytest.raises(MalformedCallerContext, match="x-mine-"):
        BOTH.read(Headers([(b"x_mine_depth", b"1")]))
    STAMPS.read(Headers([(b"x_mine_depth", b"1")]))


def test_what_has_no_reader_of_its_own_is_judged_by_the_edge() -> None:
    hops = (b"x-a2a-hop", b"x-contextforge-uaid-hop")
    assert STAMPS.tolerated == (b"x-tangle-", b"x-agents-api-", *hops)


def test_each_stamp_has_the_depth_that_is_configured_or_its_own() -> None:
    assert [STAMPS.limits.of(name) for name in ("tangle", "caller_context")] == [3, 16]
    assert [STAMPS.limits.of(name) for name in ("mentionable", "travel", "actor")] == [4, 3, 3]
    stamps = Stamps((*ROWS, MINE), configured={"tangle": 7}, default=6)
    assert [stamps.limits.of(name) for name in ("tangle", "mine", "travel")] == [7, 1, 6]
    hard = Stamps((*ROWS, MINE), hard=0)
    assert {hard.limits.of(stamp.name) for stamp in hard.rows} == {0}


def test_all_stamps_of_a_request_are_read() -> None:
    assert BOTH.read(fields(accept="*/*")) == BOTH.read_metadata() == STAMPS.read(Headers([]))
    found = BOTH.read(fields(x_tangle_runid="r", x_mine_depth="1"))
    assert [mark.stamp for mark in found.marks] == ["tangle", "mine"]
    assert (found.run, found.forwarded) == ("r", Secret("Bearer mine"))
    assert STAMPS.read(fields(x_mine_depth="1")).marks == ()


def test_a_caller_context_is_kept_with_the_mark() -> None:
    found = STAMPS.read(
        fields(
            x_agents_api_caller_agent="critic",
            x_agents_api_caller_host="https://globex.example",
            x_agents_api_chain_depth="2",
            x_agents_api_chain_root="req-1",
        )
    )
    assert found.context == StatedContext(
        agent="critic", host="https://globex.example", root="req-1", depth=2
    )
    assert found.marks == (Mark(stamp="caller_context", depth=2, last_depth=16, run="req-1"),)


def test_a_stamp_in_metadata_is_read_where_a_body_has_some() -> None:
    chain = {"mentionable": {"agent_chain": {"hop": 2, "max_hops": 9}}}
    assert STAMPS.read_metadata(None, chain).marks == (
        Mark(stamp="mentionable", depth=2, last_depth=4),
    )


def test_two_stamps_do_not_forward_two_credentials() -> None:
    two = fields(x_tangle_forwarded_authorization="Bearer one", x_mine_depth="1")
    with pytest.raises(ChainMismatch):
        BOTH.read(two)


def test_every_stamp_that_is_written_is_written_once() -> None:
    ours = STAMPS.write(OUT, Leaving(forwarded=Secret("Bearer x")))
    assert ours.headers == {
        "x-tangle-forwarded-depth": "2",
        "x-tangle-runid": "r",
        "x-tangle-turnid": "t",
    }
    assert ours.secrets == {"x-tangle-forwarded-authorization": Secret("Bearer x")}
    both = BOTH.write(OUT, Leaving(agent="echo"))
    assert both.headers == {**ours.headers, "x-mine-depth": "2"}
    assert (both.secrets, both.metadata) == ({}, {"mine": "echo"})


def test_two_stamps_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one name"):
        Stamps((*ROWS, MINE, MINE))


def test_a_stamp_whose_fields_say_nothing_of_the_chain_was_not_sent() -> None:
    found = fields(x_agents_api_caller_user="0")
    readers = [stamp.read for stamp in ROWS if "x-agents-api-" in stamp.prefixes and stamp.read]
    assert [reader(found, (), last_depth=3) for reader in readers] == [None]
    assert STAMPS.read(found) == Stamped()


def test_the_run_of_a_request_is_the_first_that_a_stamp_names() -> None:
    silent, named = Mark(stamp="a"), Mark(stamp="b", run="run_1")
    assert Stamped((silent, named, Mark(stamp="c", run="run_2"))).run == "run_1"
    assert Stamped((silent,)).run is None
    assert Stamped().run is None
