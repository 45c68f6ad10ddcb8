"""The server of the `samvad` package as a process that tells who called it, and under which ids.

It imports nothing of this project. Run with its port, a folder for its keys, and those it trusts.
"""

import sys

from pydantic import BaseModel
from samvad import Agent
from samvad.types import RateLimit, SkillContext

from tests.interop.samvad.sdk_server import serve


class Text(BaseModel):
    """What is said."""

    text: str


async def whose(message: Text, context: SkillContext) -> Text:
    return Text(text=f"{message.text} {context.sender} {context.trace_id} {context.span_id}")


def built(port: int, keys: str) -> Agent:
    """An agent with one skill."""
    limit = RateLimit(requestsPerMinute=100_000, requestsPerSender=100_000)
    agent = Agent(name="ids", url=f"http://127.0.0.1:{port}", keys_dir=keys, rate_limit=limit)
    agent.skill(
        name="whose",
        description="Who calls.",
        input_schema=Text,
        output_schema=Text,
        modes=["sync", "stream"],
        trust="public",
        handler=whose,
    )
    return agent


if __name__ == "__main__":
    serve(built, *sys.argv[1:])
