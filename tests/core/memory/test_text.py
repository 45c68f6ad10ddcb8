"""The lines of files that hold words, and what is shown of a change."""

from carnet.core.memory.text import MOST_HITS, MOST_LINE, LineHit, change_of, find_lines


def test_lines_are_found_that_hold_every_word_whatever_the_capitals() -> None:
    files = [("a.md", "Budget goal: 100\nGoal of the year\n"), ("b.md", "the BUDGET\nGOAL budget")]
    assert find_lines(files, "goal  budget") == [
        LineHit("a.md", 1, "Budget goal: 100"),
        LineHit("b.md", 2, "GOAL budget"),
    ]
    assert find_lines(files, "") == find_lines(files, "  ") == []
    assert find_lines(files, "nothing") == []


def test_what_is_found_has_a_bound() -> None:
    found = find_lines([("a.md", "x\n" * 1000)], "x")
    assert len(found) == MOST_HITS
    (line,) = find_lines([("a.md", "a" * 5000 + "needle" + "b" * 5000)], "needle")
    assert "needle" in line.text
    assert len(line.text) <= MOST_LINE


def test_a_change_is_shown_as_what_goes_and_what_comes() -> None:
    assert change_of(None, "one\ntwo") == "a new file of 7 bytes\n+one\n+two"
    assert change_of("one", "one") == "nothing changes: 3 bytes"
    assert change_of("a\nb\nc", "a\nB\nc") == "from line 2: 5 bytes become 5\n-b\n+B"
    assert change_of("a\na", "a\na\na") == "from line 3: 3 bytes become 5\n+a"
    assert change_of("a\nb", "a") == "from line 2: 3 bytes become 1\n-b"


def test_what_is_shown_of_a_change_has_a_bound() -> None:
    shown = change_of(None, "\n".join(["x" * 1000] * 100))
    assert len(shown) < 45 * (MOST_LINE + 10)
    assert shown.endswith("+ and 60 more lines")
