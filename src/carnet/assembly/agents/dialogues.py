"""From an `[agents.NAME]` section to a conversation, and what conversations are driven with."""

from typing import Any

from carnet.assembly.agents.functions import load
from carnet.config import AgentSettings, Settings
from carnet.config.dialogue.participants import ConversationSettings, ParticipantSettings
from carnet.core.call import FORWARD_USER
from carnet.errors import ConfigInvalid
from carnet.runtime.dialogue.definition import Conversation, Participant
from carnet.runtime.dialogue.policy import CallPolicy


def build_conversation(settings: Settings, name: str, agent: AgentSettings) -> Conversation:
    """The conversation of an agent: as its section says it, or as a module does."""
    key = f"agents.{name}.{'participants' if agent.target is None else 'target'}"
    limits = {"max_turns": agent.max_turns, "max_spend": agent.max_spend}
    given: dict[str, Any] = {limit: value for limit, value in limits.items() if value is not None}
    try:
        if agent.target is None:
            members = [_participant(each) for each in agent.participants or ()]
            return Conversation(name, members, order=agent.order, **given)
        loaded = _loaded(settings, agent.target, key).within(**given)
        loaded.refuse_clients()
    except (ValueError, TypeError) as error:
        raise ConfigInvalid(key=key, reason=str(error)) from None
    return loaded


def conversation_in(name: str, given: ConversationSettings) -> Conversation:
    """The conversation that a file of its own says."""
    limits = {"max_spend": given.max_spend, "deadline": given.deadline}
    known: dict[str, Any] = {limit: each for limit, each in limits.items() if each is not None}
    members = [_participant(each) for each in given.participants]
    return Conversation(name, members, order=given.order, max_turns=given.max_turns, **known)


def _loaded(settings: Settings, target: str, key: str) -> Conversation:
    found = load(target, settings.base, key=key)
    if not isinstance(found, Conversation):
        raise ConfigInvalid(key=key, reason=f"'{target}' is no carnet.Conversation")
    return found


def _participant(given: ParticipantSettings) -> Participant:
    return Participant(
        target=given.agent,
        name=given.name,
        auth=given.auth or FORWARD_USER,
        policy=CallPolicy(seconds=given.timeout, retries=given.retries),
        on_failure=given.on_failure,
        most_cost=given.max_cost,
    )
