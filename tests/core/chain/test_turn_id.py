"""Turn ids: the same for the same logical turn, different for different ones."""

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.chain.turn_id import (
    is_keyed,
    is_unscoped,
    key_id,
    ordinal_of,
    scoped_turn_id,
    slug,
    turn_id,
)

RUNS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("speaker", "expected"),
    [
        ("researcher", "researcher"),
        ("GPT-5 Codex", "gpt-5-codex"),
        ("inner-a", "inner-a"),
        ("!@#$", "anon"),
        ("José", "jose"),
        ("Renée", "rene-e"),
        ("my_agent", "my_agent"),
        ("_", "_"),
        ("  spaced  out ", "spaced-out"),
        ("A/B.C", "a-b-c"),
        ("研究者", "anon"),
        ("ﬁne", "fine"),
        ("--x--", "x"),
        ("Critic #2", "critic-2"),
        ("Ⅷ", "viii"),
        ("", "anon"),
        ("-", "anon"),
    ],
)
def test_a_name_becomes_a_slug(speaker: str, expected: str) -> None:
    assert slug(speaker) == expected


def test_a_turn_id_names_run_index_and_speaker_and_repeats() -> None:
    assert turn_id("run_1", 0, "researcher") == "run_1.t0.researcher"
    assert turn_id("run_1", 0, "researcher") == turn_id("run_1", 0, "researcher")
    assert turn_id("conv_abc", 12, "GPT-5 Codex") == "conv_abc.t12.gpt-5-codex"


def test_below_another_turn_the_id_is_scoped_by_the_key_of_its_parent() -> None:
    first = scoped_turn_id("conv_abc", bytes(range(16)), 0, "critic")
    second = scoped_turn_id("conv_abc", bytes(range(1, 17)), 0, "critic")
    assert first == "conv_abc.0001020304050607.t0.critic"
    assert second != first
    assert turn_id("conv_abc", 0, "critic") not in {first, second}


def key_of(turn: str) -> bytes:
    """The key of a record: for each turn another one."""
    return blake2b(turn.encode(), digest_size=16).digest()


def test_a_recursive_fan_out_names_every_turn_differently() -> None:
    level = [turn_id("run", index, "a") for index in range(10)]
    seen = list(level)
    for _ in range(2):
        level = [
            scoped_turn_id("run", key_of(parent), i, "a") for parent in level for i in range(10)
        ]
        seen += level
    assert len(seen) == 1110
    assert len(set(seen)) == 1110


@given(run=RUNS, index=st.integers(0, 10**6), speaker=st.text(max_size=30))
def test_an_id_reads_from_the_right_whatever_the_run_is_called(
    run: str, index: int, speaker: str
) -> None:
    written = turn_id(run, index, speaker)
    assert written.rsplit(".", 2) == [run, f"t{index}", slug(speaker)]
    assert is_unscoped(run, written)
    scoped = scoped_turn_id(run, key_of(written), index, speaker)
    assert scoped.rsplit(".", 2)[1:] == [f"t{index}", slug(speaker)]
    assert not is_unscoped(run, scoped)


@given(speaker=st.text(max_size=60))
def test_a_slug_is_never_empty_and_holds_no_dot(speaker: str) -> None:
    text = slug(speaker)
    assert text
    assert text == text.lower()
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert slug(text) == text


@pytest.mark.parametrize(
    "turn", ["r.t-1.outer", "other.t0.x", "r.t0.", "r.t0.x.y", "r.t0.X", "r", "rr.t0.x", "r.t٣.x"]
)
def test_other_ids_are_opaque(turn: str) -> None:
    assert not is_unscoped("r", turn)


def test_an_id_of_ours_tells_which_call_of_its_turn_it_names() -> None:
    assert ordinal_of(turn_id("a.t9.b", 3, "critic")) == 3
    assert ordinal_of(scoped_turn_id("run", b"12345678", 12, "Émile")) == 12
    for foreign in ("run", "run.t1", "run.t1.Critic", "run.t1.a\n", "run.tx.a", f"r.t{'1' * 10}.a"):
        assert ordinal_of(foreign) is None


def test_a_key_names_one_thing_of_one_caller() -> None:
    names = [key_id(actor, key) for actor in ("token:a", "token:b") for key in ("k", "l")]
    assert len(set(names)) == 4
    assert names[0] == key_id("token:a", "k")
    assert key_id("token:a", "bk") != key_id("token:ab", "k")


def test_a_turn_that_a_key_names_is_told_from_others() -> None:
    assert is_keyed(f"{key_id('token:alice', 'order 66')}.t0")
    for other in ("idem_1.t0", f"{key_id('a', 'b')}.t1", "conv_1.t0.echo", ""):
        assert not is_keyed(other)
