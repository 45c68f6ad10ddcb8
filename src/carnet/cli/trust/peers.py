"""`carnet peers`: the organisations we know, and the keys of theirs that were written down."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Group, Invocation, pass_invocation, table, wait
from carnet.cli.trust.strangers import confirm, stranger_page, strangers_text
from carnet.cli.trust.tokens import refuse_unknown

if TYPE_CHECKING:
    from carnet.config import Settings
    from carnet.ports.trust.trust import Peer
    from carnet.stores.open import Store


@click.group(cls=Group)
def peers() -> None:
    """Admit, list and forget the gateways of other organisations, and their keys."""


peers.add_command(confirm)


@peers.command()
@click.argument("domain", metavar="DOMAIN|agent://HOST")
@click.option("--url", help="Where its gateway is.")
@click.option(
    "--dialect",
    type=click.Choice(["tangle", "samvad", "a2a", "agents_api"]),
    help="What it speaks (default: tangle).",
)
@click.option(
    "--auth",
    type=click.Choice(["auto", "jwt", "federation"]),
    help="By what its A2A agents know us: as its card says (auto, the default), by a credential "
    "that our key signs, or by a token that it gives for one.",
)
@click.option("--key", metavar="BASE64", help="Its public key: its signed calls must fit it.")
@click.option("--kid", metavar="KID", help="The name of that key (default: any name will do).")
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
    refused with 402. Calls from us to it are signed with our key, or go with a token that its
    operator made.

    With agent://HOST and --key alone, only the key is pinned: signed calls of that sender are
    verified with it. A key takes the place of one with the same kid.
    """
    peer, pinned = wait(_admit(invocation.settings, domain, options))
    page = {**(peer or {}), **(pinned or {})}
    invocation.result(page, lambda: invocation.spell(_admitted_text(peer, pinned)))


def _admitted_text(peer: dict[str, Any] | None, pinned: dict[str, Any] | None) -> str:
    from carnet.cli.trust.key_forms import pinned_text

    texts = [_peer_text(peer)] if peer else []
    return "\n".join([*texts, *([pinned_text(pinned)] if pinned else [])])


def _peer_text(page: dict[str, Any]) -> str:
    domain = page["domain"]
    forwards = "may" if page["may_forward_authorization"] else "may not"
    lines = [
        f"Known: {domain} at {page['url']}.",
        f"It may owe us {page['credit']} and charge us at most {page['max_cost']} a call.",
        f"Payers' credentials {forwards} travel to it, and {forwards} come from it.",
        f"Its agents are reached as @name@{domain}.",
        "A running gateway notices within a second.",
    ]
    if not page["has_token"]:
        lines.append(
            "We have no token for it: our calls to it are signed, and its operator lists us as a "
            "peer. A gateway that takes tokens alone needs one of its operator's; then: "
            f"carnet peers add {domain} --token-file FILE"
        )
    return "\n".join(lines)


