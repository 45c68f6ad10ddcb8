"""`carnet backup`, `restore` and `migrate --to`: a copy of the store, back, and elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Command, Invocation, count, pass_invocation, wait
from carnet.cli.progress import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carnet.config import Settings


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--with-secrets", is_flag=True, help="Copy the secrets too, to FILE.secrets.")
@pass_invocation
def backup(invocation: Invocation, file: Path, *, force: bool, with_secrets: bool) -> None:
    """Copy the store into a SQLite file, complete and checked, while the gateway runs."""
    from carnet.assembly.backup import backup_from

    with ProgressLine("rows") as progress:
        made = wait(
            backup_from(
                invocation.settings,
                file,
                replaces=force,
                with_secrets=with_secrets,
                progress=progress.of_table,
            )
        )
    page = {
        "file": str(made.file),
        "bytes": made.size,
        "store": invocation.settings.store.url,
        "secrets": None if made.secrets is None else str(made.secrets),
        "ledger_faults": made.faults,
    }
    invocation.result(page, lambda: f"{made.file} holds the whole store ({made.size:,} bytes).")
    _warn_of(made.faults, invocation)
    invocation.note(_not_inside(invocation.settings, made.secrets))


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace what the store holds.")
@pass_invocation
def restore(invocation: Invocation, file: Path, *, force: bool) -> None:
    """Put a backup back into the store, whole or not at all, while no gateway runs."""
    from carnet.assembly.restore import restore_from

    settings = invocation.settings
    with ProgressLine("rows") as progress:
        made = wait(restore_from(settings, file, replaces=force, progress=progress.of_table))
    page = {
        "file": str(file),
        "store": settings.store.url,
        "rows": made.rows,
        "migrations": made.migrations,
        "ledger_faults": made.faults,
    }
    older = f" It was {count(made.migrations, 'migration')} behind." if made.migrations else ""
    summary = f"Restored {_counted(made.rows)} from {file} to {settings.store.url}.{older}"
    invocation.result(page, lambda: summary)
    _warn_of(made.faults, invocation)
    invocation.note("What came after that backup is not in it. Start the gateway: carnet serve")


def _counted(rows: "Mapping[str, int]") -> str:
    return (
        f"{count(rows['turn'], 'turn')}, {count(rows['ledger'], 'posting')},"
        f" {count(rows['token'], 'token')} and {count(rows['peer'], 'peer')}"
    )


def _warn_of(faults: int, invocation: Invocation) -> None:
    if faults:
        warning = (
            f"The ledger does not verify ({count(faults, 'fault')}), in the copy as in the store"
        )
        invocation.note(f"Warning: {warning}. See: carnet ledger verify")


def _not_inside(settings: "Settings", secrets: Path | None) -> str:
    from carnet.config import secret_path

    own = secret_path(settings.store.secrets, settings.base)
    if secrets is not None:
        return f"The secrets are in {secrets}: keep the two apart. The configuration is not inside."
    return (
        f"Not inside: the secrets ({own}), without which tokens are not recognised, and the"
        " configuration with its agents. Keep them too, apart from this file."
    )


def move(invocation: Invocation, target: str) -> None:
    """Copy the store to another place and say what to change."""
    from carnet.assembly.backup import move_from

    settings = invocation.settings
    url = _checked(target)
    with ProgressLine("rows") as progress:
        copied = wait(move_from(settings, url, progress=progress.of_table))
    counts = copied.rows
    page: dict[str, Any] = {
        "from": settings.store.url,
        "to": url,
        "rows": counts,
        "ledger_faults": copied.faults,
    }
    summary = f"Moved {_counted(counts)} to {url}; the ledger is the same there."
    invocation.result(page, lambda: summary)
    _warn_of(copied.faults, invocation)
    name = settings.source.name
    invocation.note(
        f'Now set url in the section [store] of {name}:\n\n    url = "{url}"\n\n'
        "Then start the gateway. The old store was not changed; set it aside when all is well."
    )


def _checked(target: str) -> str:
    """The target as [store] url takes it: with no password in it."""
    from carnet.config.readers import Wrong, store_url
    from carnet.errors import UsageInvalid

    try:
        url: str = store_url().read(target)
    except Wrong as error:
        raise UsageInvalid(
            reason=f"--to {error}.", fix="It takes what [store] url takes in carnet.toml."
        ) from None
    return url
