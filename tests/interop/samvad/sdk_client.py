"""The client of the `samvad` package as a process: one order a line in, one outcome a line out.

Run with a folder for its keys and the name of its key. It imports nothing of this project.
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
    if order["do"] == "connect":
        return await client.connect(order["url"])
    if order["do"] == "call":
        return await client.call(order["skill"], order["payload"])
    if order["do"] == "task":
        return await client.task(order["skill"], order["payload"], callback_url=order["callback"])
    if order["do"] == "task_and_poll":
        return await client.task_and_poll(order["skill"], order["payload"], interval=0.05)
    return [frame async for frame in client.stream(order["skill"], order["payload"])]


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
    """Say who we are, then obey until nothing more comes."""
    folder, kid = sys.argv[1:]
    client = AgentClient.prepare(keys_dir=folder, kid=kid)
    sys.stdout.write(json.dumps({"kid": client.kid, "public": client.public_key_b64}) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        outcome = asyncio.run(outcome_of(client, json.loads(line)))
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
