"""Which policy is asked before the tools of a loop in a process of its own.

Law 1. For a turn of a gateway, the gateway's: it has what the policy is told, and says in the
       bearer whether it wants to be asked.
Law 2. For who asks the loop directly, the policy of the configuration, in this process.
"""

from functools import partial

from carnet.assembly.agents.functions import build_policy
from carnet.config import Settings
from carnet.core.people.identity import SELF_HOST, Context, Secret
from carnet.core.principal import AuthSource, Principal
from carnet.ports.engine.tools import AskPolicy
from carnet.ports.trust.people import People
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.tools.bearer.policy import BearerPolicy
from carnet.wire.dialects.engine_chat.actor import EngineActor
from carnet.wire.dialects.engine_chat.bearer import TurnBearer


class ToolPolicies:
    """Finds what is asked before each tool."""

    def __init__(self, settings: Settings, people: People, http: HttpClient, gateway: str) -> None:
        """`gateway` is where it listens."""
        self._http = http
        self._gateway = gateway
        self._seconds = settings.policy.seconds
        self._agent = settings.default_agent or ""
        self._people = people
        self._own = build_policy(settings)

    def find(self, actor: EngineActor, shown: tuple[Secret, TurnBearer] | None) -> AskPolicy | None:
        """What is asked for an actor, who may have come with the bearer of a turn."""
        if shown is not None:
            credential, bearer = shown
            if not bearer.asks_policy:
                return None
            return BearerPolicy(self._http, self._gateway, credential, seconds=self._seconds)
        if self._own is None:
            return None
        return partial(self._own.ask_own_tool, self._principal(actor))

    def _principal(self, actor: EngineActor) -> Principal:
        source: AuthSource = "user"
        if ":" in actor.id:  # a machine (R25)
            source = "peer" if actor.id.startswith("peer:") else "service"
        person = self._people.find(actor.id) if source == "user" else None
        return Principal(
            acting_user=0 if person is None else person.n,
            effective_agent=self._agent,
            auth_source=source,
            request_context="rest",
            actor=actor.id,
            ceiling=actor.ceiling,
            context=Context(agent="", host=SELF_HOST),
        )

    def close(self) -> None:
        """Let it go."""
        if self._own is not None:
            self._own.close()
