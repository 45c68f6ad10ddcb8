"""`carnet people sign-in`, `carnet sessions`: links to sign in with, and who has signed in."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Command, Group, Invocation, count, pass_invocation, table, wait
from carnet.cli.trust.people import live_person

if TYPE_CHECKING:
    from carnet.config import Settings
    from carnet.core.people.identity import Token
    from carnet.core.people.person import Person
    from carnet.stores.open import Store


@click.command("sign-in", cls=Command)
@click.argument("name")
@click.option("--token", metavar="T", help="The token of hers that the session stands for.")
@pass_invocation
def sign_in(invocation: Invocation, name: str, token: str | None) -> None:
    """Print a link by which a person signs in, once and soon.

    The session may do what one token of hers may, bills what that bills and ends with it.
    """
    page = wait(sign_in_link(invocation.settings, name, token))
    invocation.result(page, lambda: str(page["link"]))
    if invocation.format == "text":
        invocation.note(
            f"Whoever opens this link first is {name}, until {page['until']}. It signs in as the"
            f" token '{page['token']}'."
        )


async def sign_in_link(settings: "Settings", name: str, wanted: str | None) -> dict[str, Any]:
    """A link by which a person signs in once, as a token of hers; None means her only one."""
    from carnet.assembly.store import opened
    from carnet.runtime.system import SystemClock
    from carnet.wire.grammar.times import when

    now = SystemClock().wall_us()
    async with opened(settings) as store:
        person = await live_person(store, name)
        token = _token_of(store, person, wanted, now)
        session, code = await store.sessions.offer(token, now)
    link = f"{_address(settings)}/sign-in?code={code.reveal()}"
    return {"person": name, "token": token.name, "link": link, "until": when(session.until)}


def _address(settings: "Settings") -> str:
    """Where browsers reach the gateway: as its operator says, else where it listens now."""
    from carnet.cli.reach.gateway import written_url

    if settings.origins["gateway.public_url"] != "default":
        return settings.gateway.public_url.rstrip("/")
    return written_url(settings) or settings.gateway.public_url.rstrip("/")


def _token_of(store: "Store", person: "Person", wanted: str | None, now: int) -> "Token":
    from carnet.errors import UsageInvalid

    hers = [one for one in store.tokens.known() if one.person == person.n and one.is_live(now)]
    names = ", ".join(one.name for one in hers)
    if not hers:
        raise UsageInvalid(
            reason=f"{person.name} has no live token that a session could stand for.",
            fix=f"Make her one: carnet tokens create NAME --person {person.name}",
        )
    if wanted is None and len(hers) > 1:
        raise UsageInvalid(
            reason=f"{person.name} has several tokens, which may allow different things: {names}.",
            fix="Say which one the session is to stand for: --token NAME",
        )
    found = [one for one in hers if wanted is None or one.name == wanted]
    if not found:
        raise UsageInvalid(
            reason=f"{person.name} has no live token named '{wanted}'.", fix=f"She has: {names}."
        )
    return found[0]


@click.group(cls=Group)
def sessions() -> None:
    """List and end the sessions of those who have signed in."""


@sessions.command("list")
@click.option("--person", metavar="NAME", help="Hers alone.")
@pass_invocation
def list_sessions(invocation: Invocation, person: str | None) -> None:
    """List who has signed in, newest first."""
    page = wait(_list_sessions(invocation.settings, person))
    invocation.result(page, lambda: invocation.spell(_sessions_text(page)), page["sessions"])


async def _list_sessions(settings: "Settings", name: str | None) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.gateway.people.forms import session_page
    from carnet.runtime.system import SystemClock

    async with opened(settings) as store:
        person = None if name is None else (await live_person(store, name)).n
        pages = []
        for one in await store.sessions.list(person, SystemClock().wall_us()):
            whose, token = store.people.numbered(one.person), store.tokens.numbered(one.token)
            page = session_page(one, None if token is None else token.name, None)
            del page["current"]  # a command is none
            pages.append({"person": None if whose is None else whose.name, **page})
    return {"sessions": pages}


def _sessions_text(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    if not page["sessions"]:
        return "Nobody has signed in. Make a link: carnet people sign-in NAME"
    titles = ["ID", "PERSON", "TOKEN", "BEGUN", "USED", "UNTIL", "DEVICE"]
    rows = [
        [
            str(entry["id"]),
            entry["person"] or "-",
            entry["token"] or "-",
            *(short(entry[name]) for name in ("begun", "used", "until")),
            entry["device"] or "-",
        ]
        for entry in page["sessions"]
    ]
    return table(rows, titles)


@sessions.command("end")
@click.argument("number", metavar="[ID]", type=int, required=False)
@click.option("--person", metavar="NAME", help="All of hers, and her unused links.")
@pass_invocation
def end_sessions(invocation: Invocation, number: int | None, person: str | None) -> None:
    """End a session, or all of a person.

    A running gateway takes it no more within a second or two. What it has begun goes on.
    """
    page = wait(_end_sessions(invocation.settings, number, person))
    invocation.result(page, lambda: f"Ended {count(page['ended'], 'session')}.")


async def _end_sessions(
    settings: "Settings", number: int | None, name: str | None
) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.errors import UsageInvalid
    from carnet.runtime.system import SystemClock

    if (number is None) == (name is None):
        raise UsageInvalid(
            reason="Say which: a session or a person.",
            fix="carnet sessions end ID, or carnet sessions end --person NAME",
        )
    now = SystemClock().wall_us()
    async with opened(settings) as store:
        if name is not None:
            person = await live_person(store, name)
            return {"person": name, "ended": await store.sessions.end_all(person.n, now)}
        if number is None or not await store.sessions.end(number, now):
            raise UsageInvalid(
                reason=f"There is no live session {number}.",
                fix="'carnet sessions list' shows which there are.",
            )
        return {"session": number, "ended": 1}
