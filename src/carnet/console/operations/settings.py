"""The settings in force, each with where it came from; changed in the file, and taken over.

Law. A change is shown as a difference before it is made, and made over the file that it was shown
     for. No secret is on the page.
"""

from typing import Any, Final

from carnet.console.forms import SentForm, read_form
from carnet.console.shell import Shell, action_row, page_row
from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest
from carnet.http.exchange import Exchange
from carnet.version import __version__
from carnet.wire.grammar.query import read_query, read_word

Page = dict[str, Any]

HOME: Final = "/console/settings"
APPLIES: Final = "admin:settings"


class SettingPages:
    """How this gateway is configured."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def show(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/settings: all of them, or those whose name or origin holds a word."""
        values = (await self._shell.api.get(exchange, "/-/config"))["values"]
        query = read_query(exchange.query.decode("latin-1"))
        word, is_set = query.get("q", [""])[0][:200], bool(query.get("set", [""])[0])
        if is_set:
            values = [each for each in values if each["from"] != "default"]
        if word:
            values = [each for each in values if _holds(each, word.lower())]
        sections: dict[str, list[Page]] = {}
        for each in values:
            sections.setdefault(each["section"], []).append({"reference": None, **each})
        page = {
            "title": "Settings",
            "version": __version__,
            "sections": sections,
            "q": word,
            "is_set": is_set,
            "may_reload": caller.may("admin:reload"),
            "may_change": caller.may(APPLIES),
        }
        await self._shell.show(exchange, caller, "operations/settings.html", page)

    async def edit(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/settings/edit?section=...&key=...: the form of one value."""
        query = read_query(exchange.query.decode("latin-1"))
        section, key = read_word(query, "section"), read_word(query, "key")
        values = (await self._shell.api.get(exchange, "/-/config"))["values"]
        found = [each for each in values if (each["section"], each["key"]) == (section, key)]
        if not found or "reference" in found[0]:
            raise InvalidRequest("key", "is none that can be changed here")
        await self._shell.write(exchange, caller, "operations/setting.html", {"value": found[0]})

    async def preview(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/settings/preview: what a change would be."""
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        asked = _change(form)
        found = (await api.ask("POST", "/-/config/preview", asked)).page
        page = {"asked": asked, "found": found}
        await self._shell.write(exchange, caller, "operations/difference.html", page)

    async def apply(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/settings/apply: make it."""
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        asked = _change(form) | {"digest": form.text("digest")}
        report = (await api.ask("POST", "/-/config/apply", asked)).page
        await self._shell.write(exchange, caller, "operations/reloaded.html", {"report": report})

    async def reload(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/settings/reload: take over what the file says now."""
        report = (await self._shell.api.of(exchange).ask("POST", "/-/reload")).page
        await self._shell.write(exchange, caller, "operations/reloaded.html", {"report": report})


def _change(form: SentForm) -> Page:
    """What a form asks for; what is taken out has no value."""
    value = None if form.text("remove") else form.text("value")
    return {"section": form.text("section"), "key": form.text("key"), "value": value}


def _holds(value: Page, word: str) -> bool:
    return word in f"{value['section']}.{value['key']} {value['from']}".lower()


ROUTES: Final = (
    *page_row(HOME, SettingPages.show, "The settings in force", permission="admin:config"),
    action_row(
        "POST", f"{HOME}/reload", SettingPages.reload, "Read them again", permission="admin:reload"
    ),
    action_row("GET", f"{HOME}/edit", SettingPages.edit, "The form of one", permission=APPLIES),
    action_row(
        "POST", f"{HOME}/preview", SettingPages.preview, "What a change is", permission=APPLIES
    ),
    action_row("POST", f"{HOME}/apply", SettingPages.apply, "Change one", permission=APPLIES),
)
