"""Agents that are plain Python: functions that take a Visit, and skills that take an input.

Law 1. What a chat function returns or yields becomes events: text becomes Text, an event stays one,
       anything else becomes Data.
Law 2. A skill ends with one result, a JSON object that fits its schema; what it yields before are
       chunks.
Law 3. What it raises becomes AgentFailed, also KeyboardInterrupt and SystemExit; a CarnetError
       keeps its meaning.
Law 4. A plain function or generator runs in a thread, never on the event loop; each agent has
       threads of its own, so that none can take those of another.
Law 5. What its code calls by itself goes on with the chain of the call (`runtime.chain`).
Law 6. A process that it forked does not come back into ours: it ends where the agent does.
"""

import asyncio
import difflib
import inspect
import logging
import os
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NoReturn

from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.messages.events import (
    MESSAGE,
    RESULT,
    DataPart,
    Done,
    End,
    Event,
    Extension,
    Message,
    Text,
    ToolCall,
    Usage,
    is_terminal,
)
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.core.messages.output import Output
from carnet.core.people.identity import CHAT
from carnet.errors import AgentFailed, CarnetError, Declined, InvalidJson, SkillNotFound
from carnet.ports.calls.admission import Dispatch
from carnet.ports.calls.agent import FORWARD_USER
from carnet.ports.trust.schemas import Schemas
from carnet.runtime.chain.call_chain import CHAIN
from carnet.runtime.skills import schemas as compiled
from carnet.runtime.skills.definition import Chunks, Definition, as_event, define
from carnet.runtime.skills.function import SkillFunction
from carnet.runtime.stream import closing
from carnet.runtime.threads import Threads
from carnet.runtime.visit.means import NO_MEANS, VisitMeans
from carnet.runtime.visit.visit import Visit
from carnet.wire import travel
from carnet.wire.grammar import json

logger = logging.getLogger("carnet.agent")

TOOL_CALLS: Final = "tool_calls"  # why an answer ends that wants some called

_forks = 0  # that this process is the last of


