"""`carnet tasks`: work that outlives its request, here and at agents elsewhere."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Group, Invocation, more_of, pass_invocation, table, wait

if TYPE_CHECKING:
    from carnet.runtime.peers.samvad_tasks import SamvadTasks

MOST_TASKS = 200
STATES = ("pending", "running", "done", "failed")

_AT = click.option(
    "--at", metavar="ADDRESS", help="Ask the agent elsewhere that the task was given to."
)
_KEY = click.option("--key", metavar="FILE", help="With --at: the key that signed the task.")


def _choosing(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which tasks are listed."""
    options = (
        click.option("--state", type=click.Choice(STATES), help="Those in this state alone."),
        click.option("--agent", metavar="NAME", help="Those of this agent alone."),
        click.option(
            "--limit", type=click.IntRange(1, MOST_TASKS), default=20, help="How many (20)."
        ),
        click.option(
            "--before", type=click.IntRange(1), metavar="N", help="Go on where a list ended."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=Group, invoke_without_command=True)
@_choosing
@click.pass_context
def tasks(ctx: click.Context, /, **chosen: Any) -> None:
    """List tasks, look at one, wait for it or cancel it."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_tasks, **chosen)


@tasks.command("list")
@_choosing
@pass_invocation
def list_tasks(
    invocation: Invocation,
    state: str | None,
    agent: str | None,
    limit: int,
    before: int | None,
) -> None:
    """List the newest tasks of this gateway."""
    from urllib.parse import urlencode

    from carnet.cli.reach.pages import read_page

    asked = {"limit": limit, "state": state, "agent": agent, "before": before}
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    page = read_page(invocation, f"/tasks?{query}")
    chosen = {"state": state, "agent": agent, "limit": limit}
    is_chosen = any(word is not None for word in (state, agent, before))
    is_empty = is_chosen and not page["tasks"] and not page.get("next")
    has_others = is_empty and bool(read_page(invocation, "/tasks?limit=1")["tasks"])
    text = _text(page, chosen, has_others=has_others)
    invocation.result(page, lambda: invocation.spell(text), page["tasks"])


def none_of(*, has_others: bool) -> str:
    """What to say instead of an empty list."""
    if has_others:
        return "No task is like that, but there are others: carnet tasks"
    return "No tasks. Make one: carnet call echo hello --task"


def _text(page: dict[str, Any], chosen: dict[str, Any], *, has_others: bool) -> str:
    if not page["tasks"] and not page.get("next"):
        return none_of(has_others=has_others)
    titles = ["TASK", "ACCEPTED", "AGENT", "SKILL", "SENDER", "STATE"]
    more = f"\n{more_of('tasks list', page['next'], chosen)}" if page.get("next") else ""
    return table([_row(entry) for entry in page["tasks"]], titles) + more


def _row(entry: dict[str, Any]) -> list[str]:
    from carnet.cli.times import short

    words = [entry["taskId"], short(entry["created"]), entry["agent"], entry.get("skill") or "-"]
    return [str(word) for word in (*words, entry["sender"], _state(entry))]


def _state(entry: dict[str, Any]) -> str:
    from carnet.cli.call.task_view import seen_in

    text = seen_in(entry).text
    if entry["status"] == "failed" and entry.get("code"):
        return f"{text} ({entry['code']})"
    is_leaving = entry.get("cancelled") and entry["status"] in {"pending", "running"}
    return f"{text} (to be cancelled)" if is_leaving else text


@tasks.command()
@click.argument("task", metavar="ID")
@_AT
@_KEY
@pass_invocation
def show(invocation: Invocation, task: str, at: str | None, key: str | None) -> None:
    """Show one task: its state, how far it is, its result or why it failed.

    The beginning of an ID is enough if only one of the newest tasks here begins so.
    """
    page = wait(_show(invocation, task, at, key))
    invocation.result(page, lambda: _page_text(page))


@asynccontextmanager
async def _tasks_at(
    invocation: Invocation, address: str, key: str | None
) -> AsyncIterator["SamvadTasks"]:
    """The tasks of an agent elsewhere, as a signed call reaches it."""
    from carnet.cli.call.signed import open_direct
    from carnet.cli.reach.gateway import open_http
    from carnet.cli.reach.request import CallOptions
    from carnet.runtime.peers.samvad_tasks import SamvadTasks

    asked = CallOptions(address=address, key=key)
    async with open_http() as http, open_direct(invocation, asked, http) as direct:
        yield SamvadTasks(direct.client)


async def _show(
    invocation: Invocation, task: str, at: str | None, key: str | None
) -> dict[str, Any]:
    from carnet.cli.call import task_view
    from carnet.cli.reach.pages import Pages

    if at is None:
        async with Pages(invocation) as pages:
            return await task_view.find_page(pages, task)
    async with _tasks_at(invocation, at, key) as there:
        return task_view.page_of(await there.look(task))


def _page_text(page: dict[str, Any]) -> str:
    from carnet.cli.invocation import to_json, visible

    shown = {name: value for name, value in page.items() if value is not None}
    texts = {n: value if isinstance(value, str) else to_json(value) for n, value in shown.items()}
    return "\n".join(f"{name:<10}  {visible(text)}" for name, text in texts.items())


@tasks.command()
@click.argument("task", metavar="ID")
@_AT
@_KEY
@pass_invocation
def cancel(invocation: Invocation, task: str, at: str | None, key: str | None) -> None:
    """Ask for the end of a task. It ends as failed, and its callback is told."""
    page = wait(_cancel(invocation, task, at, key))
    task = page.get("taskId") or task
    over = page.get("status") in {"done", "failed"}
    text = f"{task} has ended: {page.get('status')}." if over else f"{task} was told to stop."
    invocation.result(page, lambda: text)


async def _cancel(
    invocation: Invocation, task: str, at: str | None, key: str | None
) -> dict[str, Any]:
    from carnet.cli.call import task_view
    from carnet.cli.failures import GatewayError
    from carnet.cli.reach import gateway
    from carnet.cli.reach.pages import Pages

    if at is not None:
        async with _tasks_at(invocation, at, key) as there:
            return task_view.page_of(await there.cancel(task))
    async with gateway.open_http() as http, gateway.reached(invocation, http) as (place, by):

        async def ask_to_cancel(task: str) -> dict[str, Any]:
            path = task_view.task_path(task, "/cancel")
            request = gateway.request_to(place, "POST", path, by)
            async with gateway.sending(http, request, token_is_new=by.is_new) as answer:
                return gateway.decode(await answer.read())

        try:
            return await ask_to_cancel(task)
        except GatewayError as error:
            async with Pages(invocation) as pages:
                return await ask_to_cancel(await task_view.find_begun_task(pages, task, error))


@tasks.command("wait")
@click.argument("task", metavar="ID")
@_AT
@_KEY
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    metavar="S",
    help="Seconds to wait (default: 600).",
)
@pass_invocation
def wait_for(
    invocation: Invocation, task: str, at: str | None, key: str | None, timeout: float
) -> None:
    """Wait for the end of a task and print its result."""
    wait(_wait_for(invocation, task, at, key, timeout))


async def _wait_for(
    invocation: Invocation, task: str, at: str | None, key: str | None, seconds: float
) -> None:
    from carnet.cli.call import task_view
    from carnet.cli.reach.pages import Pages

    if at is None:
        async with Pages(invocation) as pages:
            task = await task_view.find_id(pages, task)
            named = task_view.Named(task)
            seen = task_view.seen_here(pages, task, task_view.SilenceNote.here(invocation))
            result = await task_view.follow(invocation, named, seen, seconds)
    else:
        named = task_view.Named.elsewhere(task, at, key)
        async with _tasks_at(invocation, at, key) as there:
            silence = task_view.SilenceNote.elsewhere(invocation)
            seen = task_view.seen_there(there, task, silence, is_known=False)
            result = await task_view.follow(invocation, named, seen, seconds)
    task_view.print_result(invocation, result, {"taskId": task})
