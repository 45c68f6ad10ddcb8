"""A caller context as it is kept in the record of a turn, and as people are shown it.

Law 1. `read_context(write_context(x)) == x`, its metadata aside: that is the operator's, who may
       have changed it since.
Law 2. What is shown says first how far it is believed: no name of a peer's stands without it.
"""

from typing import Any, Final

import msgspec

from carnet.core.people.identity import Context

_decoder: Final = msgspec.json.Decoder(Context)


def write_context(context: Context) -> str:
    """One line of JSON."""
    fields = msgspec.structs.asdict(context)
    del fields["metadata"]
    return msgspec.json.encode(fields).decode()


def read_context(kept: str) -> Context:
    """What was kept."""
    return _decoder.decode(kept)


def context_page(kept: str | None) -> dict[str, Any] | None:
    """What was kept as pages show it; None where the caller has said nothing of itself."""
    if kept is None:
        return None
    context = read_context(kept)
    return {
        "caller": str(context),
        "how": context.how,
        "agent": context.agent or None,
        "user": context.user or None,
        "host": context.host,
        "depth": context.depth,
        "root": context.root,
    }
