"""What these tests send: the five headers, and a key beside them."""

import json
import secrets
from typing import Any

from tests.support.http import Reply
from tests.support.organisation import Organisation

AGENT, USER = "X-Agents-Api-Caller-Agent", "X-Agents-Api-Caller-User"
HOST, KEY = "X-Agents-Api-Caller-Host", "X-Agents-Api-Caller-Key"
ROOT, DEPTH = "X-Agents-Api-Chain-Root", "X-Agents-Api-Chain-Depth"

SITE = "https://source.example"


def chain(root: str = "root-1", depth: str = "2", **more: str) -> list[tuple[str, str]]:
    """What a host sends along that names itself; `more` takes the place of what it said."""
    fields = {"agent": "source", "user": "7", "host": SITE, "root": root, "depth": depth} | more
    names = {"agent": AGENT, "user": USER, "host": HOST, "root": ROOT, "depth": DEPTH, "key": KEY}
    return [(names[name], value) for name, value in fields.items() if value]


def seen_by(reply: Reply) -> dict[str, Any]:
    """What the agent was told of its caller."""
    assert reply.status == 200, reply.body
    found: dict[str, Any] = json.loads(reply.text)
    return found


def run_of(reply: Reply) -> str:
    """The run that an answer belongs to."""
    return reply.headers["x-tangle-runid"]


def turn_of(site: Organisation, reply: Reply) -> dict[str, Any]:
    """The first turn of its run, as pages show it."""
    page: dict[str, Any] = site.get(f"/runs/{run_of(reply)}").json["turns"][0]
    return page


def fresh(name: str = "x") -> str:
    """A name that nothing has yet."""
    return f"{name}-{secrets.token_hex(4)}"


def listed(site: Organisation, *options: str) -> tuple[str, str]:
    """A host that is listed now: its URL, and the key that was shown."""
    url = f"https://{fresh('host')}.example"
    return url, str(site.json("callers", "add", url, *options)["key"])


def last_used(site: Organisation, name: str) -> str | None:
    """When a token was last used, as its operator sees it."""
    used: str | None = site.json("tokens", "show", name)["last_used"]
    return used
