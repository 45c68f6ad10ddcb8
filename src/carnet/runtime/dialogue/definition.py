"""A conversation as people define it: who takes part, in which order, until when.

    panel = carnet.Conversation("panel", [researcher, "@critic@globex.example"], max_turns=6)

Law 1. What is wrong with a definition is told when it is made: ValueError or TypeError.
Law 2. A definition is recognised by its fingerprint: who takes part and how, in which order. How
       long it may be is no part of it: limits may be raised while a run goes on.
Law 3. A conversation can take part in another one.
"""

from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from copy import copy
from difflib import get_close_matches
from hashlib import blake2b
from typing import Any, Final, Literal, Union
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from carnet.core.call import AGENT_OWNED, FORWARD_USER, Price
from carnet.core.chain.turn_id import slug
from carnet.core.dialogue.events import DialogueEvent
from carnet.core.dialogue.halt import DialogueLimits
from carnet.core.dialogue.transcript import DialogueState
from carnet.core.money.amount import parse_amount
from carnet.core.people.address import (
    check_local,
    is_agent_uri,
    is_handle,
    parse_agent_uri,
    parse_handle,
)
from carnet.core.people.identity import Secret
from carnet.errors import AddressInvalid
from carnet.runtime.client.client import Client
from carnet.runtime.dialogue.policy import CallPolicy, described, recognised
from carnet.runtime.skills.definition import Definition
from carnet.wire.grammar import json

Payment = Literal["forward-user", "agent-owned"]
AuthSource = Payment | Callable[[DialogueState], Payment | Awaitable[Payment]]
Chosen = int | str  # the place or the name of a participant
Order = Literal["alternate", "round-robin"] | Callable[[DialogueState], Chosen | Awaitable[Chosen]]
Stop = bool | str | None  # a text is why
HaltOn = Callable[[DialogueState], Stop | Awaitable[Stop]]
OnEvent = Callable[[DialogueEvent], object | Awaitable[object]]
Amount = str | int  # decimal text, or micro-units

MOST_NAME: Final = 96  # characters, as it stands in a turn id: that is bounded where it arrives
STAND_IN: Final = 1_000_000  # ordinals of who speaks for a participant are above
_PAIR: Final = 2
_LIMITING: Final = frozenset({"max_turns", "max_spend", "deadline"})
_DEFINING: Final = frozenset({"order", "halt_on", "policy"})
_NO_POLICY: Final = CallPolicy()


class ChatModelTarget(Struct, frozen=True, kw_only=True):
    """A model behind chat completions, as a participant. Made by `carnet.chat_model`."""

    url: str
    model: str
    api_key: Secret | None = None
    system: str | None = None
    price: Price | None = None


def chat_model(
    url: str,
    *,
    model: str,
    api_key: str | None = None,
    system: str | None = None,
    price_in: str | None = None,
    price_out: str | None = None,
) -> ChatModelTarget:
    """A model that takes part in a conversation.

    Args:
        url: Where its provider serves chat completions: the URL before `/chat/completions`.
        model: The provider's name of it.
        api_key: What the provider knows us by.
        system: What it is instructed with.
        price_in: What a million tokens that it reads cost, as decimal text.
        price_out: The same of those that it writes.
    """
    price = None
    if price_in is not None or price_out is not None:
        price = Price(
            per_million_in=parse_amount(price_in or "0"),
            per_million_out=parse_amount(price_out or "0"),
        )
    key = None if api_key is None else Secret(api_key)
    return ChatModelTarget(url=url, model=model, api_key=key, system=system, price=price)


class Participant(Struct, frozen=True, kw_only=True, eq=False):
    """One who takes part, and how it is called."""

    target: "ParticipantTarget"
    name: str = ""  # by default that of the target
    auth: AuthSource = FORWARD_USER  # or "agent-owned": the payer's credential is not sent to it
    policy: CallPolicy | None = None  # by default that of the conversation
    on_failure: Union[Literal["halt", "skip"], "ParticipantTarget"] = "halt"  # or who speaks for it
    most_cost: Amount | None = None  # of one turn: it is not begun where less is left
    token: str | Secret | None = None  # what an agent elsewhere knows us by

    def __post_init__(self) -> None:
        """Keep what must not be shown as a secret."""
        if isinstance(self.token, str):
            force_setattr(self, "token", Secret(self.token))

    def first_ordinal(self, target: object) -> int:
        """Where what a target does within a turn is counted from: apart for who speaks for it."""
        return 0 if target is self.target else STAND_IN

    @property
    def most(self) -> int | None:
        """The most that one turn may cost, in micro-units."""
        return None if self.most_cost is None else amount(self.most_cost)


