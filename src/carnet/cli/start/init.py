"""What `carnet init` makes: a configuration that works, an agent, keys, a store, `owner`, a token.

Law 1. Nothing that works is overwritten; what is there is kept and said so. Only a starter token
       that cannot be valid any more, because the keys it was made with are gone, is renewed.
Law 2. Keys and tokens are readable by their owner alone from the moment they exist, and nothing is
       writable by others, whatever the umask.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from carnet.cli.scopes import PLAIN
from carnet.config import Settings, load, secret_path
from carnet.core.people.address import check_domain
from carnet.errors import AddressInvalid, ConfigInvalid, UsageInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carnet.core.people.identity import Secret, Token
    from carnet.stores.open import Store

OWNER_ONLY: Final = 0o600
OWNER_FOLDER: Final = 0o700
OTHERS_WRITE: Final = 0o022
STARTER: Final = "starter"
ECHO: Final = "agents:echo"
VOID: Final = (
    "The keys are new, so every token made before is void, and so are the credentials of peers "
    "that 'peers add' stored. Make them again; 'carnet tokens list' names them. Calls are signed "
    "with a new key: who has pinned the old one needs it ('carnet keys list')."
)

CONFIGURATION: Final = """\
# The configuration of a Carnet gateway. Every value is optional and shown with what it does;
# 'carnet config show' prints all of them with where each came from. Any of them can be set for
# one process by the environment: CARNET__GATEWAY__PORT=8800 carnet serve

[gateway]
host = "127.0.0.1"                 # "0.0.0.0" listens on every address of this machine
port = {port}
domain = "{domain}"{space}# this organisation: others call its agents as @echo@{domain}
# public_url = "https://gw.{domain}"   # where others reach it, if not at http://host:port
max_depth = 4                      # a chain of agents calling agents is refused at this depth

[store]
url = "sqlite:var/carnet.db"
secrets = {{file = "var/secrets.key"}}

[ledger]
currency = "credits"

[retention]                        # days
turns = 30
events = 30
every = "1h"                       # how often it forgets what is older; or never

# An agent is an async function beside this file: agents.py, function echo.
[agents.echo]
kind = "python"
target = "agents:echo"
default = true                     # answers when no agent is named
trust = "public"                   # which signed callers may ask it: public is all of them
# price = "0.0002"                 # a call, in the ledger's currency

# A model behind any OpenAI-compatible endpoint. Secrets are named, never written here. Run, depth
# and payer do not travel to a model; for an agent of another gateway use [peers] below.
# [agents.writer]
# kind = "openai"
# url = "https://api.example/v1"
# model = "some-model"
# api_key = {{env = "WRITER_API_KEY"}}

