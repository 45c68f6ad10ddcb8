"""`carnet people`: who is known here, what is hers, and the end of all of it."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Group, Invocation, count, pass_invocation, table, wait
from carnet.cli.trust.tokens import refuse_unknown

if TYPE_CHECKING:
    from carnet.config import Settings
    from carnet.core.people.person import Person
    from carnet.stores.open import Store

ROLES = ("viewer", "operator", "admin")


@click.group(cls=Group)
def people() -> None:
    """Add, list, link and end the people of this organisation, and say what they may do."""


@people.command()
@click.argument("name")
@click.option("--display", metavar="TEXT", help="Her name as it is shown.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(ROLES),
    help="The most that her tokens may do (default: operator); may be given repeatedly.",
)
@click.option(
    "--permission",
    "permissions",
    multiple=True,
    help="A permission beside those of her roles; may be given repeatedly.",
)
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="mailto:A",
    help="Where else she is known; may be given repeatedly.",
)
@click.option("--number", type=int, help="Her number at hosts that count their users.")
@click.option("--account", metavar="A", help="The account that her new tokens bill.")
@pass_invocation
def add(invocation: Invocation, /, name: str, **options: Any) -> None:
    """Add a person.

    Her name is her handle here: @NAME@DOMAIN. It is 1 to 63 of a-z, 0-9 and '-', and looks like no
    other person's and no agent's.

    viewer: sees her own runs. operator: also calls, pays, cancels and reads metrics. admin: all.
    """
    asked = {"name": name, **{key: value for key, value in options.items() if value is not None}}
    page = wait(_add(invocation.settings, asked))
    invocation.result(page, lambda: invocation.spell(_added_text(page)))


def _added_text(page: dict[str, Any]) -> str:
    return "\n".join(
        [
            f"Known: {page['handle']} ({', '.join(page['roles'])}).",
            f"Give her a token: carnet tokens create NAME --person {page['name']}",
            f"Or adopt one that is there: carnet people link {page['name']} --token NAME",
        ]
    )


async def _add(settings: "Settings", asked: dict[str, Any]) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.trust.people_forms import new_person
    from carnet.errors import PersonExists, UsageInvalid
    from carnet.gateway.people.forms import person_page
    from carnet.runtime.system import SystemClock

    now, domain = SystemClock().wall_us(), settings.gateway.domain
    async with opened(settings) as store:
        known = [person.name for person in await store.people.list() if person.ended is None]
        new = new_person(asked, domain=domain, people=known, agents=settings.agents)
        try:
            person = await store.people.add(new, now)
        except PersonExists as error:
            raise UsageInvalid(reason=error.safe_text, fix="Choose another one.") from None
        return person_page(person, store.tokens.known(), domain=domain, now=now)


@people.command("list")
@click.option("--all", "everybody", is_flag=True, help="Also those who have ended.")
@pass_invocation
def list_people(invocation: Invocation, everybody: bool) -> None:  # noqa: FBT001  click passes it
    """List the people who are known here."""
    page = wait(_list_people(invocation.settings, everybody=everybody))
    invocation.result(page, lambda: invocation.spell(_people_text(page)), page["people"])


async def _list_people(settings: "Settings", *, everybody: bool) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.gateway.people.forms import person_page
    from carnet.runtime.system import SystemClock

    now, domain = SystemClock().wall_us(), settings.gateway.domain
    async with opened(settings) as store:
        known = [one for one in await store.people.list() if everybody or one.ended is None]
        tokens = store.tokens.known()
        return {"people": [person_page(one, tokens, domain=domain, now=now) for one in known]}


def _people_text(page: dict[str, Any]) -> str:
    if not page["people"]:
        return "Nobody. Add a person: carnet people add NAME"
    titles = ["NAME", "DISPLAY", "ROLES", "ACCOUNT", "NUMBER", "TOKENS", "STATE", "ADDRESSES"]
    rows = [
        [
            entry["name"],
            entry["display"] or "-",
            ", ".join(entry["roles"] + entry["permissions"]) or "-",
            entry["account"] or "-",
            str(entry["number"] or "-"),
            ", ".join(entry["tokens"]) or "-",
            entry["state"],
            ", ".join(one["address"] for one in entry["addresses"]) or "-",
        ]
        for entry in page["people"]
    ]
    return table(rows, titles)


@people.command()
@click.argument("name")
@pass_invocation
def show(invocation: Invocation, name: str) -> None:
    """Show a person, and all that would end with her."""
    page = wait(_show(invocation.settings, name))
    if page is None:
        refuse_unknown("person", name, "carnet people list")
    else:
        invocation.result(page, lambda: _person_text(page))


async def _show(settings: "Settings", name: str) -> dict[str, Any] | None:
    from carnet.assembly.store import opened
    from carnet.gateway.people.forms import person_page, thing_page
    from carnet.runtime.system import SystemClock

    now, domain = SystemClock().wall_us(), settings.gateway.domain
    async with opened(settings) as store:
        person = store.people.find(name)
        if person is None:
            return None
        things = [thing_page(thing) for thing in await store.people.belongings(person)]
        page = person_page(person, store.tokens.known(), domain=domain, now=now)
        return {**page, "things": things}


def _person_text(page: dict[str, Any]) -> str:
    shown = ("display", "number", "account", "state", "created", "ended")
    lines = [page["handle"]]
    lines += [f"  {name:<10}{page[name]}" for name in shown if page[name] is not None]
    lines.append(f"  {'roles':<10}{', '.join(page['roles']) or '-'}")
    lines.append(f"  {'may':<10}{', '.join(page['may']) or '-'}")
    lines += [f"  {'address':<10}{one['address']} ({one['how']})" for one in page["addresses"]]
    lines += [_thing_line(thing) for thing in page["things"]]
    return "\n".join(lines)


def _thing_line(thing: dict[str, Any]) -> str:
    state = "" if thing["state"] in {"ended", "live"} else f" ({thing['state']})"
    return f"  {thing['kind']:<10}{thing['name']}{state}"


@people.command()
@click.argument("name")
@click.argument("roles", nargs=-1, required=True, metavar="ROLE...", type=click.Choice(ROLES))
@click.option(
    "--permission",
    "permissions",
    multiple=True,
    help="Beside those of her roles, in the place of those she has; may be given repeatedly.",
)
@click.option("--no-permissions", "bare", is_flag=True, help="None beside those of her roles.")
@pass_invocation
def roles(invocation: Invocation, /, name: str, **options: Any) -> None:
    """Say what a person may do from now on: viewer, operator or admin.

    Her tokens may do what both allow, they and she: those that exist are narrowed with her.
    """
    page = wait(_roles(invocation.settings, name, options))
    may = ", ".join(page["may"]) or "nothing"
    text = f"{name} may {may}. A running gateway notices within a second."
    invocation.result(page, lambda: text)


async def _roles(settings: "Settings", name: str, options: dict[str, Any]) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.trust.people_forms import new_roles
    from carnet.gateway.people.forms import person_page
    from carnet.runtime.system import SystemClock

    asked: dict[str, Any] = {"roles": list(options["roles"])}
    if options["permissions"] or options["bare"]:
        asked["permissions"] = [] if options["bare"] else list(options["permissions"])
    new = new_roles(asked)
    async with opened(settings) as store:
        person = await store.people.set_roles(await live_person(store, name), new)
        if person is None:
            refuse_unknown("person", name, "carnet people list")
            raise AssertionError
        now, domain = SystemClock().wall_us(), settings.gateway.domain
        return person_page(person, store.tokens.known(), domain=domain, now=now)


@people.command()
@click.argument("name")
@click.option("--token", metavar="T", help="A token that is there becomes hers.")
@click.option("--key", metavar="agent://HOST", help="The pinned keys of a sender are hers.")
@click.option("--address", metavar="mailto:A", help="Where else she is known.")
@click.option("--verified", is_flag=True, help="It was checked that the address is hers.")
@pass_invocation
def link(invocation: Invocation, /, name: str, **options: Any) -> None:
    """Say that a token, a pinned key or an address is a person's.

    A token goes on to bill the account it has, and may do from now on what she may too. All of it
    ends with her.
    """
    page = wait(_link(invocation.settings, name, options))
    kind = "token" if options["token"] else "key" if options["key"] else "address"
    text = f"The {kind} {page[kind]} is {name}'s. A running gateway notices within a second."
    invocation.result(page, lambda: text)


async def _link(settings: "Settings", name: str, options: dict[str, Any]) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.trust.people_forms import address_of, check_link
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    check_link(options)
    async with opened(settings) as store:
        person = await live_person(store, name)
        if options["token"]:
            if not await store.people.link_token(person, options["token"], now):
                _refuse_token(options["token"])
            return {"person": name, "token": options["token"]}
        if options["key"]:
            if not await store.people.link_key(person, options["key"]):
                _refuse_key(options["key"])
            return {"person": name, "key": options["key"]}
        address = address_of(options, domain=settings.gateway.domain, now=now)
        if not await store.people.link_address(person, address, now):
            _refuse_address(address.address)
        return {"person": name, "address": address.address, "how": address.how}


async def live_person(store: "Store", name: str) -> "Person":
    """Who is called so, else a refusal that says where to look."""
    person = store.people.find(name)
    if person is None:
        refuse_unknown("person", name, "carnet people list")
        raise AssertionError
    return person


def _refuse_token(name: str) -> None:
    from carnet.errors import UsageInvalid

    raise UsageInvalid(
        reason=f"There is no live token '{name}' that is nobody's: it is unknown, has ended, is a"
        " peer's or somebody's already.",
        fix="'carnet tokens list' shows whose each one is.",
    )


def _refuse_key(sender: str) -> None:
    from carnet.errors import UsageInvalid

    raise UsageInvalid(
        reason=f"No key of {sender} is pinned here that is nobody's.",
        fix=f"'carnet peers list' shows them; pin it first: carnet peers add {sender} --key BASE64",
    )


def _refuse_address(address: str) -> None:
    from carnet.core.people.person import MOST_ADDRESSES
    from carnet.errors import UsageInvalid

    raise UsageInvalid(
        reason=f"{address} is somebody else's, or she has {MOST_ADDRESSES} addresses already.",
        fix="'carnet people list' shows whose each one is.",
    )


@people.command()
@click.argument("name")
@pass_invocation
def end(invocation: Invocation, name: str) -> None:
    """End a person with all that is hers, and say what that was.

    Her tokens, sessions, delegations and keys end at once and together. What runs or waits for her
    is cancelled by every running gateway within five seconds.
    """
    page = wait(_end(invocation.settings, name))
    if page is None:
        refuse_unknown("person", name, "carnet people list")
    else:
        invocation.result(page, lambda: _ended_text(page), page["things"])


async def _end(settings: "Settings", name: str) -> dict[str, Any] | None:
    from carnet.assembly.store import opened
    from carnet.gateway.people.forms import ended_page
    from carnet.runtime.system import SystemClock

    async with opened(settings) as store:
        ended = await store.people.end(name, SystemClock().wall_us())
    return None if ended is None else ended_page(ended, domain=settings.gateway.domain)


def _ended_text(page: dict[str, Any]) -> str:
    ended = [thing for thing in page["things"] if thing["kind"] != "turn"]
    running = [thing for thing in page["things"] if thing["kind"] == "turn"]
    lines = [f"Ended {page['handle']}, and with her {count(len(ended), 'thing')}."]
    lines += map(_thing_line, ended)
    if running:
        lines.append(f"{count(len(running), 'turn')} of hers will be cancelled:")
        lines += map(_thing_line, running)
    return "\n".join(lines)
