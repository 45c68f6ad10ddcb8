"""The server of the `a2a-sdk` package as a process. It imports nothing of this project.

One agent stands at several addresses, each with a card of its own: both bindings, with and without
streams, of both versions. What a message says first is what the agent does with it.

Run with a socket that was handed down, and a folder where it notes what it was asked.
"""

import asyncio
import json
import socket
import sys
from pathlib import Path

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    APIKeySecurityScheme,
    HTTPAuthSecurityScheme,
    Message,
    Part,
    Role,
    SecurityRequirement,
    SecurityScheme,
    StringList,
    Task,
    TaskState,
    TaskStatus,
)
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount

# name: binding, version, whether it streams
SERVED = {
    "rpc": ("JSONRPC", "1.0", True),
    "rest": ("HTTP+JSON", "1.0", True),
    "plain-rpc": ("JSONRPC", "1.0", False),
    "plain-rest": ("HTTP+JSON", "1.0", False),
    "old-rpc": ("JSONRPC", "0.3", True),
    "old-rest": ("HTTP+JSON", "0.3", True),
    "old-plain": ("JSONRPC", "0.3", False),
}
CARD = "/.well-known/agent-card.json"


class Executor(AgentExecutor):
    """Does what the first word of a message says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note(self, name: str, **facts: object) -> None:
        with (self.folder / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(facts) + "\n")

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text, message = context.get_user_input(), context.message or Message()
        headers = context.call_context.state.get("headers", {})
        self.note(
            "asked",
            text=text,
            task=context.task_id,
            context=context.context_id,
            message=MessageToDict(message),
            headers=headers,
        )
        if message.metadata and "skillId" in message.metadata.fields:
            numbers = MessageToDict(message.parts[0])["data"]
            text = f"add {int(numbers['a'])} {int(numbers['b'])}"
        word, _, rest = text.partition(" ")
        if word == "say":
            await event_queue.enqueue_event(_message(context, f"you said {rest}"))
            return
        if context.current_task is None:
            await event_queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                )
            )
        updater = _updater(context, event_queue)
        await self.work(word, rest, context, updater)

    async def work(
        self, word: str, rest: str, context: RequestContext, updater: TaskUpdater
    ) -> None:
        if context.current_task is not None:  # it was asked, and is answered
            await self.answered(context, updater)
            return
        await updater.start_work()
        if not await self.ended(word, rest, context, updater):
            await self.make(word, rest, updater)
            await updater.complete()

    async def ended(
        self, word: str, rest: str, context: RequestContext, updater: TaskUpdater
    ) -> bool:
        """Whether it ends at once, in another way than by what comes of it."""
        match word:
            case "ask" | "twice":
                await updater.add_artifact([Part(text="first ")], artifact_id="a")
                await updater.requires_input(_message(context, f"Which {rest}?"))
            case "login":
                await updater.requires_auth(_message(context, "Sign in at the vault."))
            case "fail":
                await updater.failed(_message(context, f"slip-of-the-sdk {rest}"))
            case "reject":
                await updater.reject(_message(context, "slip-of-the-sdk no"))
            case "raise":
                raise RuntimeError("slip-of-the-sdk")
            case "quiet":
                await updater.complete(_message(context, f"quietly {rest}"))
            case _:
                return False
        return True

    async def make(self, word: str, rest: str, updater: TaskUpdater) -> None:
        match word:
            case "chunks":
                for place, piece in enumerate(rest.split()):
                    await updater.add_artifact(
                        [Part(text=piece)], artifact_id="a", append=place > 0
                    )
            case "wait":
                await updater.add_artifact([Part(text="begun ")], artifact_id="a")
                while not (self.folder / f"go-{rest}").exists():  # noqa: ASYNC110  a file
                    await asyncio.sleep(0.01)
                await updater.add_artifact([Part(text="done")], artifact_id="a", append=True)
            case "files":
                link = Part(url="https://x.example/a.png", media_type="image/png")
                await updater.add_artifact(
                    [Part(text="see"), Part(raw=b"\x00\x01", filename="b.bin"), link]
                )
            case "add":
                part = Part()
                part.data.struct_value.update({"total": sum(map(int, rest.split()))})
                await updater.add_artifact([part])
            case _:
                await updater.add_artifact([Part(text=f"{word} {rest}".strip())])

    async def answered(self, context: RequestContext, updater: TaskUpdater) -> None:
        lines = (self.folder / "asked.jsonl").read_text().splitlines()
        before = [json.loads(line) for line in lines]
        own = [each["text"] for each in before if each["task"] == context.task_id]
        if own[0].startswith("twice") and len(own) == 2:
            await updater.requires_input(_message(context, "And why?"))
            return
        parts = [MessageToDict(part) for part in (context.message or Message()).parts]
        data = [part["data"] for part in parts if "data" in part]
        await updater.add_artifact(
            [Part(text=" then ".join(own[1:]) + "".join(map(json.dumps, data)))],
            artifact_id="a",
            append=bool(context.current_task and context.current_task.artifacts),
        )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.note("cancelled", task=context.task_id)
        await _updater(context, event_queue).cancel()


def _updater(context: RequestContext, event_queue: EventQueue) -> TaskUpdater:
    return TaskUpdater(event_queue, context.task_id or "", context.context_id or "")


def _message(context: RequestContext, text: str) -> Message:
    number = len(text) + sum(map(ord, text))
    return Message(
        message_id=f"{context.task_id}-{number}",
        role=Role.ROLE_AGENT,
        parts=[Part(text=text)],
        task_id=context.task_id,
        context_id=context.context_id,
    )


def _card(name: str, base: str, *, key: str) -> AgentCard:
    binding, version, streams = SERVED[name]
    schemes = {
        "key": {
            "sesame": SecurityScheme(
                api_key_security_scheme=APIKeySecurityScheme(location="header", name="X-Sesame")
            )
        },
        "bearer": {
            "bearer": SecurityScheme(
                http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer")
            )
        },
    }.get(key, {})
    return AgentCard(
        name=name,
        description="does what it is told",
        version="1",
        capabilities=AgentCapabilities(
            streaming=streams, push_notifications=True, extended_agent_card=True
        ),
        supported_interfaces=[
            AgentInterface(url=base, protocol_binding=binding, protocol_version=version)
        ],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="sum", name="sum", description="adds", tags=["math"])],
        security_schemes=schemes,
        security_requirements=[
            SecurityRequirement(schemes={each: StringList()}) for each in schemes
        ],
    )


def built(base: str, folder: Path) -> Starlette:
    """All of it."""
    routes: list[BaseRoute] = []
    for name, (binding, version, _) in SERVED.items():
        key = {"plain-rpc": "key", "plain-rest": "bearer"}.get(name, "")
        card = _card(name, f"{base}/{name}", key=key)
        requests = DefaultRequestHandler(
            agent_executor=Executor(folder),
            task_store=InMemoryTaskStore(),
            agent_card=card,
            push_config_store=InMemoryPushNotificationConfigStore(),
            extended_agent_card=card,
        )
        is_old = version == "0.3"
        routes += create_agent_card_routes(card, card_url=f"/{name}{CARD}")
        if binding == "JSONRPC":
            routes += create_jsonrpc_routes(requests, f"/{name}", enable_v0_3_compat=is_old)
        else:
            routes += create_rest_routes(
                requests, path_prefix=f"/{name}", enable_v0_3_compat=is_old
            )
    # Those for tenants take every path that no other one has taken.
    return Starlette(routes=sorted(routes, key=lambda each: isinstance(each, Mount)))


def serve(fd: str, folder: str) -> None:
    """Serve on a socket that was handed down, until the process is ended."""
    handed = socket.socket(fileno=int(fd))
    base = f"http://127.0.0.1:{handed.getsockname()[1]}"
    config = uvicorn.Config(built(base, Path(folder)), log_level="info")
    asyncio.run(uvicorn.Server(config).serve(sockets=[handed]))


if __name__ == "__main__":
    serve(*sys.argv[1:])
