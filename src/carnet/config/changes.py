"""What a running gateway takes over of a configuration that is read again, and what it cannot.

Here is also what is in force: every value, and where it came from; a secret only by its reference.

Law 1. Every key stands in one of the two tables: `RELOADABLE` is taken over at once, what
       `NEEDS_RESTART` is bound to the process: its sockets, its store, what was promised by it.
Law 2. A changed key that needs a restart is told, and the running value stays in force until then;
       the rest is taken over.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import structs

from carnet.config.readers import SecretRef
from carnet.config.settings import FAMILIES, SECTIONS, Settings
from carnet.config.sources import docs_of, dotted, readers_of
from carnet.core.money.amount import format_amount

HIDDEN: Final = "***"
AMOUNTS: Final = frozenset({"price", "price_in", "price_out", "credit", "max_cost"})
ALL: Final = "*"  # every key of the sections of a family

RELOADABLE: Final[Mapping[str, frozenset[str]]] = {
    "gateway": frozenset(
        {
            *("public_url", "max_depth", "max_chain_depth", "hard_max_depth", "strangers"),
            *("max_hops", "stranger_price_limit"),
            *("injection_classifier", "trusted_proxies", "cors_origins", "task_polling"),
            *("legacy_cards", "certificate_header"),
        }
    ),
    "inbox": frozenset({"notify", "expires"}),
    "owner": frozenset(
        {
            *("agent", "orchestrator", "relay", "model_context", "tool_context", "history"),
            *("content_bytes", "conversations", "messages", "hold_approvals"),
        }
    ),
    "sessions": frozenset({"idle_hours", "most_hours", "link_minutes"}),
    "policy": frozenset({"target", "seconds"}),
    "log": frozenset({"format", "level"}),
    "limits": frozenset(
        {
            *("header_bytes", "header_seconds", "header_fields", "url_bytes", "chat_body_bytes"),
            *("body_bytes", "body_seconds", "write_stall_seconds", "connections", "requests"),
            *("bodies_bytes", "auth_failures", "streams_per_caller", "calls_per_caller", "calls"),
            *("sender_calls_per_minute", "agent_calls_per_minute", "sender_tokens_per_day"),
            *("run_calls", "tasks", "tasks_per_agent", "tasks_per_sender", "queue"),
            *("queue_seconds", "retries", "waiting_per_caller", "schedules_per_person"),
            *("hooks_per_person", "firings_per_person", "hook_body_bytes"),
            *("memory_files", "memory_bytes", "memory_versions"),
            *("sign_in_failures", "sessions_per_person", "strangers"),
        }
    ),
    "agents": frozenset({ALL}),
    "peers": frozenset({ALL}),
    "identity": frozenset({ALL}),
    "callers": frozenset({ALL}),
    "payers": frozenset({ALL}),
    "models": frozenset({ALL}),
    "tools": frozenset({ALL}),
}
NEEDS_RESTART: Final[Mapping[str, frozenset[str]]] = {
    "gateway": frozenset({"host", "port", "domain", "drain_seconds", "grace_seconds"}),
    "store": frozenset({"url", "secrets", "lease_seconds"}),
    "ledger": frozenset({"currency"}),
    "retention": frozenset({"turns", "events", "task_hours", "every"}),
    "egress": frozenset({"allow", "found_at"}),
    "outbox": frozenset({"schedule", "timeout"}),
    "limits": frozenset({"store_queue"}),
    "telemetry": frozenset({"otlp", "authorization", "queue"}),
    "engine": frozenset(
        {
            *("listen", "serve", "model", "max_iterations", "max_tokens", "tools", "ask_before"),
            *("memory_approval", "memory_starter"),
        }
    ),
}


def is_reloadable(section: str, key: str) -> bool:
    """Whether a running gateway takes over a changed value."""
    known = RELOADABLE.get(section, frozenset())
    return key in known or ALL in known


def merged(running: Settings, read: Settings) -> Settings:
    """What was read, with the values of a running gateway where it cannot take over others."""
    kept: dict[str, Any] = {}
    origins = dict(read.origins)
    for section, keys in NEEDS_RESTART.items():
        former = getattr(running, section)
        values = {key: getattr(former, key) for key in keys}
        kept[section] = structs.replace(getattr(read, section), **values)
        origins |= {f"{section}.{key}": running.origins[f"{section}.{key}"] for key in keys}
    whole = structs.replace(read, **kept, origins=origins)
    return whole.listening_at(None, None)  # where others reach it follows from where it listens


def changed(before: Settings, after: Settings) -> list[str]:
    """The keys whose values differ and can be taken over; members of families that came or went."""
    found = [f"{s}.{key}" for s, key in _differing(before, after) if is_reloadable(s, key)]
    for family, kind in FAMILIES.items():
        former, now, keys = getattr(before, family), getattr(after, family), readers_of(kind)
        found += [f"{dotted((family, name))} (new)" for name in now if name not in former]
        found += [f"{dotted((family, name))} (removed)" for name in former if name not in now]
        found += [
            dotted((family, name, key))
            for name in now
            if name in former
            for key in keys
            if getattr(now[name], key) != getattr(former[name], key)
        ]
    return found


def pending(before: Settings, after: Settings) -> list[str]:
    """The keys whose values differ and need a restart."""
    return [f"{s}.{key}" for s, key in _differing(before, after) if not is_reloadable(s, key)]


def _differing(before: Settings, after: Settings) -> Iterator[tuple[str, str]]:
    for section, kind in SECTIONS.items():
        former, now = getattr(before, section), getattr(after, section)
        for key in readers_of(kind):
            if getattr(former, key) != getattr(now, key) and not _follows(key, before, after):
                yield section, key


def _follows(key: str, before: Settings, after: Settings) -> bool:
    """Whether a value is only where the gateway listens, in other words."""
    origins = {each.origins["gateway.public_url"] for each in (before, after)}
    return key == "public_url" and origins == {"default"}


def values_of(settings: Settings) -> list[dict[str, Any]]:
    """Every value as it is in force, where it came from, and what it means; secrets as ***."""
    sections: list[tuple[tuple[str, ...], Any]] = [
        ((name,), getattr(settings, name)) for name in SECTIONS
    ]
    for family in FAMILIES:
        sections += [((family, name), member) for name, member in getattr(settings, family).items()]
    return [
        {
            "section": dotted(path),
            "key": key,
            **_shown(key, getattr(section, key)),
            "from": settings.origins[dotted((*path, key))],
            "doc": doc,
            "expects": readers_of(type(section))[key].expects,
        }
        for path, section in sections
        for key, doc in docs_of(type(section)).items()
    ]


def _shown(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, SecretRef):
        return {"value": HIDDEN, "reference": str(value)}
    if key in AMOUNTS and isinstance(value, int):
        return {"value": format_amount(value)}
    return {"value": value}
