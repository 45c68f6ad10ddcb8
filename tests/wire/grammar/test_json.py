"""Strict JSON: what is refused, what is read, what is written."""

import json as stdlib_json
import math

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from carnet.errors import InvalidJson
from carnet.wire.grammar.json import (
    _read_any,
    _read_plain,
    canonical,
    read,
    read_object,
    write,
    write_text,
)

LARGEST = 2**53 - 1

ATTACKS = {
    "duplicate_key": b'{"from":"agent://a.example","from":"agent://b.example"}',
    "duplicate_nested": b'{"payload":{"a":1,"a":2}}',
    "duplicate_by_escape": b'{"a":1,"\\u0061":2}',
    "duplicate_in_array": b'[{"a":1},{"a":1,"b":2,"a":1}]',
    "nan": b'{"payload":NaN}',
    "infinity": b'{"payload":Infinity}',
    "negative_infinity": b'{"payload":-Infinity}',
    "float_overflow": b'{"payload":1e400}',
    "negative_float_overflow": b'{"payload":-1E400}',
    "float_overflow_without_exponent": b'{"payload":' + b"9" * 400 + b".0}",
    "integer_just_above": b'{"payload":9007199254740992}',
    "integer_just_below": b'{"payload":-9007199254740992}',
    "integer_above_2_53": b'{"payload":9007199254740993}',
    "integer_2_64": b'{"payload":18446744073709551616}',
    "integer_5000_digits": b'{"payload":' + b"9" * 5000 + b"}",
    "depth_1000": b"[" * 1000,
    "depth_1000_closed": b"[" * 1000 + b"]" * 1000,
    "depth_100000": b"[" * 100_000,
    "depth_100000_objects": b'{"a":' * 100_000,
    "lone_surrogate": b'{"payload":"\\ud800"}',
    "lone_low_surrogate": b'{"payload":"\\uDC00 x"}',
    "lone_surrogate_in_key": b'{"\\ud800":1}',
    "swapped_surrogates": b'{"payload":"\\ude00\\ud83d"}',
    "surrogate_in_utf8": b'{"payload":"\xed\xa0\x80"}',
    "nul_in_key": b'{"a\\u0000b":1}',
    "nul_in_nested_key": b'{"a":[{"\\u0000":1}]}',
    "raw_nul_in_key": b'{"a\x00b":1}',
    "raw_line_feed_in_string": b'{"a":"\n"}',
    "bom": b"\xef\xbb\xbf{}",
    "utf16": '{"a":1}'.encode("utf-16"),
    "utf16_be": '{"a":1}'.encode("utf-16-be"),
    "utf16_le": '{"a":1}'.encode("utf-16-le"),
    "utf32": '{"a":1}'.encode("utf-32"),
    "overlong_utf8": b'{"a":"\xc0\xaf"}',
    "cut_utf8": b'{"a":"\xe2\x82',
    "trailing_garbage": b"{} x",
    "trailing_nul": b"{}\x00",
    "trailing_no_break_space": "{}\u00a0".encode(),
    "two_documents": b"{}{}",
    "top_level_array": b"[]",
    "top_level_scalar": b"1",
    "empty": b"",
    "whitespace_only": b"   ",
    "trailing_comma": b'{"a":1,}',
    "single_quotes": b"{'a':1}",
    "comment": b"{/**/}",
    "leading_zero": b'{"a":01}',
    "leading_plus": b'{"a":+1}',
    "arabic_digit": '{"a":٣}'.encode(),
    "fullwidth_digit": '{"a":1４}'.encode(),
    "bad_escape": b'{"a":"\\x41"}',
    "bad_unicode_escape": b'{"a":"\\u12_4"}',
    "cut": b'{"a":',
}

plain_text = st.text(max_size=20)
keys = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-LARGEST, LARGEST)
    | st.floats(allow_nan=False, allow_infinity=False)
    | plain_text
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


def nested(levels: int) -> bytes:
    """Arrays and objects by turns, `levels` of them inside one another."""
    opening = b"".join(b"[" if level % 2 else b'{"a":' for level in range(levels))
    closing = b"".join(b"]" if level % 2 else b"}" for level in reversed(range(levels)))
    return opening + b"1" + closing


@pytest.mark.parametrize("body", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_body_that_two_parsers_could_read_differently_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidJson):
        read_object(body)


@pytest.mark.parametrize("body", [b"[]", b"1", b'"x"', b"null", b"true", b"-0.5e-3"])
def test_any_value_may_stand_outermost_where_the_format_allows_it(body: bytes) -> None:
    assert read(body) == stdlib_json.loads(body)


