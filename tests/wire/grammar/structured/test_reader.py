"""Structured fields: the grammar of RFC 9651, rule by rule, and beside another reading of it."""

import re
from decimal import Decimal
from typing import Any

import http_sf
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carnet.wire.grammar.structured import (
    MAX_INTEGER,
    Bare,
    Date,
    Display,
    InnerList,
    Item,
    StructuredInvalid,
    StructuredToken,
    read_base64,
    read_dictionary,
    read_entries,
    read_item,
    read_list,
    write_bare,
    write_dictionary,
    write_item,
    write_list,
    write_member,
)

BARE = [
    ("0", 0),
    ("-0", 0),
    ("42", 42),
    ("007", 7),
    ("-999999999999999", -MAX_INTEGER),
    ("999999999999999", MAX_INTEGER),
    ("4.5", Decimal("4.5")),
    ("-0.001", Decimal("-0.001")),
    ("999999999999.999", Decimal("999999999999.999")),
    ('""', ""),
    ('"foo \\"bar\\" \\\\ baz"', 'foo "bar" \\ baz'),
    ("foo", StructuredToken("foo")),
    ("*a:/!#$%&'+-.^_`|~9", StructuredToken("*a:/!#$%&'+-.^_`|~9")),
    ("A", StructuredToken("A")),
    ("::", b""),
    (":AQ==:", b"\x01"),
    (":AQI=:", b"\x01\x02"),
    (":+/8A:", b"\xfb\xff\x00"),
    ("?0", False),
    ("?1", True),
    ("@1659578233", Date(1659578233)),
    ("@-1", Date(-1)),
    ('%""', Display("")),
    ('%"f%c3%bc%c3%bc %25 %22 \\ %00"', Display('füü % " \\ \0')),
]


@pytest.mark.parametrize(("text", "value"), BARE, ids=repr)
def test_every_kind_of_value_is_read(text: str, value: Bare) -> None:
    found = read_item(text).value
    assert (found, type(found)) == (value, type(value))
    assert read_item(f"  {text};a;b=?0;c=1  ") == Item(value, {"a": True, "b": False, "c": 1})
    assert read_list(f"{text},\t{text}") == (Item(value), Item(value))
    assert read_list(f"( {text}  {text};x )") == (
        InnerList((Item(value), Item(value, {"x": True}))),
    )
    assert read_dictionary(f"a={text} \t, b={text}") == {"a": Item(value), "b": Item(value)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\t1",
        "1\t",
        "1 2",
        "1,2",
        "(1)",
        "-",
        "--1",
        "+1",
        "1.",
        ".1",
        "1.2345",
        "1.2.3",
        "1e3",
        "1_0",
        "١",
        "1000000000000000",
        "1000000000000.0",
        "9" * 5000,
        '"',
        '"a',
        '"a\\"',
        '"a\\b"',
        '"\t"',
        '"\x7f"',
        '"é"',
        '"a\n"',
        "'a'",
        "a b",
        "é",
        "a\n",
        ":",
        ":A:",
        ":AQ:",
        ":AQ=:",
        ":AR==:",
        ":AQ===:",
        ":A-__:",
        ":AQ ==:",
        ":AQ==",
        ":====:",
        ":AQ==AQ==:",
        "?",
        "?2",
        "?true",
        "?10",
        "@",
        "@a",
        "@1.0",
        "@@1",
        "@1000000000000000",
        "%",
        '%"',
        '%"%"',
        '%"%c3"',
        '%"%C3%BC"',
        '%"%ff"',
        '%"é"',
        '%"%g0"',
        '%"\t"',
        "%foo",
        "1;",
        "1;A",
        "1;=1",
        "1;a=",
        "1;a=(1)",
        "1 ;a",
        "1;\ta",
        "1;é",
        "{}",
        "\x00",
        "\x001",
    ],
)
def test_what_is_not_an_item_is_refused(text: str) -> None:
    with pytest.raises(StructuredInvalid):
        read_item(text)


