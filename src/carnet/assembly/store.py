"""From settings to an open store: where it is, its keys, and the peers that the file names."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from carnet.config import (
    PeerSettings,
    RetentionSettings,
    Settings,
    resolve_secret,
    secret_path,
)
from carnet.config.engine import read_system
from carnet.config.trust.callers import CallerSettings
from carnet.core.people.caller_host import CallerHost
from carnet.core.people.identity import Secret
from carnet.core.people.proof import Spending
from carnet.core.people.session import SessionBounds
from carnet.errors import ConfigInvalid, KeyInvalid
from carnet.ports.memory.memory import STARTER, MemoryBounds
from carnet.ports.money.budgets import DAY
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.trust.trust import Peer
from carnet.runtime.system import SystemClock, SystemIds
from carnet.stores.open import Store, is_postgres, migrate_store, open_store
from carnet.stores.trust.sessions import HOUR
from carnet.stores.upkeep.pruner import PruneRule
from carnet.wire.crypto.ed25519 import read_public_key

FORMER: Final = 4  # times the bytes of a memory are kept of what it was before


async def open_from(
    settings: Settings, *, exclusive: bool, peers: Iterable[Peer] | None = None
) -> Store:
    """Open the store of a configuration.

    `exclusive` is for a gateway that serves from it. `peers` stand over the stored ones; by
    default they are those of the file.
    """
    callers = file_callers(settings) if peers is None else []
    store = await open_store(
        settings.store.url,
        base=settings.base,
        secrets=secret_path(settings.store.secrets, settings.base),
        clock=SystemClock(),
        ids=SystemIds(),
        file_peers=file_peers(settings) if peers is None else peers,
        file_keys=file_keys(settings),
        exclusive=exclusive,
        lease_seconds=settings.store.lease_seconds,
        most_waiting=settings.limits.store_queue,
        task_hours=settings.retention.task_hours,
        wait_hours=settings.inbox.expires,
    )
    store.callers.take(callers)
    bound(store, settings, starter_of(settings) if exclusive else STARTER)
    store.pruner.rule = _prune_rule(settings.retention)
    return store


def starter_of(settings: Settings) -> str:
    """What the memories of a configuration begin with."""
    key = "engine.memory_starter"
    text = read_system(None, settings.engine.memory_starter, settings.base, key=key)
    return STARTER if text is None else text


def bound(store: Store, settings: Settings, starter: str) -> None:
    """Hold a store to the limits of a configuration; memories begin with `starter`."""
    limits = settings.limits
    store.bound_waiting(limits.waiting_per_caller)
    store.memory.bounds = MemoryBounds(
        files=limits.memory_files,
        bytes=limits.memory_bytes,
        versions=limits.memory_versions,
        former_bytes=FORMER * limits.memory_bytes,
        starter=starter,
    )
    sessions = settings.sessions
    store.sessions.bounds = SessionBounds(
        idle_us=sessions.idle_hours * HOUR,
        most_us=sessions.most_hours * HOUR,
        link_us=sessions.link_minutes * HOUR // 60,
        per_person=limits.sessions_per_person,
    )
    store.conversations.most_conversations = settings.owner.conversations
    store.conversations.most_messages = settings.owner.messages


def _prune_rule(keep: RetentionSettings) -> PruneRule | None:
    every = keep.every_seconds
    return None if every is None else PruneRule(keep.turns, keep.events, every)


def own_limits(settings: Settings) -> dict[str, Spending]:
    """The budgets of agents' own accounts, as carnet.toml has them (R32)."""
    limits: dict[str, Spending] = {}
    for name, agent in settings.agents.items():
        for end, most in (("", agent.spending_limit), (DAY, agent.daily_spending_limit)):
            if most is not None:
                bound = Spending(money=most, currency=settings.ledger.currency)
                limits[f"agent:{name}{end}"] = bound
    return limits


@asynccontextmanager
async def opened(
    settings: Settings, *, peers: Iterable[Peer] | None = None
) -> AsyncIterator[Store]:
    """The store for the length of a command, beside the gateway that may serve from it."""
    store = await open_from(settings, exclusive=False, peers=peers)
    try:
        yield store
    finally:
        await store.close()


async def migrate_from(settings: Settings) -> int | None:
    """Bring the store of a configuration to this version's layout; how many migrations it took.

    None for SQLite, which is brought up to date whenever it is opened.
    """
    if is_postgres(settings.store.url):
        return await migrate_store(settings.store.url, clock=SystemClock())
    await (await open_from(settings, exclusive=False)).close()
    return None


def file_peers(settings: Settings) -> list[Peer]:
    """The peers that carnet.toml names, with their tokens opened."""
    return [_peer(settings, domain, peer) for domain, peer in settings.peers.items()]


def _peer(settings: Settings, domain: str, peer: PeerSettings) -> Peer:
    key = f'peers."{domain}".token'
    return Peer(
        domain=domain,
        url=peer.url,
        may_forward=peer.may_forward_authorization,
        token=None if peer.token is None else resolve_secret(peer.token, settings.base, key=key),
        dialect=peer.dialect,
        signature_form=peer.signature_form,
        auth=peer.auth,
        credit=peer.credit,
        most_cost=peer.max_cost,
        from_file=True,
        log_names=peer.log_names,
        certificate=peer.certificate,
    )


def file_callers(settings: Settings) -> list[tuple[CallerHost, Secret | None]]:
    """The hosts that carnet.toml lists, each with its key."""
    return [_caller(settings, url, caller) for url, caller in settings.callers.items()]


def _caller(
    settings: Settings, url: str, caller: CallerSettings
) -> tuple[CallerHost, Secret | None]:
    key, where = caller.key, f'callers."{url}".key'
    host = CallerHost(
        url=url,
        certificate=caller.certificate,
        metadata=dict(caller.metadata),
        rate_calls=caller.calls_per_minute,
        has_key=key is not None,
        from_file=True,
    )
    return host, None if key is None else resolve_secret(key, settings.base, key=where)


def file_keys(settings: Settings) -> list[PinnedKey]:
    """The keys that carnet.toml pins for its peers."""
    return [
        PinnedKey(sender=f"agent://{domain}", public=_public(domain, key), from_file=True)
        for domain, peer in settings.peers.items()
        for key in peer.keys
    ]


def _public(domain: str, text: str) -> bytes:
    try:
        return read_public_key(text)
    except KeyInvalid as error:
        raise ConfigInvalid(key=f'peers."{domain}".keys', reason=str(error)) from None
