"""`carnet tokens`, `agents`: who may call, and what there is to call."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Group, Invocation, loading, pass_invocation, table, wait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carnet.cli.source import Sight
    from carnet.config import Settings
    from carnet.core.people.identity import Token


@click.group(cls=Group)
def tokens() -> None:
    """Make, list and revoke bearer tokens."""


@tokens.command()
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, help="A permission; may be given repeatedly.")
@click.option("--forwardable", is_flag=True, help="Calls of its holder may be billed to it abroad.")
@click.option(
    "--may-forward-authorization",
    "may_forward",
    is_flag=True,
    help="Its holder may send other people's credentials as payers.",
)
@click.option("--peer", metavar="DOMAIN", help="The organisation whose gateway holds it.")
@click.option("--person", metavar="NAME", help="Whose it is: it may do what she may, and no more.")
@click.option("--agent", metavar="NAME", help="The only agent it may call; it stands for that one.")
@click.option("--client", metavar="NAME", help="The program that holds it.")
@click.option("--workspace", metavar="NAME", help="The workspace that it belongs to.")
@click.option("--allow", multiple=True, help="The most that may be used with it, by permission.")
@click.option("--deny", multiple=True, help="What may not, whatever else says; deny wins.")
@click.option(
    "--chain-depth",
    type=click.IntRange(1, 1000),
    help="The first depth at which chains of calls made with it are refused.",
)
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="NAME=N",
    help="turns, tool_calls, tool_calls_TOOL or wall_clock_seconds of one answer of a loop.",
)
@click.option("--rate", metavar="N/min", help="Calls per time: N/s, N/min or N/h.")
@click.option("--limit", metavar="AMOUNT", help="The most it may ever spend.")
@click.option("--expires", metavar="30d", default="never", help="30d, 12h, or never (default).")
@pass_invocation
def create(invocation: Invocation, /, name: str, **options: Any) -> None:
    """Make a token and print it once; only its hash is kept."""
    page = wait(_create(invocation.settings, name, options))
    invocation.result(page, lambda: str(page["token"]))
    if invocation.format == "text":
        invocation.note(
            f"This is the token '{name}', shown this once. It may: {', '.join(page['scopes'])}."
        )


async def _create(settings: "Settings", name: str, options: dict[str, Any]) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.trust.forms import new_token, token_page
    from carnet.cli.trust.people_forms import of_person
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    new = new_token(name, options, now)
    async with opened(settings) as store:
        _refuse_taken(await store.tokens.list(), name, now)
        if options["person"]:
            person = store.people.find(options["person"])
            if person is None:
                refuse_unknown("person", options["person"], "carnet people list")
            else:
                new = of_person(new, person, new.scopes if options["scopes"] else ())
        token, secret = await store.tokens.create(new, now)
    return {"token": secret.reveal(), **token_page(token, now)}


def _refuse_taken(known: "Sequence[Token]", name: str, now: int) -> None:
    from carnet.errors import UsageInvalid

    if any(token.name == name and token.is_live(now) for token in known):
        raise UsageInvalid(
            reason=f"There is a token named '{name}' already.",
            fix=f"Choose another name, or revoke that one: carnet tokens revoke {name}",
        )


@tokens.command("list")
@click.option(
    "--all", "everything", is_flag=True, help="Also those that were revoked or have expired."
)
@pass_invocation
def list_tokens(invocation: Invocation, everything: bool) -> None:  # noqa: FBT001  click passes it
    """List the tokens; never their text, which nobody has."""
    page = wait(_list_tokens(invocation.settings, everything=everything))
    invocation.result(page, lambda: invocation.spell(_tokens_text(page)), page["tokens"])


async def _list_tokens(settings: "Settings", *, everything: bool) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.trust.forms import token_page
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    async with opened(settings) as store:
        known = await store.tokens.list()
    shown = [t for t in known if not t.is_of_command and (everything or t.is_live(now))]
    return {"tokens": [token_page(token, now) for token in shown]}


def _tokens_text(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    if not page["tokens"]:
        return "No tokens. Make one: carnet tokens create NAME"
    titles = ["NAME", "BEGINS", "STATE", "WHOSE", "EXPIRES", "LAST USED", "MAY"]
    rows = [
        [
            entry["name"],
            entry["prefix"],
            entry["state"],
            entry["person"] or entry["peer"] or "-",
            short(entry["expires"]) if entry["expires"] else "never",
            short(entry["last_used"]),
            ", ".join(entry["scopes"] + _marks(entry)),
        ]
        for entry in page["tokens"]
    ]
    taken = [
        f"Taken back from {entry['name']}, since nothing had ever asked for it: "
        + ", ".join(entry["taken_back"])
        for entry in page["tokens"]
        if entry["taken_back"]
    ]
    return "\n".join([table(rows, titles), *taken])


def _marks(entry: dict[str, Any]) -> list[str]:
    marks = ("forwardable", "may_forward_authorization")
    return [mark.replace("_", "-") for mark in marks if entry[mark]]


@tokens.command("show")
@click.argument("name")
@pass_invocation
def show_token(invocation: Invocation, name: str) -> None:
    """Show the newest token of a name: whose it is, what it may do and what it bills."""
    page = wait(_list_tokens(invocation.settings, everything=True))
    found = next((entry for entry in page["tokens"] if entry["name"] == name), None)
    if found is None:
        refuse_unknown("token", name, "carnet tokens list")
    else:
        invocation.result(found, lambda: _token_text(found))


def _token_text(entry: dict[str, Any]) -> str:
    listed = {name: ", ".join(entry[name]) or "-" for name in ("scopes", "taken_back")}
    shown = {**entry, **listed}
    return "\n".join(f"{name:<27}{value}" for name, value in shown.items() if value is not None)


@tokens.command()
@click.argument("name", required=False)
@click.option("--agent", metavar="NAME", help="All that stand for an agent.")
@click.option("--person", metavar="NAME", help="All of a person.")
@click.option("--client", metavar="NAME", help="All that a program holds.")
@pass_invocation
def revoke(invocation: Invocation, /, name: str | None, **whose: str | None) -> None:
    """Revoke a token, or all of an agent, a person or a client, at once.

    It is one transaction; running gateways notice within a second, and stop what the tokens began.
    """
    if name is not None and not any(whose.values()):
        _revoke_one(invocation, name)
        return
    page = wait(_revoke_all(invocation.settings, name, whose))
    text = f"Revoked {len(page['tokens'])}: {', '.join(page['tokens'])}."
    invocation.result(page, lambda: text if page["tokens"] else "There was none to revoke.")


def _revoke_one(invocation: Invocation, name: str) -> None:
    if not wait(_revoke(invocation.settings, name)):
        refuse_unknown("token", name, "carnet tokens list")
    invocation.result({"name": name, "revoked": True}, lambda: f"Revoked the token '{name}'.")


async def _revoke(settings: "Settings", name: str) -> bool:
    from carnet.assembly.store import opened
    from carnet.runtime.system import SystemClock

    async with opened(settings) as store:
        return await store.tokens.revoke(name, SystemClock().wall_us())


async def _revoke_all(
    settings: "Settings", name: str | None, whose: dict[str, str | None]
) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.trust.forms import read_whose
    from carnet.runtime.system import SystemClock

    kind, value = read_whose(name, whose)
    async with opened(settings) as store:
        key: str | int = value
        if kind == "person":
            person = store.people.find(value)
            if person is None:
                refuse_unknown("person", value, "carnet people list")
            else:
                key = person.n
        ended = await store.tokens.revoke_all(kind, key, SystemClock().wall_us())
    return {kind: value, "tokens": ended}


def refuse_unknown(what: str, name: str, command: str) -> None:
    """Say that there is none of that name, and what lists those there are."""
    from carnet.errors import UsageInvalid

    raise UsageInvalid(
        reason=f"There is no {what} named '{name}'.", fix=f"'{command}' shows which there are."
    )


@click.group(cls=Group)
def agents() -> None:
    """Look at the agents this gateway serves."""


@agents.command("list")
@loading
@pass_invocation
def list_agents(invocation: Invocation, load: bool) -> None:  # noqa: FBT001  click passes it
    """List the agents of the configuration."""
    from carnet.cli.trust.forms import agent_page

    settings = invocation.settings
    seen = {name: _sight(settings, name, load=load) for name in settings.agents}
    page = {"agents": [agent_page(settings, name, seen[name]) for name in settings.agents]}
    invocation.result(page, lambda: _agents_text(page), page["agents"])
    unseen = {name: sight for name, sight in seen.items() if sight.unseen}
    if unseen and invocation.format == "text":
        for name, sight in unseen.items():
            invocation.note(f"Not seen of {name}: {sight.unseen}.")
        invocation.note(invocation.spell("carnet doctor tells more, and --load imports agents."))


def _sight(settings: "Settings", name: str, *, load: bool) -> "Sight":
    """What can be seen of an agent, and else why not."""
    from carnet.cli.references import look_at
    from carnet.cli.source import Sight
    from carnet.errors import ConfigInvalid

    try:
        return look_at(settings, name, load=load)
    except ConfigInvalid as error:
        return Sight(unseen=str(error.facts["reason"]))


def _agents_text(page: dict[str, Any]) -> str:
    if not page["agents"]:
        return "No agents. Write a section [agents.NAME] into carnet.toml."
    titles = ["NAME", "KIND", "WHERE", "PRICE", "SKILLS", ""]
    rows = [
        [
            entry["name"],
            entry["kind"],
            entry["where"] or "-",
            entry["price"],
            ", ".join(entry["skills"]) or "-",
            "default" if entry["default"] else "",
        ]
        for entry in page["agents"]
    ]
    return table(rows, titles)
