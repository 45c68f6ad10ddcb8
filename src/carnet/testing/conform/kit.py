"""All checks of a loop, one after the other."""

from collections.abc import AsyncIterator, Callable
from typing import Final

from carnet.core.people.identity import Secret
from carnet.ports.world.http_client import HttpClient
from carnet.testing.conform import refusals, streams
from carnet.testing.conform.probe import LoopProbe
from carnet.testing.conform.verdict import BrokenPlace, Verdict, judged

# What is asked. The sentence of each is the docstring of who asks it.
CHECKS: Final[dict[str, Callable[[LoopProbe], AsyncIterator[BrokenPlace]]]] = {
    "conversation": streams.example,
    "credential-missing": refusals.no_credential,
    "credential-wrong": refusals.wrong_credential,
    "identity-forged": refusals.forged_identity,
    "path": refusals.other_path,
    "method": refusals.other_method,
    "body": refusals.body_form,
    "messages": refusals.messages_form,
    "correlation-id": refusals.correlation_needed,
    "configuration": refusals.configuration_refused,
    "credentials-in-body": refusals.credentials_refused,
    "top": refusals.top_refused,
    "trigger": refusals.trigger_form,
    "triggers": streams.triggers,
    "history": streams.history,
    "unsearched": streams.unsearched,
    "forged-call": streams.forged_call,
    "at-once": streams.at_once,
    "hang-up": streams.left_alone,
}


async def conform(
    http: HttpClient, url: str, token: Secret, *, text: str = "Hello", seconds: float = 60.0
) -> list[Verdict]:
    """Judge the loop at an address; Unreachable where there is none.

    `text` is what it is asked: one that makes it use a tool shows more.
    """
    loop, found = LoopProbe(http, url, token, text=text, seconds=seconds), []
    for name, ask in CHECKS.items():
        broken = [each async for each in ask(loop)]
        found.append(judged(name, (ask.__doc__ or "").strip(), broken))
    return [*found, *refusals.refusals_judged(loop), *streams.streams_judged(loop)]
