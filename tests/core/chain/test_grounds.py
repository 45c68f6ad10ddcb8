"""Why a call was admitted, as it is kept and as it is expected."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.chain.grounds import (
    OPTIONAL,
    ORDER,
    By,
    Grounds,
    explained,
    read_grounds,
    write_grounds,
)

PLAIN = Grounds(by="token", caller="token:alice", agent="echo", payer="alice@acme.example")


@given(
    by=st.sampled_from(list(ORDER)),
    caller=st.text(),
    token=st.none() | st.text(),
    depth=st.integers(0, 99),
    last_depth=st.none() | st.integers(0, 99),
    rates=st.lists(st.text()).map(tuple),
    limit=st.none() | st.integers(0, 10**12),
)
def test_what_is_kept_is_read_as_it_was(by: By, rates: tuple[str, ...], **found: object) -> None:
    build: Callable[..., Grounds] = Grounds
    grounds = build(by=by, rates=rates, agent="echo", payer="alice@acme.example", **found)
    kept = write_grounds(grounds)
    assert read_grounds(kept) == grounds
    assert b"\0" not in kept  # it stands behind one, beside what was asked
    expected = [name for name, _ in ORDER[by] if name not in OPTIONAL]
    assert [ground.guard for ground in explained(grounds)] == expected


def found_by_guard(grounds: Grounds) -> dict[str, str]:
    return {ground.guard: ground.found for ground in explained(grounds)}


def test_a_call_by_token_is_told() -> None:
    grounds = Grounds(
        by="token",
        caller="token:alice",
        token="alice#2",
        depth=1,
        last_depth=3,
        stamp="tangle",
        agent="paid",
        skill="book",
        checked=True,
        needs="call:paid",
        payer="alice@acme.example",
        limit=5_000_000,
        reserve=200,
        rates=("token:7",),
    )
    assert found_by_guard(grounds) == {
        "known caller": "token:alice, by the token alice#2",
        "within chain": "depth 1 of at most 3, set by tangle",
        "known agent": "paid",
        "known skill": "book",
        "permitted": "may call:paid",
        "well formed": "the payload fits its schema",
        "paying": "alice@acme.example; limit 5",
        "transaction": "no repeat; reserved 0.0002; within the rate token:7",
    }


def test_a_plain_call_has_less_to_tell() -> None:
    found = found_by_guard(PLAIN)
    assert found["known caller"] == "token:alice"
    assert found["within chain"] == "depth 0; no stamp sets a limit"
    assert found["known skill"] == "a chat"
    assert found["well formed"] == "no payload to compare"
    assert found["paying"] == "alice@acme.example; no limit"
    assert found["transaction"] == "no repeat"


@pytest.mark.parametrize(
    ("links", "peer", "words"),
    [
        (0, None, ("none brought", "agent://b.example, not listed")),
        (1, "b.example", ("1 link verified", "agent://b.example, a listed peer (b.example)")),
        (2, None, ("2 links verified", "agent://b.example, not listed")),
    ],
)
def test_a_signed_call_is_told(links: int, peer: str | None, words: tuple[str, str]) -> None:
    grounds = Grounds(
        by="signature",
        caller="sender:agent://b.example",
        sender="agent://b.example",
        key="k1",
        peer=peer,
        document=links == 1,
        delegation=links,
        callback=links == 2,
        agent="echo",
        trust="public",
        payer="b.example@b.example",
        forwarded=links == 0,
        quotas=("tokens/2026-11-15/echo/agent://b.example",),
    )
    found = found_by_guard(grounds)
    assert (found["delegated"], found["known sender"]) == words
    assert found["signed"] == "holds under the key k1"
    assert found["travelled"] == ("verified" if links == 1 else "no travel document")
    assert found["called back"] == ("allowed" if links == 2 else "not asked for")
    assert found["trusted"] == "sender:agent://b.example; asked for: public"
    assert ("by a forwarded credential" in found["paying"]) == (links == 0)
    assert found["transaction"].endswith("tokens/2026-11-15/echo/agent://b.example")
