"""How somebody signs in to the console of a gateway that has just begun to listen.

Law 1. A link is made where there is no doubt whose it is: for the only administrator, who has one
       token. Else the line says which command makes one.
Law 2. It is shown on a terminal and nowhere else: what a log keeps is no place for what signs in.
"""

from carnet.config import Settings
from carnet.core.people.permissions import ADMIN
from carnet.stores.open import Store

_NOBODY = "nobody can sign in yet: carnet people add NAME --role admin"
_BY_COMMAND = "sign in by a link that is good once: carnet people sign-in NAME"


async def sign_in_line(
    settings: Settings, store: Store, url: str, now: int, *, is_terminal: bool
) -> str:
    """What a person is told; `url` is where browsers reach the gateway. Empty for a log."""
    if not is_terminal:
        return ""
    people = [one for one in await store.people.list() if one.ended is None]
    if not people:
        return _NOBODY
    admins = [one for one in people if ADMIN in one.roles]
    if len(admins) != 1:
        return _BY_COMMAND
    hers = [each for each in store.tokens.known() if each.person == admins[0].n]
    live = [each for each in hers if each.is_live(now)]
    if len(live) != 1:
        return _BY_COMMAND
    _, code = await store.sessions.offer(live[0], now)
    minutes = settings.sessions.link_minutes
    link = f"{url}/sign-in?code={code.reveal()}"
    return f"sign in as {admins[0].name}, once and within {minutes} min: {link}"
