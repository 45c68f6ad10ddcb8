"""The Mentionable namespace in metadata: one member has one value, in whatever spelling."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.errors import MalformedCallerContext
from carnet.wire.grammar.mentionable import find, place, read_member, spellings, whole


def nested(keys: tuple[str, ...], value: object) -> dict[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    assert isinstance(value, dict)
    return value


PATHS = [("identity_evidence",), ("recipient_capabilities", "agent_chain")]


@pytest.mark.parametrize("path", PATHS)
def test_a_member_is_found_in_each_of_its_spellings(path: tuple[str, ...]) -> None:
    assert len(spellings(*path)) == 2 ** len(path)
    for keys in spellings(*path):
        assert read_member((nested(keys, ["x"]), None), *path) == ["x"]
        assert read_member((None, nested(keys, ["x"])), *path) == ["x"]


@pytest.mark.parametrize("path", PATHS)
def test_spellings_may_agree_and_must_not_contradict(path: tuple[str, ...]) -> None:
    for one in spellings(*path):
        for other in spellings(*path):
            both = (nested(one, {"a": 1}), nested(other, {"a": 1}))
            assert read_member(both, *path) == {"a": 1}
            with pytest.raises(MalformedCallerContext) as caught:
                read_member((nested(one, {"a": 1}), nested(other, {"a": 2})), *path)
            assert caught.value.status == 400
            assert caught.value.facts["header"] == place(*path)


def test_absent_is_not_malformed_and_what_is_no_object_is() -> None:
    assert read_member((), "x") is None
    assert read_member(({}, {"mentionable": {}}, {"mentionable": {"y": 1}}), "x") is None
    assert list(find(({"mentionable": {"x": None}},), "x")) == [None]
    wrong: list[object] = ["text", [], 5, {"mentionable": None}, {"mentionable": [1]}]
    for broken in wrong:
        with pytest.raises(MalformedCallerContext):
            read_member((broken,), "x")


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda v: (
            st.lists(v)
            | st.dictionaries(st.sampled_from(["mentionable", "a", "mentionable.a", "a.b", "b"]), v)
        ),
    )
)
def test_whatever_the_metadata_is_it_is_read_or_refused(metadata: object) -> None:
    with suppress(MalformedCallerContext):
        read_member((metadata,), "a", "b")


def test_whole_numbers_are_those_of_json_and_of_a_protobuf_struct() -> None:
    assert [whole(each) for each in (2, 2.0, 2.5, True, "2", None, float("nan"))] == [
        2,
        2,
        None,
        None,
        None,
        None,
        None,
    ]
