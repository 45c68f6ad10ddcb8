"""`carnet run export`: all that is kept of a run, as lines.

Law. What was said is written as it is read: what is in memory does not grow with it.
"""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Command, Invocation, pass_invocation, to_json, wait

if TYPE_CHECKING:
    from carnet.stores.open import Store

FORMS = ("jsonl", "otlp")


class ExportCommand(Command):
    """A command whose `--format` has words of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = next(each for each in self.params if each.name == "form")
        self.params = [each for each in self.params if each is own or "--format" not in each.opts]


@click.command("export", cls=ExportCommand)
@click.argument("run_id", metavar="ID")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    default="jsonl",
    help="Lines of JSON (default), or spans: OTLP as JSON, a request a line.",
)
@pass_invocation
def export(invocation: Invocation, run_id: str, form: str) -> None:
    """Write all that is kept of a run: turns, events, costs, calls to others. No secret is in it.

    It is read from the store of this configuration. ID is named as for 'run show'.
    """
    wait(_export(invocation, run_id, form))


async def _export(invocation: Invocation, run_id: str, form: str) -> None:
    from carnet.assembly.store import opened
    from carnet.cli.see.stored import find_stored

    async with opened(invocation.settings) as store:
        run = await find_stored(store, run_id)
        async for line in _lines(invocation, store, run, form):
            click.echo(to_json(line))


def _lines(
    invocation: Invocation, store: "Store", run: str, form: str
) -> AsyncIterator[dict[str, Any]]:
    from carnet.runtime.replay.export import export_lines
    from carnet.runtime.replay.otlp import export_spans

    settings = invocation.settings
    if form == "otlp":
        return export_spans(store, run, settings.gateway.domain)
    return export_lines(store.records, run, settings.ledger.currency)