def test_an_object_is_read_as_one() -> None:
    assert read_object(b' {"a": [1, 2.5, "x", null, true]}\r\n') == {"a": [1, 2.5, "x", None, True]}


@pytest.mark.parametrize("number", [LARGEST, -LARGEST, 10**15, -(10**15), 10**14, 0])
def test_integers_up_to_the_largest_exact_one_are_read(number: int) -> None:
    found = read(str(number).encode())
    assert found == number
    assert type(found) is int


def test_a_float_stays_a_float() -> None:
    found = read(b"[1.0,1e3,1e-400,1.7976931348623157e308]")
    assert found == [1.0, 1000.0, 0.0, 1.7976931348623157e308]
    assert isinstance(found, list)
    assert all(type(number) is float for number in found)


def test_a_surrogate_pair_is_one_character() -> None:
    assert read(b'{"\\ud83d\\ude00":"\\uD83D\\uDE00"}') == {"\U0001f600": "\U0001f600"}


def test_nul_is_allowed_in_a_value_and_as_written_out_text_in_a_key() -> None:
    assert read(b'{"a":"\\u0000","\\\\u0000":1}') == {"a": "\0", "\\u0000": 1}


def test_the_same_key_may_stand_in_different_objects() -> None:
    assert read(b'{"a":{"a":1},"b":[{"a":1},{"a":2}]}') == {
        "a": {"a": 1},
        "b": [{"a": 1}, {"a": 2}],
    }


def test_thirty_two_levels_are_read() -> None:
    assert stdlib_json.dumps(read(nested(32)), separators=(",", ":")).encode() == nested(32)


@pytest.mark.parametrize("levels", [33, 34, 200, 900])
def test_thirty_three_levels_are_refused(levels: int) -> None:
    with pytest.raises(InvalidJson, match="more than 32 levels"):
        read(nested(levels))


def test_the_number_of_levels_is_the_callers_choice() -> None:
    assert read(b'[{"a":1}]', max_levels=2) == [{"a": 1}]
    with pytest.raises(InvalidJson, match="more than 1 levels"):
        read(b'[{"a":1}]', max_levels=1)
    assert read(nested(33), max_levels=33)


def test_many_brackets_beside_one_another_are_not_levels() -> None:
    assert read(b"[" + b",".join([b'{"a":[]}'] * 50) + b"]") == [{"a": []}] * 50


def test_brackets_inside_a_string_are_not_levels() -> None:
    assert read(b'"' + b"[{" * 40 + b'"') == "[{" * 40


def test_more_members_than_allowed_are_refused() -> None:
    assert read(b"[1,2,3]", max_members=3) == [1, 2, 3]
    with pytest.raises(InvalidJson, match="more than 3 members"):
        read(b"[1,2,3,4]", max_members=3)
    with pytest.raises(InvalidJson, match="more than 3 members"):
        read(b'{"a":1,"b":{},"c":[]}', max_members=3)


def test_a_million_elements_are_refused_before_they_are_built() -> None:
    with pytest.raises(InvalidJson, match="more than 100000 members"):
        read(b"[" + b"0," * 1_000_000 + b"0]")


def test_a_million_keys_are_refused_before_they_are_built() -> None:
    with pytest.raises(InvalidJson, match="more than 100000 members"):
        read(b"{" + b",".join(b'"%d":0' % key for key in range(1_000_000)) + b"}")


def test_commas_inside_strings_are_not_members() -> None:
    text = 'a,b,[c],{d} "quoted, text", back\\slash\\\\, "'
    body = stdlib_json.dumps({"x": text, text: "\\", "y": '\\"'}).encode()
    assert read(body, max_members=3) == {"x": text, text: "\\", "y": '\\"'}
    with pytest.raises(InvalidJson):
        read(body, max_members=2)


def test_where_a_long_body_is_cut_into_stretches_makes_no_difference() -> None:
    long = '[,{"' * 40_000  # strings that go over several stretches, and end in some of them
    body = stdlib_json.dumps({"a": long, long + "b": [long, 1, 2], "c": '"' * 70_000}).encode()
    assert read(body, max_members=7)
    with pytest.raises(InvalidJson, match="more than 5 members"):
        read(body, max_members=5)


@pytest.mark.parametrize("before", [*range(65_500, 65_540), 131_060])
def test_a_long_integer_is_seen_wherever_a_long_body_is_cut(before: int) -> None:
    with pytest.raises(InvalidJson, match="beyond"):
        read(b'["' + b"x" * before + b'", 12345678901234567, "' + b"x" * 70_000 + b'"]')


