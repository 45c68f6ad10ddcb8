"""The JSON of a request: the two writers behind it are not to be told apart."""

import json
from typing import Any

import pytest

from carnet.errors import InvalidRequest
from carnet.wire.dialects.samvad.envelope import canonical

EVERY_CHARACTER = "".join(map(chr, range(0x300))) + "\u2028\u2029\ufeff\uffff\U0001f6c2"


@pytest.mark.parametrize(
    "value",
    [
        {"text": EVERY_CHARACTER, EVERY_CHARACTER: "text"},
        {"b": [1, -1, 2**53 - 1, True, False, None, [], {}], "a": {"z": "", "": "z", "é": "e"}},
        {"a": [1.5, 1e16, -0.0, 1e-7]},
        {"a": 2**53, "b": -(2**70)},
        {2: "two", 1: "one"},
        {"text": ("of", "a", "tuple")},
        [*range(1000)],
    ],
)
def test_json_is_spelled_in_one_way_whoever_writes_it(value: Any) -> None:
    plain = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical(value).decode() == plain


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(InvalidRequest):
        canonical(value)
