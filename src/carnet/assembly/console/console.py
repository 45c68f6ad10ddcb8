"""The console of one gateway: its pages, as rows of routes."""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from carnet.assembly.endpoints import Backend
from carnet.config import Settings
from carnet.console.api import Api
from carnet.console.assets import ROUTES as ASSETS
from carnet.console.assets import Assets
from carnet.console.live import Live
from carnet.console.operations.agents import ROUTES as AGENTS
from carnet.console.operations.agents import AgentPages
from carnet.console.operations.keys import ROUTES as KEYS
from carnet.console.operations.keys import KeyPages
from carnet.console.operations.ledger import ROUTES as LEDGER
from carnet.console.operations.ledger import LedgerPage
from carnet.console.operations.people import ROUTES as PEOPLE
from carnet.console.operations.people import ConsolePeople
from carnet.console.operations.playground import ROUTES as PLAYGROUND
from carnet.console.operations.playground import PlaygroundPages
from carnet.console.operations.settings import ROUTES as SETTINGS
from carnet.console.operations.settings import SettingPages
from carnet.console.operations.triggers import ROUTES as TRIGGERS
from carnet.console.operations.triggers import ConsoleTriggers
from carnet.console.overview import ROUTES as OVERVIEW
from carnet.console.overview import OverviewPage
from carnet.console.owner.chat import ROUTES as CHAT
from carnet.console.owner.chat import ChatPages
from carnet.console.owner.inbox import ROUTES as INBOX
from carnet.console.owner.inbox import InboxPages
from carnet.console.owner.memory import ROUTES as MEMORY
from carnet.console.owner.memory import ConsoleMemory
from carnet.console.refusal import RefusalPages
from carnet.console.runs.pages import ROUTES as RUNS
from carnet.console.runs.pages import RunPages
from carnet.console.shell import MenuItem, OwnHosts, Shell
from carnet.console.sign_in import ROUTES as SIGN_IN
from carnet.console.sign_in import SignInPages
from carnet.console.templates import Templates
from carnet.core.people.identity import Caller
from carnet.guards.caller.session import session_cookie
from carnet.http.exchange import RouteTable, Row, offered
from carnet.ports.world.clock import Clock
from carnet.stores.open import Store

# All that the console answers.
ROUTES: Final = (
    *(*ASSETS, *SIGN_IN, *OVERVIEW, *RUNS),
    *(*CHAT, *PLAYGROUND, *INBOX, *MEMORY),
    *(*AGENTS, *LEDGER, *KEYS, *TRIGGERS, *PEOPLE, *SETTINGS),
)

PLACES: Final = (
    MenuItem(title="Overview", path="/console/"),
    MenuItem(title="Runs", path="/console/runs", permission="run:read"),
    MenuItem(title="Chat", path="/console/chat", permission="run:read"),
    MenuItem(title="Playground", path="/console/playground", permission="run:cancel"),
    MenuItem(title="Inbox", path="/console/inbox", permission="run:read"),
    MenuItem(title="Memory", path="/console/memory", permission="memory:read"),
    MenuItem(title="Agents", path="/console/agents", permission="run:read"),
    MenuItem(title="Ledger", path="/console/ledger", permission="run:read"),
    MenuItem(title="Keys", path="/console/keys", permission="admin:keys"),
    MenuItem(title="Triggers", path="/console/triggers", permission="triggers"),
    MenuItem(title="People", path="/console/people", permission="admin:people"),
    MenuItem(title="Settings", path="/console/settings", permission="admin:config"),
)


class Console(Struct, frozen=True, kw_only=True, eq=False):
    """The pages, what they ask, and the words of their refusals."""

    rows: list[Row]
    api: Api
    refusals: RefusalPages

    def connect(self, routes: RouteTable) -> RouteTable:
        """Have the pages ask these routes, which they are among."""
        self.api.connect(routes)
        return routes


def build_console(
    settings: Settings, store: Store, backend: Backend, clock: Clock, others: Iterable[str] = ()
) -> Console:
    """The console of one gateway; `others` are further names that it is reached by."""
    gateway, api, assets = settings.gateway, Api(), Assets()
    templates = Templates(assets.at)
    hosts = OwnHosts(gateway.public_url, gateway.domain, gateway.host, *others)
    shell = Shell(
        api,
        templates,
        domain=gateway.domain,
        places=PLACES,
        hosts=hosts,
        readers=backend.concurrency.readers,
    )
    live = Live(backend.concurrency, _has_left(store), clock)
    runs = RunPages(shell, live, store.watch, clock, url=gateway.public_url)
    rows = [
        *offered(ASSETS, assets),
        *shell.offered(SIGN_IN, SignInPages(shell)),
        *shell.offered(OVERVIEW, OverviewPage(shell, clock)),
        *shell.offered(RUNS, runs),
        *shell.offered(CHAT, ChatPages(shell)),
        *shell.offered(PLAYGROUND, PlaygroundPages(shell, max_depth=gateway.max_depth)),
        *shell.offered(INBOX, InboxPages(shell)),
        *shell.offered(MEMORY, ConsoleMemory(shell)),
        *shell.offered(AGENTS, AgentPages(shell, url=gateway.public_url)),
        *shell.offered(LEDGER, LedgerPage(shell, clock)),
        *shell.offered(KEYS, KeyPages(shell)),
        *shell.offered(TRIGGERS, ConsoleTriggers(shell)),
        *shell.offered(PEOPLE, ConsolePeople(shell)),
        *shell.offered(SETTINGS, SettingPages(shell)),
    ]
    refusals = RefusalPages(templates, session_cookie(gateway.public_url))
    return Console(rows=rows, api=api, refusals=refusals)


def _has_left(store: Store) -> Callable[[Caller], bool]:
    """Whether who watches may no longer, or may no longer what she could when she began."""
    ended = store.revocations
    return lambda caller: ended.has_left(caller) or ended.has_other_rights(caller)
