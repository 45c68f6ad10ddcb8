"""The public names of Carnet, listed. `carnet/__init__.py` offers them lazily."""

from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn_id import turn_id
from carnet.core.messages.events import (
    Data,
    DataPart,
    Done,
    Event,
    Failed,
    File,
    Link,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.core.messages.parameters import Parameters, Tool
from carnet.core.money.budget import IterationBudget
from carnet.core.people.identity import Result
from carnet.errors import CarnetError, DepthExceeded
from carnet.guards.target.injection import untrusted
from carnet.runtime.client.client import Client, connect
from carnet.runtime.client.tasks import Task
from carnet.runtime.skills.definition import agent, skill
from carnet.runtime.visit.visit import Visit
from carnet.runtime.webhooks.payload import verify_webhook
from carnet.runtime.wrappers.breaker import Breaker
from carnet.wire.dialects.samvad import TaskRecord
from carnet.wire.stamps.caller_context import CallerContext
from carnet.wire.stamps.mentionable import AgentChain, render_agent_chain
from carnet.wire.stamps.tangle import DEFAULT_MAX_DEPTH, build_forward_headers, read_depth

__all__ = [
    "DEFAULT_MAX_DEPTH",
    "AgentChain",
    "Breaker",
    "CallerContext",
    "Carnet",
    "CarnetError",
    "Client",
    "Data",
    "DataPart",
    "DepthExceeded",
    "Done",
    "Event",
    "Failed",
    "File",
    "Interrupt",
    "IterationBudget",
    "Link",
    "Message",
    "Parameters",
    "Resolution",
    "Result",
    "Task",
    "TaskRecord",
    "Text",
    "Tool",
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
