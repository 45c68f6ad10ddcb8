"""Keys and trust: what we sign with, whom we believe; rotated with an overlap, or revoked."""

from typing import Any, Final

from carnet.console.api import segment
from carnet.console.forms import SentForm, read_form
from carnet.console.shell import Shell, action_row, lead, page_row
from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest
from carnet.http.exchange import Exchange
from carnet.wire.grammar.query import is_number

Page = dict[str, Any]

HOME: Final = "/console/keys"
HOUR: Final = 3600
MINUTE: Final = 60


class KeyPages:
    """What others know us by, and we them."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def show(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/keys."""
        found = await self._shell.api.get(exchange, "/keys")
        await self._shell.show(exchange, caller, "operations/keys.html", {"title": "Keys", **found})

    async def rotate(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/keys/rotate: in hours of overlap, and minutes before the new one signs."""
        del caller
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        spans = {"overlap": _whole(form, "overlap", 24) * HOUR}
        spans["lead"] = _whole(form, "lead", 10) * MINUTE
        await api.ask("POST", "/keys/rotate", spans)
        await lead(exchange, HOME)

    async def revoke(self, exchange: Exchange, caller: Caller, kid: str) -> None:
        """POST /console/keys/{kid}/revoke."""
        del caller
        await self._shell.api.of(exchange).ask("POST", f"/keys/{segment(kid)}/revoke")
        await lead(exchange, HOME)


def _whole(form: SentForm, name: str, usual: int) -> int:
    text = form.text(name)
    if not text:
        return usual
    if not is_number(text):
        raise InvalidRequest(name, "must be a whole number")
    return int(text)


_MANAGES: Final = {"permission": "admin:keys"}
ROUTES: Final = (
    *page_row(HOME, KeyPages.show, "Keys and trust", **_MANAGES),
    action_row("POST", f"{HOME}/rotate", KeyPages.rotate, "Rotate our key", **_MANAGES),
    action_row("POST", f"{HOME}/{{kid}}/revoke", KeyPages.revoke, "Revoke a key", **_MANAGES),
)
