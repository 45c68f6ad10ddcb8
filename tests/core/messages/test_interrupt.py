"""Interrupts: kept whole, also those of a kind we do not know."""

import pytest

from carnet.core.messages.interrupt import KINDS, Interrupt, Resolution, hash_state


@pytest.mark.parametrize("kind", KINDS)
def test_the_kinds_of_the_model_are_known(kind: str) -> None:
    assert Interrupt(id="i", state="s", kind=kind, message="please").is_known


def test_an_unknown_kind_is_kept_and_is_not_known() -> None:
    interrupt = Interrupt(id="i", state="s", kind="carrier_pigeon", message="please")
    assert interrupt.kind == "carrier_pigeon"
    assert not interrupt.is_known


@pytest.mark.parametrize(("kind", "message"), [("", "please"), ("approval", "")])
def test_an_interrupt_that_nobody_could_understand_is_refused(kind: str, message: str) -> None:
    with pytest.raises(ValueError, match="a kind and a message"):
        Interrupt(id="i", state="s", kind=kind, message=message)


def test_a_resolution_says_nothing_more_than_its_outcome_unless_told() -> None:
    assert Resolution(outcome="accepted") == Resolution(
        outcome="accepted", resolver=None, proof=None
    )


def test_what_is_kept_of_a_secret_tells_it_apart_and_does_not_hold_it() -> None:
    kept = hash_state("secret")
    assert kept == hash_state("secret")
    assert kept != hash_state("Secret")
    assert b"secret" not in kept
