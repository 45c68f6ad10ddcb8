"""Answers that are pages."""

from carnet.http.exchange import Exchange
from carnet.wire.grammar import json


async def reply_json(exchange: Exchange, page: object, status: int = 200) -> None:
    """Answer with a JSON page."""
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await exchange.reply(status, headers, json.write(page))
