"""`carnet tokens`, `peers`, `agents`: whom we know and what each may do."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Group, Invocation, pass_invocation, table, wait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carnet.config import Settings
    from carnet.ports.trust import Peer, Token


@click.group(cls=Group)
def tokens() -> None:
    """Make, list and end bearer tokens."""


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
    from carnet.assembly.storing import open_from
    from carnet.cli.admitting import new_token, token_page
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    new = new_token(name, options, now)
    store = await open_from(settings, exclusive=False)
    try:
        _refuse_taken(await store.tokens.list(), name, now)
        token, secret = await store.tokens.create(new, now)
    finally:
        await store.close()
    return {"token": secret.reveal(), **token_page(token, now)}


def _refuse_taken(known: "Sequence[Token]", name: str, now: int) -> None:
    from carnet.errors import UsageInvalid

    if any(token.name == name and token.is_live(now) for token in known):
        raise UsageInvalid(
            reason=f"There is a token named '{name}' already.",
            fix=f"Choose another name, or end that one first: carnet tokens revoke {name}",
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
    from carnet.assembly.storing import open_from
    from carnet.cli.admitting import is_of_a_command, token_page
    from carnet.runtime.system import SystemClock

    now = SystemClock().wall_us()
    store = await open_from(settings, exclusive=False)
    try:
        known = await store.tokens.list()
    finally:
        await store.close()
    shown = [t for t in known if not is_of_a_command(t) and (everything or t.is_live(now))]
    return {"tokens": [token_page(token, now) for token in shown]}


def _tokens_text(page: dict[str, Any]) -> str:
    from carnet.cli.moments import short

    if not page["tokens"]:
        return "No tokens. Make one: carnet tokens create NAME"
    titles = ["NAME", "BEGINS", "STATE", "PEER", "EXPIRES", "LAST USED", "MAY"]
    rows = [
        [
            entry["name"],
            entry["prefix"],
            entry["state"],
            entry["peer"] or "-",
            short(entry["expires"]) if entry["expires"] else "never",
            short(entry["last_used"]),
            ", ".join(entry["scopes"] + _marks(entry)),
        ]
        for entry in page["tokens"]
    ]
    return table(rows, titles)


def _marks(entry: dict[str, Any]) -> list[str]:
    marks = ("forwardable", "may_forward_authorization")
    return [mark.replace("_", "-") for mark in marks if entry[mark]]


@tokens.command()
@click.argument("name")
@pass_invocation
def revoke(invocation: Invocation, name: str) -> None:
    """End a token at once; running gateways notice within a second."""
    if not wait(_revoke(invocation.settings, name)):
        _refuse_unknown("token", name, "carnet tokens list")
    invocation.result({"name": name, "revoked": True}, lambda: f"Ended the token '{name}'.")


async def _revoke(settings: "Settings", name: str) -> bool:
    from carnet.assembly.storing import open_from
    from carnet.runtime.system import SystemClock

    store = await open_from(settings, exclusive=False)
    try:
        return await store.tokens.revoke(name, SystemClock().wall_us())
    finally:
        await store.close()


def _refuse_unknown(what: str, name: str, command: str) -> None:
    from carnet.errors import UsageInvalid

    raise UsageInvalid(
        reason=f"There is no {what} named '{name}'.", fix=f"'{command}' shows which there are."
    )


@click.group(cls=Group)
def peers() -> None:
    """Admit, list and forget the gateways of other organisations."""


@peers.command()
@click.argument("domain")
@click.option("--url", help="Where its gateway is.")
@click.option(
    "--may-forward-authorization/--no-forward-authorization",
    "may_forward",
    default=None,
    help="Whether payers' credentials may go to it and come from it (default: no).",
)
@click.option("--credit", metavar="AMOUNT", help="What it may owe us (default: 0).")
@click.option("--max-cost", metavar="AMOUNT", help="The most it may charge a call (default: 1).")
@click.option("--token-file", type=click.Path(path_type=Path), help="How we authenticate to it.")
@click.option("--token-env", metavar="NAME", help="The same, from an environment variable.")
@pass_invocation
def add(invocation: Invocation, /, domain: str, **options: Any) -> None:
    """Admit a gateway, or change what is known of it.

    What is not given stays as it was. --credit is what its calls to us may cost before they are
    refused with 402; calls from us to it need a token that its operator made.
    """
    from carnet.cli.admitting import peer_page

    peer = wait(_put_peer(invocation.settings, domain, options))
    page = peer_page(peer)
    invocation.result(page, lambda: invocation.spell(_peer_text(page)))


def _peer_text(page: dict[str, Any]) -> str:
    domain = page["domain"]
    forwards = "may" if page["may_forward_authorization"] else "may not"
    lines = [
        f"Known: {domain} at {page['url']}.",
        f"It may owe us {page['credit']} and charge us at most {page['max_cost']} a call.",
        f"Payers' credentials {forwards} travel to it.",
        f"Its agents are reached as @name@{domain}.",
        "A running gateway notices within a second.",
    ]
    if not page["has_token"]:
        lines.append(
            "We have no token for it, and most gateways ask for one. Its operator makes it; then: "
            f"carnet peers add {domain} --token-file FILE"
        )
    return "\n".join(lines)


async def _put_peer(settings: "Settings", domain: str, options: dict[str, Any]) -> "Peer":
    from carnet.assembly.storing import open_from
    from carnet.cli.admitting import changed_peer

    _refuse_from_file(settings, domain, "changes")
    store = await open_from(settings, exclusive=False)
    try:
        peer = changed_peer(store.peers.find(domain), domain, options)
        await store.peers.put(peer)
    finally:
        await store.close()
    return peer


def _refuse_from_file(settings: "Settings", domain: str, verb: str) -> None:
    from carnet.errors import UsageInvalid

    if domain in settings.peers:
        raise UsageInvalid(
            reason=f"{domain} is written in {settings.source.name}, which no command {verb}.",
            fix=f'Edit the section [peers."{domain}"] there.',
        )


@peers.command("list")
@pass_invocation
def list_peers(invocation: Invocation) -> None:
    """List the organisations this gateway knows."""
    page = wait(_list_peers(invocation.settings))
    invocation.result(page, lambda: invocation.spell(_peers_text(page)), page["peers"])


async def _list_peers(settings: "Settings") -> dict[str, Any]:
    from carnet.assembly.storing import open_from
    from carnet.cli.admitting import peer_page

    store = await open_from(settings, exclusive=False)
    try:
        return {"peers": [peer_page(peer) for peer in await store.peers.list()]}
    finally:
        await store.close()


def _peers_text(page: dict[str, Any]) -> str:
    if not page["peers"]:
        return "No peers. Admit one: carnet peers add DOMAIN --url URL"
    titles = ["DOMAIN", "URL", "DIALECT", "FORWARDING", "TOKEN", "CREDIT", "MAX COST", "FROM"]
    rows = [
        [
            entry["domain"],
            entry["url"],
            entry["dialect"],
            "yes" if entry["may_forward_authorization"] else "no",
            "yes" if entry["has_token"] else "no",
            entry["credit"],
            entry["max_cost"],
            "carnet.toml" if entry["from_file"] else "store",
        ]
        for entry in page["peers"]
    ]
    return table(rows, titles)


@peers.command()
@click.argument("domain")
@pass_invocation
def remove(invocation: Invocation, domain: str) -> None:
    """Forget an organisation."""
    if not wait(_remove_peer(invocation.settings, domain)):
        _refuse_unknown("peer", domain, "carnet peers list")
    invocation.result(
        {"domain": domain, "removed": True}, lambda: f"Forgot {domain}; its tokens are revoked."
    )


async def _remove_peer(settings: "Settings", domain: str) -> bool:
    from carnet.assembly.storing import open_from
    from carnet.runtime.system import SystemClock

    _refuse_from_file(settings, domain, "removes")
    store = await open_from(settings, exclusive=False)
    try:
        now = SystemClock().wall_us()
        for token in await store.tokens.list():  # who is forgotten may not come in either
            if token.peer == domain and token.is_live(now):
                await store.tokens.revoke(token.name, now)
        return await store.peers.remove(domain)
    finally:
        await store.close()


@click.group(cls=Group)
def agents() -> None:
    """Look at the agents this gateway serves."""


@agents.command("list")
@pass_invocation
def list_agents(invocation: Invocation) -> None:
    """List the agents of the configuration."""
    from carnet.cli.admitting import agent_page

    settings = invocation.settings
    page = {"agents": [agent_page(settings, name) for name in settings.agents]}
    invocation.result(page, lambda: _agents_text(page), page["agents"])


def _agents_text(page: dict[str, Any]) -> str:
    if not page["agents"]:
        return "No agents. Write a section [agents.NAME] into carnet.toml."
    titles = ["NAME", "KIND", "WHERE", "PRICE", ""]
    rows = [
        [
            entry["name"],
            entry["kind"],
            entry["where"] or "-",
            entry["price"],
            "default" if entry["default"] else "",
        ]
        for entry in page["agents"]
    ]
    return table(rows, titles)
