"""The public names of Carnet, listed. `carnet/__init__.py` offers them lazily."""

from carnet.core.budget import IterationBudget
from carnet.core.carnet import Carnet
from carnet.core.events import Data, Done, Event, Failed, Text, ToolCall, ToolResult, Usage
from carnet.core.skill import Result
from carnet.core.turn_id import turn_id
from carnet.errors import CarnetError, DepthExceeded
from carnet.guards.injection import untrusted
from carnet.runtime.breaker import Breaker
from carnet.runtime.client import Client, connect
from carnet.runtime.client_tasks import Task
from carnet.runtime.skills import agent, skill
from carnet.runtime.visit import Visit
from carnet.runtime.webhooks import verify_webhook
from carnet.wire.caller_context import CallerContext
from carnet.wire.mentionable import AgentChain, render_agent_chain
from carnet.wire.samvad import TaskRecord
from carnet.wire.tangle import DEFAULT_MAX_DEPTH, build_forward_headers, read_depth

__all__ = [
    "DEFAULT_MAX_DEPTH",
    "AgentChain",
    "Breaker",
    "CallerContext",
    "Carnet",
    "CarnetError",
    "Client",
    "Data",
    "DepthExceeded",
    "Done",
    "Event",
    "Failed",
    "IterationBudget",
    "Result",
    "Task",
    "TaskRecord",
    "Text",
    "ToolCall",
    "ToolResult",
    "Usage",
    "Visit",
    "agent",
    "build_forward_headers",
    "connect",
    "read_depth",
    "render_agent_chain",
    "skill",
    "turn_id",
    "untrusted",
    "verify_webhook",
]
