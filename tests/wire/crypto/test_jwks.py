"""Sets of public keys."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.wire.crypto import ed25519
from carnet.wire.crypto.jwks import MOST_KEYS, KeysInvalid, read_keys, write_keys
from carnet.wire.grammar import json

PUBLIC = ed25519.public_of(b"\x07" * 32)
GOOD = json.read_object(write_keys({"key-1": PUBLIC}))["keys"][0]  # type: ignore[index]


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=5, unique=True))
def test_what_is_written_is_read_again(seeds: list[bytes]) -> None:
    keys = {f"key-{n}": ed25519.public_of(seed) for n, seed in enumerate(seeds)}
    assert read_keys(write_keys(keys)) == keys


def test_keys_of_other_kinds_are_passed_over() -> None:
    others = [{"kty": "RSA", "kid": "r"}, {**GOOD, "use": "enc"}, {**GOOD, "kid": 1}, 7]
    assert read_keys(json.write({"keys": [*others, GOOD]})) == {"key-1": PUBLIC}


@pytest.mark.parametrize(
    "keys",
    [
        None,
        {},
        [GOOD, GOOD],
        [GOOD] * (MOST_KEYS + 1),
        [{**GOOD, "x": "AQ"}],
        [{**GOOD, "x": 1}],
        [{**GOOD, "x": GOOD["x"][:-1] + "_"}],
        [{**GOOD, "x": "A" * 43}],  # of small order
    ],
)
def test_a_set_that_is_wrong_in_one_key_is_worth_nothing(keys: Any) -> None:
    with pytest.raises(KeysInvalid):
        read_keys(json.write({"keys": keys}))


def test_what_is_not_json_is_no_set() -> None:
    with pytest.raises(KeysInvalid):
        read_keys(b"[]")
