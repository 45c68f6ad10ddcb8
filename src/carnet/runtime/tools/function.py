"""A Python function as a tool.

    def read_page(name: str, *, lines: int = 20) -> str:
        "Reads a page of the notebook."

Law 1. What a model is told of it comes from the function: its name, its docstring, its signature.
Law 2. Arguments that do not fit are refused before it is called, by field and rule, for the model.
Law 3. A plain function runs in a thread, never on the event loop. Nobody has all of its threads.
Law 4. What it gives is text, or is written as JSON.
Law 5. What it calls by itself is a call out of the turn, with a place that follows from its own.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final

from carnet.core.messages.parameters import Tool
from carnet.ports.engine.tools import ToolUse
from carnet.runtime.chain.call_chain import CHAIN, current_chain
from carnet.runtime.skills.function import SkillFunction
from carnet.runtime.skills.types import plain
from carnet.runtime.threads import MOST_AT_ONCE, Threads
from carnet.runtime.tools.room import FairRoom

MOST_OF_ONE: Final = 16  # threads of one function for one actor


class FunctionTool:
    """One function.

    Raises TypeError for one that cannot be a tool, in words for whoever wrote it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Take the function as it is."""
        name = getattr(function, "__name__", "")
        self._function = SkillFunction(function, None, None)
        if self._function.kind not in {"plain", "async"}:
            raise TypeError(f"'{name}' yields; a tool returns what it gives, once")
        if self._function.takes_visit:
            raise TypeError(f"'{name}' takes a visit, and a tool is given none")
        words = inspect.getdoc(function) or ""
        self.definition = Tool(name, words, self._function.input.schema)
        self._threads = Threads()
        self._room = FairRoom(MOST_AT_ONCE, each=MOST_OF_ONE)

    async def __call__(self, use: ToolUse, /) -> object:
        """Call it with what the model gave."""
        chain = current_chain()
        if chain is None:
            return await self._called(use)
        before = CHAIN.set(chain.scoped(f"tool {use.place}"))
        try:
            return await self._called(use)
        finally:
            CHAIN.reset(before)

    async def _called(self, use: ToolUse) -> object:
        function = self._function
        arguments = function.fields(use.arguments)
        if function.kind == "async":
            value = await function.function(**arguments)
        else:
            async with self._room.place(use.actor.id):
                value = await self._threads.run(function.function, **arguments)
            value = await value if inspect.isawaitable(value) else value
        return value if isinstance(value, str) else plain(value)