def test_a_key_that_stands_twice_in_a_long_body_is_refused() -> None:
    with pytest.raises(InvalidJson, match="twice"):
        read(b'{"a": "' + b"x" * 70_000 + b'", "a": 1}')


def test_a_long_string_is_read() -> None:
    text = "word, " * 200_000
    assert read(write({"text": text})) == {"text": text}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"sekret":1,"sekret":2}', "a key stands twice in one object"),
        (b'{"sekret":"\xff"}', "not UTF-8 at byte 11"),
        (b'{"sekret":sekret}', "not JSON at character 10"),
        (b'"sekret" "sekret"', "more data after the value at character 8"),
        (b'"sekret\\udead"', "a string holds half of a surrogate pair"),
        (b'{"sekret\\u0000":1}', "a key holds a NUL"),
        (b"77777777777777777777", "an integer beyond 2^53 - 1"),
        (b"7e777", "a number too large for a double"),
        (b"-Infinity", "NaN and Infinity are not JSON"),
        (b"", "empty"),
    ],
)
def test_the_reason_says_what_was_wrong_and_quotes_nothing(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidJson) as caught:
        read(body)
    assert caught.value.facts == {"reason": reason}
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_an_array_where_an_object_belongs_is_named_as_such() -> None:
    with pytest.raises(InvalidJson, match="the outermost value is not an object"):
        read_object(b"[1]")


@given(st.binary() | st.text().map(str.encode) | st.text('[]{}",:\\u0 1e-dDnN').map(str.encode))
@settings(deadline=None)
@example(b"\\u")
@example(b"\x00")
def test_any_bytes_are_a_value_or_invalid_json(body: bytes) -> None:
    try:
        value = read(body, max_levels=4, max_members=6)
    except InvalidJson:
        return
    assert value == stdlib_json.loads(body)


@given(st.text('[]{}",:\\\\/bnu0123 1e-.ab').map(str.encode) | values.map(write))
@settings(deadline=None)
@example(b'{"a":1,"a":2}')
@example(b'{"a\\"":1,"a":2}')
@example(b'["9007199254740993"]')
@example(b"[9007199254740993]")
def test_the_quick_reading_of_a_body_is_the_careful_one(body: bytes) -> None:
    quick = _read_plain(body)
    if quick is not None:
        assert repr(quick) == repr(_read_any(body, 1000))


@given(values)
@settings(deadline=None)
def test_what_was_written_is_read_back(value: object) -> None:
    again = read(write(value))
    assert again == value
    assert write(again) == write(value)


@given(values)
@settings(deadline=None)
def test_other_spellings_of_a_value_are_read_alike(value: object) -> None:
    assert read(stdlib_json.dumps(value, indent=1).encode()) == value
    assert read(stdlib_json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.dictionaries(keys, values, max_size=5))
@settings(deadline=None)
def test_the_canonical_form_does_not_depend_on_order_or_spacing(
    value: dict[str, object],
) -> None:
    backwards = dict(reversed(list(value.items())))
    spaced = stdlib_json.dumps(backwards, indent=2).encode()
    assert canonical(backwards) == canonical(value)
    assert canonical(read(spaced)) == canonical(value)
    assert read(canonical(value)) == value


def test_the_canonical_form_is_sorted_compact_utf8() -> None:
    assert canonical({"b": [1, 1.0], "a": {"é": None, "A": "ü"}}) == (
        '{"a":{"A":"ü","é":null},"b":[1,1.0]}'.encode()
    )


def test_the_canonical_form_of_a_struct_is_that_of_its_members() -> None:
    class Point(msgspec.Struct):
        y: int
        x: int

    assert canonical(Point(y=1, x=2)) == canonical({"x": 2, "y": 1})


def test_writing_is_compact_and_keeps_the_order() -> None:
    assert write({"b": 1, "a": ["é", None]}) == '{"b":1,"a":["é",null]}'.encode()
    assert write_text({"b": 1, "a": "é"}) == '{"b":1,"a":"é"}'


@given(st.text() | st.text("\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r\né"))
@settings(deadline=None)
def test_whatever_is_written_is_one_line_to_every_reader(text: str) -> None:
    written = write_text({text: text})
    assert written.splitlines() == [written]
    assert stdlib_json.loads(written) == {text: text}


def test_half_a_surrogate_pair_is_not_written() -> None:
    with pytest.raises(UnicodeEncodeError):
        write(["\ud800"])


def test_a_float_that_is_not_finite_is_written_as_null() -> None:
    assert write([math.nan, math.inf]) == b"[null,null]"
