"""`carnet`: the command line, and the one place where a failure becomes an exit code.

The commands live in one file a group and import what they need when they run, so that
`carnet --help` answers at once.

Law. A person's mistake never ends in a traceback; CARNET_DEBUG=1 shows it for ours.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import click

from carnet.cli.call import call, conversation, inbox, tasks
from carnet.cli.chat import chat
from carnet.cli.demo import demo
from carnet.cli.failures import (
    INTERRUPTED,
    OURS,
    REFUSED,
    UNVERIFIED,
    USAGE,
    GatewayError,
    error_object,
    exit_code,
)
from carnet.cli.invocation import WHOLE, Format, Group, Invocation, in_line, to_json
from carnet.cli.memory import memory
from carnet.cli.money import budget, ledger, vouchers
from carnet.cli.operate import backup, operate, reload
from carnet.cli.see import conform, explain, export, inspect, lint, outbox, replay, runs
from carnet.cli.start import model, start
from carnet.cli.times import write_span
from carnet.cli.triggers import hooks, schedules
from carnet.cli.trust import callers, delegate, keys, peers, people, sessions, tokens
from carnet.errors import BY_CODE, CarnetError, ConfigInvalid, Internal, UsageInvalid
from carnet.version import __version__

GROUPS: dict[str, tuple[click.Command, ...]] = {
    "start": (start.init, start.serve, demo.demo, start.engine, model.model, start.doctor),
    "call": (
        chat.chat,
        call.call,
        conversation.conversation,
        inbox.inbox,
        memory.memory,
        schedules.schedules,
        hooks.hooks,
    ),
    "see": (runs.runs, runs.run, runs.tail, explain.explain),
    "trust": (
        people.people,
        sessions.sessions,
        tokens.tokens,
        keys.keys,
        peers.peers,
        callers.callers,
        tokens.agents,
    ),
    "money": (ledger.ledger, budget.budget, vouchers.vouchers),
    "run it": (
        operate.config,
        reload.reload,
        operate.migrate,
        backup.backup,
        backup.restore,
        outbox.outbox,
        tasks.tasks,
        operate.prune,
        conform.conform,
        operate.version,
        operate.help_,
        operate.completion,
    ),
}


class Root(Group):
    """The group of all commands, listed by what they are for."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(len(name) for name in self.list_commands(ctx))
        for title, commands in GROUPS.items():
            with formatter.section(title.capitalize()):
                formatter.write_dl(
                    [(str(c.name).ljust(width), c.get_short_help_str(WHOLE)) for c in commands]
                )


@click.group(cls=Root, invoke_without_command=True)
@click.version_option(__version__, prog_name="carnet", message="%(prog)s %(version)s")
@click.pass_context
def carnet(ctx: click.Context) -> None:
    """Calls between agents of different organisations.

    Begin with 'carnet init' and 'carnet serve'; then 'carnet call echo "hello"'.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


runs.run.add_command(export.export)
runs.run.add_command(replay.replay)
people.people.add_command(sessions.sign_in)
tokens.agents.add_command(inspect.inspect)
tokens.agents.add_command(lint.lint)
tokens.tokens.add_command(delegate.delegate)
tokens.tokens.add_command(delegate.delegations)
tokens.tokens.add_command(delegate.undelegate)
for _commands in GROUPS.values():
    for _command in _commands:
        carnet.add_command(_command)


def main() -> None:
    """The console script."""
    args = sys.argv[1:]
    invocation = Invocation(_format_in(args))
    invocation.ends_process = True
    sys.exit(_run(invocation, args))


def run(args: Sequence[str]) -> int:
    """Run one command in a process that goes on, and give its exit code."""
    return _run(Invocation(_format_in(args)), args)


def _run(invocation: Invocation, args: Sequence[str]) -> int:
    try:
        result = carnet.main(list(args), "carnet", standalone_mode=False, obj=invocation)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  the edge: all end here
        return _end(invocation, error)
    return result if isinstance(result, int) else 0


def _end(invocation: Invocation, error: BaseException) -> int:
    if _debugging() and not isinstance(error, click.ClickException | click.Abort):
        sys.excepthook(type(error), error, error.__traceback__)
    match error:
        case click.Abort() | KeyboardInterrupt():
            code = INTERRUPTED
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.format_message(), err=True)
            code = USAGE
        case click.ClickException():
            code = _tell(invocation, error_object(_usage(error)), USAGE)
        case GatewayError():
            code = _tell(invocation, error.facts, error.exit_code)
        case ConfigInvalid(others=others) if others:
            facts = {**error_object(error), "others": [each.safe_text for each in others]}
            code = _tell(invocation, facts, USAGE)
        case CarnetError():
            code = _tell(invocation, error_object(error), exit_code(type(error)))
        case _:
            code = _tell(invocation, _confession(error), OURS)
    return code


def _format_in(args: Sequence[str]) -> Format:
    """The format that was asked for, known before the line is parsed: also for its mistakes."""
    asked = ""
    for place, word in enumerate(args):
        if word == "--format":
            asked = args[place + 1] if place + 1 < len(args) else ""
        elif word.startswith("--format="):
            asked = word.removeprefix("--format=")
    return next((known for known in get_args(Format) if known == asked), "text")


def _usage(error: click.ClickException) -> UsageInvalid:
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "carnet"
    return UsageInvalid(
        reason=error.format_message(), fix=f"'{command} --help' shows what it takes."
    )


def _tell(invocation: Invocation, facts: dict[str, Any], code: int) -> int:
    if invocation.format == "text":
        click.echo("\n  ".join(_lines(invocation, facts, code)), err=True)
    else:
        click.echo(to_json(facts, indent=2 if invocation.format == "json" else 0), err=True)
    return code


def _lines(invocation: Invocation, facts: dict[str, Any], code: int) -> Iterator[str]:
    """An error for people: what happened, what to do, where to look."""
    yield in_line(f"Error: {invocation.spell(str(facts.get('message', '')))}")
    for other in facts.get("others", ()):
        yield in_line(invocation.spell(other))
    if facts.get("hint"):
        yield from invocation.spell(str(facts["hint"])).splitlines()
    if isinstance(facts.get("retry_after"), int):
        yield f"Retry-After: {write_span(facts['retry_after'])}"
    if code in {REFUSED, UNVERIFIED} and facts.get("code"):
        command = f"carnet explain {_code_to_explain(facts)}"
        if command not in str(facts.get("hint")):
            yield invocation.spell(f"More: {command}")
    named = [f"{word} {facts[word]}" for word in ("run", "turn") if facts.get(word)]
    if named:
        yield "  ".join(named)


def _code_to_explain(facts: dict[str, Any]) -> str:
    """The code that tells most: what another gateway said, rather than that it said something."""
    from carnet.wire.dialects.samvad import STATUSES

    by_peer = str(facts.get("peer_reason") or facts.get("peer_code"))
    return by_peer if by_peer in BY_CODE or by_peer in STATUSES else str(facts["code"])


def _confession(error: BaseException) -> dict[str, Any]:
    return {
        "code": Internal.code,
        "message": f"Carnet itself failed at this ({type(error).__name__}: {error}).",
        "hint": "CARNET_DEBUG=1 shows where; 'carnet doctor' checks configuration and store.",
        "docs": f"/-/errors/{Internal.code}",
    }


def _debugging() -> bool:
    return os.environ.get("CARNET_DEBUG", "") not in {"", "0"}


if __name__ == "__main__":
    main()
