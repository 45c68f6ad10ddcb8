"""People: who is known here, what they may do, and the end of it; and one's own sessions."""

from typing import Any, Final

from carnet.console.api import segment
from carnet.console.forms import SentForm, read_form
from carnet.console.shell import Shell, action_row, lead, page_row, without_twin
from carnet.core.people.identity import Caller
from carnet.core.people.permissions import NAMES, ROLES
from carnet.errors import InvalidRequest
from carnet.http.exchange import Exchange
from carnet.wire.grammar.query import read_query

Page = dict[str, Any]

HOME: Final = "/console/people"
SHOWN: Final = 100


class ConsolePeople:
    """Everybody that is known."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/people."""
        query = read_query(exchange.query.decode("latin-1"))
        asked = {name: query[name][0] for name in ("after", "all") if query.get(name, [""])[0]}
        api = self._shell.api.of(exchange)
        found = await api.get("/people", {**asked, "limit": SHOWN})
        page = {"title": "People", "asked": asked, "roles": list(ROLES), **found}
        await self._shell.show(exchange, caller, "operations/people.html", page)

    async def show(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /console/people/{person}: what she may do, and what is hers."""
        name = without_twin(exchange, name)
        found = await self._shell.api.get(exchange, f"/people/{segment(name)}")
        page = {"title": found["name"], "person": found, "roles": list(ROLES), "names": NAMES}
        await self._shell.show(exchange, caller, "operations/person.html", page)

    async def add(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/people."""
        del caller
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        if not form.all("role"):  # the API would take its default, which nobody has ticked here
            raise InvalidRequest("role", f"must be one or more of {', '.join(ROLES)}")
        new: Page = {"name": form.text("name"), "roles": form.all("role")}
        if form.text("display"):
            new["display"] = form.text("display")
        added = (await api.ask("POST", "/people", new)).page
        await lead(exchange, f"{HOME}/{segment(added['name'])}")

    async def set_roles(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /console/people/{person}/roles."""
        del caller
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        await api.ask("POST", f"/people/{segment(name)}/roles", _granted(form))
        await lead(exchange, f"{HOME}/{segment(name)}")

    async def end(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /console/people/{person}/end."""
        del caller
        await self._shell.api.of(exchange).ask("POST", f"/people/{segment(name)}/end")
        await lead(exchange, HOME)


def _granted(form: SentForm) -> Page:
    permissions = form.text("permissions").split()
    return {"roles": form.all("role"), "permissions": permissions}


_MANAGES: Final = {"permission": "admin:people"}
_ONE: Final = f"{HOME}/{{person}}"
ROUTES: Final = (
    *page_row(HOME, ConsolePeople.list, "People", **_MANAGES),
    *page_row(_ONE, ConsolePeople.show, "One of them", **_MANAGES),
    action_row("POST", HOME, ConsolePeople.add, "Add somebody", **_MANAGES),
    action_row("POST", f"{_ONE}/roles", ConsolePeople.set_roles, "What she may do", **_MANAGES),
    action_row("POST", f"{_ONE}/end", ConsolePeople.end, "End somebody", **_MANAGES),
)