async def _admit(
    settings: "Settings", name: str, options: dict[str, Any]
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The pages of the peer that was put and of the key that was pinned."""
    from carnet.assembly.store import opened
    from carnet.cli.trust import key_forms
    from carnet.cli.trust.forms import changed_peer, is_about_the_peer
    from carnet.gateway.partners.trust import peer_page, pinned_key_page
    from carnet.runtime.system import SystemClock

    sender, domain = key_forms.read_name(name)
    key = key_forms.new_pinned_key(sender, options, SystemClock().wall_us())
    admits = name == domain or is_about_the_peer(options)
    if key is None and name != domain:
        key_forms.refuse_without_key(sender)
    if admits:
        _refuse_from_file(settings, domain, "changes")
        await _refuse_misnamed(settings, domain, options["url"])
    if key is not None:
        key_forms.refuse_keys_of_the_file(settings, sender)
    peer: Peer | None = None
    async with opened(settings) as store:
        key_forms.refuse_look_alike(domain, await _known_hosts(store))
        if admits:
            peer = changed_peer(store.peers.find(domain), domain, options)
        if key is not None:
            await store.pinned.pin(key)
        if peer is not None:
            await store.peers.put(peer)
    pages = (peer and peer_page(peer), key and pinned_key_page(key))
    return pages[0] or None, pages[1] or None


async def _refuse_misnamed(settings: "Settings", domain: str, url: str | None) -> None:
    """Refuse ourselves as a peer, and a gateway that calls itself otherwise, if it answers."""
    from carnet.cli.reach.counterpart import name_at
    from carnet.cli.reach.gateway import open_http
    from carnet.errors import UsageInvalid

    own = settings.gateway.domain
    if domain == own:
        raise UsageInvalid(
            reason=f"{domain} is this organisation itself ([gateway] domain).",
            fix="Agents here are called by their names: carnet call NAME ...",
        )
    if url is None or not url.startswith(("http://", "https://")):
        return
    async with open_http() as http:
        name = await name_at(http, url)
    if name is not None and name != domain:
        name_there = "is this gateway itself" if name == own else f"calls itself {name}"
        raise UsageInvalid(
            reason=f"The gateway at {url} {name_there}, not {domain}.",
            fix="Give the name that it has, or the address of the one that is meant.",
        )


async def _known_hosts(store: "Store") -> list[str]:
    from carnet.core.people.address import host_of

    peers, keys = await store.peers.list(), await store.pinned.list()
    return [*(peer.domain for peer in peers), *(host_of(key.sender) for key in keys)]


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
    """List the organisations this gateway knows, and the keys that were pinned."""
    page = wait(_list_peers(invocation.settings))
    rows = [*page["peers"], *page["keys"], *page["strangers"]]
    invocation.result(page, lambda: invocation.spell(_known_text(page)), rows)


def _known_text(page: dict[str, Any]) -> str:
    texts = [_peers_text(page)] if page["peers"] or not page["keys"] else []
    pinned = [_pinned_text(page)] if page["keys"] else []
    return "\n\n".join([*texts, *pinned, *([strangers_text(page)] if page["strangers"] else [])])


def _pinned_text(page: dict[str, Any]) -> str:
    titles = ["SENDER", "KID", "STATE", "FROM", "KEY"]
    rows = [
        [
            entry["sender"],
            entry["kid"] or "any",
            entry["state"],
            "carnet.toml" if entry["from_file"] else "store",
            entry["key"],
        ]
        for entry in page["keys"]
    ]
    return table(rows, titles)


async def _list_peers(settings: "Settings") -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.gateway.partners.trust import peer_page, pinned_key_page

    async with opened(settings) as store:
        return {
            "peers": [peer_page(peer) for peer in await store.peers.list()],
            "keys": [pinned_key_page(key) for key in await store.pinned.list()],
            "strangers": [stranger_page(each) for each in await store.strangers.list()],
        }


def _peers_text(page: dict[str, Any]) -> str:
    if not page["peers"]:
        return "No peers. Admit one: carnet peers add DOMAIN --url URL"
    of_calls = ["AUTH", "FORWARDING", "TOKEN", "CREDIT", "MAX COST"]
    titles = ["DOMAIN", "URL", "DIALECT", *of_calls, "FROM"]
    rows = [
        [
            entry["domain"],
            entry["url"],
            entry["dialect"],
            entry["auth"],
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
@click.argument("domain", metavar="DOMAIN|agent://HOST")
@pass_invocation
def remove(invocation: Invocation, domain: str) -> None:
    """Forget an organisation; with agent://HOST, only the keys of that sender."""
    is_domain = "://" not in domain
    if not wait(_remove(invocation.settings, domain)):
        refuse_unknown("peer" if is_domain else "pinned key", domain, "carnet peers list")
    invocation.result({"domain": domain, "removed": True}, lambda: _forgotten_text(domain))


def _forgotten_text(domain: str) -> str:
    if "://" not in domain:
        return f"Forgot {domain}: its tokens are revoked, and its pinned keys are forgotten."
    return f"Forgot the pinned keys of {domain}: its card counts again, if it has one."


async def _remove(settings: "Settings", name: str) -> bool:
    from carnet.assembly.store import opened
    from carnet.cli.trust.key_forms import read_name, refuse_keys_of_the_file
    from carnet.runtime.system import SystemClock

    sender, domain = read_name(name)
    if name == domain:
        _refuse_from_file(settings, domain, "removes")
    refuse_keys_of_the_file(settings, sender)
    async with opened(settings) as store:
        unpinned = await store.pinned.remove(sender)
        if name != domain:
            return unpinned > 0
        now = SystemClock().wall_us()
        for token in await store.tokens.list():  # who is forgotten may not come in either
            if token.peer == domain and token.is_live(now):
                await store.tokens.revoke(token.name, now)
        return await store.peers.remove(domain) or unpinned > 0


@peers.command("revoke-key")
@click.argument("sender", metavar="agent://HOST")
@click.option("--kid", metavar="KID", help="That key alone (default: all of the sender's).")
@pass_invocation
def revoke_key(invocation: Invocation, sender: str, kid: str | None) -> None:
    """Revoke pinned keys at once; what they sign is refused, whatever a card says."""
    revoked = wait(_revoke_key(invocation.settings, sender, kid))
    if not revoked:
        refuse_unknown("live pinned key", kid or sender, "carnet peers list")
    page = {"sender": sender, "kid": kid, "revoked": revoked}
    text = f"Revoked {revoked} of the keys of {sender}. A running gateway notices within a second."
    invocation.result(page, lambda: text)


async def _revoke_key(settings: "Settings", name: str, kid: str | None) -> int:
    from carnet.assembly.store import opened
    from carnet.cli.trust.key_forms import read_name, refuse_keys_of_the_file
    from carnet.runtime.system import SystemClock

    sender, _ = read_name(name)
    refuse_keys_of_the_file(settings, sender)
    async with opened(settings) as store:
        return await store.pinned.revoke(sender, kid, SystemClock().wall_us())
