"""`carnet conversation`: have several agents speak in turn, from here, and go on with a run.

Law 1. A run is kept from its first event: Ctrl-C aborts it, and says how to go on with it.
Law 2. What goes on is a run that is there: by its id, the beginning of it, or as `last`.
Law 3. The exit code says how it ended: 0 by its limits or its predicate, that of the failure where
       a participant failed, 3 where its time was over, 130 after Ctrl-C.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from carnet.cli.call.resumed import LAST, find_resumed
from carnet.cli.failures import INTERRUPTED, OK, OURS, UNREACHABLE, exit_code
from carnet.cli.invocation import (
    Command,
    Invocation,
    count,
    in_line,
    pass_invocation,
    visible,
    wait,
)

if TYPE_CHECKING:
    from carnet.core.dialogue.events import ConversationResult, DialogueEvent
    from carnet.core.dialogue.halt import Halt
    from carnet.runtime.dialogue.definition import Conversation

JOURNAL_SUFFIX: Final = ".journal"
MOST_TURNS: Final = 10_000  # as in a configuration


@click.command(cls=Command)
@click.argument("file", metavar="FILE[:NAME]")
@click.argument("text", required=False)
@click.option(
    "--resume",
    metavar="RUN",
    help="Go on with a run of the journal: its id, the beginning of it, or last.",
)
@click.option(
    "--journal",
    metavar="sqlite:FILE",
    help="Where it is kept (default: FILE with the ending .journal, beside it).",
)
@click.option(
    "--allow-changes",
    is_flag=True,
    help="Go on with a run although its definition or seed is another one now.",
)
@click.option(
    "--max-turns",
    type=click.IntRange(1, MOST_TURNS),
    metavar="N",
    help="Turns after which it ends.",
)
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
    allow_changes: bool,  # noqa: FBT001  click passes it
    **limits: Any,
) -> int:
    """Have several agents speak in turn.

    FILE is Python with a carnet.Conversation (with several of them, FILE:NAME says which), or TOML
    with 'participants', 'max_turns' and what else a conversation of carnet.toml has. TEXT is what
    it begins with; - reads it from standard input.

    It is driven from here, without a gateway: who takes part elsewhere is called by its address.
    """
    from carnet.errors import UsageInvalid

    path, name = _split(file)
    invocation.refuse_foreign(path.parent, path)
    defined, seed = _defined(path, name, file, limits)
    spoken = sys.stdin.read() if text == "-" else text
    if not spoken and not seed and resume is None:
        raise UsageInvalid(
            reason="Nothing says what it begins with.",
            fix=f'Say it: carnet conversation {file} "..." (or - for standard input)',
        )
    options = {
        "seed": spoken or (seed if resume is None else None),
        "run_id": resume,
        "journal": journal or f"sqlite:{path.with_suffix(JOURNAL_SUFFIX)}",
        "allow_changes": allow_changes,
    }
    return wait(_converse(invocation, defined, options, file))


def _defined(
    path: Path, name: str | None, file: str, limits: dict[str, Any]
) -> "tuple[Conversation, str | None]":
    """The conversation of a file under the limits of the command line, and its seed."""
    from carnet.cli.call.definition import read_definition, sentence
    from carnet.core.money.amount import parse_amount
    from carnet.errors import InvalidRequest, UsageInvalid

    given = {limit: value for limit, value in limits.items() if value is not None}
    try:
        parse_amount(given.get("max_spend", "0"))
    except InvalidRequest as error:
        reason = f"--max-spend '{given['max_spend']}' {error.facts['reason']}."
        raise UsageInvalid(reason=reason, fix="Such as: --max-spend 0.50") from None
    try:
        defined, seed = read_definition(path, name)
        defined = defined.within(**given)
        defined.refuse_names()
    except (TypeError, ValueError) as error:
        reason = sentence(f"{file}: {error}")
        raise UsageInvalid(reason=reason, fix="See docs/conversations.md.") from None
    return defined, seed


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
    from carnet.cli.agent_log import AgentLog
    from carnet.cli.progress import ProgressLine
    from carnet.errors import DefinitionChanged

    if options["run_id"] is not None:
        with _explained(file, ""):
            options["run_id"] = await find_resumed(options["journal"], options["run_id"])
    abort, loop = asyncio.Event(), asyncio.get_running_loop()
    with suppress(NotImplementedError):  # where there are no signals, Ctrl-C cancels
        loop.add_signal_handler(signal.SIGINT, abort.set)
    with AgentLog(invocation), ProgressLine() as progress:
        shown = _Shown(invocation, defined.limits.max_turns, progress.say)
        again = _again(file, options)
        try:
            with _explained(file, invocation.spell(again)):
                result = await run_conversation(defined, on_event=shown, abort=abort, **options)
        except DefinitionChanged:
            invocation.note(invocation.spell(f"As it is now: {again} --allow-changes"))
            raise
    if invocation.format == "json":
        invocation.result(_page(result), str)
    _tell_end(invocation, defined, result, _again(file, {**options, "run_id": result.run_id}))
    return _exit_code(result.halted)


def _again(file: str, options: dict[str, Any]) -> str:
    """The command that goes on with a run."""
    from shlex import quote

    run, journal = options["run_id"] or LAST, options["journal"]
    return f"carnet conversation {quote(file)} --resume {quote(run)} --journal {quote(journal)}"


@contextmanager
def _explained(file: str, again: str) -> Iterator[None]:
    """Say of what people wrote which part of it cannot be used, and how to go on."""
    from carnet.cli.agent_log import in_a_line, is_theirs
    from carnet.errors import CarnetError, ConfigInvalid, UsageInvalid

    try:
        yield
    except ConfigInvalid as error:
        reason, is_journal = error.facts["reason"], error.facts["key"] == "journal"
        raise UsageInvalid(
            reason=f"{'--journal' if is_journal else file}: {reason}.",
            fix="Name a file of its own: --journal sqlite:FILE"
            if is_journal
            else "See docs/conversations.md for what takes part.",
        ) from None
    except CarnetError:
        raise
    except Exception as error:
        if not is_theirs(error):
            raise
        raise UsageInvalid(
            reason=f"{file}: {in_a_line(error)}.", fix=f"Correct it, then go on with: {again}"
        ) from error


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
    invocation: Invocation, defined: "Conversation", result: "ConversationResult", again: str
) -> None:
    from carnet.core.money.amount import format_amount

    halted = result.halted
    words = [f"run {result.run_id}", in_line(str(halted)), format_amount(result.spent)]
    if result.unknown_costs:
        words.append(f"the cost of {count(result.unknown_costs, 'attempt')} is unknown")
    invocation.note("  ".join(words))
    if halted.kind == "participant_error":
        invocation.note(in_line(_failed(defined, halted)))
        if halted.code:
            invocation.note(invocation.spell(f"More: carnet explain {halted.code}"))
    if halted.kind in {"abort", "deadline", "participant_error"}:
        invocation.note(invocation.spell(f"Go on with: {again}"))


def _failed(defined: "Conversation", halted: "Halt") -> str:
    """Who has failed, where that one is, and what is known of it."""
    target = next((e.target for e in defined.participants if e.name == halted.participant), None)
    where = f" ({target})" if isinstance(target, str) else ""
    detail = f": {halted.detail}" if halted.detail else ""
    return f"{halted.participant}{where} has failed{detail}."


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
