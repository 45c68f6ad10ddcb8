"""`carnet conversation`: have several agents speak in turn, from here, and go on with a run.

Law 1. A run is kept from its first event: Ctrl-C aborts it, and says how to go on with it.
Law 2. The exit code says how it ended: 0 by its limits or its predicate, that of the failure where
       a participant failed, 3 where its time was over, 130 after Ctrl-C.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from carnet.cli.failures import INTERRUPTED, OK, OURS, UNREACHABLE, exit_code
from carnet.cli.invocation import Command, Invocation, in_line, pass_invocation, visible, wait

if TYPE_CHECKING:
    from carnet.core.dialogue.events import ConversationResult, DialogueEvent
    from carnet.core.dialogue.halt import Halt
    from carnet.runtime.dialogue.definition import Conversation

JOURNAL_SUFFIX: Final = ".journal"


@click.command(cls=Command)
@click.argument("file", metavar="FILE[:NAME]")
@click.argument("text", required=False)
@click.option("--resume", metavar="RUN", help="Go on with a run of the journal.")
@click.option(
    "--journal",
    metavar="sqlite:FILE",
    help="Where it is kept (default: FILE with the ending .journal, beside it).",
)
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Turns after which it ends.")
@click.option("--max-spend", metavar="AMOUNT", help="An amount that ends it once it is spent.")
@click.option(
    "--deadline",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="Seconds for all of it.",
)
@pass_invocation
def conversation(
    invocation: Invocation,
    /,
    file: str,
    text: str | None,
    resume: str | None,
    journal: str | None,
    **limits: Any,
) -> int:
    """Have several agents speak in turn.

    FILE is Python with a carnet.Conversation (with several of them, FILE:NAME says which), or TOML
    with 'participants', 'max_turns' and what else a conversation of carnet.toml has. TEXT is what
    it begins with; - reads it from standard input.

    It is driven from here, without a gateway: who takes part elsewhere is called by its address.
    """
    from carnet.cli.call.definition import read_definition
    from carnet.errors import UsageInvalid

    path, name = _split(file)
    invocation.refuse_foreign(path.parent, path)
    given = {limit: value for limit, value in limits.items() if value is not None}
    try:
        defined, seed = read_definition(path, name)
        defined = defined.within(**given)
        defined.refuse_names()
    except (TypeError, ValueError) as error:
        raise UsageInvalid(reason=f"{file}: {error}.", fix="See docs/conversations.md.") from None
    spoken = sys.stdin.read() if text == "-" else text
    options = {
        "seed": spoken if spoken is not None or resume else seed,
        "run_id": resume,
        "journal": journal or f"sqlite:{path.with_suffix(JOURNAL_SUFFIX)}",
    }
    return wait(_converse(invocation, defined, options, file))


def _split(file: str) -> tuple[Path, str | None]:
    """A path, and the name of what is meant in it."""
    path, colon, name = file.rpartition(":")
    if colon and name.isidentifier() and not Path(file).exists():
        return Path(path).absolute(), name
    return Path(file).absolute(), None


async def _converse(
    invocation: Invocation, defined: "Conversation", options: dict[str, Any], file: str
) -> int:
    import asyncio
    import signal
    from contextlib import suppress

    from carnet.assembly.dialogue.driver import run_conversation
    from carnet.cli.progress import ProgressLine

    abort, loop = asyncio.Event(), asyncio.get_running_loop()
    with suppress(NotImplementedError):  # where there are no signals, Ctrl-C cancels
        loop.add_signal_handler(signal.SIGINT, abort.set)
    with ProgressLine() as progress:
        shown = _Shown(invocation, defined.limits.max_turns, progress.say)
        result = await run_conversation(defined, on_event=shown, abort=abort, **options)
    if invocation.format == "json":
        invocation.result(_page(result), str)
    _tell_end(invocation, result, file, options["journal"])
    return _exit_code(result.halted)


class _Shown:
    """Shows a run as it goes."""

    def __init__(self, invocation: Invocation, turns: int, say: Any) -> None:
        self._invocation = invocation
        self._turns = turns
        self._say = say

    def __call__(self, event: "DialogueEvent") -> None:
        from carnet.core.dialogue import events

        if self._invocation.format == "jsonl":
            self._invocation.line(event, "")
            return
        match event:
            case events.TurnStarted() | events.TurnRetried():
                self._say(f"turn {event.index + 1} of {self._turns}: {in_line(event.speaker)}")
            case events.ConversationResumed(transcript=turns):
                for turn in turns:
                    self._show(turn)
            case events.TurnEnded(turn=turn):
                self._show(turn)
            case events.TurnSkipped():
                self._say("")
                self._invocation.note(f"[{in_line(event.speaker)}] is left out: {event.message}")
            case _:
                return

    def _show(self, turn: Any) -> None:
        self._say("")
        if self._invocation.format == "text":
            click.echo(f"[{in_line(turn.speaker)}] {visible(turn.text)}")


def _page(result: "ConversationResult") -> dict[str, Any]:
    import msgspec

    from carnet.core.money.amount import format_amount

    page: dict[str, Any] = msgspec.to_builtins(result)
    return page | {"spent": format_amount(result.spent)}


def _tell_end(
    invocation: Invocation, result: "ConversationResult", file: str, journal: str
) -> None:
    from shlex import quote

    from carnet.core.money.amount import format_amount

    words = [f"run {result.run_id}", in_line(str(result.halted)), format_amount(result.spent)]
    if result.unknown_costs:
        words.append(f"the cost of {result.unknown_costs} attempts is unknown")
    invocation.note("  ".join(words))
    if result.halted.kind in {"abort", "deadline", "participant_error"}:
        again = f"carnet conversation {quote(file)} --resume {quote(result.run_id)}"
        invocation.note(invocation.spell(f"Go on with: {again} --journal {quote(journal)}"))


def _exit_code(halted: "Halt") -> int:
    from carnet.errors import BY_CODE

    if halted.kind == "abort":
        return INTERRUPTED
    if halted.kind == "deadline":
        return UNREACHABLE
    if halted.kind == "participant_error":
        kind = BY_CODE.get(halted.code or "")
        return OURS if kind is None else exit_code(kind)
    return OK