@pytest.mark.parametrize(
    "text",
    [",", "1,", "1, ", "1,,2", "1 2", "(1", "(1 2", "(1,2)", '("a""b")', "((1))", "(1)2", "("],
)
def test_what_is_not_a_list_is_refused(text: str) -> None:
    with pytest.raises(StructuredInvalid):
        read_list(text)


@pytest.mark.parametrize(
    "text",
    ["A=1", "1=1", "=1", "a=", "a= 1", "a =1", "a=1,", "a=1 b=2", "a=1;", '"a"=1', "é=1", "a=1,\n"],
)
def test_what_is_not_a_dictionary_is_refused(text: str) -> None:
    with pytest.raises(StructuredInvalid):
        read_dictionary(text)


def test_an_empty_field_has_no_members() -> None:
    assert read_list("") == read_list("   ") == ()
    assert read_dictionary("") == {}
    assert write_list([]) == write_dictionary({}) == ""


def test_a_key_alone_is_true_with_its_parameters() -> None:
    assert read_dictionary("a, b;x=1, c=?0") == {
        "a": Item(value=True),
        "b": Item(True, {"x": 1}),  # noqa: FBT003
        "c": Item(value=False),
    }
    assert write_dictionary(read_dictionary("a=?1, b=?1;x=?1, c=?0")) == "a, b;x, c=?0"


def test_a_key_that_stands_again_keeps_its_place_and_takes_the_last_value() -> None:
    assert list(read_dictionary("a=1, b=2, a=3").items()) == [("a", Item(3)), ("b", Item(2))]
    assert list(read_item("1;a=1;b=2;a=3").parameters.items()) == [("a", 3), ("b", 2)]


@pytest.mark.parametrize("text", ["a=1, a=1", "a, b, a", "a=1;x;x", "a=(1;x=1;x=2)", "a=();x;y;x"])
def test_a_key_twice_is_refused_where_keys_must_be_unique(text: str) -> None:
    read_dictionary(text)
    with pytest.raises(StructuredInvalid):
        read_dictionary(text, unique=True)


def test_entries_keep_the_text_of_each_member() -> None:
    entries = read_entries('a=( "x"  "y"); k="v" ,b; q, c=1.50')
    assert {key: entry.text for key, entry in entries.items()} == {
        "a": '( "x"  "y"); k="v"',
        "b": "; q",
        "c": "1.50",
    }


def test_a_refusal_says_where_and_never_what() -> None:
    with pytest.raises(StructuredInvalid, match="at character 6") as refusal:
        read_dictionary("abc=1 secret")
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal(1), "1.0"),
        (Decimal("1.2344"), "1.234"),
        (Decimal("0.0015"), "0.002"),
        (Decimal("0.0025"), "0.002"),
        (Decimal("-1.5000"), "-1.5"),
        (Decimal("-0.0001"), "0.0"),
        (Decimal("1E+2"), "100.0"),
    ],
)
def test_decimals_are_rounded_to_three_places(value: Decimal, text: str) -> None:
    assert write_bare(value) == text


@pytest.mark.parametrize(
    "value",
    [
        MAX_INTEGER + 1,
        -MAX_INTEGER - 1,
        Decimal(1_000_000_000_000),
        Decimal("999999999999.9999"),
        Decimal("1E+400"),
        Decimal("NaN"),
        Decimal("Infinity"),
        "é",
        "a\n",
        "\x00",
        StructuredToken(""),
        StructuredToken("1a"),
        StructuredToken("a b"),
        StructuredToken("a\n"),
        Date(MAX_INTEGER + 1),
        Display("\ud800"),
        1.5,
        None,
    ],
)
def test_what_cannot_be_written_is_refused(value: Any) -> None:
    with pytest.raises(StructuredInvalid):
        write_item(Item(value))
    with pytest.raises(StructuredInvalid):
        write_member(InnerList((Item(1),), {"a": value}))


@pytest.mark.parametrize("key", ["", "A", "1", "a b", "é", "a\n"])
def test_a_key_that_could_not_be_read_is_not_written(key: str) -> None:
    with pytest.raises(StructuredInvalid):
        write_dictionary({key: Item(1)})
    with pytest.raises(StructuredInvalid):
        write_item(Item(1, {key: 1}))


