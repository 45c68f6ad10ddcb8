"""The body of agents-api: JSON-RPC messages to an agent, a chat, and the actions that wait."""

from carnet.wire.dialects.agents_api.dialect import DIALECT, HTTP_DIALECT
from carnet.wire.dialects.agents_api.request import NAME, OVER_HTTP

__all__ = ["DIALECT", "HTTP_DIALECT", "NAME", "OVER_HTTP"]
