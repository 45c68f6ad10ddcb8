"""Another agent as a tool: what a model says to it, and what it answers.

Law 1. Each use is a call out of the turn: with its carnet, its payer and its ceiling, and recorded.
       The tool says whom and what, and has no way to say more.
Law 2. What another agent answers is data. The model is told whose words they are.
Law 3. A callee that fails is told to the model, which decides what to do; one that waits for
       somebody makes the turn wait.
"""

import re
from typing import Final

from carnet.core.messages.events import Message
from carnet.core.messages.parameters import Tool
from carnet.core.people.address import parse_handle
from carnet.errors import AgentFailed, Internal, ToolUnusable
from carnet.ports.engine.calls import AgentAsk
from carnet.ports.engine.tools import ToolFailed, ToolUse

SECONDS: Final = 660.0  # more than a call to a peer may take: that ends by itself

_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_NO_MESSAGE: Final = "'message' must be text: what is said to the agent."


class AgentTool:
    """One agent, by its address: `@name@domain`."""

    def __init__(self, address: str, description: str = "", name: str = "") -> None:
        """Without a name it has that of the agent; AddressInvalid for what is no address."""
        self._address = str(parse_handle(address))
        called = name or _OTHER.sub("_", parse_handle(address).local)
        words = description or f"Asks the agent {self._address}, and gives its answer."
        message = {"type": "string", "description": "What is said to it."}
        schema = {
            "type": "object",
            "properties": {"message": message},
            "required": ["message"],
            "additionalProperties": False,
        }
        self.definition = Tool(called, words, schema)

    async def __call__(self, use: ToolUse, /) -> object:
        """Ask it, and give its answer with its address."""
        text = use.arguments.get("message")
        if not isinstance(text, str) or not text:
            raise ToolFailed(_NO_MESSAGE)
        if use.calls is None:
            raise Internal("an agent was to be called where none can be")
        asked = AgentAsk(
            to=self._address, messages=(Message.user(text),), call=use.call, place=use.place
        )
        try:
            answer = await use.calls.ask_agent(asked)
        except (AgentFailed, ToolUnusable) as failed:  # it is the callee that is broken
            raise ToolFailed(failed.safe_text) from failed
        return {"from": self._address, "answer": answer}
