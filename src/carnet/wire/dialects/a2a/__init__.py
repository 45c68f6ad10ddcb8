"""A2A 1.0, and 0.3 for those who speak that: messages and tasks, in two bindings."""

from carnet.wire.dialects.a2a.dialect import DIALECT, HTTP_DIALECT
from carnet.wire.dialects.a2a.request import NAME, OVER_HTTP

__all__ = ["DIALECT", "HTTP_DIALECT", "NAME", "OVER_HTTP"]
