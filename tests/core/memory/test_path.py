"""What a path of a memory is; everything else is refused, and nothing repaired."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.memory.path import MOST_PATH, above, folded, parse_folder, parse_path
from carnet.errors import InvalidRequest

ESCAPES = (
    *(
        "",
        "/",
        "//AGENT.md",
        "a//b",
        "a/",
        "./a",
        "a/./b",
        "..",
        "../AGENT.md",
        "a/../b",
        "a/..",
        "/..",
    ),
    *("...", ".a", "a.", ".env", "a/.git/config", "~/a", "C:/a", "a:b", "\\a", "a\\b", "..\\a"),
    *(
        "%2e%2e/a",
        "a%2Fb",
        "a%00",
        "a\0",
        "a\0.md",
        "a\n",
        "a\r",
        "\ta",
        "a\x7f",
        "a b",
        " a",
        "a ",
    ),
    *("ＡGENT.md", "АGENT.md", "AGENT․md", "a∕b", "a／b", "‥/a", "．．/a", "cafe\u0301.md"),
    *("café.md", "a\u200b", "\u202ea", "ﬁle.md", "\u212a.md", "a" * 65, "a/" * 8 + "a"),
    "/".join(["a" * 40] * 6),
)


@pytest.mark.parametrize("given_path", ESCAPES, ids=ascii)
def test_what_is_no_path_is_refused(given_path: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_path(given_path)
    assert refused.value.facts["field"] == "path"


def test_a_slash_first_makes_no_difference() -> None:
    assert parse_path("/AGENT.md") == parse_path("AGENT.md") == "AGENT.md"
    assert parse_path("/finances/AGENT.md") == "finances/AGENT.md"
    assert above("a/b/c.md") == ("a", "a/b")
    assert above("a.md") == ()
    assert folded("Notes/AGENT.md") == "notes/agent.md"


def test_a_folder_is_what_paths_begin_with() -> None:
    assert {parse_folder(each) for each in ("", "/", ".")} == {""}
    assert parse_folder("/finances") == parse_folder("finances/") == "finances/"
    with pytest.raises(InvalidRequest):
        parse_folder("../")


@given(st.text(max_size=MOST_PATH + 4))
def test_a_path_is_stored_as_it_is_read_and_survives_every_normalisation(text: str) -> None:
    try:
        path = parse_path(text)
    except InvalidRequest:
        return
    assert parse_path(path) == path
    assert path.isascii()
    assert path.isprintable()
    assert ".." not in path.split("/")
    assert all(unicodedata.normalize(form, path) == path for form in ("NFC", "NFD", "NFKC", "NFKD"))
