"""Whether the agent loop is there that agents of a gateway are answered by."""

import asyncio

from carnet.cli.reach import counterpart
from carnet.config import Settings
from carnet.errors import Upstream
from carnet.ports.world.http_client import HttpClient, Outbound


async def missing_engine(settings: Settings, http: HttpClient) -> str:
    """Where a loop is looked for and is not; empty where it is there, or is not needed."""
    engine = settings.engine
    is_needed = any(agent.kind == "engine" for agent in settings.agents.values())
    if engine.is_in_process or not is_needed:
        return ""
    file = engine.socket(settings.base)
    is_there = await _answers(http, engine.listen) if file is None else await _opens(str(file))
    return "" if is_there else engine.listen


async def _answers(http: HttpClient, url: str) -> bool:
    """Whether anything answers; without a credential it refuses."""
    request = Outbound(method="GET", url=url, body=b"", headers={}, bounds=counterpart.SHORT)
    try:
        async with http.send(request):
            return True
    except Upstream:
        return False


async def _opens(file: str) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(file)
    except OSError:
        return False
    writer.close()
    return True
