"""How long a caller waits, as it says; nothing else of its preferences is looked at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.errors import MalformedCallerContext
from carnet.wire.grammar.headers import MAX_COUNT, Headers
from carnet.wire.stamps.prefer import read_wait


def preferring(*values: str) -> Headers:
    return Headers([(b"prefer", value.encode("latin-1")) for value in values])


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ((), None),
        (("",), None),
        (("respond-async",), None),
        (("waiting=5, x-wait=6",), None),
        (("wait=5",), 5),
        (("Wait = 5",), 5),
        (('wait="5"',), 5),
        (("respond-async, wait=10;x=y", "handling=lenient"), 10),
        (("handling=lenient", "wait=0"), 0),
        (("wait=007",), 7),
        (("wait=2147483648",), MAX_COUNT),
        (("wait=" + "9" * 4000,), MAX_COUNT),
    ],
)
def test_the_seconds_are_read_among_other_preferences(
    values: tuple[str, ...], seconds: int | None
) -> None:
    assert read_wait(preferring(*values)) == seconds


@pytest.mark.parametrize(
    "values",
    [
        ("wait",),
        ("wait=",),
        ("wait=-1",),
        ("wait=+1",),
        ("wait=1.5",),
        ("wait=1_0",),
        ("wait=\xb2",),
        ('wait="1',),
        ("wait;x=1",),
        ("wait=1 2",),
        ("wait=1, wait=1",),
        ("wait=1", "wait=2"),
        (",".join(["a"] * 33),),
    ],
)
def test_a_wait_that_is_not_one_number_is_refused(values: tuple[str, ...]) -> None:
    with pytest.raises(MalformedCallerContext):
        read_wait(preferring(*values))


@given(st.lists(st.binary(max_size=60), max_size=3))
def test_whatever_is_preferred_is_read_or_refused(values: list[bytes]) -> None:
    try:
        seconds = read_wait(Headers([(b"prefer", value) for value in values]))
    except MalformedCallerContext:
        return
    assert seconds is None or 0 <= seconds <= MAX_COUNT
