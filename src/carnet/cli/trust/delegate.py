"""`carnet tokens delegate`: let somebody act for us, and for no more than is said."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Command, Invocation, count, pass_invocation, table, wait
from carnet.cli.trust.tokens import refuse_unknown

if TYPE_CHECKING:
    from carnet.config import Settings
    from carnet.core.people.delegation import Delegation

LIFE = "15m"
STATES = (
    "first: nothing was granted before it. narrows: it grants no more than the link above it. "
    "Signatures are judged by whoever it is presented to."
)
OWN = (
    "There is no carnet.toml here, so it is signed with your own key, ~/.carnet/client.key; -c "
    "FILE names the configuration of a gateway that is to sign it."
)


@click.command(cls=Command)
@click.argument("subject", required=False)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="SKILL",
    help="A skill that may be asked for, or '*'; may be given repeatedly.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Calls in all that may follow one another (default: 1, or what the parent leaves).",
)
@click.option("--for", "audience", metavar="AGENT", help="Whom it may be presented to.")
@click.option(
    "--expires", metavar=LIFE, help="How long it holds: 15m (default), 2h; a day at the most."
)
@click.option("--budget", metavar="AMOUNT", help="The most that one call under it may cost.")
@click.option(
    "--calls", type=click.IntRange(1), metavar="N", help="The most calls within one under it."
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="Tokens that one call under it may use; once they are used it calls nobody else.",
)
@click.option("--once", is_flag=True, help="It is good for one call.")
@click.option("--parent", metavar="TOKEN", help="The token to derive it from (or FILE, or -).")
@click.option("--sdk", is_flag=True, help="Write it in the form that the SDKs read.")
@click.option("--key", metavar="FILE", help="Sign with this key of your own, not the gateway's.")
@click.option("--person", metavar="NAME", help="For whom it is granted: it ends with her.")
@click.option("--show", metavar="TOKEN", help="Show what a token grants (or FILE, or -).")
@pass_invocation
def delegate(invocation: Invocation, /, subject: str | None, **options: Any) -> int:
    """Make a delegation token: SUBJECT may ask for these skills on our behalf.

    It narrows what SUBJECT may do and never adds to it. Whoever is asked verifies it with our key;
    what is kept here is whose it is, so that it can be ended. A token that is derived with --parent
    brings its parent along, and grants no more of anything than that one.

    It is granted by the gateway of the configuration; with --key, or where there is none, by the
    holder of a key of one's own. --show ends with 4 if a link does not hold.
    """
    from carnet.cli.failures import OK, UNVERIFIED
    from carnet.cli.reach.recipient import has_settings
    from carnet.cli.trust.delegation_forms import chain_page, grant_page

    if options["show"]:
        page = chain_page(options["show"])
        invocation.result(page, lambda: _chain_text(page), page["links"])
        if invocation.format == "text":
            invocation.note(STATES)
        return OK if page["holds"] else UNVERIFIED
    page = grant_page(wait(_delegate(invocation, subject, options)))
    invocation.result(page, lambda: str(page["token"]))
    if invocation.format == "text":
        invocation.note(_granted_text(page))
        if not options["key"] and not has_settings(invocation):
            invocation.note(OWN)
    return OK


async def _delegate(
    invocation: Invocation, subject: str | None, options: dict[str, Any]
) -> "Delegation":
    from carnet.cli.reach.recipient import has_settings
    from carnet.cli.trust.delegation_forms import granted
    from carnet.core.people.address import AGENT
    from carnet.errors import UsageInvalid
    from carnet.runtime.client.key import load_key

    if options["key"] or not has_settings(invocation):
        if options["person"]:
            raise UsageInvalid(
                reason="A person's delegation is granted by the gateway that knows her.",
                fix="Leave out --key, and name the configuration of the gateway: -c FILE",
            )
        key = load_key(options["key"])
        return granted(f"{AGENT}client-{key.kid}", key, subject, options, currency=None)
    return await _by_gateway(invocation.settings, subject, options)


async def _by_gateway(
    settings: "Settings", subject: str | None, options: dict[str, Any]
) -> "Delegation":
    from carnet.assembly.store import opened
    from carnet.cli.trust.delegation_forms import granted
    from carnet.core.people.address import AGENT

    async with opened(settings) as store:
        name, person = options["person"], None
        if name is not None:
            person = store.people.find(name)
            if person is None:
                refuse_unknown("person", name, "carnet people list")
        made = granted(
            f"{AGENT}{settings.gateway.domain}",
            store.keys.signer(),
            subject,
            options,
            currency=settings.ledger.currency,
        )
        if made.token_id is not None:
            number = None if person is None else person.n
            if not await store.delegations.record(made, number):  # she has just ended
                refuse_unknown("person", name, "carnet people list")
        return made


MOST_LISTED = 1000


@click.command(cls=Command)
@pass_invocation
def delegations(invocation: Invocation) -> None:
    """List the delegations that this gateway has granted and that have not expired."""
    page = wait(_listed(invocation.settings))
    invocation.result(page, lambda: _listed_text(page), page["delegations"])


async def _listed(settings: "Settings") -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.runtime.system import SystemClock
    from carnet.wire.grammar.times import when

    async with opened(settings) as store:
        found = await store.delegations.list(SystemClock().wall_us(), limit=MOST_LISTED)
    listed = [
        {
            "id": one.id,
            "person": one.person,
            "audience": one.audience or None,
            "scope": list(one.scope),
            "parent": one.parent,
            "expires": when(one.until),
            "ended": when(one.ended),
        }
        for one in found
    ]
    return {"delegations": listed}


def _listed_text(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    if not page["delegations"]:
        return "No delegations."
    titles = ["ID", "PERSON", "FOR", "SKILLS", "UNTIL", "STATE"]
    rows = [
        [
            *(one["id"], one["person"] or "-", one["audience"] or "-", ", ".join(one["scope"])),
            *(short(one["expires"]), "ended" if one["ended"] else "live"),
        ]
        for one in page["delegations"]
    ]
    return table(rows, titles)


@click.command(cls=Command)
@click.argument("id")
@pass_invocation
def undelegate(invocation: Invocation, /, **options: str) -> None:
    """Revoke a delegation of ours, by its id, and every one below it."""
    ended = wait(_undelegate(invocation.settings, options["id"]))
    if not ended:
        refuse_unknown("delegation that holds", options["id"], "carnet tokens delegations")
    page = {"ended": ended}
    invocation.result(page, lambda: f"Ended {count(len(ended), 'delegation')}: {', '.join(ended)}")


async def _undelegate(settings: "Settings", id: str) -> list[str]:
    from carnet.assembly.store import opened
    from carnet.runtime.system import SystemClock

    async with opened(settings) as store:
        return await store.delegations.end(id, SystemClock().wall_us())


def _granted_text(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    skills = ", ".join(page["scope"]) or "nothing"
    where = f" at {page['audience']}" if page["audience"] else ""
    often = " once" if page["once"] else ""
    return (
        f"From {page['issuer']}: with it {page['subject']} may ask for {skills}{where}{often}, "
        f"until {short(page['expires'])} UTC. It is no secret of ours, but whoever signs as "
        f"{page['subject']} can use it."
    )


def _chain_text(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    titles = ["LINK", "FROM", "TO", "FOR", "SKILLS", "HOPS", "UNTIL", "BUDGET", "STATE"]
    rows = [
        [
            str(link["link"]),
            link["issuer"],
            link["subject"] + (" (once)" if link["once"] else ""),
            link["audience"] or "-",
            ", ".join(link["scope"]) or "none",
            str(link["maxDepth"]),
            short(link["expires"]),
            _budget_text(link["budget"]),
            link["state"],
        ]
        for link in page["links"]
    ]
    return table(rows, titles)


def _budget_text(budget: dict[str, Any] | None) -> str:
    if budget is None:
        return "-"
    money = f"{budget['money']} {budget['currency']}" if budget["money"] is not None else ""
    counts = [f"{budget[name]} {name}" for name in ("calls", "tokens") if budget[name] is not None]
    return ", ".join(filter(None, (money, *counts)))
