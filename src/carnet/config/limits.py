"""Every bound of a gateway that an operator can set: name, default and what it bounds.

Here is also where records are kept and for how long, and how the log is written.

`docs/operations/limits.md` tells what happens at each of them, and lists the fixed ones.

Law. A row here is enforced: what nothing reads is not listed.
"""

from typing import Annotated, Literal

from msgspec import Struct

from carnet.config.outbound import MOST_DAYS
from carnet.config.readers import (
    SecretRef,
    amount,
    one_of,
    seconds,
    secret,
    span,
    span_seconds,
    store_url,
    text,
    whole,
)

KIB = 1024
MIB = 1024 * KIB
MIN_LEASE = 2  # seconds: it is renewed each third of it, and looked at each second

SpendingLimit = Annotated[
    int | None, amount(), "The most that it may ever pay from its own account."
]
DailySpendingLimit = Annotated[
    int | None, amount(), "The most that it may pay from it on one day (UTC)."
]
MaxCost = Annotated[int | None, amount(), "The most another organisation may charge for one call."]
OnBudget = Annotated[
    Literal["refuse", "ask"],
    one_of("refuse", "ask"),
    "What a call to it does whose budget is used up: refuse, or wait and ask who pays for more.",
]


class StoreSettings(Struct, frozen=True, kw_only=True):
    """The `[store]` section."""

    url: Annotated[str, store_url(), "Where records are kept."] = "sqlite:var/carnet.db"
    secrets: Annotated[
        SecretRef, secret(), "The file with the token pepper and the sealing key."
    ] = SecretRef(file="var/secrets.key")
    lease_seconds: Annotated[
        float,
        seconds(most=3600, least=MIN_LEASE),
        "PostgreSQL: how long a gateway may be silent before others give up its calls.",
    ] = 30.0


class LedgerSettings(Struct, frozen=True, kw_only=True):
    """The `[ledger]` section."""

    currency: Annotated[str, text(), "The one currency of this gateway."] = "credits"


class RetentionSettings(Struct, frozen=True, kw_only=True):
    """The `[retention]` section: how long things are kept, and how often it is looked at."""

    turns: Annotated[int, whole(1, MOST_DAYS), "Days a finished turn is kept."] = 30
    events: Annotated[int, whole(1, MOST_DAYS), "Days the events of a turn are kept."] = 30
    task_hours: Annotated[
        int, whole(1, MOST_DAYS * 24), "Hours a task can be polled after its end."
    ] = 24
    every: Annotated[
        str,
        span(most_days=7),
        "How often a gateway prunes by itself; never leaves it to 'carnet prune'.",
    ] = "1h"

    @property
    def every_seconds(self) -> int | None:
        """The same as a number; None for never."""
        return span_seconds(self.every)


class SessionSettings(Struct, frozen=True, kw_only=True):
    """The `[sessions]` section: how long somebody stays signed in."""

    idle_hours: Annotated[
        int, whole(1, MOST_DAYS * 24), "Hours without a request after which a session ends."
    ] = 24
    most_hours: Annotated[
        int, whole(1, MOST_DAYS * 24), "Hours after which it ends, however it is used."
    ] = 336
    link_minutes: Annotated[
        int, whole(1, 24 * 60), "Minutes in which a link to sign in with is good, once."
    ] = 10


