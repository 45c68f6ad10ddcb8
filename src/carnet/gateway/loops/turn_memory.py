"""Memory for a loop elsewhere: with the bearer of the turn that it answers, and for that alone.

Law 1. Whose memory it is and which agent's comes from the turn. There is no argument for either.
Law 2. The bearer is good while its stream is open (see `turn_calls`), and for what the caller of
       the turn may: `memory:read`, `memory:write`.
Law 3. What was said before is searched for who may `tool:search_conversations`, in the turns that
       `runtime.tools.memory.PastOfCalls` says.
Law 4. Whether somebody has to approve a write is for the loop to ask; ours does.
"""

from typing import Final

from msgspec import to_builtins

from carnet.core.memory.path import parse_folder, parse_path
from carnet.errors import MemoryFileNotFound, PermissionMissing, PersonRequired
from carnet.gateway.loops.shown_turns import ShownTurns
from carnet.gateway.people.memory import file_page, read_content
from carnet.http.exchange import Exchange, Row, reply_json
from carnet.ports.memory.memory import TurnMemory
from carnet.wire.grammar.query import read_query, read_word

SEARCHES: Final = "tool:search_conversations"


class TurnMemoryPages:
    """Takes what loops elsewhere read and write."""

    def __init__(self, turns: ShownTurns) -> None:
        self._turns = turns

    async def list(self, exchange: Exchange) -> None:
        """GET /turn/memory: the files, of a folder or all, or the lines with some words."""
        memory = await self._memory(exchange, "memory:read")
        query = read_query(exchange.query.decode("latin-1"))
        search, folder = read_word(query, "search"), read_word(query, "folder")
        if search is not None:
            await reply_json(exchange, {"hits": await memory.search(search)})
            return
        files = await memory.list(parse_folder(folder or ""))
        await reply_json(exchange, {"files": [file_page(file) for file in files]})

    async def read(self, exchange: Exchange, name: str) -> None:
        """GET /turn/memory/{path}."""
        memory = await self._memory(exchange, "memory:read")
        path = parse_path(name)
        text = await memory.read(path)
        if text is None:
            raise MemoryFileNotFound
        await reply_json(exchange, {"path": path, "content": text})

    async def write(self, exchange: Exchange, name: str) -> None:
        """PUT /turn/memory/{path}."""
        memory = await self._memory(exchange, "memory:write")
        path, asked = parse_path(name), await read_content(exchange)
        file = await memory.write(path, asked.content)
        await reply_json(exchange, file_page(file))

    async def search(self, exchange: Exchange) -> None:
        """GET /turn/conversations: those of the person that hold some words."""
        turn = await self._turns.find(exchange, SEARCHES)
        if turn.past is None:
            raise PermissionMissing(permission=SEARCHES)
        words = read_word(read_query(exchange.query.decode("latin-1")), "search")
        found = [] if words is None else await turn.past.search(words)
        await reply_json(exchange, {"conversations": [to_builtins(each) for each in found]})

    async def _memory(self, exchange: Exchange, permission: str) -> TurnMemory:
        turn = await self._turns.find(exchange, permission)
        if turn.memory is None:
            raise PersonRequired
        return turn.memory


ROUTES = (
    Row(
        method="GET",
        path="/turn/memory",
        endpoint=TurnMemoryPages.list,
        auth="gate",
        summary="For an agent loop, with the bearer of its turn: files, or lines with some words",
        query=("folder", "search"),
        answer="Page",
    ),
    Row(
        method="GET",
        path="/turn/memory/{path}",
        endpoint=TurnMemoryPages.read,
        auth="gate",
        summary="For an agent loop, with the bearer of its turn: what a file says",
        answer="Page",
    ),
    Row(
        method="PUT",
        path="/turn/memory/{path}",
        endpoint=TurnMemoryPages.write,
        auth="gate",
        summary="For an agent loop, with the bearer of its turn: write a file",
        body="MemoryContent",
        answer="Page",
    ),
    Row(
        method="GET",
        path="/turn/conversations",
        endpoint=TurnMemoryPages.search,
        auth="gate",
        summary="For an agent loop, with the bearer of its turn: conversations with some words",
        query=("search",),
        answer="Page",
    ),
)
