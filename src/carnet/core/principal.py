"""As whom a run acts: one value, made of what the guards have proved and what a call carries.

The reference system calls it the execution principal. Here the `Caller` is what travels, in a call,
in the calls that are made for it and in what is sealed to run later; a `Principal` is what agents,
policies and logs are shown of it.

Law 1. It is immutable, and equal for a call and for what is called for it, but for the agent and
       for where it is asked from (`runtime`).
Law 2. `safe()` is what a log may hold: no token, no key of an owner, nothing of a ceiling.
Law 3. Who owns what is said: a person, unless an agent's token speaks; then the token; else nobody.
Law 4. A token that stands for an agent and for no person is autonomous. Unless its maker wrote down
       what it may do, it may neither pay nor approve nor administer, nor have a tool used that asks
       for a permission, nor change what is kept (`SAFE_DEFAULT`).
"""

from typing import Any, Final, Literal

from msgspec import Struct

from carnet.core.call import Admitted
from carnet.core.people.identity import (
    NO_CEILING,
    SELF_HOST,
    Caller,
    Ceiling,
    Context,
    person_of,
)

AuthSource = Literal["user", "agent_token", "service", "peer", "system"]
RequestContext = Literal["rest", "cli", "cron", "chat", "runtime"]
OwnerKind = Literal["user", "token", "peer"]

SCHEMA: Final = 1

# Of tokens that stand for an agent and for nobody, where nobody has written down what they may do.
SAFE_DEFAULT: Final = Ceiling(
    deny=frozenset({"pay", "approve", "admin:*", "tool:*", "memory:write", "triggers"})
)


def ceiling_of(
    allow: frozenset[str] | None, deny: frozenset[str] | None, *, is_autonomous: bool
) -> Ceiling:
    """The most that may be used with a token: what was written down, else what is safe."""
    if allow is None and deny is None:
        return SAFE_DEFAULT if is_autonomous else NO_CEILING
    return Ceiling(allow=allow, deny=deny or frozenset())


class Owner(Struct, frozen=True):
    """Whose a conversation is."""

    type: OwnerKind
    key: str


class Principal(Struct, frozen=True, kw_only=True):
    """As whom a run acts."""

    acting_user: int  # the number of the person; 0: nobody's
    effective_agent: str  # that answers
    auth_source: AuthSource
    request_context: RequestContext
    actor: str  # who authenticated: "token:alice", "peer:globex.example"
    token: str | None = None  # the number of the token that was shown
    workspace: str | None = None
    client: str | None = None
    ceiling: Ceiling = NO_CEILING
    context: Context  # who has called, in the words of its own host

    @property
    def owner(self) -> Owner | None:
        """Whose the conversation is; None where it is nobody's."""
        if self.acting_user and self.auth_source != "agent_token":
            return Owner("user", str(self.acting_user))
        if self.token is not None:
            return Owner("token", self.token)
        return Owner("peer", self.actor) if self.auth_source == "peer" else None

    def may(self, permission: str) -> bool:
        """Whether the ceiling lets something be used; the rights of the caller count as well."""
        return self.ceiling.allows(permission)

    def safe(self) -> dict[str, Any]:
        """What a log may hold."""
        owner = self.owner
        return {
            "schema_version": SCHEMA,
            "effective_agent_id": self.effective_agent,
            "auth_source": self.auth_source,
            "request_context": self.request_context,
            "acting_user_id": self.acting_user,
            "workspace_id": self.workspace,
            "client_id": self.client,
            "owner_type": None if owner is None else owner.type,
            "has_conversation_owner": owner is not None,
            "has_capability_ceiling": self.ceiling != NO_CEILING,
            "has_caller_context": self.context.is_cross_site(),
        }


def principal_of(call: Admitted) -> Principal:
    """As whom a call acts."""
    caller = call.caller
    return Principal(
        acting_user=caller.person or 0,
        effective_agent=call.agent,
        auth_source=_source(caller),
        request_context=_request(call),
        actor=(caller.origin or caller.actor).name,
        token=caller.token,
        workspace=caller.workspace,
        client=caller.client,
        ceiling=caller.ceiling,
        context=context_of(call),
    )


def context_of(call: Admitted) -> Context:
    """Who has called; where nobody says so, the top of a chain that began here."""
    stated = call.caller.context
    return Context(agent="", host=SELF_HOST, root=call.carnet.run) if stated is None else stated


def _source(caller: Caller) -> AuthSource:
    actor = caller.origin or caller.actor
    if caller.is_system:
        return "system"
    if caller.standing is not None or actor.domain is not None:
        return "peer"
    if caller.agent is not None:
        return "agent_token"
    return "user" if person_of(caller.owner) is not None else "service"


def _request(call: Admitted) -> RequestContext:
    thread = call.ask.thread
    if thread is not None:
        return "chat" if thread.trigger == "message" else "cron"
    if call.caller.origin is not None:
        return "runtime"
    return "cli" if call.caller.is_system else "rest"
