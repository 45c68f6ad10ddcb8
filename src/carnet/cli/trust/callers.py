"""`carnet callers`: the hosts whose caller contexts are believed."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Group, Invocation, pass_invocation, table, wait
from carnet.cli.trust.tokens import refuse_unknown

if TYPE_CHECKING:
    from carnet.config import Settings
    from carnet.core.people.caller_host import CallerHost
    from carnet.ports.trust.callers import NewCaller

OVERLAP = "1h"
PEM_FILES = frozenset({".pem", ".crt", ".cer"})


@click.group(cls=Group)
def callers() -> None:
    """List the hosts whose agents call with a caller context (agents-api), and their keys.

    What a host says of its agents and users is a claim until it shows the key that it shares with
    us, in the header X-Agents-Api-Caller-Key, or the certificate that a trusted proxy verifies.
    """


@callers.command()
@click.argument("url", metavar="https://SITE")
@click.option(
    "--certificate",
    metavar="FILE|sha256:HEX|SUBJECT",
    help="It is known by its client certificate (a file in PEM, its fingerprint, or its subject as"
    " the proxy writes it), and has no key.",
)
@click.option("--rate", metavar="N/min", help="Calls of all its tokens: N/s, N/min or N/h.")
@click.option(
    "--metadata",
    metavar="NAME=VALUE",
    multiple=True,
    help="What agents and the policy are told about it; may be given repeatedly.",
)
@pass_invocation
def add(invocation: Invocation, /, url: str, **options: Any) -> None:
    """Believe a host; its key is printed once, and only its hash is kept."""
    page = wait(_add(invocation.settings, url, options))
    invocation.result(page, lambda: str(page["key"] or f"Listed: {page['url']}."))
    if page["key"] and invocation.format == "text":
        invocation.note(
            f"This is the key of {page['url']}, shown this once. It sends it with every call:"
            " X-Agents-Api-Caller-Key."
        )


async def _add(settings: "Settings", url: str, options: dict[str, Any]) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.runtime.system import SystemClock

    new = _new_caller(url, options)
    async with opened(settings) as store:
        key = await store.callers.add(new, SystemClock().wall_us())
        found = store.callers.find(new.url)
    page = {} if found is None else caller_page(found)
    return {"key": None if key is None else key.reveal(), **page}


@callers.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that were ended.")
@pass_invocation
def list_callers(invocation: Invocation, everything: bool) -> None:  # noqa: FBT001  click passes it
    """List the hosts; never their keys, which nobody has."""
    page = wait(_list(invocation.settings, everything=everything))
    invocation.result(page, lambda: invocation.spell(_text(page)), page["callers"])


async def _list(settings: "Settings", *, everything: bool) -> dict[str, Any]:
    from carnet.assembly.store import opened

    async with opened(settings) as store:
        known = await store.callers.list()
    shown = [host for host in known if everything or host.ended is None]
    return {"callers": [caller_page(host) for host in shown]}


def _text(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    if not page["callers"]:
        return (
            "No hosts: every caller context is a claim. List one: carnet callers add https://SITE"
        )
    titles = ["HOST", "STATE", "KNOWN BY", "RATE", "ADDED", "ABOUT IT"]
    rows = [
        [
            entry["url"],
            entry["state"],
            entry["certificate"] or _key_of(entry),
            entry["rate"] or "-",
            "carnet.toml" if entry["from_file"] else short(entry["added"]),
            ", ".join(f"{name}={value}" for name, value in entry["metadata"].items()) or "-",
        ]
        for entry in page["callers"]
    ]
    return table(rows, titles)


def _key_of(entry: dict[str, Any]) -> str:
    from carnet.cli.times import short

    until = entry["former_key_until"]
    return f"key (the one before until {short(until)})" if until else "key"


@callers.command()
@click.argument("url", metavar="https://SITE")
@click.option(
    "--overlap",
    metavar="1h",
    default=OVERLAP,
    help=f"How long the key before still holds (default: {OVERLAP}); 0s ends it at once.",
)
@pass_invocation
def rotate(invocation: Invocation, url: str, overlap: str) -> None:
    """Give a host another key and print it once; the one before holds for a while."""
    page = wait(_rotate(invocation.settings, url, overlap))
    invocation.result(page, lambda: str(page["key"]))
    if invocation.format == "text":
        invocation.note(f"The key before holds until {page['former_key_until']}.")


async def _rotate(settings: "Settings", url: str, overlap: str) -> dict[str, Any]:
    from carnet.assembly.store import opened
    from carnet.cli.times import read_span
    from carnet.runtime.system import SystemClock

    seconds = 0 if overlap == "0s" else read_span(overlap, option="--overlap", never=False) or 0
    site = _site(url)
    async with opened(settings) as store:
        now = SystemClock().wall_us()
        key = await store.callers.rotate(site, now, overlap_seconds=seconds)
        found = store.callers.find(site)
    return {"key": key.reveal(), **({} if found is None else caller_page(found))}


@callers.command()
@click.argument("url", metavar="https://SITE")
@pass_invocation
def end(invocation: Invocation, url: str) -> None:
    """Believe a host no longer; running gateways notice within a second.

    Its tokens stay: what it says of itself is a claim from then on.
    """
    site = _site(url)
    if not wait(_end(invocation.settings, site)):
        refuse_unknown("host", site, "carnet callers list")
    text = f"Ended: {site}. What it says of itself is a claim from now on."
    invocation.result({"url": site, "ended": True}, lambda: text)


async def _end(settings: "Settings", site: str) -> bool:
    from carnet.assembly.store import opened
    from carnet.runtime.system import SystemClock

    async with opened(settings) as store:
        return await store.callers.end(site, SystemClock().wall_us())


def caller_page(host: "CallerHost") -> dict[str, Any]:
    """A host as it is listed."""
    from carnet.cli.times import write_rate
    from carnet.wire.grammar.times import when

    calls = host.rate_calls
    return {
        "url": host.url,
        "state": "listed" if host.ended is None else "ended",
        "has_key": host.has_key,
        "former_key_until": when(host.former_until),
        "certificate": host.certificate,
        "rate": None if calls is None else write_rate(calls, host.rate_seconds),
        "metadata": host.metadata,
        "added": None if host.from_file else when(host.added),
        "ended": when(host.ended),
        "from_file": host.from_file,
    }


def _site(url: str) -> str:
    from carnet.core.people.caller_host import site_of
    from carnet.errors import UsageInvalid

    site = site_of(url)
    if site is None:
        raise UsageInvalid(
            reason=f"'{url}' is no URL of a host.",
            fix="Write it as the host names itself in X-Agents-Api-Caller-Host, such as"
            " https://site.example or https://example.org/blog.",
        )
    return site


def _new_caller(url: str, options: dict[str, Any]) -> "NewCaller":
    from carnet.cli.times import read_rate
    from carnet.ports.trust.callers import NewCaller

    calls, seconds = read_rate(options["rate"]) if options["rate"] else (None, 60)
    return NewCaller(
        url=_site(url),
        certificate=_certificate(options["certificate"]),
        metadata=_metadata(options["metadata"]),
        rate_calls=calls,
        rate_seconds=seconds,
    )


def _certificate(text: str | None) -> str | None:
    import hashlib
    import ssl
    from pathlib import Path

    from carnet.config.trust.callers import read_certificate
    from carnet.errors import UsageInvalid

    if text is None:
        return None
    path = Path(text)
    try:
        if path.suffix in PEM_FILES and path.is_file():
            der = ssl.PEM_cert_to_DER_cert(path.read_text("ascii").strip())
            text = f"sha256:{hashlib.sha256(der).hexdigest()}"
        return read_certificate(text)
    except (ValueError, OSError):
        raise UsageInvalid(
            reason=f"--certificate {text} is no certificate.",
            fix="Name a file that holds one in PEM (.pem, .crt, .cer), or write sha256: and its"
            " fingerprint in hex, or its subject as the proxy tells it.",
        ) from None


def _metadata(given: tuple[str, ...]) -> dict[str, str]:
    from carnet.config.trust.callers import MOST_METADATA, is_metadata
    from carnet.errors import UsageInvalid

    found = {name: value for name, _, value in (each.partition("=") for each in given)}
    if not is_metadata(found) or not all("=" in each for each in given):
        raise UsageInvalid(
            reason="--metadata is not in its form.",
            fix=f"Write NAME=VALUE, such as team=docs; at most {MOST_METADATA} of them.",
        )
    return found
