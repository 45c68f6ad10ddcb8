"""`carnet reload`: have a running gateway read its configuration again."""

from typing import Any

import click

from carnet.cli.invocation import Command, Invocation, count, pass_invocation, wait


@click.command(cls=Command)
@click.option("--as", "given", metavar="TOKEN", help="Ask with this token (@FILE: from a file).")
@pass_invocation
def reload(invocation: Invocation, given: str | None) -> None:
    """Have the running gateway read carnet.toml and its agents again, without a restart.

    What is running goes on as it began. A file that cannot be used changes nothing.
    """
    url, page = wait(_reload(invocation, given))
    invocation.result({"url": url, **page}, lambda: _text(url, page))
    if page["needs_restart"] and invocation.format == "text":
        names = ", ".join(page["needs_restart"])
        click.echo(
            f"Warning: a restart is needed for {names}; until then it stays as it was.", err=True
        )


async def _reload(invocation: Invocation, given: str | None) -> tuple[str, dict[str, Any]]:
    from carnet.cli.failures import GatewayError
    from carnet.cli.reach import gateway
    from carnet.errors import TokenInvalid, UsageInvalid
    from carnet.ports.world.http_client import Bounds

    bounds = Bounds(connect_seconds=3, first_byte_seconds=90, idle_seconds=90, total_seconds=100)
    async with gateway.open_http() as http, gateway.reached(invocation, http, given) as (place, by):
        request = gateway.request_to(place, "POST", "/-/reload", by, bounds=bounds)
        try:
            async with gateway.sending(http, request, token_is_new=by.is_new) as answer:
                return place.url, gateway.decode(await answer.read())
        except GatewayError as error:
            if not by.is_new or error.facts.get("code") != TokenInvalid.code:
                raise
            raise UsageInvalid(
                reason=f"The gateway at {place.url} serves from another store than [store] url, "
                f"'{invocation.settings.store.url}': a changed store needs a restart.",
                fix="Nothing was changed. Restart the gateway; SIGHUP has it take over the rest.",
            ) from None


def _text(url: str, page: dict[str, Any]) -> str:
    lines = [f"The gateway at {url} has read {page['config']} again."]
    lines += [f"  changed  {name}" for name in (*page["changed"], *page["files"])]
    if len(lines) == 1:
        lines += ["  nothing has changed in its files; agents were loaded again"]
    return "\n".join([*lines, f"It serves {count(len(page['agents']), 'agent')}."])
