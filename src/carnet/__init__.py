"""Carnet: the gateway and runtime that lets agents of different organisations call one another.

The public names live in `carnet.api`; they are loaded on first use so that importing
`carnet` (and answering `carnet --help`) stays cheap.
"""

import importlib
from typing import TYPE_CHECKING, Any

from carnet.version import __version__ as __version__

if TYPE_CHECKING:
    from carnet.api import *  # noqa: F403  so that type checkers know the lazy names


def __getattr__(name: str) -> Any:
    """Offer the names of `carnet.api` lazily (PEP 562)."""
    if name.startswith("_"):
        raise AttributeError(f"module 'carnet' has no attribute {name!r}")
    api = importlib.import_module("carnet.api")
    if name not in api.__all__:
        raise AttributeError(f"module 'carnet' has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    """The public names; not what this module needs for itself, nor the rooms that were loaded."""
    return sorted({"__version__", *importlib.import_module("carnet.api").__all__})
