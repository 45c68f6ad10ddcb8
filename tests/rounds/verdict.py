"""What came of a round, by its exit code and the last line of pytest."""

import re
from typing import Final

from msgspec import Struct

_LAST: Final = re.compile(
    r"^(?:=+ )?(\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s(?: \([\d:]+\))?(?: =+)?$", re.MULTILINE
)
_ONLY: Final = re.compile(r"\d+ passed")


class Verdict(Struct, frozen=True):
    """Whether it is what is asked for, and how many tests ended how."""

    is_green: bool
    counts: str


def verdict(output: str, code: int) -> Verdict:
    """Green is a round that ended well, and in which every test passed."""
    found = _LAST.findall(output)
    counts = found[-1] if found else "no test was counted"
    return Verdict(code == 0 and _ONLY.fullmatch(counts) is not None, counts)
