"""The public names of Carnet, listed. `carnet/__init__.py` offers them lazily."""

from carnet.assembly.dialogue.driver import (
    ConversationJournal as Journal,
)
from carnet.assembly.dialogue.driver import (
    run_conversation,
    stream_conversation,
)
from carnet.assembly.dialogue.middleware import Middleware
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.chain import Chain
from carnet.core.chain.turn_id import turn_id
from carnet.core.dialogue.events import (
    ConversationEnded,
    ConversationResult,
    ConversationResumed,
    ConversationStarted,
    TurnDiscarded,
    TurnEnded,
    TurnRetried,
    TurnSkipped,
    TurnStarted,
    TurnText,
)
from carnet.core.dialogue.halt import Halt
from carnet.core.dialogue.transcript import DialogueState, SpokenTurn
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
from carnet.core.people.identity import Context, Result
from carnet.core.people.sender import Sender
from carnet.errors import CarnetError, DepthExceeded, TaskRejected
from carnet.guards.target.injection import untrusted
from carnet.runtime.client.client import Client, connect
from carnet.runtime.client.tasks import Task
from carnet.runtime.dialogue.definition import Conversation, Participant, chat_model
from carnet.runtime.dialogue.inbound import inbound
from carnet.runtime.dialogue.policy import CallPolicy
from carnet.runtime.skills.definition import agent, skill
from carnet.runtime.visit.fan_out.branch import Branch, BranchAnswer
from carnet.runtime.visit.fan_out.fan_out import FanOut
from carnet.runtime.visit.visit import Visit
from carnet.runtime.webhooks.payload import verify_webhook
from carnet.runtime.wrappers.breaker import Breaker
from carnet.wire.dialects.samvad import TaskRecord
from carnet.wire.stamps.caller_context import CallerContext
from carnet.wire.stamps.mentionable import AgentChain, render_agent_chain
from carnet.wire.stamps.tangle import (
    DEFAULT_MAX_DEPTH,
    FORWARDED_AUTHORIZATION,
    FORWARDED_DEPTH,
    PARENT_TURN_ID,
    RUN_ID,
    SPEAKER,
    TURN_ID,
    build_forward_headers,
    read_depth,
)

__all__ = [
    "DEFAULT_MAX_DEPTH",
    "FORWARDED_AUTHORIZATION",
    "FORWARDED_DEPTH",
    "PARENT_TURN_ID",
    "RUN_ID",
    "SPEAKER",
    "TURN_ID",
    "AgentChain",
    "Branch",
    "BranchAnswer",
    "Breaker",
    "CallPolicy",
    "CallerContext",
    "Carnet",
    "CarnetError",
    "Chain",
    "Client",
    "Context",
    "Conversation",
    "ConversationEnded",
    "ConversationResult",
    "ConversationResumed",
    "ConversationStarted",
    "Data",
    "DataPart",
    "DepthExceeded",
    "DialogueState",
    "Done",
    "Event",
    "Failed",
    "FanOut",
    "File",
    "Halt",
    "Interrupt",
    "IterationBudget",
    "Journal",
    "Link",
    "Message",
    "Middleware",
    "Parameters",
    "Participant",
    "Resolution",
    "Result",
    "Sender",
    "SpokenTurn",
    "Task",
    "TaskRecord",
    "TaskRejected",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "TurnDiscarded",
    "TurnEnded",
    "TurnRetried",
    "TurnSkipped",
    "TurnStarted",
    "TurnText",
    "Usage",
    "Visit",
    "agent",
    "build_forward_headers",
    "chat_model",
    "connect",
    "inbound",
    "read_depth",
    "render_agent_chain",
    "run_conversation",
    "skill",
    "stream_conversation",
    "turn_id",
    "untrusted",
    "verify_webhook",
]
