"""Calls from this process to a URL that speaks A2A.

Law 1. The card at the URL says how it is called, and by what it wants to know us: the token that
       was given is a bearer token, or the key in the header that the card names.
Law 2. Who leaves before the task has ended has it cancelled.
Law 3. A file of the answer is named; its bytes are in the JSON.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import click

from carnet.cli.failures import GatewayError
from carnet.cli.invocation import Invocation, in_line, to_json, visible
from carnet.cli.output import Growing
from carnet.cli.reach.request import CallOptions, describe, given_token, payment_of
from carnet.core.messages.events import FILE, Data, DataPart, Event, Extension, Part, Text, Waiting
from carnet.core.messages.output import Sink
from carnet.errors import ProviderTimeout, SkillNotFound
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.agents.a2a_peer import SKILL
from carnet.runtime.agents.samvad_peer import as_text
from carnet.runtime.peers.a2a.cards import A2aCards, card_site
from carnet.runtime.peers.a2a.client import A2aClient, A2aEndpoint, Reached
from carnet.runtime.peers.a2a.tasks import TaskRequest, TaskRun, give_up
from carnet.runtime.peers.policies import Ending
from carnet.runtime.stream import closing
from carnet.runtime.system import SystemClock, SystemIds
from carnet.runtime.visit.pulled import pulled
from carnet.wire.dialects.a2a import client as a2a
from carnet.wire.dialects.results import result_of


async def call_a2a(invocation: Invocation, asked: CallOptions, http: HttpClient) -> None:
    """Send the call from here and print its answer, or with --dry-run the request."""
    cards = A2aCards(http, SystemClock())
    token = given_token(asked)
    endpoint = A2aEndpoint(
        site=card_site(asked.address), token=token, api_key=token, bounds=asked.bounds
    )
    client = A2aClient(http, endpoint, cards=cards)
    try:
        async with asyncio.timeout(asked.timeout):
            reached = await client.reach()
            request = _request(asked, reached, SystemIds())
            if asked.dry_run:
                _show(invocation, client, reached, request)
            else:
                await _print(invocation, asked, partial(_run, client, reached, request), request)
    except TimeoutError:
        raise ProviderTimeout("the answer took too long") from None
    finally:
        await cards.close()


def _request(asked: CallOptions, reached: Reached, ids: SystemIds) -> TaskRequest:
    skills = [each.id for each in reached.card.skills]
    if asked.skill is not None and asked.skill not in skills:
        raise SkillNotFound("its card has no such skill")
    text: Part = DataPart(asked.payload) if asked.text is None or asked.skill else asked.text
    message = a2a.write_message(
        (text,),
        message_id=asked.turn or ids.uuid(),
        metadata=None if asked.skill is None else {SKILL: asked.skill},
    )
    named = {"x-tangle-runid": asked.run, "x-tangle-turnid": asked.turn}
    return TaskRequest(
        message=message,
        headers={name: value for name, value in named.items() if value},
        secrets=payment_of(asked),
        as_result=asked.skill is not None,
    )


async def _run(client: A2aClient, reached: Reached, request: TaskRequest, sink: Sink) -> Ending:
    run = TaskRun(client, reached, request, sink)
    try:
        return await run.begin()
    except BaseException:
        if run.progress.is_running:
            await give_up(client, reached, run.progress.task or "")
        raise


def _show(
    invocation: Invocation, client: A2aClient, reached: Reached, request: TaskRequest
) -> None:
    operation = "SendStreamingMessage" if reached.card.streaming else "SendMessage"
    given = a2a.sending(request.message, wait=False)
    page = describe(
        client.outbound(reached, operation, given, headers=request.headers, secrets=request.secrets)
    )
    head = [f"{name}: {value}" for name, value in page["headers"].items()]
    text = [f"{page['method']} {page['url']}", *head, "", to_json(page["body"], indent=2)]
    invocation.result(page, lambda: "\n".join(text))


async def _print(
    invocation: Invocation,
    asked: CallOptions,
    run: Callable[[Sink], Awaitable[Ending]],
    request: TaskRequest,
) -> None:
    events: list[Event] = []
    growing, shown = Growing(), False
    async with closing(pulled(run)) as coming:
        async for event in coming:
            if isinstance(event, Waiting):
                raise _waits(event)
            events.append(event)
            if asked.stream and isinstance(event, Text | Data):
                _print_chunk(invocation, event, growing)
                shown = True
    result = result_of(events)
    files = [each.payload for each in events if isinstance(each, Extension) and each.name == FILE]
    page = {"result": result, "message": request.message["messageId"], "files": files}
    if shown and invocation.format == "text":
        growing.end(result)
    else:
        invocation.result(page, lambda: visible(as_text(result)))
    if invocation.format == "text":
        for file in files:
            words = [str(file[name]) for name in ("filename", "mediaType", "url") if name in file]
            invocation.note(f"file {in_line(' '.join(words)) or 'without a name'}")
        invocation.note(f"message {page['message']}")


def _print_chunk(invocation: Invocation, event: Text | Data, growing: Growing) -> None:
    value = event.text if isinstance(event, Text) else event.value
    if invocation.format != "text":
        click.echo(to_json({"chunk": value}))
    else:
        growing.say(value if isinstance(value, str) else f"{to_json(value)}\n")


def _waits(waiting: Waiting) -> GatewayError:
    """What is told of a call that waits: it is no answer, and this command keeps no task."""
    question, error = waiting.interrupts[0], waiting.error()
    place = a2a.place_of(question)
    facts = {
        "code": error.code,
        "message": f"The agent asks: {in_line(question.message)}",
        "hint": 'Call it through your gateway to answer ([agents.NAME] kind = "a2a"); this '
        "command keeps no tasks.",
        "task": None if place is None else place.task,
    }
    return GatewayError(facts, error.status)
