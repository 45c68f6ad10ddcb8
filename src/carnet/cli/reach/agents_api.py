"""Calls from this process to a URL that speaks agents-api.

Law 1. The URL is that of an agent, or of its host with --model as the name of the agent.
Law 2. What it waits for is told and not answered: this command keeps no run.
"""

import asyncio
from typing import Any

import click

from carnet.cli.failures import GatewayError
from carnet.cli.invocation import Invocation, in_line, to_json, visible
from carnet.cli.output import Growing
from carnet.cli.reach.request import CallOptions, describe, given_token, payment_of
from carnet.core.call import Ask
from carnet.core.messages.events import Event, Message, Text, Usage, Waiting
from carnet.core.people.identity import Secret
from carnet.errors import ProviderTimeout, UsageInvalid
from carnet.ports.world.http_client import HttpClient, Outbound
from carnet.runtime.agents.agents_api_peer import read_run
from carnet.runtime.agents.remote import shown_as
from carnet.runtime.agents.samvad_peer import as_text
from carnet.runtime.peers.answer_reader import JSON, SSE
from carnet.runtime.system import SystemIds
from carnet.wire.dialects.agents_api.actions import place_of
from carnet.wire.dialects.agents_api.client import PATH, path_of, write_message
from carnet.wire.dialects.results import result_of


async def call_agents_api(invocation: Invocation, asked: CallOptions, http: HttpClient) -> None:
    """Send the call from here and print its answer, or with --dry-run the request."""
    run = asked.turn or f"run_{SystemIds().uuid()}"
    request = _request(asked, run)
    if asked.dry_run:
        page = describe(request)
        head = [f"{name}: {value}" for name, value in page["headers"].items()]
        text = [f"{page['method']} {page['url']}", *head, "", to_json(page["body"], indent=2)]
        invocation.result(page, lambda: "\n".join(text))
        return
    shown = _Shown(invocation, asked)
    try:
        async with asyncio.timeout(asked.timeout), http.send(request) as answer:
            end = await read_run(answer, shown, currency="", stream=asked.stream)
    except TimeoutError:
        raise ProviderTimeout("the answer took too long") from None
    if isinstance(end, Waiting):
        raise _waits(end)
    result = result_of([*shown.events, end])
    page = {"result": result, "run": run}
    if shown.has_shown and invocation.format == "text":
        shown.growing.end(result)
    else:
        invocation.result(page, lambda: visible(as_text(result)))
    if invocation.format == "text":
        invocation.note(f"run {run}")


def _request(asked: CallOptions, run: str) -> Outbound:
    if asked.text is None:
        raise UsageInvalid(reason="There is nothing to say.", fix="Give a text.")
    url = asked.address.rstrip("/")
    if PATH not in url:
        if asked.model is None:
            raise UsageInvalid(
                reason="The URL names no agent.",
                fix=f"Give the whole of it, with {path_of('NAME')}, or add --model NAME.",
            )
        url += path_of(asked.model)
    ask = Ask(messages=(Message.user(asked.text),), stream=asked.stream)
    token: Secret | None = given_token(asked)
    return Outbound(
        url=url,
        body=write_message(ask, run=run, session=asked.run, stream=asked.stream),
        headers={"content-type": JSON, "accept": f"{JSON}, {SSE}" if asked.stream else JSON},
        secrets=shown_as(token) | payment_of(asked),
        bounds=asked.bounds,
    )


class _Shown:
    """A Sink that prints words as they come, where that is wanted."""

    def __init__(self, invocation: Invocation, asked: CallOptions) -> None:
        self._invocation = invocation
        self._streams = asked.stream
        self.growing = Growing()
        self.events: list[Event] = []
        self.has_shown = False

    async def write(self, event: Event, /) -> None:
        self.events.append(event)
        if not self._streams or not isinstance(event, Text):
            return
        self.has_shown = True
        if self._invocation.format == "text":
            self.growing.say(event.text)
        else:
            click.echo(to_json({"chunk": event.text}))

    def usage(self, usage: Usage, /) -> None:
        """What it used is for whoever is billed."""


def _waits(waiting: Waiting) -> GatewayError:
    question, error = waiting.interrupts[0], waiting.error()
    place = place_of(question)
    facts: dict[str, Any] = {
        "code": error.code,
        "message": f"The agent asks: {in_line(question.message)}",
        "hint": 'Call it through your gateway to answer ([agents.NAME] kind = "agents_api"); this '
        "command keeps no runs.",
        "action": None if place is None else place.action,
    }
    return GatewayError(facts, error.status)