class Conversation:
    """Several agents that speak in turn."""

    def __init__(
        self,
        name: str,
        participants: Sequence[Any],
        *,
        order: Order | None = None,
        halt_on: HaltOn | None = None,
        policy: CallPolicy | None = None,
        **limits: Any,
    ) -> None:
        """Define a conversation.

        Args:
            name: What it is called where it takes part in another one.
            participants: Two or more, each with a name of its own: agents, functions, addresses,
                models, conversations, or `Participant`s of these.
            order: "alternate" for two, "round-robin", or a function that is given the state and
                gives the index or the name of who speaks; it may be asynchronous.
            halt_on: A function that is given the state after every turn and says whether to stop;
                a text is the reason. It may be asynchronous.
            policy: How participants are called that have none of their own.
            limits: `max_turns`, and if wanted `max_spend` (decimal text or micro-units) and
                `deadline` (seconds).
        """
        self.name = name
        self.participants = tuple([_named(each) for each in participants])
        self.names = tuple([each.name for each in self.participants])
        _check_names(self.names)
        self.order: Order = order or ("alternate" if len(self.names) == _PAIR else "round-robin")
        if self.order == "alternate" and len(self.names) != _PAIR:
            raise ValueError("'alternate' is for exactly two participants")
        if not callable(self.order) and self.order not in {"alternate", "round-robin"}:
            raise ValueError("order is 'alternate', 'round-robin' or a function")
        self.halt_on = halt_on
        self.policy = policy or _NO_POLICY
        self.limits = _limits(limits)

    def within(self, **limits: Any) -> "Conversation":
        """The same under other limits, as far as some are given."""
        if not limits:
            return self
        ours = self.limits
        known = {"max_turns": ours.max_turns, "max_spend": ours.max_spend, "deadline": ours.seconds}
        other = copy(self)
        other.limits = _limits({**known, **limits})
        return other

    def refuse_names(self) -> None:
        """Refuse who takes part by a bare name: that leads somewhere in a gateway alone."""
        for target in self.targets():
            if isinstance(target, str):
                check_address(target)

    def refuse_clients(self) -> None:
        """Refuse who takes part by a connection of ours: a gateway makes its own."""
        for target in self.targets():
            if isinstance(target, Client):
                raise TypeError(f"in a gateway {target.url} takes part by its address")

    def targets(self) -> Iterator["ParticipantTarget"]:
        """All who take part or speak for one, also in conversations within."""
        for each in self.participants:
            others = () if each.on_failure in ("halt", "skip") else (each.on_failure,)
            for target in (each.target, *others):
                yield target
                if isinstance(target, Conversation):
                    yield from target.targets()

    @property
    def fingerprint(self) -> str:
        """What the definition is recognised by."""
        order = recognised(self.order) if callable(self.order) else self.order
        facts = {
            "order": order,
            "halt_on": None if self.halt_on is None else recognised(self.halt_on),
            "participants": [self._facts(each) for each in self.participants],
        }
        return blake2b(json.write(facts), digest_size=16).hexdigest()

    def _facts(self, participant: Participant) -> dict[str, object]:
        auth, failure = participant.auth, participant.on_failure
        return {
            "name": participant.name,
            "target": describe(participant.target),
            "auth": recognised(auth) if callable(auth) else auth,
            "policy": (participant.policy or self.policy).facts(),
            "on_failure": failure if failure in ("halt", "skip") else describe(failure),
            "most_cost": participant.most,
        }

    def speaker(self, chosen: object) -> Participant:
        """Who speaks that the function of its order has chosen."""
        if isinstance(chosen, str) and chosen in self.names:
            return self.participants[self.names.index(chosen)]
        is_index = not isinstance(chosen, bool) and chosen in range(len(self.names))
        if isinstance(chosen, int) and is_index:
            return self.participants[chosen]
        raise ValueError(f"order gives the index or the name of a participant, not {chosen!r}")


def conversation_of(participants: Any, options: Mapping[str, Any]) -> Conversation:
    """The conversation that was given, under these limits, or one of those who take part."""
    if not isinstance(participants, Conversation):
        return Conversation("conversation", participants, **options)
    refuse_unknown(options, _LIMITING | _DEFINING)
    defining = options.keys() - _LIMITING
    if defining:
        raise TypeError(f"'{min(defining)}' is part of the conversation that was given")
    return participants.within(**options)


ParticipantTarget = Definition | Callable[..., Any] | str | ChatModelTarget | Client | Conversation


