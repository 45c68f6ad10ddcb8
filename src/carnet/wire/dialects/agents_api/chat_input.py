"""What is asked of an agent, whichever way it came: the canonical input of a chat turn.

    message, history, input_messages    what was said last, what before, which tools were run
    attachments, client_context         files beside it; what the client tells of itself
    session_id, run_id                  what its caller groups runs by, and calls this one

Law 1. A tool that was run stands there with its result, once: each call has one result of the same
       name, or the request is refused (W50).
Law 2. Of what a client tells of itself, declarations of tools are left out: they are for the
       runtime of the agent to make. Where it came from is ours to say.
Law 3. `read_input(write_input(x)) == x`: a run that is gone on with is the one that was recorded.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct, convert, to_builtins

from carnet.core.messages.events import File, Link, Message, ToolCall
from carnet.errors import InvalidRequest
from carnet.wire.dialects.agents_api.parts import (
    data_of,
    read_file,
    read_name,
    read_parts,
    refused,
    text_of,
)
from carnet.wire.grammar import json

# agents-api:body:stripped
STRIPPED: Final = (
    *("runtime_tools", "runtime_tool_declarations", "tool_declarations"),
    *("runtime_tool_callback", "runtime_tool_timeout"),
)
ROLES: Final = {"user": "user", "agent": "assistant"}
EMPTY: Final = "must hold non-empty text, or paired calls and results of tools"
_WORD: Final = "agents_chat_jsonrpc_"
_PARTS: Final = "message.parts"


class RunTool(Struct, frozen=True, kw_only=True):
    """A tool that the caller has run."""

    id: str
    name: str
    arguments: dict[str, Any] = {}
    result: Any = None


class ChatInput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of a chat."""

    message: str = ""
    history: tuple[tuple[str, str], ...] = ()  # role and text
    tools: tuple[RunTool, ...] = ()
    attachments: tuple[File | Link, ...] = ()
    client_context: dict[str, Any] = {}
    session_id: str | None = None
    run_id: str | None = None

    def messages(self) -> tuple[Message, ...]:
        """The same as messages to an agent."""
        found = [
            Message("user" if role == "user" else "assistant", (text,))
            for role, text in self.history
        ]
        if self.message or self.attachments:
            spoken = (self.message, *self.attachments) if self.message else self.attachments
            found.append(Message("user", spoken, metadata=self._metadata()))
        for use in self.tools:
            call = ToolCall(use.id, use.name, json.write_text(use.arguments))
            found.append(Message("assistant", (), tool_calls=(call,)))
            found.append(
                Message("tool", (json.write_text(use.result),), name=use.name, tool_call_id=use.id)
            )
        return tuple(found)

    def _metadata(self) -> dict[str, Any] | None:
        return {"client_context": self.client_context} if self.client_context else None


def write_input(given: ChatInput) -> bytes:
    """As it is recorded."""
    return json.canonical({"input": to_builtins(given)})


def read_input(request: bytes) -> ChatInput:
    """What was recorded."""
    return convert(json.read_object(request).get("input"), ChatInput)


def read_params(params: dict[str, Any]) -> ChatInput:
    """The parameters of a message."""
    parts = read_parts(params.get("message"))
    text, tools = text_of(parts), read_tools(data_of(parts))
    files = [part.get("file") for part in parts if part["type"] == "file"]
    if not text and not tools:
        raise InvalidRequest("message", EMPTY)
    metadata = params.get("metadata")
    more = {"metadata": metadata} if isinstance(metadata, dict) else {}
    return ChatInput(
        message=text,
        history=tuple(read_history(data_of(parts))),
        tools=tools,
        attachments=tuple([read_file(each, "message.parts.file") for each in files]),
        client_context={
            **read_context([data.get("clientContext") for data in data_of(parts)]),
            "source": "jsonrpc",
            "client_name": "jsonrpc-chat",
            **more,
        },
        session_id=read_name(params.get("sessionId"), "sessionId"),
        run_id=read_name(params.get("id"), "id"),
    )


def read_chat(body: dict[str, Any]) -> ChatInput:
    """The body of a chat."""
    message = body.get("message")
    if not isinstance(message, str) or not message.strip():
        raise InvalidRequest("message", "must be a text that is not empty")
    files = body.get("attachments")
    if files is not None and not isinstance(files, list):
        raise InvalidRequest("attachments", "must be a list")
    context = read_context([body.get("client_context")])
    name = context.get("client_name")
    named = name if isinstance(name, str) and name else "frontend-chat"
    return ChatInput(
        message=message.strip(),
        attachments=tuple([read_file(each, "attachments") for each in files or []]),
        client_context={**context, "source": "rest", "client_name": named},
        session_id=read_name(body.get("session_id"), "session_id"),
    )


def read_context(given: Sequence[object]) -> dict[str, Any]:
    """What a client tells of itself, what came later before what came first."""
    context: dict[str, Any] = {}
    for each in given:
        if isinstance(each, dict):
            context |= each
    return {name: value for name, value in context.items() if name not in STRIPPED}


def read_history(data: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """What was said before; what is blank, or of nobody who speaks, is left out (W49)."""
    found = [(data.get("role"), data.get("text")) for data in data]
    return [
        (ROLES[role], text)
        for role, text in found
        if isinstance(role, str) and role in ROLES and isinstance(text, str) and text.strip()
    ]


def read_tools(data: Sequence[dict[str, Any]]) -> tuple[RunTool, ...]:
    """The tools that the caller has run, each with its result."""
    calls: dict[str, dict[str, Any]] = {}
    results: dict[str, dict[str, Any]] = {}
    for each in data:
        name = read_name(each.get("toolCallId"), f"{_PARTS}.data.toolCallId")
        if name is None:
            continue
        kind, found = ("result", results) if "result" in each else ("call", calls)
        if name in found:
            word = f"{_WORD}duplicate_tool_{kind}"
            raise refused(_PARTS, f"must not hold two {kind}s of one toolCallId", word)
        found[name] = each
    if calls.keys() != results.keys():
        word = f"{_WORD}tool_call_mismatch"
        raise refused(_PARTS, "must hold one result for every call of a tool", word)
    return tuple([_use(name, calls[name], results[name]) for name in calls])


def _use(name: str, call: dict[str, Any], result: dict[str, Any]) -> RunTool:
    tool = read_name(call.get("toolId"), f"{_PARTS}.data.toolId")
    if tool is None:
        word = f"{_WORD}invalid_tool_call"
        raise refused(_PARTS, "must name the toolId of every call of a tool", word)
    other = read_name(result.get("toolId"), f"{_PARTS}.data.toolId")
    if other is not None and other != tool:
        word = f"{_WORD}tool_name_mismatch"
        raise refused(_PARTS, "must name the same toolId in a call and its result", word)
    arguments = call.get("arguments")
    given = arguments if isinstance(arguments, dict) else {}
    return RunTool(id=name, name=tool, arguments=given, result=result["result"])
