"""Keys and proofs in base58btc."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.errors import KeyInvalid
from carnet.wire.crypto import ed25519, multibase


@given(st.binary(max_size=80))
def test_what_is_written_is_read(raw: bytes) -> None:
    assert multibase.read(multibase.write(raw)) == raw


def test_a_known_key_has_its_known_name() -> None:
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    assert multibase.write_key(public).startswith("z6Mk")
    assert multibase.read_key(multibase.write_key(public)) == public


@pytest.mark.parametrize("text", ["", "6Mk", "m6Mk", "z0", "zO", "zI", "zl", "z ", "z" + "1" * 200])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="base58btc"):
        multibase.read(text)


def test_a_key_of_another_kind_or_a_weak_one_is_none() -> None:
    public = ed25519.public_of(bytes(32))
    with pytest.raises(ValueError, match="Ed25519"):
        multibase.read_key(multibase.write(b"\xec\x01" + public))
    with pytest.raises(KeyInvalid):
        multibase.read_key(multibase.write(b"\xed\x01" + bytes(32)))
