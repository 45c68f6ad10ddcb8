"""Agents that are plain Python: functions that take a Visit, and skills that take an input.

Law 1. What a chat function returns or yields becomes events: text becomes Text, an event stays one,
       anything else becomes Data.
Law 2. A skill ends with one result, a JSON object that fits its schema; what it yields before are
       chunks.
Law 3. What it raises becomes AgentFailed; a CarnetError keeps its meaning.
"""

import difflib
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from carnet.core.call import Ask, Call
from carnet.core.events import RESULT, Done, Event, Extension, Text
from carnet.core.skill import CHAT
from carnet.errors import AgentFailed, CarnetError, SkillNotFound
from carnet.ports.admission import Dispatch
from carnet.ports.schemas import Schemas
from carnet.runtime import schemas as compiled
from carnet.runtime.chunks import Chunks, as_event
from carnet.runtime.closing import closing
from carnet.runtime.functions import SkillFunction
from carnet.runtime.skills import Definition, define
from carnet.runtime.threads import Threads
from carnet.runtime.visit import FORWARD_USER, Visit

logger = logging.getLogger("carnet.agent")


class Native:
    """A user's function, or several, as an Agent."""

    def __init__(
        self,
        agent: Definition | Callable[[Visit], Any],
        dispatch: Dispatch,
        *,
        last_depth: int,
        auth_source: str = FORWARD_USER,
        schemas: Schemas | None = None,
    ) -> None:
        """`dispatch` is its door to others; `auth_source` says who pays for the calls it makes."""
        self._definition = define(agent, getattr(agent, "__name__", "agent"))
        self._dispatch = dispatch
        self._last_depth = last_depth
        self._auth_source = auth_source
        self._schemas = schemas or compiled.Schemas()
        self._threads = Threads()

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Run what was asked for and give what it says as events."""
        visit = Visit(
            call, self._dispatch, last_depth=self._last_depth, auth_source=self._auth_source
        )
        try:
            async with closing(self._events(call, visit)) as events:
                async for event in events:
                    yield event
        except CarnetError:
            raise
        except (Exception, SystemExit) as error:  # the user's code; its text is for our log alone
            carnet = call.carnet
            extra = {"run": carnet.run, "turn": carnet.turn, "agent": call.agent}
            logger.exception("agent raised %s", type(error).__name__, extra=extra)
            raise AgentFailed(type(error).__name__) from None
        finally:
            visit.close()
        yield Done()

    def _events(self, call: Call, visit: Visit) -> AsyncIterator[Event]:
        definition, ask = self._definition, call.ask
        wanted = ask.skill or CHAT.id
        behind = definition.functions.get(wanted)
        chats = definition.chat is not None and wanted == CHAT.id
        if chats and (behind is None or ask.skill is None):
            return _chat(definition(visit))
        if behind is None:
            raise _no_such_skill(wanted, definition)
        return self._skill(behind, wanted, visit, call)

    async def _skill(
        self, behind: SkillFunction, wanted: str, visit: Visit, call: Call
    ) -> AsyncIterator[Event]:
        arguments = behind.arguments(visit, _payload(call.ask))
        chunks = Chunks(behind.output)
        if behind.kind == "stream":
            async with closing(behind.function(**arguments)) as items:
                async for item in items:
                    event = chunks.take(item)
                    if event is not None:
                        yield event
        else:
            chunks.give(await self._returned(behind, arguments))
        result = chunks.result()
        self._schemas.check_output(call.agent, self._definition.declared(wanted), result)
        if call.ask.skill is None and not chunks.has_text:  # asked by chat: it is read as text
            yield Text(str(result.get("text", "")))
        yield Extension(RESULT, result)

    async def _returned(self, behind: SkillFunction, arguments: dict[str, Any]) -> object:
        if behind.kind == "async":
            return await behind.function(**arguments)
        value = await self._threads.run(behind.function, **arguments)
        return await value if inspect.isawaitable(value) else value


def _payload(ask: Ask) -> dict[str, Any]:
    if ask.skill is None:
        return {"text": ask.text}
    return ask.payload or {}


def _no_such_skill(wanted: str, definition: Definition) -> SkillNotFound:
    names = [skill.id for skill in definition.skills]
    near = difflib.get_close_matches(wanted, names, n=1) or names[:1]
    return SkillNotFound("not declared by the agent", suggestion=near[0] if near else "")


async def _chat(given: Any) -> AsyncIterator[Event]:
    if inspect.isasyncgen(given):
        async with closing(given) as items:
            async for item in items:
                yield as_event(item)
    else:
        value = await given
        if value is not None:
            yield as_event(value)