class Limits(Struct, frozen=True, kw_only=True):
    """The `[limits]` section."""

    header_bytes: Annotated[
        int, whole(1 * KIB, MIB), "The request line and all header fields together."
    ] = 16 * KIB
    header_seconds: Annotated[
        float, seconds(), "From the connection to the end of the header fields."
    ] = 10.0
    header_fields: Annotated[int, whole(10, 1000), "Header fields of one request."] = 100
    url_bytes: Annotated[int, whole(256, 64 * KIB), "The path and query of a request."] = 2 * KIB
    chat_body_bytes: Annotated[
        int, whole(1 * KIB), "A request body; no path takes a larger one than the chat endpoint."
    ] = 10 * MIB
    body_bytes: Annotated[
        int, whole(1 * KIB), "The body of a signed request to one of the SAMVAD endpoints."
    ] = MIB
    body_seconds: Annotated[
        float, seconds(), "From the end of the header fields to the end of the body."
    ] = 30.0
    write_stall_seconds: Annotated[
        float, seconds(), "How long a reader may take nothing of its answer before it is cut off."
    ] = 30.0
    connections: Annotated[
        int, whole(1), "Open connections; never more than the system lets this process have."
    ] = 10_000
    requests: Annotated[int, whole(1), "Requests of all kinds that are being answered at once."] = (
        8192
    )
    bodies_bytes: Annotated[
        int, whole(1 * MIB), "Bodies over 64 KiB of all requests together, until they are answered."
    ] = 256 * MIB
    auth_failures: Annotated[
        int, whole(1), "Wrong tokens that one source address may send within a minute."
    ] = 30
    sign_in_failures: Annotated[
        int, whole(1), "Attempts to sign in of one source address that may fail within a minute."
    ] = 5
    sessions_per_person: Annotated[
        int, whole(1, 1000), "Sessions and unused links of one person; the longest unused end."
    ] = 20
    streams_per_caller: Annotated[
        int, whole(1), "Streamed answers and streams of a run's events one caller may have open."
    ] = 256
    calls_per_caller: Annotated[int, whole(1), "Calls one caller may have running at once."] = 512
    calls: Annotated[int, whole(1), "Calls all callers together may have running at once."] = 4096
    sender_calls_per_minute: Annotated[
        int,
        whole(1),
        "Calls that one sender may make within a minute, signed or by access tokens of others.",
    ] = 600
    agent_calls_per_minute: Annotated[
        int, whole(1), "Such calls that all senders together may make to one agent in a minute."
    ] = 60_000
    sender_tokens_per_day: Annotated[
        int | None,
        whole(1, 2**53 - 1),
        "Tokens that the signed calls of one sender may use of one agent in a day (UTC), if set.",
    ] = None
    run_calls: Annotated[
        int, whole(1), "Calls one run may make through this gateway, however deep."
    ] = 256
    tasks: Annotated[int, whole(1), "Tasks of agents here that one gateway runs at once."] = 32
    tasks_per_agent: Annotated[int, whole(1), "Those of them that are one agent's."] = 8
    tasks_per_sender: Annotated[
        int, whole(1), "Tasks of one sender at one agent that have not ended."
    ] = 1000
    waiting_per_caller: Annotated[
        int, whole(1), "Calls of one caller that wait for an answer to what their agents ask for."
    ] = 1000
    schedules_per_person: Annotated[int, whole(0), "Schedules that one person may have."] = 50
    hooks_per_person: Annotated[int, whole(0), "Hooks that one person may have."] = 50
    firings_per_person: Annotated[
        int, whole(1), "Conversations that schedules and hooks of one person are still to begin."
    ] = 100
    hook_body_bytes: Annotated[
        int, whole(1 * KIB, 16 * MIB), "The body of an event that is sent to a hook."
    ] = 256 * KIB
    memory_files: Annotated[int, whole(1, 1000), "Files that one agent keeps for one person."] = 200
    memory_bytes: Annotated[
        int, whole(1 * KIB, 16 * MIB), "Those files together; former versions four times that."
    ] = MIB
    memory_versions: Annotated[
        int, whole(1, 1000), "Versions that are kept of one such file; the oldest are forgotten."
    ] = 20
    strangers: Annotated[
        int, whole(1), "Organisations that are no peers whose keys are remembered for one caller."
    ] = 10_000
    queue: Annotated[
        int, whole(1), "Calls that may wait for an agent whose 'concurrency' is used up."
    ] = 4096
    queue_seconds: Annotated[float, seconds(), "How long each of them may wait."] = 30.0
    store_queue: Annotated[int, whole(1), "Writes that may wait for the store."] = 20_000
    retries: Annotated[
        int, whole(0, 3), "The most retries any agent may be configured to get, and peers get."
    ] = 3


class LogSettings(Struct, frozen=True, kw_only=True):
    """The `[log]` section."""

    format: Annotated[
        Literal["auto", "text", "json"],
        one_of("auto", "text", "json"),
        "How lines are written; auto is text for people on a terminal, and else JSON.",
    ] = "auto"
    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        one_of("debug", "info", "warning", "error"),
        "The least grave that is written; calls and refusals are info.",
    ] = "info"
