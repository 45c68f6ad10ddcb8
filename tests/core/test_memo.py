"""A memo remembers the newest of what it was given."""

from carnet.core.memo import Memo


def test_what_was_kept_longest_ago_is_forgotten_first() -> None:
    memo: Memo[str, int] = Memo(2)
    assert memo.keep("a", 1) == 1
    memo.keep("b", 2)
    memo.keep("a", 3)
    memo.keep("c", 4)
    assert (dict(memo), len(memo)) == ({"a": 3, "c": 4}, 2)
    assert memo.get("b") is None
