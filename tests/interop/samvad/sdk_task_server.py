"""The server of the `samvad` package with tasks that end when they are told. Nothing of ours in it.

Run like `sdk_server`; a file named `go-WORD` in the folder of its keys ends the task `wait` of that
word.
"""

import asyncio
import sys
from pathlib import Path

from samvad import Agent
from samvad.types import RateLimit, SkillContext

from tests.interop.samvad.sdk_server import Numbers, Sum, Text, add, chat, fail, serve


def built(port: int, keys: str) -> Agent:
    """An agent whose text is to be had as a task alone."""
    limit = RateLimit(requestsPerMinute=100_000, requestsPerSender=100_000)
    agent = Agent(name="sdk", url=f"http://127.0.0.1:{port}", keys_dir=keys, rate_limit=limit)

    async def wait(message: Text, _: SkillContext) -> Text:
        while not (Path(keys) / f"go-{message.text}").exists():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)
        return Text(text=f"waited for {message.text}")

    for name, takes, gives, handler, modes in (
        ("chat", Text, Text, chat, ["async"]),
        ("add", Numbers, Sum, add, ["sync", "async", "stream"]),
        ("wait", Text, Text, wait, ["async"]),
        ("fail", Text, Text, fail, ["async"]),
    ):
        agent.skill(
            name=name,
            description=f"The skill {name}.",
            input_schema=takes,
            output_schema=gives,
            modes=modes,
            trust="public",
            handler=handler,
        )
    return agent


if __name__ == "__main__":
    serve(built, *sys.argv[1:])
