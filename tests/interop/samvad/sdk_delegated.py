"""A server of the `samvad` package that shows the delegation it was given, as a process.

Run with its port, a folder for its keys, and those it trusts as IDENTITY=KEY.
"""

import sys

from pydantic import BaseModel
from samvad import Agent
from samvad.types import SkillContext

from tests.interop.samvad.sdk_server import serve


class Nothing(BaseModel):
    """What goes in."""


class Shown(BaseModel):
    """The token, as the SDK has verified it."""

    token: str | None
    sender: str


async def shown(_: Nothing, context: SkillContext) -> Shown:
    return Shown(token=context.delegation_token, sender=context.sender)


def built(port: int, keys: str) -> Agent:
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
    return agent


if __name__ == "__main__":
    serve(built, *sys.argv[1:])
