"""What agents ask: listed, answered one by one, or declined together.

Law 1. Who may answer what is the API's to say (R45); a card shows what she can say, and no more.
Law 2. Arguments that were changed are sent as what the tool is to run with; unchanged ones are not.
       Those that are emptied are refused: what was asked for is not what she has approved.
"""

from typing import Any, Final

from carnet.console.api import segment
from carnet.console.forms import SentForm, fields_of, read_fields, read_form
from carnet.console.shell import Shell, action_row, lead, page_row
from carnet.core.people.identity import Caller
from carnet.errors import CarnetError, InvalidRequest
from carnet.http.exchange import Exchange
from carnet.wire.grammar.query import read_query

Page = dict[str, Any]

HOME: Final = "/console/inbox"
SHOWN: Final = 50
STATUSES: Final = ("open", "all")
_WITHOUT: Final = "without"
# What a question has that is answered, or is paid elsewhere.
_NO_ANSWER: Final[Page] = {"outcome": None, "resolver": None, "resolved": None, "note": None}
_OUTCOMES: Final = {"accepted": "accepted", "rejected": "rejected", _WITHOUT: "rejected"}


class InboxPages:
    """What waits for an answer."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/inbox."""
        page = await self._listed(exchange)
        rules = (await self._shell.api.get(exchange, "/rules"))["rules"]
        page |= {"title": "Inbox", "rules": rules, "statuses": STATUSES, "notes": []}
        await self._shell.show(exchange, caller, "owner/inbox.html", page)

    async def rows(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/inbox/rows: the list by itself."""
        page = await self._listed(exchange)
        await self._shell.write(exchange, caller, "owner/inbox_rows.html", page | {"notes": []})

    async def _listed(self, exchange: Exchange) -> Page:
        query = read_query(exchange.query.decode("latin-1"))
        asked = {name: query[name][0] for name in ("status", "before") if query.get(name, [""])[0]}
        found = await self._shell.api.get(exchange, "/approvals", {**asked, "limit": SHOWN})
        return {
            "status": asked.get("status", "open"),
            "asks": [with_fields(each) for each in found["approvals"]],
            "next": found["next"],
        }

    async def card(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /console/inbox/{ask}/card: one question, and what can be answered."""
        found = await self._shell.api.get(exchange, f"/approvals/{segment(name)}")
        is_drawn = exchange.query == b"drawer"
        page = {"ask": with_fields(found), "is_drawer": is_drawn, "is_decided": False}
        await self._shell.write(exchange, caller, "owner/ask_card.html", page)

    async def decide(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /console/inbox/{ask}/decide."""
        api, at = self._shell.api.of(exchange), f"/approvals/{segment(name)}"
        form = await read_form(exchange)
        asked = await api.get(at)
        answered = (await api.ask("POST", at, decision_of(form, asked))).page
        page = {"ask": with_fields(answered), "is_drawer": False, "is_decided": True}
        await self._shell.write(exchange, caller, "owner/ask_card.html", page)

    async def deny(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/inbox/deny: those that were marked; each is refused or not by itself."""
        api = self._shell.api.of(exchange)
        marked = (await read_form(exchange)).all("ask")
        if not 1 <= len(marked) <= SHOWN:
            raise InvalidRequest("ask", f"must be marked, 1 to {SHOWN} times")
        notes = []
        for name in dict.fromkeys(marked):
            try:
                await api.ask("POST", f"/approvals/{segment(name)}", {"outcome": "rejected"})
            except CarnetError as error:
                notes.append({"id": name, "code": error.code, "message": error.safe_text})
        found = await api.get("/approvals", {"limit": SHOWN})
        asks = [with_fields(each) for each in found["approvals"]]
        page = {"asks": asks, "next": found["next"], "status": "open"}
        await self._shell.write(exchange, caller, "owner/inbox_rows.html", page | {"notes": notes})

    async def end_rule(self, exchange: Exchange, caller: Caller, number: str) -> None:
        """POST /console/inbox/rules/{number}/end: be asked again."""
        del caller
        await self._shell.api.of(exchange).ask("POST", f"/rules/{segment(number)}/end")
        await lead(exchange, HOME)


def with_fields(ask: Page) -> Page:
    """A question with the fields that its schema asks for, and all that a card may tell of it."""
    return _NO_ANSWER | ask | {"fields": fields_of(ask["schema"])}


def decision_of(form: SentForm, asked: Page) -> Page:
    """What a form says about a question, in the words of the API."""
    chosen = form.text("outcome")
    if chosen not in _OUTCOMES:
        raise InvalidRequest("outcome", f"must be one of {', '.join(_OUTCOMES)}")
    decision: Page = {"outcome": _OUTCOMES[chosen]}
    value = _WITHOUT if chosen == _WITHOUT else None
    if decision["outcome"] == "accepted":
        value = _value(form, asked)
        if form.text("remember"):
            ceiling = form.text("ceiling")
            decision["remember"] = {"ceiling": ceiling} if ceiling else {}
    return decision if value is None else decision | {"value": value}


def _value(form: SentForm, asked: Page) -> Any:
    if asked["arguments"] is not None:
        if not form.all("arguments"):  # those that are too long for a page are shown, not sent
            return None
        changed = form.page("arguments")
        if changed is None:
            raise InvalidRequest("arguments", "must be an object, as JSON; {} where there are none")
        return None if changed == asked["arguments"] else changed
    if fields_of(asked["schema"]) is not None:
        return read_fields(form, asked["schema"]) or None
    return form.text("value") or None


_READ: Final = {"permission": "run:read"}
ROUTES: Final = (
    *page_row(HOME, InboxPages.list, "What agents ask", **_READ),
    action_row("GET", f"{HOME}/rows", InboxPages.rows, "The list by itself", **_READ),
    action_row("GET", f"{HOME}/{{ask}}/card", InboxPages.card, "One question", **_READ),
    action_row("POST", f"{HOME}/{{ask}}/decide", InboxPages.decide, "Answer one", **_READ),
    action_row("POST", f"{HOME}/deny", InboxPages.deny, "Decline several", **_READ),
    action_row("POST", f"{HOME}/rules/{{number}}/end", InboxPages.end_rule, "End a rule", **_READ),
)
