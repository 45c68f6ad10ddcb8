"""Carnet: the gateway and runtime that lets agents of different organisations call one another.

The public names live in `carnet.api`; they are loaded on first use so that importing
`carnet` (and answering `carnet --help`) stays cheap.
"""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Offer the names of `carnet.api` lazily (PEP 562)."""
    if name.startswith("_"):
        raise AttributeError(f"module 'carnet' has no attribute {name!r}")
    from carnet import api  # noqa: PLC0415  the lazy table is the reason this function exists

    try:
        return getattr(api, name)
    except AttributeError:
        raise AttributeError(f"module 'carnet' has no attribute {name!r}") from None
