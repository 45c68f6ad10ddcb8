"""What of a caller's request reaches a model.

It does not ask the model; it says what it is asked with.

Law 1. A model is asked under the operator's key: a member that may lead elsewhere, cost more than
       the tokens that are counted, or is kept in the operator's account stays behind, unless the
       operator lets it pass.
Law 2. Of the tools only functions are the caller's own: any other kind is run by the provider.
Law 3. An agent with a system message of its own is instructed by nobody else (R58).
Law 4. What stays behind is told to the caller, by name (`carnet-removed`).
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.call import Ask

SYSTEM: Final = "system"
TOOLS: Final = "tools"
EVERY: Final = "*"
OTHER: Final = "other"  # a name that is none
MOST_NAMES: Final = 32  # that are told

# What the gateway reads, and writes anew.
_OURS: Final = frozenset({"messages", "model", "stream", "stream_options", "carnet"})
_FUNCTIONS: Final = frozenset({"function", "custom"})
_INSTRUCTING: Final = frozenset({"system", "developer"})
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", re.ASCII)


class Passing(Struct, frozen=True):
    """The members and messages that pass."""

    members: frozenset[str] | None = None  # None: all of them
    system: bool = True  # callers' system and developer messages

    @classmethod
    def of(cls, members: Sequence[str], *, system: bool) -> "Passing":
        """As an operator writes it: names, or `*` for all of them."""
        return cls(None if EVERY in members else frozenset(members), system)

    def removed(self, ask: Ask) -> tuple[str, ...]:
        """The names of what stays behind."""
        members, body = self.members, ask.body
        found: list[str] = []
        if not self.system:
            for message in ask.messages:
                if message.role in _INSTRUCTING:
                    found = [SYSTEM]
        if members is not None and body is not None:
            for name in body:  # a loop makes no call, and nearly always finds nothing
                passes = name in members or name in _OURS
                if not passes or (name == TOOLS and _functions(body[TOOLS]) is not None):
                    found += (name,)
        return _plain(found) if found else ()

    def kept(self, ask: Ask) -> Ask:
        """The same without what stays behind."""
        body, messages = ask.body, ask.messages
        if not self.system:
            messages = tuple([one for one in messages if one.role not in _INSTRUCTING])
        if body is not None:
            body = self._members(body)
            if not self.system:
                spelled: list[dict[str, Any]] = body["messages"]
                body["messages"] = [one for one in spelled if one.get("role") not in _INSTRUCTING]
        return replace(ask, messages=messages, body=body)

    def _members(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.members is None:
            return dict(body)
        kept = {name: body[name] for name in body if name in _OURS or name in self.members}
        functions = _functions(kept.get(TOOLS))
        if functions:
            kept[TOOLS] = functions
        elif functions is not None:  # a list without any is refused by most
            del kept[TOOLS]
        return kept


def _plain(names: Sequence[str]) -> tuple[str, ...]:
    """Names as they can be told, each once."""
    shown = [name if _NAME.fullmatch(name) else OTHER for name in names[:MOST_NAMES]]
    return tuple(dict.fromkeys(shown))


def _functions(tools: object) -> list[Any] | None:
    """Those of some tools that are functions; None if all of them are."""
    if not isinstance(tools, list):
        return None
    found = [tool for tool in tools if isinstance(tool, dict) and tool.get("type") in _FUNCTIONS]
    return None if len(found) == len(tools) else found