def _count_fork() -> None:
    global _forks  # noqa: PLW0603  a call to look it up would be one a request
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


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
        means: VisitMeans = NO_MEANS,
    ) -> None:
        """`dispatch` carries its calls to others; `auth_source` says who pays for them.

        `means` are what it works with; threads it has of its own.
        """
        self._definition = define(agent, getattr(agent, "__name__", "agent"))
        self._dispatch = dispatch
        self._last_depth = last_depth
        self._auth_source = auth_source
        self._schemas = schemas or compiled.CompiledSchemas()
        self._threads = Threads()
        self._means = replace(means, threads=self._threads)
        self._forks = _forks
        self._chats_here = self._definition.kind in {"async", "stream"}  # on the event loop

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Run what was asked for and write what it says as events."""
        visit = self._visit(call, out)
        before = CHAIN.set(visit)
        try:
            end = await self._say(call, visit, out)
            if visit.has_asked:
                await visit.waiting(None)
        except (CarnetError, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            if _forks != self._forks:
                _end_child(error)
            waiting = await visit.waiting(error)
            if waiting is None:
                raise blamed(error, call) from error
            end = waiting
        finally:
            visit.close()
            CHAIN.reset(before)
        if _forks != self._forks:
            os._exit(0)
        return end

    async def _say(self, call: Call, visit: Visit, out: Output) -> End:
        skill = self._function(call.ask)
        if skill is not None:
            return await self._skill(skill, visit, call, out)
        given: Any = self._definition(visit) if self._chats_here else await self._beside(visit)
        if not inspect.isasyncgen(given):
            value = await given if self._chats_here else given
            if value is None or type(value) is Message:
                return await _tell_message(value, out)
            event = as_event(value)
            end = await _tell(event, out)
            match event:  # which makes no call
                case ToolCall():
                    return Done(TOOL_CALLS)
            return end or Done()
        return await _tell_all(given, out, visit)

    async def _beside(self, visit: Visit) -> object:
        """What a plain function gives, or what is to be read of a generator."""
        if self._definition.kind == "plain stream":
            return self._threads.iterate(self._definition, visit)
        value: object = await self._threads.run(self._definition, visit)
        return await value if inspect.isawaitable(value) else value

    def _visit(self, call: Call, out: Output) -> Visit:
        return Visit(
            call,
            out,
            self._dispatch,
            last_depth=self._last_depth,
            auth_source=self._auth_source,
            means=self._means,
        )

    def _function(self, ask: Ask) -> SkillFunction | None:
        """The skill that is asked for; None for the chat function."""
        definition = self._definition
        wanted = ask.skill or CHAT.id
        skill = definition.functions.get(wanted)
        chats = definition.chat is not None and wanted == CHAT.id
        if chats and (skill is None or ask.skill is None):
            return None
        if skill is None:
            raise _no_such_skill(wanted, definition)
        return skill

    async def _skill(self, skill: SkillFunction, visit: Visit, call: Call, out: Output) -> End:
        wanted = call.ask.skill or CHAT.id
        arguments = skill.arguments(visit, _payload(call.ask))
        chunks = Chunks(skill.output)
        if skill.kind in {"stream", "plain stream"}:
            async with closing(self._stream(skill, arguments)) as items:
                async for item in items:
                    event = chunks.take(item)
                    end = None if event is None else await _tell(event, out)
                    if end is not None:
                        return end
        else:
            chunks.give(await self._returned(skill, arguments))
        result = chunks.result()
        _refuse_depth(result)
        self._schemas.check_output(call.agent, self._definition.declared(wanted), result)
        if call.ask.skill is None and not chunks.has_text:  # asked by chat: it is read as text
            await out.write(Text(str(result.get("text", ""))))
        await out.write(Extension(RESULT, result))
        return Done()

    def _stream(self, skill: SkillFunction, arguments: dict[str, Any]) -> AsyncIterator[Any]:
        if skill.kind == "stream":
            items: AsyncIterator[Any] = skill.function(**arguments)
            return items
        return self._threads.iterate(skill.function, **arguments)

    async def _returned(self, skill: SkillFunction, arguments: dict[str, Any]) -> object:
        if skill.kind == "async":
            return await skill.function(**arguments)
        value = await self._threads.run(skill.function, **arguments)
        return await value if inspect.isawaitable(value) else value


def _refuse_declined(answer: Resolution, asked: Interrupt) -> None:
    """End a stream that only asked and does not look at the answer, if that is no."""
    if not answer.accepted:
        raise Declined(kind=asked.kind if asked.is_known else "input")


def _end_child(error: BaseException) -> NoReturn:
    """End a process that the agent forked, as Python would have."""
    code = error.code if isinstance(error, SystemExit) else 1
    os._exit(code if isinstance(code, int) else int(code is not None))


def blamed(error: BaseException, call: Call) -> AgentFailed:
    """What the caller is told; the text of the user's error is for our log alone."""
    carnet = call.carnet
    extra = {"run": carnet.run, "turn": carnet.turn, "agent": call.agent}
    logger.error("agent raised %s", type(error).__name__, exc_info=error, extra=extra)
    return AgentFailed(type(error).__name__)


def _refuse_depth(result: dict[str, Any]) -> None:
    """Refuse a result that those who called could not read, and no receipt could be made for."""
    try:
        json.refuse_depth(result, travel.MOST_LEVELS)
    except InvalidJson:
        raise ValueError(f"the result has more than {travel.MOST_LEVELS} levels") from None


def _payload(ask: Ask) -> dict[str, Any]:
    if ask.skill is None:
        return {"text": ask.text}
    return ask.payload or {}


def _no_such_skill(wanted: str, definition: Definition) -> SkillNotFound:
    names = [skill.id for skill in definition.skills]
    near = difflib.get_close_matches(wanted, names, n=1) or names[:1]
    return SkillNotFound("not declared by the agent", suggestion=near[0] if near else "")


async def _tell_all(given: AsyncIterator[object], out: Output, visit: Visit) -> End:
    """Write what a generator says, and its end: it may want tools called."""
    ending = Done()
    async with closing(given) as items:
        async for item in items:
            if type(item) is Interrupt:
                _refuse_declined(visit.ask(item), item)
                continue
            if type(item) is Message:
                await _tell_message(item, out)
                continue
            event = as_event(item)
            end = await _tell(event, out)
            if end is not None:
                return end
            if isinstance(event, ToolCall):
                ending = Done(TOOL_CALLS)
    return ending


async def _tell_message(message: Message | None, out: Output) -> Done:
    """Write a word in passing: where a dialect can tell it from work that is kept, it does."""
    if message is not None:
        await out.write(Extension(MESSAGE, None))
        for part in message.parts:
            await out.write(as_event(part.value if isinstance(part, DataPart) else part))
    return Done()


async def _tell(event: Event, out: Output) -> End | None:
    """Write what the user's code said; its end if it said so."""
    if is_terminal(event):
        return event
    if type(event) is Usage:
        out.usage(event)
    else:
        await out.write(event)
    return None
