"""Talking to agents: conversations, found and read; what is said goes to the API itself.

Law 1. The browser sends what somebody says to `POST /message`, with the session and its csrf token,
       and draws what comes back as text. A page is what the API has kept of it.
Law 2. What goes on is read along: an answer that is being given when a page is opened, or that goes
       on when somebody has said what it waited for, there or elsewhere.
Law 3. Stop ends the run of the answer, all that was called in it too, also elsewhere.
"""

from contextlib import suppress
from typing import Any, Final

from carnet.console.api import PageAsker, segment
from carnet.console.forms import read_form
from carnet.console.owner.thread import thread
from carnet.console.shell import Shell, action_row, lead, page_row, without_twin
from carnet.core.people.identity import Caller
from carnet.errors import RunNotFound
from carnet.http.exchange import Exchange
from carnet.wire.grammar.query import read_query, read_word

Page = dict[str, Any]

HOME: Final = "/console/chat"
NEWEST: Final = 50


class ChatPages:
    """Conversations, and what is said in them."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/chat: those there are, and room for a new one."""
        page = await self._beside(exchange, caller)
        await self._shell.show(exchange, caller, "owner/chat.html", page)

    async def show(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /console/chat/{conversation}."""
        api, name = self._shell.api.of(exchange), without_twin(exchange, name)
        page = await self._beside(exchange, caller) | await self._read(exchange, api, name)
        page["title"] = page["conversation"]["title"] or "Conversation"
        await self._shell.show(exchange, caller, "owner/chat.html", page)

    async def part(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /console/chat/{conversation}/thread: what was said, by itself."""
        page = await self._read(exchange, self._shell.api.of(exchange), name)
        page["may"] = _may(caller)
        await self._shell.write(exchange, caller, "owner/thread.html", page)

    async def _beside(self, exchange: Exchange, caller: Caller) -> Page:
        """What stands beside every conversation."""
        api = self._shell.api.of(exchange)
        query = read_query(exchange.query.decode("latin-1"))
        asked = {
            name: query[name][0] for name in ("search", "archived") if query.get(name, [""])[0]
        }
        found = await api.get("/conversations", {**asked, "limit": NEWEST})
        front, models = await api.get("/owner"), await api.get("/v1/models")
        return {
            "title": "Chat",
            "search": asked.get("search", ""),
            "conversations": found["conversations"],
            "agents": [model["id"] for model in models["data"]],
            "agent": front["agent"],
            "conversation": None,
            "thread": [],
            "earlier": None,
            "goes_on": False,
            "may": _may(caller),
        }

    async def _read(self, exchange: Exchange, api: PageAsker, name: str) -> Page:
        before = read_word(read_query(exchange.query.decode("latin-1")), "before")
        asked = {"limit": NEWEST} | ({} if before is None else {"before": before})
        found = await api.get(f"/conversations/{segment(name)}", asked)
        approvals: list[Page] = []
        if any(message["role"] == "assistant" for message in found["messages"]):
            page = await api.get("/approvals", {"status": "all", "limit": NEWEST})
            approvals = page["approvals"]
        return {
            "conversation": {each: found[each] for each in found if each != "messages"},
            "thread": thread(found["messages"], approvals, self._shell.domain),
            "earlier": found["next"],
            "goes_on": before is None and await _goes_on(api, found),
        }

    # ------------------------------------------------------------------ changes

    async def stop(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /console/chat/{conversation}/stop: the answer, and all that it has called."""
        api, at = self._shell.api.of(exchange), f"/conversations/{segment(name)}"
        newest = (await api.get(at, {"limit": 8}))["messages"]
        run = next((each["run"] for each in newest if each.get("run")), None)
        if run is not None:
            with suppress(RunNotFound):  # it has not begun
                await api.ask("POST", f"/runs/{segment(run)}/cancel")
        await api.ask("POST", f"{at}/stop")
        await self._shell.write(
            exchange, caller, "notice.html", {"text": "The answer is being ended."}
        )

    async def rename(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /console/chat/{conversation}/change: its title, or whether it is put away."""
        del caller
        api = self._shell.api.of(exchange)
        form = await read_form(exchange)
        change: Page = {}
        if form.text("title"):
            change["title"] = form.text("title")
        if form.text("archived"):
            change["archived"] = form.text("archived") == "true"
        await api.ask("PATCH", f"/conversations/{segment(name)}", change)
        await lead(exchange, f"{HOME}/{segment(name)}")

    async def delete(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /console/chat/{conversation}/delete."""
        del caller
        await self._shell.api.of(exchange).ask("DELETE", f"/conversations/{segment(name)}")
        await lead(exchange, HOME)


async def _goes_on(api: PageAsker, found: Page) -> bool:
    """Whether the last answer is being given, also by itself: somebody has said what it waited for.

    Then it holds up nothing else in the conversation, and its run alone tells of it.
    """
    newest = next(iter(found["messages"]), None)
    if found["answering"] or newest is None or not newest.get("waits"):
        return bool(found["answering"])
    with suppress(RunNotFound):
        run = await api.get(f"/runs/{segment(newest['run'])}")
        return bool(run["state"] != "waiting")
    return False


def _may(caller: Caller) -> Page:
    return {"change": caller.may("run:cancel"), "pay": caller.may("pay")}


_READ: Final = {"permission": "run:read"}
_CHANGE: Final = {"permission": "run:cancel"}
_ONE: Final = f"{HOME}/{{conversation}}"
ROUTES: Final = (
    *page_row(HOME, ChatPages.list, "Conversations", **_READ),
    *page_row(_ONE, ChatPages.show, "One conversation", **_READ),
    action_row("GET", f"{_ONE}/thread", ChatPages.part, "What was said in it", **_READ),
    action_row("POST", f"{_ONE}/stop", ChatPages.stop, "End its answer", **_CHANGE),
    action_row("POST", f"{_ONE}/change", ChatPages.rename, "Rename it or put it away", **_CHANGE),
    action_row("POST", f"{_ONE}/delete", ChatPages.delete, "Delete it", **_CHANGE),
)