# Another organisation. 'carnet peers add' does the same without this file.
# [peers."globex.example"]
# url = "https://gw.globex.example"
# token = {{file = "var/globex.token"}}   # they make it: carnet tokens create NAME --peer {domain}
# may_forward_authorization = true       # payers' credentials may travel there, and come from there
# credit = "100"                         # what it may owe us
"""

AGENTS: Final = '''\
"""The agents of this gateway. carnet.toml names them: target = "agents:echo"."""

import carnet


@carnet.agent("echo")
async def echo(visit):
    """Answer with what was said. `visit.text` is the last thing the user said."""
    return visit.text


# An agent may call others; run, depth, payer and deadline travel along:
#
# @carnet.agent("researcher")
# async def researcher(visit):
#     async for event in visit.peer("@critic@globex.example")("Is this true? " + visit.text):
#         yield event
'''


class Started(Struct, kw_only=True):
    """What was made and what was there already, in order."""

    config: Path
    created: list[str] = []
    kept: list[str] = []
    warnings: list[str] = []

    def note(self, path: Path, *, made: bool) -> None:
        """Remember one file."""
        (self.created if made else self.kept).append(_name(path, self.config.parent))


async def start_in(folder: Path, *, domain: str, port: int) -> tuple[Started, Settings]:
    """Make what is missing in a folder, and give the settings it now has."""
    _check(domain)
    with _kept_from_others():
        return await _make(folder, domain, port)


async def _make(folder: Path, domain: str, port: int) -> tuple[Started, Settings]:
    _make_folder(folder)
    started = Started(config=folder / "carnet.toml")
    space = " " * max(1, 24 - len(domain))
    text = CONFIGURATION.format(port=port, domain=domain, space=space)
    started.note(started.config, made=_write(started.config, text))
    settings = load(started.config, os.environ)
    if any(agent.target == ECHO for agent in settings.agents.values()):
        started.note(folder / "agents.py", made=_write(folder / "agents.py", AGENTS))
    are_new = _make_secrets(started, settings)
    await _make_token(started, settings, keys_are_new=are_new)
    return started, settings


@contextmanager
def _kept_from_others() -> Iterator[None]:
    """What is made inside can be written by its owner alone."""
    before = os.umask(OTHERS_WRITE)
    os.umask(before | OTHERS_WRITE)
    try:
        yield
    finally:
        os.umask(before)


def _check(domain: str) -> None:
    try:
        check_domain(domain)
    except AddressInvalid:
        raise UsageInvalid(
            reason=f"--domain {domain} is no lower-case DNS name of two or more labels.",
            fix="Give one such as acme.example; carnet.localhost will do on one machine.",
        ) from None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "var").mkdir(mode=OWNER_FOLDER, exist_ok=True)
    except OSError as error:
        raise UsageInvalid(
            reason=f"{folder} cannot be used: {error.strerror}.",
            fix="Name a folder that you may write to: carnet init DIR",
        ) from None


def _write(path: Path, text: str, mode: int = 0o644) -> bool:
    """Write a new file; False if there is one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return True


def _make_secrets(started: Started, settings: Settings) -> bool:
    """Make the keys; False if there are some."""
    from carnet.stores.secrets import secrets_file

    path = secret_path(settings.store.secrets, settings.base)
    if path.exists():
        started.note(path, made=False)
        return False
    path.parent.mkdir(mode=OWNER_FOLDER, parents=True, exist_ok=True)
    secrets_file.create(path)
    started.note(path, made=True)
    return True


async def _make_token(started: Started, settings: Settings, *, keys_are_new: bool) -> None:
    """Make the starter token, and again if its file or the keys behind it were lost."""
    from carnet.assembly.store import opened

    path = settings.base / "var" / "starter.token"
    async with opened(settings, peers=()) as store:
        await _make_key(store)
        owner = await _make_owner(store, settings)
        known = await store.tokens.list()
        if keys_are_new and known:
            started.warnings.append(VOID)
        elif path.exists():
            started.note(path, made=False)
            return
        secret = await _create_token(store, known, owner)
    if secret is not None:
        path.unlink(missing_ok=True)
        started.note(path, made=_write(path, secret.reveal() + "\n", OWNER_ONLY))


async def _make_key(store: "Store") -> None:
    """Make the first signing key, and another one if the secrets that sealed it were lost."""
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    try:
        await store.keys.ensure(now)
    except ConfigInvalid:
        await store.keys.rotate(now, overlap_seconds=0)


async def _create_token(
    store: "Store", known: "Sequence[Token]", owner: int | None
) -> "Secret | None":
    """A plain token that may use tools, in place of a lost one; none if somebody ended it."""
    from carnet.core.people.permissions import EVERY_TOOL
    from carnet.ports.trust.trust import NewToken
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    starters = [token for token in known if token.name == STARTER]
    if starters and not any(token.is_live(now) for token in starters):
        return None
    await store.tokens.revoke(STARTER, now)
    made = NewToken(name=STARTER, scopes=PLAIN | {EVERY_TOOL}, person=owner)
    _, secret = await store.tokens.create(made, now)
    return secret


async def _make_owner(store: "Store", settings: Settings) -> int | None:
    """The first person, if there was nobody before; her number, unless she has ended."""
    from carnet.core.people.permissions import ADMIN
    from carnet.core.people.person import OWNER
    from carnet.ports.trust.people import NewPerson
    from carnet.runtime.system import SystemClock

    if not await store.people.list() and OWNER not in settings.agents:
        now = SystemClock().wall_us()
        await store.people.add(NewPerson(name=OWNER, roles=(ADMIN,)), now)
    owner = store.people.find(OWNER)
    return None if owner is None else owner.n


def _name(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
