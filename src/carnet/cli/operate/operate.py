"""`carnet config`, `migrate`, `prune`, `version`, `help`, `completion`: running it day by day."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import (
    Command,
    Group,
    Invocation,
    count,
    loading,
    pass_invocation,
    wait,
)
from carnet.cli.operate.backup import move

if TYPE_CHECKING:
    from carnet.config import Settings


@click.group(cls=Group)
def config() -> None:
    """Check and show the configuration."""


@config.command()
@loading
@pass_invocation
def check(invocation: Invocation, load: bool) -> None:  # noqa: FBT001  click passes it
    """Say whether the configuration can be used: with its agents, its secrets and its store."""
    from carnet.cli.references import resolve

    settings = invocation.settings
    seen = resolve(settings, load=load)
    page = {
        "ok": True,
        "config": str(settings.source),
        "agents": list(settings.agents),
        "peers": list(settings.peers),
        "loaded": load,
        "unseen": {name: sight.unseen for name, sight in seen.items() if sight.unseen},
    }
    words = f"{count(len(settings.agents), 'agent')}, {count(len(settings.peers), 'peer')}"
    invocation.result(page, lambda: f"{settings.source} can be used ({words}).")
    if invocation.format == "text" and any(agent.target for agent in settings.agents.values()):
        invocation.note_unseen(seen, "carnet config check --load", is_loaded=load)


@config.command()
@pass_invocation
def show(invocation: Invocation) -> None:
    """Print every value as it is in force, and where it came from; secrets as ***."""
    from carnet.config.changes import values_of

    values = values_of(invocation.settings)
    page = {"config": str(invocation.settings.source), "values": values}
    invocation.result(page, lambda: _as_toml(values), values)


def _as_toml(values: list[dict[str, Any]]) -> str:
    from carnet.cli.invocation import to_json

    lines: list[str] = []
    section = ""
    for entry in values:
        if entry["section"] != section:
            section = entry["section"]
            lines += [""] * bool(lines) + [f"[{section}]"]
        unset = entry["value"] is None
        origin = ", ".join(filter(None, [entry.get("reference"), entry["from"]]))
        text = (
            f"# {entry['key']} (not set)"
            if unset
            else f"{entry['key']} = {to_json(entry['value'])}"
        )
        lines.append(f"{text:<44}  # {origin}")
    return "\n".join(lines)


@click.command(cls=Command)
@click.option("--to", "target", metavar="URL", help="Move all of it to an empty database.")
@pass_invocation
def migrate(invocation: Invocation, target: str | None) -> None:
    """Bring the store to the form this version needs, or move it to another database."""
    from carnet.assembly.store import migrate_from

    if target is not None:
        move(invocation, target)
        return
    applied = wait(migrate_from(invocation.settings))
    page = {"store": invocation.settings.store.url, "up_to_date": True, "applied": applied or 0}
    summary = (
        "SQLite stores are brought up to date whenever they are opened"
        if applied is None
        else f"{count(applied, 'migration')} applied"
    )
    invocation.result(page, lambda: f"{page['store']} is up to date: {summary}.")


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Only say what would be forgotten.")
@pass_invocation
def prune(invocation: Invocation, dry_run: bool) -> None:  # noqa: FBT001  click passes it
    """Forget turns and events older than [retention] says; the ledger is kept."""
    page = wait(_prune(invocation.settings, dry_run=dry_run))
    what = f"{count(page['turns'], 'turn')} and {count(page['events'], 'row')} of events"
    summary = f"{'Would forget' if dry_run else 'Forgot'} {what}; the ledger is kept."
    invocation.result(page, lambda: summary)


async def _prune(settings: "Settings", *, dry_run: bool) -> dict[str, Any]:
    import msgspec

    from carnet.assembly.store import opened

    keep = settings.retention
    async with opened(settings) as store:
        gone = await store.prune(turn_days=keep.turns, event_days=keep.events, dry_run=dry_run)
    return {**msgspec.to_builtins(gone), "dry_run": dry_run}


@click.command(cls=Command)
@pass_invocation
def version(invocation: Invocation) -> None:
    """Print the version."""
    import platform

    from carnet.version import __version__

    page = {"carnet": __version__, "python": platform.python_version()}
    invocation.result(page, lambda: f"carnet {page['carnet']} (Python {page['python']})")


@click.command("help", cls=Command)
@click.argument("words", metavar="COMMAND", nargs=-1)
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Say what a command takes, as --help after it does."""
    root = ctx.find_root()
    root.command.main([*words, "--help"], root.info_name, standalone_mode=False, obj=root.obj)


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete carnet's commands.

    For bash, for example: eval "$(carnet completion bash)"
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is not None:
        root = ctx.find_root()
        click.echo(kind(root.command, {}, "carnet", "_CARNET_COMPLETE").source())
