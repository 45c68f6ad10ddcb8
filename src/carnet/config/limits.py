"""Every bound of a gateway in one table: name, default and what it bounds.

Law. Nothing a caller sends is unbounded: what grows with a request has a row here.
"""

from typing import Annotated

from msgspec import Struct

from carnet.config.readers import seconds, whole

KIB = 1024
MIB = 1024 * KIB


class Limits(Struct, frozen=True, kw_only=True):
    """The `[limits]` section."""

    header_bytes: Annotated[
        int, whole(1 * KIB, MIB), "The request line and all header fields together."
    ] = 16 * KIB
    header_seconds: Annotated[
        float, seconds(), "From the connection to the end of the header fields."
    ] = 10.0
    body_bytes: Annotated[
        int, whole(1 * KIB), "A request body, on every path but the chat front door."
    ] = MIB
    chat_body_bytes: Annotated[
        int, whole(1 * KIB), "A request body of /v1/chat/completions, which carries history."
    ] = 10 * MIB
    body_seconds: Annotated[
        float, seconds(), "From the end of the header fields to the end of the body."
    ] = 30.0
    write_stall_seconds: Annotated[
        float, seconds(), "How long a reader may take nothing of its answer before it is cut off."
    ] = 30.0
    streams_per_caller: Annotated[int, whole(1), "Streams one caller may hold open at once."] = 256
    calls_per_caller: Annotated[int, whole(1), "Calls one caller may have running at once."] = 512
    calls: Annotated[int, whole(1), "Calls all callers together may have running at once."] = 4096
    run_calls: Annotated[
        int, whole(1), "Calls one run may make through this gateway, however deep."
    ] = 256
    fan_out: Annotated[int, whole(1, 1024), "Agents one call may ask at once."] = 16
    event_bytes: Annotated[int, whole(1 * KIB), "One event of a stream, in or out."] = 256 * KIB
    queue: Annotated[int, whole(1), "Writes that may wait for the store before we refuse."] = 4096
    retries: Annotated[int, whole(0, 3), "The most retries any agent may be configured to get."] = 3
    run_id_bytes: Annotated[int, whole(16, 1024), "A run id, in visible ASCII."] = 128
    turn_id_bytes: Annotated[int, whole(16, 1024), "A turn id, in visible ASCII."] = 256
    speaker_bytes: Annotated[int, whole(1, 1024), "A speaker's name, in visible ASCII."] = 128
