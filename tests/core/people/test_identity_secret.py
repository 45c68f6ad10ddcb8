"""Credentials: in memory they can be compared and revealed, and nothing else."""

import copy
import json
import pickle

import msgspec
import pytest

from carnet.core.people.identity import Secret

VALUE = "Bearer sk-tan-user-123"


def test_a_secret_shows_nothing_of_itself() -> None:
    secret = Secret(VALUE)
    shown = (repr(secret), str(secret), f"{secret}", f"{secret:>40}", f"{secret!r}", f"{[secret]}")
    assert shown == ("***", "***", "***", "***", "***", "[***]")


def test_a_secret_inside_a_record_stays_hidden_when_the_record_is_printed() -> None:
    class Record(msgspec.Struct):
        credential: Secret

    assert VALUE not in repr(Record(Secret(VALUE)))


def test_a_secret_is_revealed_byte_for_byte() -> None:
    assert Secret(VALUE).reveal() == VALUE
    assert Secret("caf\xe9").reveal().encode("latin-1") == b"caf\xe9"


def test_secrets_are_compared_by_value_and_with_secrets_only() -> None:
    assert Secret(VALUE) == Secret(VALUE)
    assert Secret(VALUE) != Secret(VALUE + "x")
    assert Secret(VALUE) != VALUE
    assert Secret("caf\xe9") == Secret("caf\xe9")


def test_a_secret_is_no_dictionary_key() -> None:
    with pytest.raises(TypeError):
        hash(Secret(VALUE))


@pytest.mark.parametrize(
    "leak", [pickle.dumps, copy.copy, copy.deepcopy, json.dumps, msgspec.json.encode, vars]
)
def test_a_secret_cannot_be_written_down_or_copied(leak: object) -> None:
    assert callable(leak)
    with pytest.raises(TypeError) as caught:
        leak(Secret(VALUE))
    assert VALUE not in str(caught.value)
