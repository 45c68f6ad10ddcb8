"""The JSON-RPC endpoint of the `a2a-sdk`, before an executor that answers 2 KB at once."""

from collections.abc import Iterator

from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, Part, Role
from starlette.applications import Starlette

from bench.bodies import BODY_BYTES, encode, filled, post, text

# Its errors are 200 as well; only an answer has a message.
MARK = b'"ROLE_AGENT"'
TASK_MARK = b'"TASK_STATE_COMPLETED"'
_ENVELOPE_BYTES = 250  # what the answer carries beside the text


class Executor(AgentExecutor):
    """Answers with one message."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        words = text(BODY_BYTES - _ENVELOPE_BYTES)
        message = new_text_message(
            words,
            context_id=context.context_id,
            role=Role.ROLE_AGENT,
        )
        await event_queue.enqueue_event(message)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


class TaskExecutor(Executor):
    """Answers with a task, as every agent that takes its time does."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        if context.message is not None:  # it always is there
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        words = text(BODY_BYTES - _ENVELOPE_BYTES)
        await updater.add_artifact(parts=[Part(text=words)])
        await updater.complete()


def build_tasks() -> Starlette:
    """The same application, of an agent that answers with tasks."""
    return build(TaskExecutor())


def build(executor: AgentExecutor | None = None, store: TaskStore | None = None) -> Starlette:
    """The application, as its documentation puts it together."""
    card = AgentCard(
        name="bench",
        description="answers at once",
        version="1",
        capabilities=AgentCapabilities(),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
    )
    requests = DefaultRequestHandler(
        agent_executor=executor or Executor(),
        task_store=store or InMemoryTaskStore(),
        agent_card=card,
    )
    return Starlette(routes=create_jsonrpc_routes(requests, rpc_url="/a2a"))


def requests(path: str = "/a2a", **fields: str) -> Iterator[bytes]:
    """Message sends, each with an id of its own; `fields` are further headers."""
    number = 0
    while True:
        number += 1
        message = {"messageId": f"m{number:09}", "role": "ROLE_USER", "parts": [{"text": "@@"}]}
        call = {"jsonrpc": "2.0", "id": number, "method": "SendMessage"}
        body = filled(encode({**call, "params": {"message": message}}).decode())
        yield post(path, body, {"a2a-version": "1.0", **fields})
