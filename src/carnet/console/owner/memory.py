"""What agents keep: read, changed, and brought back as it was.

Law. A file is written over the version that was shown: what an agent has written meanwhile is not
     lost by it.
"""

from typing import Any, Final

from carnet.console.api import PageAsker, segment
from carnet.console.forms import SentForm, read_form
from carnet.console.shell import Shell, action_row, lead, page_row
from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest
from carnet.http.exchange import Exchange
from carnet.wire.grammar.query import is_number, read_query

Page = dict[str, Any]

HOME: Final = "/console/memory"


class ConsoleMemory:
    """The memory of whoever looks at it."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def show(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/memory?agent=...&path=...&version=..."""
        api = self._shell.api.of(exchange)
        query = read_query(exchange.query.decode("latin-1"))
        agent, path, search, version = (
            query.get(name, [""])[0] for name in ("agent", "path", "search", "version")
        )
        page: Page = {
            "title": "Memory",
            "folders": (await api.get("/memory"))["memory"],
            "agent": agent,
            "files": [],
            "hits": None,
            "search": search,
            "file": None,
            "versions": [],
            "may_write": caller.may("memory:write"),
        }
        if agent:
            at = f"/memory/{segment(agent)}"
            page["files"] = (await api.get(at))["files"]
            if search:
                page["hits"] = (await api.get(at, {"search": search}))["hits"]
            if path:
                page |= await _file(api, f"{at}/{segment(path)}", version)
        await self._shell.show(exchange, caller, "owner/memory.html", page)

    async def write(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/memory/write."""
        del caller
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        page: Page = {"content": form.whole("content")}
        if is_number(form.text("version")):
            page["version"] = int(form.text("version"))
        await api.ask("PUT", _at(form), page)
        await _back(exchange, form)

    async def undo(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/memory/undo: as it was before, or in the version that is named."""
        del caller
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        version = form.text("version")
        await api.ask("POST", f"{_at(form)}/undo", query={"version": version} if version else None)
        await _back(exchange, form)

    async def delete(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/memory/delete: a file with all its versions."""
        del caller
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        await api.ask("DELETE", _at(form))
        await lead(exchange, f"{HOME}?agent={segment(form.text('agent'))}")


async def _file(api: PageAsker, at: str, version: str) -> Page:
    asked = {"version": version} if version else None
    kept = (await api.get(f"{at}/versions"))["versions"]
    return {"file": await api.get(at, asked), "versions": kept}


def _at(form: SentForm) -> str:
    agent, path = form.text("agent"), form.text("path")
    if not agent or not path:
        raise InvalidRequest("path", "must be there, beside an agent")
    return f"/memory/{segment(agent)}/{segment(path)}"


async def _back(exchange: Exchange, form: SentForm) -> None:
    agent, path = segment(form.text("agent")), segment(form.text("path"))
    await lead(exchange, f"{HOME}?agent={agent}&path={path}")


_WRITE: Final = {"permission": "memory:write"}
ROUTES: Final = (
    *page_row(HOME, ConsoleMemory.show, "What agents keep", permission="memory:read"),
    action_row("POST", f"{HOME}/write", ConsoleMemory.write, "Write a file", **_WRITE),
    action_row("POST", f"{HOME}/undo", ConsoleMemory.undo, "Bring a version back", **_WRITE),
    action_row("POST", f"{HOME}/delete", ConsoleMemory.delete, "Delete a file", **_WRITE),
)
