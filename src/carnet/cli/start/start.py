"""`carnet init`, `serve`, `engine`, `doctor`: from nothing to a gateway that answers."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import (
    Command,
    Invocation,
    loading,
    paint,
    pass_invocation,
    program,
    wait,
)

if TYPE_CHECKING:
    from carnet.cli.start.init import Started
    from carnet.config import Settings

COLORS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--domain", default="carnet.localhost", help="The domain of this organisation.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8700,
    help="The port (8700); with 0 the system chooses one at every start.",
)
@click.option("--quiet", is_flag=True, help="Say nothing, unless something is amiss.")
@pass_invocation
def init(invocation: Invocation, /, folder: Path, domain: str, port: int, quiet: bool) -> None:  # noqa: FBT001  click passes it
    """Write a working configuration, an example agent, keys and a first token.

    What exists is kept; what is missing is made, also in a folder where something was lost.
    """
    from carnet.cli.start.init import start_in

    invocation.refuse_foreign(folder, folder / "carnet.toml")
    started, settings = wait(start_in(folder.absolute(), domain=domain, port=port))
    name = settings.default_agent or "AGENT"
    steps = _next_steps(folder, name)
    page = {
        "config": str(started.config),
        "created": started.created,
        "kept": started.kept,
        "warnings": started.warnings,
        "next": steps,
    }
    if not quiet:
        invocation.result(page, lambda: _init_text(started, steps))
    for warning in started.warnings if invocation.format == "text" else ():
        click.echo(invocation.spell(f"Warning: {warning}"), err=True)


def _next_steps(folder: Path, name: str) -> list[str]:
    here = folder.resolve() == Path.cwd()
    option = "" if here else f"-c {quote(str(folder / 'carnet.toml'))} "
    own = program()
    return [f"{own} {option}serve", f"{own} {option}call {name} hello"]


def _init_text(started: "Started", steps: list[str]) -> str:
    lines = []
    if started.created:
        lines += [f"In {started.config.parent}:"]
        lines += [f"  wrote  {name}" for name in started.created]
        lines += [f"  kept   {name}" for name in started.kept]
    else:
        lines += [f"{started.config.parent} has everything already; nothing was changed."]
    return "\n".join([*lines, "", "Next:", *(f"  {step}" for step in steps)])


@click.command(cls=Command)
@click.option("--host", help="Listen on this address instead of the configured one.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Listen on this port instead; 0 lets the system choose.",
)
@click.option(
    "--fd",
    type=click.IntRange(3),
    metavar="N",
    help="Listen on the bound socket that was handed down as file descriptor N.",
)
@click.option("--reload", "watch", is_flag=True, help="Reload whenever a file changes.")
@pass_invocation
def serve(
    invocation: Invocation,
    /,
    host: str | None,
    port: int | None,
    fd: int | None,
    watch: bool,  # noqa: FBT001  click passes it
) -> int:
    """Run the gateway until Ctrl-C. The log is on stdout: text on a terminal, else JSON."""
    settings = invocation.settings
    from carnet.assembly.engine.beside import beside
    from carnet.assembly.serve import serve as run_gateway
    from carnet.errors import ConfigInvalid, UsageInvalid

    try:
        return run_gateway(
            settings,
            beside=beside,
            host=host,
            port=port,
            fd=fd,
            spell=invocation.spell,
            read=lambda: invocation.read(settings.source),
            watch=watch,
        )
    except (ConfigInvalid, UsageInvalid) as error:
        is_taken = isinstance(error, UsageInvalid) or error.facts.get("key") == "gateway.port"
        url = wait(_running_at(settings)) if is_taken else None
        if url is None:
            raise
        raise UsageInvalid(
            reason=f"The gateway of {settings.source} is already running, at {url}.",
            fix="Commands reach it there: carnet runs. Ctrl-C where it runs stops it.",
        ) from None


@click.command(cls=Command)
@click.option(
    "--fd",
    type=click.IntRange(3),
    metavar="N",
    help="Listen on the bound socket that was handed down as file descriptor N.",
)
@pass_invocation
def engine(invocation: Invocation, /, fd: int | None) -> int:
    """Run the agent loop by itself until Ctrl-C, where [engine] listen says."""
    settings = invocation.settings
    from carnet.assembly.engine.serve import serve_engine

    def announce(url: str) -> None:
        click.echo(f"The engine listens at {url}. Ctrl-C stops it.", err=True)

    return serve_engine(settings, fd=fd, on_listening=announce)


async def _running_at(settings: "Settings") -> str | None:
    """Where the gateway of this configuration answers, if it does."""
    from carnet.cli.reach import gateway

    url = gateway.written_url(settings)
    if url is None:
        return None
    async with gateway.open_http() as http:
        is_there = await gateway.is_answering(http, gateway.Place(url, is_ours=True))
    return url if is_there else None


@click.command(cls=Command)
@loading
@pass_invocation
def doctor(invocation: Invocation, load: bool) -> int:  # noqa: FBT001  click passes it
    """Check configuration, store, keys, port, agents and peers, and say how to mend each."""
    from carnet.cli.start.doctor import examine

    findings = wait(examine(invocation, load=load))
    failed = any(finding.status == "fail" for finding in findings)
    checks: list[dict[str, Any]] = [finding.page() for finding in findings]
    page = {"ok": not failed, "checks": checks}
    text = "\n".join(map(_finding_text, checks))
    invocation.result(page, lambda: invocation.spell(text), checks)
    return 2 if failed else 0


def _finding_text(check: dict[str, Any]) -> str:
    status = paint(f"{check['status']:<4}", COLORS[check["status"]])
    line = f"{status}  {check['what']:<8} {check['message']}"
    return f"{line}\n               {check['fix']}" if check["fix"] else line
