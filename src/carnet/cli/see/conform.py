"""`carnet conform`: whether anybody's agent loop, or front before one, keeps the contract.

Law. What is told is what was seen from outside; what did not happen is not told as right.
"""

import os
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.failures import UNVERIFIED, GatewayError, error_object
from carnet.cli.invocation import Command, Invocation, paint, pass_invocation, visible, wait

if TYPE_CHECKING:
    from carnet.testing.conform import Verdict

COLORS = {"ok": "green", "broken": "red", "unseen": "yellow"}
SECONDS = 60.0
OURS = "carnet tokens create NAME --scope admin:engine --scope 'tool:*'"  # for an engine of ours
NOBODY = "Start it, or correct the URL; an engine of Carnet is started with: carnet engine"
REFUSED = ": 401 ", ": 403 "  # in what was seen


@click.command("conform", cls=Command)
@click.option("--engine", metavar="URL", help="The loop: what stands before /engine/chat.")
@click.option("--front", metavar="URL", help="Where a front will look for its loop.")
@click.option("--token", metavar="TOKEN", help="What the loop is asked with, or @FILE.")
@click.option("--ask", "text", default="Hello", help="What it is asked; better one for a tool.")
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(0.1, 3600),
    default=SECONDS,
    help="Seconds that one answer, or the front, may take.",
)
@pass_invocation
def conform(
    invocation: Invocation,
    engine: str | None,
    front: str | None,
    token: str | None,
    text: str,
    seconds: float,
) -> int:
    """Judge an agent loop, or a front, by the contract between them.

    A loop is asked some eighty times, and its model some twenty of them. A front is waited for:
    name the URL in its configuration and have it ask something. The end is 4 where the contract
    is broken.
    """
    from carnet.errors import UsageInvalid

    if (engine is None) == (front is None):
        raise UsageInvalid(
            reason="One of --engine and --front says what is to be judged.",
            fix="Such as: --engine http://127.0.0.1:8701 --token @FILE",
        )
    if engine is not None:
        verdicts = wait(_judge_engine(engine, _token(token), text, seconds))
    else:
        verdicts = wait(_judge_front(invocation, front or "", seconds))
    return _tell(invocation, engine or front or "", verdicts)


def _token(given: str | None) -> str:
    from carnet.errors import UsageInvalid

    token = given or os.environ.get("CARNET_TOKEN")
    if not token:
        raise UsageInvalid(
            reason="A loop is asked with a credential, and there is none.",
            fix="Give one with --token TOKEN, --token @FILE or CARNET_TOKEN; for an engine of "
            f"Carnet: {OURS}",
        )
    return token


async def _judge_engine(url: str, token: str, text: str, seconds: float) -> "list[Verdict]":
    from carnet.cli.reach.gateway import read_token
    from carnet.errors import Unreachable
    from carnet.runtime.egress.client import EgressClient
    from carnet.testing.conform import conform as judge

    host, file = "engine.invalid", url.removeprefix("unix:")
    sockets = {host: file} if file != url else {}
    http = EgressClient(sockets=sockets)
    try:
        where = f"http://{host}" if sockets else url
        return await judge(http, where, read_token(token), text=text, seconds=seconds)
    except Unreachable as error:
        words = {"message": f"No loop answers at {url}.", "hint": NOBODY}
        raise GatewayError({**error_object(error), **words}, error.status) from error
    finally:
        await http.close()


async def _judge_front(invocation: Invocation, url: str, seconds: float) -> "list[Verdict]":
    from carnet.testing.conform.front import judge_front

    def announce(where: str) -> None:
        invocation.note(f"Listening at {where}. Have the front ask something.")

    return await judge_front(url, seconds=seconds, on_listening=announce)


def _tell(invocation: Invocation, url: str, verdicts: "list[Verdict]") -> int:
    from msgspec import to_builtins

    checks: list[dict[str, Any]] = [to_builtins(each) for each in verdicts]
    is_broken = any(each.outcome == "broken" for each in verdicts)
    page = {"url": url, "ok": not is_broken, "checks": checks}
    text = "\n".join(_lines(verdicts))
    invocation.result(page, lambda: visible(text), checks)
    if _is_refused(verdicts[0]):
        invocation.note(
            "The loop refuses the credential, so little of it was seen. "
            f"For an engine of Carnet: {OURS}"
        )
    return UNVERIFIED if is_broken else 0


def _is_refused(first: "Verdict") -> bool:
    """Whether the first thing that is asked, which is in order, was refused for its credential."""
    return any(word in place.seen for place in first.broken for word in REFUSED)


def _lines(verdicts: "list[Verdict]") -> list[str]:
    lines = []
    for each in verdicts:
        outcome = paint(f"{each.outcome:<6}", COLORS[each.outcome])
        lines.append(f"{outcome}  {each.check:<20} {each.sentence}")
        for place in each.broken:
            lines.append(f"        expected: {place.expected}")
            lines.append(f"        seen:     {place.seen}")
    counted = {word: sum(each.outcome == word for each in verdicts) for word in COLORS}
    total = f"{counted['ok']} ok, {counted['broken']} broken, {counted['unseen']} not seen."
    return [*lines, total]
