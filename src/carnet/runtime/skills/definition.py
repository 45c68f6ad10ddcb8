"""Agents as people write them: a function that chats, and skills that are asked for by name.

    writer = carnet.agent("writer")

    @writer.skill("summarise")
    async def summarise(text: Text) -> Summary: ...

Here is also what a skill says on its way, and the result that it ends with.

Law 1. An agent with a chat function has the skill `chat`, unless it declares its own.
Law 2. What is wrong with a skill is told when its module is imported, not when it is called, with
       the name of the skill.
Law 3. Naming the peers that may call a skill closes it to everybody else, whatever its agent says.
Law 4. Text is a Text chunk, an event stays one, and anything else is a Data chunk in plain JSON.
Law 5. There is at most one result: a `Result`, or an instance of the output type. Where a generator
       gives none, it is what it said: `{"text": ...}`, or `{"chunks": [...]}` if not all was text.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar, get_args, overload

from carnet.core.messages.events import (
    Data,
    Event,
    File,
    Interrupted,
    Link,
    Resolved,
    Text,
    Waiting,
    file_event,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.core.people.identity import CHAT, Mode, Result, Skill, Trust
from carnet.errors import ConfigInvalid
from carnet.runtime.skills.function import VISIT, Kind, SkillFunction, kind_of
from carnet.runtime.skills.types import Shape, plain
from carnet.runtime.visit.visit import Visit

MAX_NAME = 100
MAX_DESCRIPTION = 500
WRITE_IT: Final = "write it as 'async def name(visit)' or 'def name(visit)', with return or yield"
DEFAULT_MODES: Final[tuple[Mode, ...]] = ("sync", "async", "stream")

Function = TypeVar("Function", bound=Callable[..., Any])

_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?", re.ASCII)
_OWNER = "__carnet_skill_of__"
_PEER = "agent://"


class Definition:
    """An agent: its chat function and its skills. A decorator for the former."""

    def __init__(self, name: str) -> None:
        """`name` is a note for readers: the name it is called by stands in `carnet.toml`."""
        if not isinstance(name, str):  # the decorator without its brackets is given the function
            raise TypeError("give it a name: @carnet.agent('name'), @carnet.skill('name')")
        self.name = name
        self.chat: Callable[[Visit], Any] | None = None
        self.kind: Kind = "async"  # of the chat function
        self.functions: dict[str, SkillFunction] = {}
        self._skills: dict[str, Skill] = {}

    @overload
    def __call__(self, function: Visit) -> Any: ...

    @overload
    def __call__(self, function: Callable[[Visit], Any]) -> "Definition": ...

    def __call__(self, function: Callable[[Visit], Any] | Visit) -> Any:
        """Make a function the one that answers when nothing is asked for by name.

        Given a visit it is that function, so that a test can call it as it was written.
        """
        if isinstance(function, Visit):
            return self._answer(function)
        if self.chat is not None:
            raise TypeError(f"agent '{self.name}' has a chat function already")
        reason = _no_chat(function)
        if reason:
            raise TypeError(f"agent '{self.name}' {reason}")
        self._chat_with(function)
        self.__doc__ = function.__doc__
        return self

    def _chat_with(self, function: Callable[[Visit], Any]) -> None:
        self.chat, self.kind = function, kind_of(function)

    def _answer(self, visit: Visit) -> Any:
        if self.chat is None:
            raise TypeError(f"agent '{self.name}' has no chat function")
        return self.chat(visit)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """What its card shows."""
        declared = tuple(self._skills.values())
        return (CHAT, *declared) if self.chat and CHAT.id not in self._skills else declared

    def check(self, skill: str, payload: dict[str, Any]) -> None:
        """Refuse what a skill cannot be called with, though its schema may take it."""
        added = self.functions.get(skill)
        if added is not None:
            added.check(payload)

    def declared(self, skill: str) -> Skill:
        """What its card says about a skill."""
        return self._skills[skill]

    def skill(
        self,
        id: str,
        *,
        input: Any = None,
        output: Any = None,
        modes: Sequence[Mode] = DEFAULT_MODES,
        trust: Trust | None = None,
        allowed_peers: Sequence[str] | None = None,
        name: str | None = None,
        description: str | None = None,
        tags: Sequence[str] = (),
        examples: Sequence[str] = (),
    ) -> Callable[[Function], Function]:
        """Make a function a skill of this agent.

        Args:
            id: The name it is asked for by.
            input: A dataclass, msgspec Struct, pydantic model, TypedDict or JSON Schema of what
                goes in; by default what the function's annotations say.
            output: The same for what comes out.
            modes: How it may be called.
            trust: Which signed callers may; by default what the agent's section says.
            allowed_peers: The peers that may, and nobody else: trust is then "trusted-peers".
            name: What people call it; by default its id.
            description: What it does; by default the beginning of the docstring.
            tags: Words that it is found by in its A2A card; by default its id.
            examples: What it can be asked, for readers of that card.
        """
        self._check_new(id)

        def register(function: Function) -> Function:
            with _blaming(id):
                added = SkillFunction(function, input, output)
                self._skills[id] = Skill(
                    id=_checked_id(id),
                    name=_bounded(name or id, MAX_NAME),
                    description=_described(description or _first_words(function) or id),
                    input_schema=added.input.schema,
                    output_schema=added.output.schema,
                    modes=_checked_modes(modes),
                    **_may_call(trust, allowed_peers),
                    **_found_by(tags, examples),
                )
            self.functions[id] = added
            with suppress(AttributeError):  # a bound method takes no notes
                setattr(function, _OWNER, self.name)
            return function

        return register

    def _check_new(self, id: object) -> None:
        if not isinstance(id, str):  # the decorator without its brackets is given the function
            raise TypeError(f"give the skill a name: @{self.name}.skill('name')")
        if id in self._skills:
            raise TypeError(f"agent '{self.name}' has a skill '{id}' already")


def agent(name: str) -> Definition:
    """An agent of that name: decorate its chat function with it, or its skills with `.skill`."""
    return Definition(name)


def skill(id: str, **more: Any) -> Callable[[Callable[..., Any]], Definition]:
    """Make one function an agent with one skill. Takes what `Definition.skill` takes."""
    definition = Definition(id)

    def register(function: Callable[..., Any]) -> Definition:
        definition.skill(id, **more)(function)
        return definition

    return register


def define(found: object, target: str, *, key: str = "target") -> Definition:
    """What `target = "module:name"` led to as an agent; else say what it should be."""
    if isinstance(found, Definition):
        if found.skills:
            return found
        raise ConfigInvalid(key=key, reason=f"'{target}' has neither a chat function nor a skill")
    owner = getattr(found, _OWNER, None)
    if owner is not None:
        reason = f"'{target}' is a skill of agent '{owner}': name the agent, not the skill"
        raise ConfigInvalid(key=key, reason=reason)
    reason = _no_chat(found)
    if reason or not callable(found):
        raise ConfigInvalid(key=key, reason=f"'{target}' {reason}")
    return Definition(target)(found)


def skills_of(found: Definition | Callable[[Visit], Any]) -> tuple[Skill, ...]:
    """What an agent can be asked for by name; a plain function chats."""
    return found.skills if isinstance(found, Definition) else (CHAT,)


def _no_chat(found: object) -> str:
    """Why nothing can chat with it; empty for a function that can be given a visit."""
    if not callable(found) or inspect.isclass(found):
        return "is not an agent: " + WRITE_IT
    try:
        inspect.signature(found).bind(VISIT)
    except TypeError:
        has_any = bool(inspect.signature(found).parameters)
        return f"takes {'more than one' if has_any else 'no'} parameter: " + WRITE_IT
    except ValueError:  # written in C, and says nothing of its parameters
        return ""
    return ""


@contextmanager
def _blaming(id: str) -> Iterator[None]:
    """Say which skill it is that something is wrong with."""
    try:
        yield
    except TypeError as error:
        raise TypeError(f"skill {id!r}: {error}") from error


def _checked_id(id: str) -> str:
    if not _ID.fullmatch(id):
        raise TypeError(f"a skill's id is 1 to 64 letters, digits, '.', '_' or '-', not {id!r}")
    return id


def _checked_modes(modes: Sequence[Mode]) -> tuple[Mode, ...]:
    if isinstance(modes, str) or not modes or not set(modes) <= set(get_args(Mode)):
        raise TypeError(f"modes are some of {', '.join(DEFAULT_MODES)}, not {modes!r}")
    return tuple(dict.fromkeys(modes))


def _checked_trust(trust: Trust | None, allowed: Sequence[str] | None) -> Trust | None:
    if trust is not None and trust not in get_args(Trust):
        raise TypeError(f"trust is one of {', '.join(get_args(Trust))}, not {trust!r}")
    if allowed is None:
        return trust
    if trust not in {None, "trusted-peers"}:
        raise TypeError(
            f"allowed_peers makes it 'trusted-peers', and trust says {trust!r}: leave out one"
        )
    return "trusted-peers"


def _peers(allowed: Sequence[str] | None) -> tuple[str, ...] | None:
    """Identities in their stored form."""
    if allowed is None:
        return None
    if isinstance(allowed, str):
        raise TypeError(f"allowed_peers is a list, such as [{allowed!r}]")
    return tuple(_PEER + peer.removeprefix(_PEER).lower() for peer in allowed)


def _may_call(trust: Trust | None, allowed: Sequence[str] | None) -> dict[str, Any]:
    return {"trust": _checked_trust(trust, allowed), "allowed_peers": _peers(allowed)}


def _found_by(tags: Sequence[str], examples: Sequence[str]) -> dict[str, Any]:
    return {
        "tags": _words(tags, "tags", MAX_NAME),
        "examples": _words(examples, "examples", MAX_DESCRIPTION),
    }


def _words(given: Sequence[str], argument: str, most: int) -> tuple[str, ...]:
    if isinstance(given, str):
        raise TypeError(f"{argument} is a list, such as [{given!r}]")
    if not all(given):
        raise TypeError(f"{argument}: none of them may be empty")
    return tuple(_bounded(each, most) for each in given)


def _described(text: str) -> str:
    return _bounded(text, MAX_DESCRIPTION)


def _bounded(text: str, most: int) -> str:
    if len(text) > most:
        raise TypeError(f"at most {most} characters, not {len(text)}: {text[:40]!r}...")
    return text


def _first_words(function: Callable[..., Any]) -> str:
    """The first paragraph of its docstring on one line, as far as a card has room."""
    paragraph = (inspect.getdoc(function) or "").partition("\n\n")[0]
    return " ".join(paragraph.split())[:MAX_DESCRIPTION]


class Chunks:
    """Listens to one skill."""

    def __init__(self, output: Shape) -> None:
        """`output` is the shape of the result."""
        self._output = output
        self._chunks: list[Any] = []
        self._result: dict[str, Any] | None = None
        self.has_text = False

    def take(self, item: object) -> Event | None:
        """The event of what a generator yields; None if it is its result."""
        if isinstance(item, Result):
            self.give(item.value)
            return None
        if self._output.is_one(item):
            self.give(item)
            return None
        event = as_event(item)
        if isinstance(event, Data):
            self._chunks.append(event.value)
        elif isinstance(event, Text):
            self.has_text = True
            self._chunks.append(event.text)
        return event

    def give(self, value: object) -> None:
        """Take note of the result."""
        if self._result is not None:
            raise TypeError("the skill gave two results")
        value = value.value if isinstance(value, Result) else value
        refuse_misuse(value)
        self._result = self._output.write(value)

    def result(self) -> dict[str, Any]:
        """What it ends with."""
        if self._result is not None:
            return self._result
        if all(isinstance(chunk, str) for chunk in self._chunks):
            return {"text": "".join(self._chunks)}
        return {"chunks": self._chunks}


def as_event(item: object) -> Event:
    """What was yielded as an event."""
    if isinstance(item, str):
        return Text(item)
    refuse_misuse(item)
    if isinstance(item, Event) and not isinstance(item, Data):
        return item
    if isinstance(item, File | Link):
        return file_event(item)
    return Data(plain(item.value if isinstance(item, Data) else item))


def refuse_misuse(item: object) -> None:
    """Tell whoever wrote the agent what he forgot."""
    if inspect.iscoroutine(item):
        item.close()
        raise TypeError("the agent gave a coroutine; did you forget 'await'?")
    if inspect.isasyncgen(item):
        raise TypeError("the agent gave a stream; pass it on with 'async for' and 'yield'")
    if isinstance(item, Interrupt | Interrupted | Resolved | Waiting):
        raise TypeError("ask with 'await visit.interrupt(...)'")
