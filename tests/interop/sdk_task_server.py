"""The server of the `samvad` package with tasks that end when they are told. Nothing of ours in it.

Run like `sdk_server`; a file named `go-WORD` in the folder of its keys ends the task `wait` of that
word.
"""

import asyncio
import sys
from pathlib import Path

from pydantic import BaseModel
from samvad import Agent
from samvad.types import RateLimit, SkillContext


class Text(BaseModel):
    """What is said."""

    text: str


class Numbers(BaseModel):
    """What is added."""

    a: int
    b: int


class Sum(BaseModel):
    """The sum, and who asked for it within which trace."""

    total: int
    sender: str
    trace: str


def built(port: int, keys: str) -> Agent:
    """An agent whose text is to be had as a task alone."""
    limit = RateLimit(requestsPerMinute=100_000, requestsPerSender=100_000)
    agent = Agent(name="sdk", url=f"http://127.0.0.1:{port}", keys_dir=keys, rate_limit=limit)

    async def chat(said: Text, _: SkillContext) -> Text:
        return Text(text=f"you said {said.text}")

    async def add(numbers: Numbers, context: SkillContext) -> Sum:
        total = numbers.a + numbers.b
        return Sum(total=total, sender=context.sender, trace=context.trace_id)

    async def wait(said: Text, _: SkillContext) -> Text:
        while not (Path(keys) / f"go-{said.text}").exists():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)
        return Text(text=f"waited for {said.text}")

    async def fail(said: Text, _: SkillContext) -> Text:
        raise RuntimeError(f"slip-of-the-sdk {said.text}")

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


def main(port: str, keys: str, *trusted: str) -> None:
    agent = built(int(port), keys)
    for entry in trusted:
        agent.trust_peer(*entry.split("=", 1))
    asyncio.run(agent.serve(host="127.0.0.1", port=int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
