"""The name of a field, where it leaves the sentence that was made of it.

Law. A path of plain names and numbers (`lines[0].sku`) is kept and nothing else: neither a header
nor a reader of another organisation's refusal meets anything that could be taken for more.
"""

import re
from typing import Final

_FIELD: Final = re.compile(
    r"(?=.{1,128}\Z)[A-Za-z0-9_$-]{1,64}(?:\[[0-9]{1,9}\]|\.[A-Za-z0-9_$-]{1,64})*", re.ASCII
)


def read_field(value: object) -> str | None:
    """The path, or None for whatever is none."""
    return value if isinstance(value, str) and _FIELD.fullmatch(value) else None
