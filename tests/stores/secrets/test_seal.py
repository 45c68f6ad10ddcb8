"""What is long is sealed beside the event loop."""

from threading import get_ident

from carnet.stores.secrets.seal import LONG, beside


async def test_what_is_long_is_sealed_in_a_thread() -> None:
    """A caller chooses how long its call is, and never what the loop is held for."""
    assert await beside(LONG + 1, get_ident) != get_ident()


async def test_what_is_short_is_not() -> None:
    assert await beside(LONG, get_ident) == get_ident()