@pytest.mark.parametrize("text", ["A", "AQ", "AR==", "AQ==\n", " AQ==", "A-__", "é", "AQ==AQ=="])
def test_base64_has_one_spelling(text: str) -> None:
    assert read_base64("AQ==") == b"\x01"
    with pytest.raises(StructuredInvalid):
        read_base64(text)


# ----------------------------------------------------------------------------------- properties

keys = st.from_regex(r"[a-z*][a-z0-9_.*-]{0,5}", fullmatch=True)
bare: st.SearchStrategy[Bare] = st.one_of(
    st.integers(-MAX_INTEGER, MAX_INTEGER),
    st.decimals(-999_999_999_999, 999_999_999_999, places=3).map(lambda number: number + 0),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=8),
    st.from_regex(r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]{0,6}", fullmatch=True).map(
        StructuredToken
    ),
    st.binary(max_size=12),
    st.booleans(),
    st.integers(-MAX_INTEGER, MAX_INTEGER).map(Date),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(Display),
)
parameters = st.dictionaries(keys, bare, max_size=3)
items = st.builds(Item, bare, parameters)
members = items | st.builds(InnerList, st.lists(items, max_size=3).map(tuple), parameters)


@given(items)
def test_an_item_that_is_written_reads_as_it_was(item: Item) -> None:
    assert read_item(write_item(item)) == item


@given(st.lists(members, max_size=4), st.dictionaries(keys, members, max_size=4))
def test_lists_and_dictionaries_that_are_written_read_as_they_were(
    listed: list[Item | InnerList], named: dict[str, Item | InnerList]
) -> None:
    assert read_list(write_list(listed)) == tuple(listed)
    assert list(read_dictionary(write_dictionary(named), unique=True).items()) == list(
        named.items()
    )


@given(st.dictionaries(keys, members, min_size=1, max_size=3))
def test_the_text_of_an_entry_reads_as_its_member(named: dict[str, Item | InnerList]) -> None:
    for key, entry in read_entries(write_dictionary(named)).items():
        spelled = f"{key}={entry.text}" if entry.text[:1] not in ("", ";") else key + entry.text
        assert read_dictionary(spelled) == {key: named[key]}


MARKS = 'ab*A09-.;=",() \t?@%:\\/+_\x00é'
texts = st.text(MARKS, max_size=24) | st.lists(
    st.sampled_from(
        [
            "a",
            "b=",
            "1",
            "-2.5",
            '"s"',
            ":AQ==:",
            "?1",
            "@3",
            '%"%c3%bc"',
            "(",
            ")",
            ";",
            ",",
            " ",
            "\t",
            "=",
        ]
    ),
    max_size=14,
).map("".join)


def theirs(text: str, kind: Any) -> str | None:
    """The strict spelling by the other implementation, or None if it refuses."""
    try:
        return http_sf.ser(http_sf.parse(text.encode(), tltype=kind))
    except (ValueError, http_sf.StructuredFieldError):
        return None


def ours(text: str, kind: str) -> str | None:
    try:
        if kind == "item":
            return write_item(read_item(text))
        return (
            write_list(read_list(text))
            if kind == "list"
            else write_dictionary(read_dictionary(text))
        )
    except StructuredInvalid:
        return None


@given(texts, st.sampled_from(["item", "list", "dictionary"]))
@example("a=1\t,\tb", "dictionary")
@example("(a b) ;x", "list")
@example("a=:AQ:", "dictionary")
@example(":AR==:;a", "item")
@example("a=1;x;y=2;x=3, b=2, a;z", "dictionary")
def test_whatever_the_text_it_is_read_as_the_other_implementation_reads_it(
    text: str, kind: str
) -> None:
    found, expected = ours(text, kind) or None, theirs(text, kind)  # theirs writes no empty field
    if found is None and expected is not None:  # but for base64, where we take one spelling alone
        assert any(spelling not in text for spelling in re.findall(":[^:]*:", expected))
    else:
        assert found == expected
