"""Talking to agents: conversations, found and read; what is said goes to the API itself.

Law 1. The browser sends what somebody says to `POST /message`, with the session and its csrf token,
       and draws what comes back as text. A page is what the API has kept of it.
Law 2. What goes on is read along: an answer that is being given when a page is opened, or that goes
       on when somebody has said what it waited for, there or elsewhere. The newest that waits is
       watched by the mark of its run, which is looked at before what is drawn: what changes after
       that is told to the page, however late it begins to watch.
Law 3. Stop ends the run of the answer, all that was called in it too, also elsewhere.
"""

from contextlib import suppress
from typing import Any, Final

from carnet.console.api import PageAsker, segment
from carnet.console.forms import read_form
from carnet.console.owner.thread import thread
from carnet.console.runs.hops import hops_of, mark_of
from carnet.console.shell import Shell, action_row, lead, page_row, without_twin
from carnet.core.people.identity import Caller
from carnet.errors import RunNotFound
from carnet.http.exchange import Exchange
from carnet.wire.grammar.query import read_query, read_word

Page = dict[str, Any]

HOME: Final = "/console/chat"
NEWEST: Final = 50
UNKNOWN: Final = "-"  # a mark that no run has


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
            "watched": None,
            "is_newest": False,
            "may": _may(caller),
        }

    async def _read(self, exchange: Exchange, api: PageAsker, name: str) -> Page:
        before = read_word(read_query(exchange.query.decode("latin-1")), "before")
        asked = {"limit": NEWEST} | ({} if before is None else {"before": before})
        at = f"/conversations/{segment(name)}"
        found = await api.get(at, asked)
        run = _run_that_waits(found) if before is None else None
        looked = None
        if run is not None:
            looked = await self._look(api, run)
            found = await api.get(at, asked)  # none of it is older than that look
        approvals: list[Page] = []
        if any(message["role"] == "assistant" for message in found["messages"]):
            page = await api.get("/approvals", {"status": "all", "limit": NEWEST})
            approvals = page["approvals"]
        return {
            "conversation": {each: found[each] for each in found if each != "messages"},
            "thread": thread(found["messages"], approvals, self._shell.domain),
            "earlier": found["next"],
            "goes_on": before is None and _goes_on(found, looked),
            "watched": None if before is not None else _watched(found, looked),
            "is_newest": before is None,
        }

    async def _look(self, api: PageAsker, run: str) -> Page | None:
        """How a run stands; None where it is not there."""
        with suppress(RunNotFound):
            found = await api.get(f"/runs/{segment(run)}")
            mark = mark_of(found, hops_of(found, self._shell.domain))
            return {"run": run, "state": found["state"], "mark": mark}
        return None

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


def _run_that_waits(found: Page) -> str | None:
    """The run of the newest answer that waits."""
    runs = (each.get("run") for each in found["messages"] if each.get("waits"))
    return next(filter(None, runs), None)


def _goes_on(found: Page, looked: Page | None) -> bool:
    """Whether the last answer is being given, also by itself: somebody has said what it waited for.

    Then it holds up nothing else in the conversation, and its run alone tells of it.
    """
    newest = next(iter(found["messages"]), None)
    if found["answering"] or newest is None or not newest.get("waits"):
        return bool(found["answering"])
    return looked is not None and newest["run"] == looked["run"] and looked["state"] != "waiting"


def _watched(found: Page, looked: Page | None) -> Page | None:
    """The run to watch, and its mark before what is drawn was read."""
    run = _run_that_waits(found)
    if run is None:
        return None
    is_same = looked is not None and looked["run"] == run
    return {"run": run, "mark": looked["mark"] if looked and is_same else UNKNOWN}


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
