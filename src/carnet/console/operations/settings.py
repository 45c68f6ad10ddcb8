"""The settings in force, each with where it came from; read again at the press of a button."""

from typing import Any, Final

from carnet.console.shell import Shell, action_row, page_row
from carnet.core.people.identity import Caller
from carnet.http.exchange import Exchange
from carnet.version import __version__
from carnet.wire.grammar.query import read_query

Page = dict[str, Any]

HOME: Final = "/console/settings"


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
        }
        await self._shell.show(exchange, caller, "operations/settings.html", page)

    async def reload(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/settings/reload: take over what the file says now."""
        report = (await self._shell.api.of(exchange).ask("POST", "/-/reload")).page
        await self._shell.write(exchange, caller, "operations/reloaded.html", {"report": report})


def _holds(value: Page, word: str) -> bool:
    return word in f"{value['section']}.{value['key']} {value['from']}".lower()


ROUTES: Final = (
    *page_row(HOME, SettingPages.show, "The settings in force", permission="admin:config"),
    action_row(
        "POST", f"{HOME}/reload", SettingPages.reload, "Read them again", permission="admin:reload"
    ),
)
