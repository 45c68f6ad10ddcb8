"""What is to be said of a gateway's own parts: `carnet doctor` prints it, and the console shows it.

Law 1. Each finding says what is so, what it means and how to mend it.
Law 2. Nobody else is called: what answers elsewhere is looked at by the command alone.
"""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, Literal, cast

from msgspec import Struct, to_builtins

from carnet.assembly.doctor.callers import doubts
from carnet.config import Settings, secret_path
from carnet.core.people.address import skeleton
from carnet.errors import CarnetError

if TYPE_CHECKING:
    from carnet.stores.open import Store

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
MOST_DEAD: Final = 100  # deliveries that are counted


class Finding(Struct, frozen=True):
    """One line of the doctor."""

    status: Literal["ok", "warn", "fail"]
    what: str
    message: str
    fix: str = ""

    def page(self) -> dict[str, str]:
        """The finding as JSON has it."""
        return cast("dict[str, str]", to_builtins(self))


async def examine_own(settings: Settings, store: "Store") -> list[Finding]:
    """What a gateway that runs finds of itself, in the order things depend on one another."""
    findings = of_settings(settings)
    own = secret_path(settings.store.secrets, settings.base)
    if own.exists():
        findings.append(of_mode(own))
    if not settings.agents:
        fix = f"Write a section [agents.NAME] into {settings.source}."
        findings.append(Finding("warn", "agents", "No agent is configured.", fix))
    return findings + await of_store(settings, store)


def of_settings(settings: Settings) -> list[Finding]:
    """What the configuration says that may not be meant."""
    return [*_proxies(settings), *_address(settings)]


async def of_store(settings: Settings, store: "Store") -> list[Finding]:
    """Whether the store works, and what is in it that somebody should look at."""
    findings = [await _writable(settings, store), await _key(store), await _deliveries(store)]
    people = await store.people.list()
    findings += _namesakes(settings, [one.name for one in people if one.ended is None])
    hosts = await store.callers.list()
    return findings + [Finding("warn", "callers", *doubt) for doubt in doubts(settings, hosts)]


def _proxies(settings: Settings) -> Iterator[Finding]:
    for network in settings.gateway.trusted_proxies:
        if network.endswith("/0"):
            text = f"trusted_proxies holds {network}: every caller may say that it is another one."
            yield Finding("warn", "proxies", text, "Name the addresses of your proxies alone.")


def _address(settings: Settings) -> Iterator[Finding]:
    if settings.needs_public_url:
        at = settings.gateway
        text = f"It listens on {at.host}, and its cards say {at.public_url}: this machine alone."
        fix = "Write where others reach it: [gateway] public_url"
        yield Finding("warn", "address", text, fix)


def of_mode(path: Path) -> Finding:
    """Whether a secret can be read by others."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & OTHERS:
        text = f"{path} can be read by other users of this machine (mode {mode:03o})."
        return Finding("fail", "secrets", text, f"Close it: chmod 600 {quote(str(path))}")
    return Finding("ok", "secrets", f"{path} is readable by its owner alone.")


def _namesakes(settings: Settings, people: Sequence[str]) -> Iterator[Finding]:
    """Agents that are called like a person: their handles are one (A57)."""
    seen = {skeleton(name): name for name in people}
    for agent in settings.agents:
        name = seen.get(skeleton(agent))
        if name is not None:
            handle = f"@{name}@{settings.gateway.domain}"
            text = f"The agent {agent} is called like the person {name}, who is {handle}."
            yield Finding("warn", "people", text, "Give the agent another name.")


async def _writable(settings: Settings, store: "Store") -> Finding:
    try:
        await store.probe()
    except CarnetError as error:
        text = f"{settings.store.url} cannot be written ({error.detail})."
        fix = (
            "Check the disk and the rights of the folder."
            if store.cluster is None
            else "Give its role the rights that docs/operations/postgresql.md names."
        )
        return Finding("fail", "store", text, fix)
    return Finding("ok", "store", f"{settings.store.url} can be written.")


async def _key(store: "Store") -> Finding:
    """Whether there is a key to sign with, and whether it can be opened."""
    known = await store.keys.list()
    try:
        return Finding("ok", "keys", f"We sign with {store.keys.signer().kid}.")
    except CarnetError:
        if any(key.state == "active" for key in known):
            text = "The signing key was sealed with another secrets file; a gateway will not start."
            return Finding("fail", "keys", text, "Put it back, or: carnet keys rotate")
        return Finding("warn", "keys", "There is no signing key yet.", "Make it: carnet keys new")


async def _deliveries(store: "Store") -> Finding:
    """Whether somebody was to be told something and never was."""
    dead = len(await store.outbox.list(state="dead", limit=MOST_DEAD + 1))
    if not dead:
        return Finding("ok", "outbox", "No delivery is dead.")
    many = f"{dead} deliveries are" if dead > 1 else "1 delivery is"
    text = f"{many if dead <= MOST_DEAD else f'More than {MOST_DEAD} deliveries are'} dead."
    fix = "See why, then send them again: carnet outbox list --state dead"
    return Finding("warn", "outbox", text, fix)