def refuse_unknown(given: Iterable[str], known: Collection[str]) -> None:
    """Refuse options that a conversation does not have, with the nearest that it has."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(sorted(known))}"
            raise TypeError(f"a conversation has no '{name}': {meant}")


def amount(given: Amount) -> int:
    """An amount in micro-units."""
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise TypeError("an amount is decimal text such as '0.50', or whole micro-units")
    return given if isinstance(given, int) else parse_amount(given)


def _limits(given: Mapping[str, Any]) -> DialogueLimits:
    refuse_unknown(given, _LIMITING | _DEFINING)
    turns = given.get("max_turns")
    if isinstance(turns, bool) or not isinstance(turns, int):
        raise TypeError("give max_turns, the most turns that are spoken")
    spend = given.get("max_spend")
    return DialogueLimits(
        max_turns=turns,
        max_spend=None if spend is None else amount(spend),
        seconds=given.get("deadline"),
    )


def _named(given: ParticipantTarget | Participant) -> Participant:
    participant = given if isinstance(given, Participant) else Participant(target=given)
    describe(participant.target)
    if participant.on_failure not in ("halt", "skip"):
        describe(participant.on_failure)
    if participant.auth not in (FORWARD_USER, AGENT_OWNED) and not callable(participant.auth):
        raise ValueError(f"auth is 'forward-user', 'agent-owned' or a function, not {given!r}")
    name = participant.name or name_of(participant.target)
    amount(0 if participant.most_cost is None else participant.most_cost)
    return replace(participant, name=name)


def _check_names(names: Sequence[str]) -> None:
    if len(names) < _PAIR:
        raise ValueError("a conversation has at least two participants")
    if not all(name.strip() for name in names):
        raise ValueError("every participant has a name")
    if any(len(slug(name)) > MOST_NAME for name in names):
        raise ValueError(f"the name of a participant has at most {MOST_NAME} characters")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"two participants are called '{twice[0]}'; give one another name")


def name_of(target: ParticipantTarget) -> str:
    """What a participant is called that was given no name."""
    if isinstance(target, Definition | Conversation):
        return target.name
    if isinstance(target, ChatModelTarget):
        return target.model
    if isinstance(target, str | Client):
        return _local_name(target if isinstance(target, str) else target.url)
    return str(getattr(target, "__name__", type(target).__name__))


def _local_name(address: str) -> str:
    if is_handle(address):
        return parse_handle(address).local
    if is_agent_uri(address):
        return parse_agent_uri(address).partition(".")[0]
    if not is_address(address):
        return address
    parts = urlsplit(address)
    _, _, name = parts.path.partition("/agents/")
    return name.partition("/")[0] or parts.hostname or ""


def describe(target: ParticipantTarget) -> str:
    """A target as a definition is recognised by it; TypeError for what is none."""
    match target:
        case Conversation():
            text = f"conversation:{target.name}:{target.fingerprint}"
        case Definition():
            text = f"agent:{target.name}:{recognised(target.chat)}"
        case ChatModelTarget():
            text = f"model:{target.url}:{target.model}"
        case Client():
            text = f"client:{target.url}"
        case str():
            text = f"address:{_checked(target)}"
        case _ if callable(target):
            text = f"function:{recognised(target)}"
        case _:
            raise TypeError(f"an agent, an address, a function or a model takes part: {target!r}")
    return text


def _checked(address: str) -> str:
    if is_address(address):
        return check_address(address)
    try:
        return check_local(address)  # of an agent of the gateway that drives it
    except AddressInvalid:
        return check_address(address)


def check_address(address: str) -> str:
    """An address as it was given; ValueError for what leads to nobody."""
    try:
        leads = is_address(address) and _has_host(address)
    except (AddressInvalid, ValueError):
        leads = False
    if not leads:
        raise ValueError(f"'{address}' is no address: give @name@domain, agent://host or a URL")
    return address


def _has_host(address: str) -> bool:
    if is_handle(address):
        return bool(parse_handle(address).local)
    if is_agent_uri(address):
        return bool(parse_agent_uri(address))
    parts = urlsplit(address)
    return bool(parts.hostname) and parts.port != 0  # ValueError for a port that is none


def is_address(text: str) -> bool:
    """Whether a text leads to an agent elsewhere."""
    return is_handle(text) or is_agent_uri(text) or text.startswith(("http:", "https:"))


def callee_of(target: ParticipantTarget) -> str:
    """Whom a breaker is for: as `describe`, and of a function also where it is."""
    if isinstance(target, Definition):
        return f"{describe(target)}:{described(target.chat)}"
    is_function = callable(target) and not isinstance(target, Conversation)
    return f"function:{described(target)}" if is_function else describe(target)
