"""Earlier conversations: listed, found by the beginning of an id, and shown."""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from carnet.cli.chat.answer import ShownAnswer
from carnet.cli.chat.connection import ChatConnection, conversation_path
from carnet.cli.chat.exchange import events_of
from carnet.cli.chat.screen import Screen
from carnet.cli.failures import GatewayError
from carnet.cli.invocation import find_begun, table, visible
from carnet.cli.times import short
from carnet.errors import ConversationNotFound, UsageInvalid

BEGINS: Final = "cnv_"  # how ids of conversations begin
LISTED: Final = 20
LOOKED_AT: Final = 200  # of the newest, for one that begins so
SHOWN: Final = 10  # messages of a conversation that is opened
EDITABLE: Final = 50  # messages, of both
SHOWN_CHARACTERS: Final = 70  # of each of them
YOU: Final = "you> "

Page = dict[str, Any]


async def list_page(connection: ChatConnection, words: str = "", limit: int = LISTED) -> Page:
    """The newest conversations; with words those that hold them."""
    asked = {"limit": str(limit)} | ({"search": words} if words else {})
    return await connection.ask("GET", f"/conversations?{urlencode(asked)}")


def list_text(page: Page) -> str:
    """Conversations for people."""
    if not page["conversations"]:
        return "No conversations yet. Begin one: carnet chat AGENT"
    rows = [
        [
            *(str(number), short(each["updated"]), each["agent"], each["id"]),
            ("* " if each["unread"] else "") + (each["title"] or "-"),
        ]
        for number, each in enumerate(page["conversations"], 1)
    ]
    return table(rows, ["", "UPDATED", "AGENT", "ID", "TITLE (* unread)"])


async def open_page(connection: ChatConnection, begun: str) -> Page:
    """One conversation, by its id or by a beginning that no other of the newest has."""
    try:
        return await _read(connection, begun)
    except GatewayError as error:
        if error.facts.get("code") != ConversationNotFound.code:
            raise
        newest = await list_page(connection, limit=LOOKED_AT)
        ids = [each["id"] for each in newest["conversations"]]
        whole = begun if begun.startswith(BEGINS) else f"{BEGINS}{begun}"
        found = find_begun(whole, ids, "conversation")
        if found is None:
            raise
    return await _read(connection, found)


async def newest_page(connection: ChatConnection) -> Page:
    """The conversation in which something happened last."""
    newest = (await list_page(connection, limit=1))["conversations"]
    if not newest:
        raise UsageInvalid(
            reason="There is no conversation to continue.", fix="Begin one with 'carnet chat'."
        )
    return await _read(connection, newest[0]["id"])


async def own_page(connection: ChatConnection, id: str) -> Page:
    """The newest messages of a conversation, for one of them to be said anew."""
    return await connection.ask("GET", conversation_path(id, f"?limit={EDITABLE}"))


def own_text(own: Sequence[Page]) -> str:
    """What she has said, the last first, each by its number."""
    lines = [
        f"{n:>3}  {visible(each['content'])[:SHOWN_CHARACTERS]}" for n, each in enumerate(own, 1)
    ]
    return "\n".join([*lines, "/edit N TEXT says TEXT in the place of one."])


async def _read(connection: ChatConnection, id: str) -> Page:
    return await connection.ask("GET", conversation_path(id, f"?limit={SHOWN}"))


def show(screen: Screen, page: Page) -> None:
    """Show the last messages of a conversation."""
    screen.note(f"{page['title'] or page['id']}, with {page['agent']}")
    if page["next"]:
        screen.note("(What was said before that: /export)")
    for messages in _turns(page):
        if messages[0]["role"] == "user":
            screen.print(f"{YOU}{messages[0]['content']}")
            continue
        answer = ShownAnswer()
        for event, data in events_of(messages, [], page["id"]):
            for piece in answer.take(event, data):
                screen.show(piece)
        screen.end_line()
        if messages[0]["state"] != "whole" and not messages[0]["waits"]:
            screen.note(f"({messages[0]['state']}: {messages[0]['code']})")


def _turns(page: Page) -> Iterator[list[Page]]:
    """The messages, the oldest first; those of others stand with the answer that mentions them."""
    turn: list[Page] = []
    for message in reversed(page["messages"]):
        if turn and not (message["role"] == "assistant" == turn[0]["role"]):
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn
