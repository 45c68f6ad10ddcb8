"""`carnet chat`: talk to your agents, at any gateway, from a terminal or a pipe."""

import sys
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import Command, Invocation, pass_invocation, wait

if TYPE_CHECKING:
    from carnet.cli.chat.connection import ChatConnection
    from carnet.cli.chat.session import ChatSession


@click.command(cls=Command)
@click.argument("agent", required=False)
@click.option("--continue", "newest", is_flag=True, help="Go on with the newest conversation.")
@click.option("--resume", metavar="ID", help="Go on with this one; its beginning is enough.")
@click.option("--history", "listing", is_flag=True, help="List the conversations, and leave.")
@click.option("--once", is_flag=True, help="Say what standard input holds; print the answer alone.")
@click.option("--url", metavar="URL", help="The gateway (default: CARNET_URL, else our own).")
@click.option("--as", "--token", "token", metavar="TOKEN", help="Your token there, or @FILE.")
@pass_invocation
def chat(
    invocation: Invocation,
    /,
    agent: str | None,
    resume: str | None,
    url: str | None,
    token: str | None,
    **asked: bool,
) -> int:
    """Talk to your agents.

    AGENT is the name of an agent, or @name@domain for one of a peer; without it the gateway asks
    whom its configuration names. Conversations are kept at the gateway, so that they can be gone on
    with from anywhere.

    In a terminal, /help lists what can be typed beside what is said. Ctrl-C stops an answer, Ctrl-D
    leaves. Where standard input is no terminal, or with --once, what it holds is said and the
    answer is printed; the exit code says whether there was one.
    """
    from carnet.cli.chat.connection import ChatConnection
    from carnet.errors import UsageInvalid

    if asked["newest"] and resume is not None:
        raise UsageInvalid(
            reason="--continue and --resume name two conversations.", fix="Give one of them."
        )
    connection = ChatConnection(invocation, url, token)
    which = "" if asked["newest"] else resume
    if asked["listing"]:
        wait(_list(invocation, connection))
        return 0
    if asked["once"] or not sys.stdin.isatty():
        return wait(_once(invocation, connection, agent, which, token))
    if invocation.format != "text":
        raise UsageInvalid(
            reason="A chat in a terminal is text.", fix="With --once, an answer is printed as JSON."
        )
    return _session(invocation, connection, agent, which)


async def _list(invocation: Invocation, connection: "ChatConnection") -> None:
    from carnet.cli.chat import history

    async with connection:
        page = await history.list_page(connection)
    invocation.result(
        page, lambda: invocation.spell(history.list_text(page)), page["conversations"]
    )


async def _find(connection: "ChatConnection", which: str | None) -> dict[str, Any] | None:
    """The conversation that is to be gone on with: the newest (empty), one by its id, or none."""
    from carnet.cli.chat import history

    if which is None:
        return None
    if not which:
        return await history.newest_page(connection)
    return await history.open_page(connection, which)


async def _once(
    invocation: Invocation,
    connection: "ChatConnection",
    agent: str | None,
    which: str | None,
    token: str | None,
) -> int:
    from carnet.cli.chat.exchange import new_message
    from carnet.cli.chat.once import read_input, say_once

    text = read_input()
    async with connection:
        page = await _find(connection, which)
        sending = new_message(text, page["id"] if page else None, agent)
        return await say_once(invocation, connection, sending, token)


def _session(
    invocation: Invocation, connection: "ChatConnection", agent: str | None, which: str | None
) -> int:
    import asyncio

    from carnet.cli.chat.commands import COMMANDS, converse
    from carnet.cli.chat.prompt import Prompt
    from carnet.cli.chat.screen import Screen
    from carnet.cli.chat.session import ChatSession

    with asyncio.Runner() as runner:
        runner.run(connection.__aenter__())
        try:
            prompt = Prompt(tuple(COMMANDS))
            session = ChatSession(runner, connection, Screen(invocation), prompt, agent)
            _greet(session, runner.run(_find(connection, which)))
            return converse(session)
        finally:
            runner.run(connection.__aexit__())


def _greet(session: "ChatSession", page: "dict[str, Any] | None") -> None:
    front = session.run(session.connection.ask("GET", "/owner"))
    agent = session.agent or (page or {}).get("agent") or front["agent"]
    whom = f"You talk to {agent}" if agent else "Nobody is named: begin with @name, or /new AGENT"
    session.screen.note(f"{whom} at {session.connection.place.url}. /help lists the commands.")
    if page is not None:
        session.open(page)
