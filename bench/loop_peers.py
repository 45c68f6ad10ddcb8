"""Turns of an agent loop of another package, in a process of its own: what they take.

    python -m bench.loop_peers NAME whole|streamed URL SECONDS

Each asks the model of `bench.loop_model`, uses its one tool, and asks again. It is used as its
documentation does, on the event loop that we use, many turns at once, and without its traces.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

import uvloop

from bench.loop_model import ANSWER, PAGE, QUESTION, SYSTEM

AT_ONCE = 64
WARM_UP_TURNS = 3  # of each that runs at once

Turn = Callable[[], Awaitable[str]]


async def read_page(name: str) -> str:
    """Reads a page of the notebook."""
    del name
    return PAGE


def pydantic_ai(url: str, *, is_streamed: bool) -> Turn:
    """A turn of pydantic-ai."""
    from pydantic_ai import Agent  # noqa: PLC0415  only where it is measured
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="none"))
    agent = Agent(model, instructions=SYSTEM)
    agent.tool_plain(read_page)

    async def whole() -> str:
        return (await agent.run(QUESTION)).output

    async def streamed() -> str:
        async with agent.run_stream(QUESTION) as result:
            pieces = result.stream_text(delta=True, debounce_by=None)
            return "".join([piece async for piece in pieces])

    return streamed if is_streamed else whole


def openai_agents(url: str, *, is_streamed: bool) -> Turn:
    """A turn of openai-agents."""
    from agents import (  # noqa: PLC0415
        Agent,
        OpenAIChatCompletionsModel,
        Runner,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI  # noqa: PLC0415

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url, api_key="none")
    agent = Agent(
        name="assistant",
        instructions=SYSTEM,
        model=OpenAIChatCompletionsModel("m", openai_client=client),
        tools=[function_tool(read_page)],
    )

    async def whole() -> str:
        return str((await Runner.run(agent, QUESTION)).final_output)

    async def streamed() -> str:
        result = Runner.run_streamed(agent, QUESTION)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    return streamed if is_streamed else whole


PEERS = {"pydantic-ai": pydantic_ai, "openai-agents": openai_agents}


async def measure(turn: Turn, seconds: float) -> dict[str, float]:
    """Many at once, until the time is over."""

    async def one() -> None:
        answer = await turn()
        if answer != ANSWER:
            raise ValueError(f"a turn was answered with {answer!r}")

    async def some(number: int) -> None:
        for _ in range(number):
            await one()

    await asyncio.gather(*(some(WARM_UP_TURNS) for _ in range(AT_ONCE)))
    turns, begun, before = 0, time.perf_counter(), time.process_time()

    async def until_over() -> None:
        nonlocal turns
        while time.perf_counter() - begun < seconds:
            await one()
            turns += 1

    await asyncio.gather(*(until_over() for _ in range(AT_ONCE)))
    return {
        "turns": turns,
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - before,
    }


if __name__ == "__main__":
    name, way, where, how_long = sys.argv[1:]
    take = PEERS[name](where, is_streamed=way == "streamed")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(measure(take, float(how_long)))))
