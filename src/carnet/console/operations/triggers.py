"""Hooks and schedules: what begins by itself, when it last did, and at the press of a button now.

Law. A secret is shown once, in the answer that makes it, and is on no page.
"""

from typing import Any, Final

from carnet.console.api import segment
from carnet.console.forms import SentForm, read_form
from carnet.console.shell import Shell, action_row, lead, page_row
from carnet.core.people.identity import Caller
from carnet.core.triggers.ticks import MISSED
from carnet.errors import RouteNotFound
from carnet.http.exchange import Exchange
from carnet.wire.hooks.scheme import SCHEMES

Page = dict[str, Any]

HOME: Final = "/console/triggers"
KINDS: Final = {"schedules": "schedule", "hooks": "hook"}
ACTIONS: Final = frozenset({"pause", "resume", "fire", "delete"})
_NEW: Final = {
    "schedules": ("name", "agent", "cron", "zone", "missed", "message"),
    "hooks": ("name", "agent", "scheme", "template"),
}


class ConsoleTriggers:
    """What calls agents for somebody while she is away."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/triggers."""
        api = self._shell.api.of(exchange)
        models = await api.get("/v1/models")
        page = {
            "title": "Triggers",
            "schedules": (await api.get("/schedules"))["schedules"],
            "hooks": (await api.get("/hooks"))["hooks"],
            "agents": [model["id"] for model in models["data"]],
            "missed": list(MISSED),
            "schemes": list(SCHEMES),
        }
        await self._shell.show(exchange, caller, "operations/triggers.html", page)

    async def card(self, exchange: Exchange, caller: Caller, kind: str, name: str) -> None:
        """GET /console/triggers/{kind}/{trigger}/card: when it is due, and what became of it."""
        found = await self._shell.api.get(exchange, _at(kind, name))
        await self._tell(exchange, caller, kind, found)

    async def add(self, exchange: Exchange, caller: Caller, kind: str) -> None:
        """POST /console/triggers/{kind}/add; the secret of a hook is in the answer, this once."""
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        made = (await api.ask("POST", f"/{_known(kind)}", _new(kind, form))).page
        if "secret" not in made:
            await lead(exchange, HOME)
        else:
            await self._tell(exchange, caller, kind, made)

    async def act(
        self, exchange: Exchange, caller: Caller, kind: str, name: str, action: str
    ) -> None:
        """POST /console/triggers/{kind}/{trigger}/{action}."""
        api, at = self._shell.api.of(exchange), _at(kind, name)
        if action == "rotate" and kind == "hooks":
            await self._tell(
                exchange, caller, kind, (await api.ask("POST", f"{at}/rotate", {})).page
            )
            return
        if action not in ACTIONS:
            raise RouteNotFound
        event = None
        if action == "fire" and kind == "hooks":
            event = (await read_form(exchange)).page("event") or {}
        await api.ask("POST", f"{at}/{action}", event)
        await lead(exchange, HOME)

    async def _tell(self, exchange: Exchange, caller: Caller, kind: str, found: Page) -> None:
        usual: Page = {"secret": None, "coming": [], "recent": [], "next": None}
        page = {"kind": kind, "noun": KINDS[kind], "trigger": usual | found}
        await self._shell.write(exchange, caller, "operations/trigger.html", page)


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise RouteNotFound
    return kind


def _at(kind: str, name: str) -> str:
    return f"/{_known(kind)}/{segment(name)}"


def _new(kind: str, form: SentForm) -> Page:
    filled = {name: form.whole(name).strip() for name in _NEW[kind]}
    return {name: value for name, value in filled.items() if value}


_MAY: Final = {"permission": "triggers"}
_ONE: Final = f"{HOME}/{{kind}}/{{trigger}}"
ROUTES: Final = (
    *page_row(HOME, ConsoleTriggers.list, "Hooks and schedules", **_MAY),
    action_row("GET", f"{_ONE}/card", ConsoleTriggers.card, "One of them", **_MAY),
    action_row("POST", f"{HOME}/{{kind}}/add", ConsoleTriggers.add, "Make one", **_MAY),
    action_row("POST", f"{_ONE}/{{action}}", ConsoleTriggers.act, "Pause, fire, delete it", **_MAY),
)
