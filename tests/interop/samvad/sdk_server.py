"""The server of the `samvad` package as a process. It imports nothing of this project.

Run with its port, a folder for its keys, and those it trusts as IDENTITY=KEY.
"""

import asyncio
import socket
import sys
from collections.abc import Callable

import uvicorn
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


async def chat(message: Text, _: SkillContext) -> Text:
    return Text(text=f"you said {message.text}")


async def add(numbers: Numbers, context: SkillContext) -> Sum:
    total = numbers.a + numbers.b
    return Sum(total=total, sender=context.sender, trace=context.trace_id)


async def fail(message: Text, _: SkillContext) -> Text:
    raise RuntimeError(f"slip-of-the-sdk {message.text}")


def built(port: int, keys: str) -> Agent:
    """An agent with four skills."""
    limit = RateLimit(requestsPerMinute=100_000, requestsPerSender=100_000)
    agent = Agent(name="sdk", url=f"http://127.0.0.1:{port}", keys_dir=keys, rate_limit=limit)
    both = ["sync", "stream"]
    for name, takes, gives, handler, trust in (
        ("chat", Text, Text, chat, "public"),
        ("add", Numbers, Sum, add, "public"),
        ("fail", Text, Text, fail, "public"),
        ("members", Text, Text, chat, "authenticated"),
    ):
        agent.skill(
            name=name,
            description=f"The skill {name}.",
            input_schema=takes,
            output_schema=gives,
            modes=both,
            trust=trust,
            handler=handler,
        )
    return agent


def serve(build: Callable[[int, str], Agent], fd: str, keys: str, *trusted: str) -> None:
    """Serve what is built, on a socket that was handed down, until the process is ended."""
    handed = socket.socket(fileno=int(fd))
    agent = build(handed.getsockname()[1], keys)
    for entry in trusted:
        agent.trust_peer(*entry.split("=", 1))
    server = uvicorn.Server(uvicorn.Config(agent.build_app(), log_level="info"))
    asyncio.run(server.serve(sockets=[handed]))


if __name__ == "__main__":
    serve(built, *sys.argv[1:])
