"""`carnet run replay`: a recorded run, run again offline, and compared with its record.

Law 1. Nobody is called, unless somebody was swapped; then that one alone, after a yes.
Law 2. The end is 0 where all that could be run again says the same, and 4 where something differs
       or could not be run for want of a record.
"""

import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.failures import UNVERIFIED
from carnet.cli.invocation import (
    Command,
    Invocation,
    count,
    in_line,
    paint,
    pass_invocation,
    visible,
    wait,
)

if TYPE_CHECKING:
    from carnet.assembly.replay.replay import SwappedAgent
    from carnet.runtime.replay.comparison import TurnVerdict
    from carnet.runtime.replay.record import RecordedRun

COLORS = {
    "equal": "green",
    "different": "red",
    "given": "white",
    "unrecorded": "yellow",
    "cut": "yellow",
}
MOST_SHOWN = 2000  # characters of what differs, for people


class Swap:
    """Who is asked anew, and where."""

    def __init__(self, given: str, token: str | None) -> None:
        from carnet.cli.reach.gateway import read_token
        from carnet.errors import UsageInvalid
        from carnet.runtime.dialogue.definition import check_address

        self.name, _, self.address = given.partition("=")
        such_as = "Such as: --swap critic=@critic@globex.example, or a URL."
        if not self.name or not self.address:
            raise UsageInvalid(
                reason=f"'{given}' does not say who is asked in the place of whom.", fix=such_as
            )
        try:
            check_address(self.address)
        except ValueError as error:
            raise UsageInvalid(reason=f"--swap: {error}.", fix=such_as) from None
        self.token = None if token is None else read_token(token)


@click.command("replay", cls=Command)
@click.argument("run_id", metavar="ID")
@click.option("--swap", metavar="AGENT=ADDRESS", help="Ask this address in the place of AGENT.")
@click.option("--token", metavar="TOKEN", help="What the address knows us by, or @FILE.")
@click.option("--yes", "is_agreed", is_flag=True, help="Do not ask whether it may cost.")
@pass_invocation
def replay(
    invocation: Invocation,
    run_id: str,
    swap: str | None,
    token: str | None,
    is_agreed: bool,  # noqa: FBT001  click passes it
) -> int:
    """Run a recorded run again, offline, and compare what it says byte by byte.

    The code of agents here runs again against its record: models and agents elsewhere say what
    they said. With --swap one participant is asked anew. The end is 4 where something differs.
    """
    from carnet.errors import UsageInvalid

    if swap is None and (token is not None or is_agreed):
        raise UsageInvalid(
            reason="A replay asks nobody: --token and --yes are for --swap.",
            fix="Leave them out, or say who is asked anew: --swap AGENT=ADDRESS",
        )
    chosen = None if swap is None else Swap(swap, token)
    return wait(_replay(invocation, run_id, chosen, is_agreed=is_agreed))


async def _replay(
    invocation: Invocation, run_id: str, swap: Swap | None, *, is_agreed: bool
) -> int:
    from carnet.assembly.replay.replay import RunReplay
    from carnet.assembly.store import opened
    from carnet.cli.agent_log import AgentLog
    from carnet.cli.see.stored import find_stored
    from carnet.errors import RunNotFound
    from carnet.runtime.replay.record import read_recorded

    settings = invocation.settings
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened(settings))
        run = await read_recorded(store, await find_stored(store, run_id))
        if run is None:
            raise RunNotFound
        swapped = None
        if swap is not None:
            _agree(run, swap, is_agreed=is_agreed)
            swapped = await _live(stack, swap, settings.ledger.currency)
        replayed = RunReplay(settings, store, run, swapped=swapped)
        stack.push_async_callback(replayed.close)
        with AgentLog(invocation):
            verdicts = await replayed.verdicts(to_the_end=invocation.ends_process)
        return _tell(invocation, run.run, verdicts)


async def _live(stack: AsyncExitStack, swap: Swap, currency: str) -> "SwappedAgent":
    from carnet.assembly.replay.live import LiveParticipant
    from carnet.assembly.replay.replay import SwappedAgent

    there = LiveParticipant(swap.address, token=swap.token, currency=currency)
    return SwappedAgent(swap.name, (await stack.enter_async_context(there)).ask)


def _agree(run: "RecordedRun", swap: Swap, *, is_agreed: bool) -> None:
    """Have a person say yes to what may cost."""
    from carnet.config.sources import nearest
    from carnet.errors import UsageInvalid

    times = sum(each.turn.agent == swap.name for each in run.turns)
    if not times:
        known = sorted({each.turn.agent for each in run.turns})
        raise UsageInvalid(
            reason=f"'{swap.name}' took no part in {run.run}.", fix=nearest(swap.name, known)
        )
    if is_agreed:
        return
    if not sys.stdin.isatty():
        raise UsageInvalid(
            reason=f"It asks {swap.address} anew, which may cost.", fix="Say --yes to that."
        )
    asked = f"This asks {swap.address} anew, {count(times, 'time')} or so, and may cost. Go on?"
    click.confirm(asked, abort=True, err=True)


def _tell(invocation: Invocation, run: str, verdicts: "list[TurnVerdict]") -> int:
    from msgspec import to_builtins

    is_equal = all(each.verdict in {"equal", "given"} for each in verdicts)
    turns: list[dict[str, Any]] = [to_builtins(each) for each in verdicts]
    page = {"run": run, "equal": is_equal, "turns": turns}
    invocation.result(page, lambda: visible("\n".join(_lines(run, verdicts))), turns)
    return 0 if is_equal else UNVERIFIED


def _lines(run: str, verdicts: "list[TurnVerdict]") -> list[str]:
    lines = []
    for each in verdicts:
        words = [paint(f"{each.verdict:<10}", COLORS[each.verdict]), each.agent, each.turn]
        lines.append("  ".join([*words, *([in_line(each.reason)] if each.reason else [])]))
        if each.event is not None:
            lines.append(f"            event {each.event}")
            lines.append(f"            recorded  {_cut(each.recorded)}")
            lines.append(f"            now       {_cut(each.now)}")
    counted = [f"{_of(verdicts, word)} {word}" for word in COLORS if _of(verdicts, word)]
    return [*lines, f"{run}: {', '.join(counted)}."]


def _of(verdicts: "list[TurnVerdict]", word: str) -> int:
    return sum(each.verdict == word for each in verdicts)


def _cut(event: str | None) -> str:
    if event is None:
        return "nothing"
    return in_line(event if len(event) <= MOST_SHOWN else f"{event[:MOST_SHOWN]}...")
