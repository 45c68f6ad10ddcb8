"""Clients of the `samvad` package in a process: one order a line in, one outcome a line out.

An order says who obeys: a folder for its keys, and the name of its key. It imports nothing of this
project.
"""

import asyncio
import json
import sys
from typing import Any

import httpx
from samvad import AgentClient

Outcome = dict[str, Any]


async def obey(client: AgentClient, order: dict[str, Any]) -> Any:
    """Do one thing."""
    match order["do"]:
        case "prepare":
            done: Any = client.public_key_b64
        case "connect":
            done = await client.connect(order["url"])
        case "call":
            done = await client.call(order["skill"], order["payload"])
        case "task":
            callback = order["callback"]
            done = await client.task(order["skill"], order["payload"], callback_url=callback)
        case "task_and_poll":
            done = await client.task_and_poll(order["skill"], order["payload"], interval=0.05)
        case _:
            done = [frame async for frame in client.stream(order["skill"], order["payload"])]
    return done


async def outcome_of(client: AgentClient, order: dict[str, Any]) -> Outcome:
    """What came of it, in the client's own terms."""
    try:
        return {"value": await obey(client, order)}
    except httpx.HTTPStatusError as error:
        response = error.response
        body = "" if order["do"] == "stream" else response.text  # a stream is closed by then
        return {"status": response.status_code, "body": body}
    except Exception as error:  # noqa: BLE001  the test wants to see it
        return {"raised": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Obey until nothing more comes."""
    clients: dict[str, AgentClient] = {}
    for line in sys.stdin:
        order = json.loads(line)
        folder, kid = order["who"]
        if folder not in clients:
            clients[folder] = AgentClient.prepare(keys_dir=folder, kid=kid)
        outcome = asyncio.run(outcome_of(clients[folder], order))
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
