"""The names by which the logs and bills of other products find a call of ours.

    bifrost   x-bf-agent-correlation-id   the run
    litellm   x-litellm-user-id           whose account pays
    kagent    x-user-id                   whose account pays

They are written toward agents and peers whose operator wants that, and read from nobody: what a
caller says of itself in them is not looked at.

Law. A value is one that every header can hold: what is not visible ASCII is percent-encoded.
"""

from collections.abc import Sequence
from typing import Final, Literal
from urllib.parse import quote

from msgspec import Struct

MOST_BYTES: Final = 256


class LogName(Struct, frozen=True):
    """One name: the header, and what it holds."""

    header: str
    holds: Literal["run", "payer"]


LOG_NAMES: Final = {
    "bifrost": LogName("x-bf-agent-correlation-id", "run"),
    "litellm": LogName("x-litellm-user-id", "payer"),
    "kagent": LogName("x-user-id", "payer"),
}


def write_log_names(products: Sequence[str], *, run: str, payer: str) -> dict[str, str]:
    """The headers for those products."""
    values = {"run": _visible(run), "payer": _visible(payer)}
    rows = [LOG_NAMES[product] for product in products]
    return {row.header: values[row.holds] for row in rows if values[row.holds]}


def _visible(value: str) -> str:
    return quote(value, safe="@:/+=!$&'()*,;?~")[:MOST_BYTES]
