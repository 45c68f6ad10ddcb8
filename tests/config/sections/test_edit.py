"""One value of a file is changed, and everything else stays as it was written."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.config.readers import ValueReader, Wrong, text, truth, whole
from carnet.config.sections.edit import EditRefused, edited, read_written, written

FILE = """\
# what this is
[gateway]
domain = "acme.example"   # ours
max_depth=4

[agents.echo]  # the first
target = "agents:echo"
# about tags
tags = [
  "a",
]

[peers."globex.example"]
url = "https://globex.example"
"""


@pytest.mark.parametrize(
    ("path", "value", "before", "after"),
    [
        (("gateway", "max_depth"), 6, "max_depth=4", "max_depth = 6"),
        (
            ("gateway", "domain"),
            "a#b",
            'domain = "acme.example"   # ours',
            'domain = "a#b"  # ours',
        ),
        (("gateway", "max_depth"), None, "max_depth=4\n", ""),
        (("gateway", "port"), 1, "max_depth=4\n", "max_depth=4\nport = 1\n"),
        (
            ("peers", "globex.example", "credit"),
            "5",
            '"https://globex.example"\n',
            '"https://globex.example"\ncredit = "5"\n',
        ),
        (
            ("agents", "echo", "price"),
            "1",
            '  "a",\n]\n',
            '  "a",\n]\nprice = "1"\n',
        ),
    ],
)
def test_a_value_is_changed_where_it_stands(
    path: tuple[str, ...], value: object, before: str, after: str
) -> None:
    assert edited(FILE, path, value) == FILE.replace(before, after)


def test_a_section_that_is_not_there_is_added_at_the_end() -> None:
    assert edited(FILE, ("log", "level"), "debug") == f'{FILE}\n[log]\nlevel = "debug"\n'
    assert edited(FILE, ("log", "level"), None) == FILE


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("agents", "echo", "tags"), ["b"]),  # it stands on several lines
        (("gateway", "domain", "x"), 1),  # a value is no table
        (("gateway", "x"), object()),
    ],
)
def test_what_cannot_be_changed_line_by_line_is_refused(
    path: tuple[str, ...], value: object
) -> None:
    with pytest.raises(EditRefused):
        edited(FILE, path, value)


def test_an_inline_table_that_holds_a_key_is_left_alone() -> None:
    with pytest.raises(EditRefused):
        edited("limits = {calls = 1, queue = 2}\n", ("limits", "calls"), 2)


VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.text(), st.just(0.5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_what_is_written_is_read_as_the_same(value: object) -> None:
    assert tomllib.loads(f"value = {written(value)}") == {"value": value}


@pytest.mark.parametrize(
    ("typed", "reader", "value"),
    [
        ("6", whole(0), 6),
        ("6", text(), "6"),
        ("true", truth(), True),
        ('"quoted"', text(), "quoted"),
        ("plain words", text(), "plain words"),
    ],
)
def test_what_somebody_types_is_what_the_reader_takes(
    typed: str, reader: ValueReader, value: object
) -> None:
    assert read_written(typed, reader) == value


def test_what_no_reader_takes_is_wrong() -> None:
    with pytest.raises(Wrong):
        read_written("never", whole(0))
