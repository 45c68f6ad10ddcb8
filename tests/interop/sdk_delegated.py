"""A server of the `samvad` package that shows the delegation it was given, as a process.

Run with its port, a folder for its keys, and those it trusts as IDENTITY=KEY.
"""

import asyncio
import sys

from pydantic import BaseModel
from samvad import Agent
from samvad.types import SkillContext


class Nothing(BaseModel):
    """What goes in."""


class Shown(BaseModel):
    """The token, as the SDK has verified it."""

    token: str | None
    sender: str


async def shown(_: Nothing, context: SkillContext) -> Shown:
    return Shown(token=context.delegation_token, sender=context.sender)


def main(port: str, keys: str, *trusted: str) -> None:
    agent = Agent(name="sdk", url=f"http://127.0.0.1:{port}", keys_dir=keys)
    for name in ("shown", "other"):
        agent.skill(
            name=name,
            description="Shows the token.",
            input_schema=Nothing,
            output_schema=Shown,
            modes=["sync"],
            trust="public",
            handler=shown,
        )
    for entry in trusted:
        agent.trust_peer(*entry.split("=", 1))
    asyncio.run(agent.serve(host="127.0.0.1", port=int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
