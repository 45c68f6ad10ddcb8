"""What leads to others: peers, where else may be called, and how webhooks are delivered."""

import re
from typing import Annotated, Final, Literal

from msgspec import Struct

from carnet.config import readers as read
from carnet.config.readers import SecretRef
from carnet.config.trust.callers import one_certificate
from carnet.config.trust.identity import Auth
from carnet.core.money.amount import MICROS
from carnet.core.people.address import check_domain
from carnet.errors import AddressInvalid

DIALECTS = (
    "tangle",
    "samvad",
    "a2a",
    "agents_api",
)  # what peers may be listed with, by the rows of `wire.dialects`
# Members that say how a model answers, and nothing of where, by whom or on whose account.
DEFAULT_MEMBERS = (
    *("frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"),
    *("max_completion_tokens", "max_tokens", "min_p", "n", "parallel_tool_calls"),
    *("presence_penalty", "reasoning_effort", "repetition_penalty", "response_format", "seed"),
    *("stop", "temperature", "tool_choice", "tools", "top_k", "top_logprobs", "top_p"),
    "verbosity",
)
MOST_DAYS = 36_500
LATER_DIALECTS = ("engine_chat", "openai")

SignatureForm = Literal["auto", "samvad", "rfc9421", "carnet"]
FORM_HELP = "samvad: how calls to it are signed; auto finds out by what it publishes and remembers."
PRODUCTS = ("bifrost", "litellm", "kagent")  # by the rows of `wire.stamps.log_names`


def _product(name: str) -> str:
    if name not in PRODUCTS:
        raise ValueError
    return name


def _found_at(text: str) -> str:
    domain, _, url = text.partition("=")
    try:
        check_domain(domain)
    except AddressInvalid:
        raise ValueError from None
    if not _PLACE.fullmatch(url):
        raise ValueError
    return text


_PLACE: Final = re.compile(
    r"http://(?:127\.0\.0\.1|localhost|\[::1\]):[0-9]{1,5}|https://[a-z0-9.-]{1,253}(?::[0-9]{1,5})?",
    re.ASCII,
)

LogNames = Annotated[
    tuple[str, ...],
    read.many(f"products ({', '.join(PRODUCTS)})", _product),
    "Products whose logs are to find our calls: a header of each has the run, or who pays.",
]


class PeerSettings(Struct, frozen=True, kw_only=True):
    """One `[peers."domain"]` section."""

    url: Annotated[str, read.url(), "Where its gateway is."]
    may_forward_authorization: Annotated[
        bool, read.truth(), "Whether forwarded credentials may go to it and come from it."
    ] = False
    keys: Annotated[
        tuple[str, ...], read.public_keys(), "Its pinned keys; otherwise they come from its card."
    ] = ()
    token: Annotated[SecretRef | None, read.secret(), "How we authenticate to it."] = None
    dialect: Annotated[
        str,
        read.one_of(*DIALECTS, later=LATER_DIALECTS),
        "What it speaks.",
    ] = "tangle"
    signature_form: Annotated[
        SignatureForm, read.one_of("auto", "samvad", "rfc9421", "carnet"), FORM_HELP
    ] = "auto"
    auth: Auth = "auto"
    credit: Annotated[int, read.amount(), "What it may owe us."] = 0
    max_cost: Annotated[int, read.amount(), "The most it may charge us for one call."] = MICROS
    log_names: LogNames = ()
    certificate: Annotated[
        str | None,
        one_certificate(),
        "The client certificate of its calls to us, as a trusted proxy tells it: sha256:HEX, or "
        "the subject. Who shows it needs no token.",
    ] = None


class EgressSettings(Struct, frozen=True, kw_only=True):
    """The `[egress]` section."""

    allow: Annotated[
        tuple[str, ...],
        read.destinations(),
        "Where callbacks and cards that others name may lead beside public https addresses: "
        "host:port, host:* or a range.",
    ] = ()
    found_at: Annotated[
        tuple[str, ...],
        read.many('"domain=URL", such as "globex.example=http://127.0.0.1:8702"', _found_at),
        "Where domains that are no peers are found, if not at https://DOMAIN: for tests and "
        "demonstrations. Plain http is for this machine alone.",
    ] = ()


class OutboxSettings(Struct, frozen=True, kw_only=True):
    """The `[outbox]` section: delivering webhooks."""

    schedule: Annotated[
        tuple[float, ...],
        read.schedule(most=7 * 86_400),
        "Seconds before each attempt to deliver a webhook; after the last one it is dead.",
    ] = (0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
    timeout: Annotated[
        float, read.seconds(most=25), "Seconds that one attempt may take, the answer included."
    ] = 10.0


class TelemetrySettings(Struct, frozen=True, kw_only=True):
    """The `[telemetry]` section: spans for a collector."""

    otlp: Annotated[
        str | None,
        read.url(),
        "A collector, by OTLP over HTTP: http://127.0.0.1:4318; without it no span is made.",
    ] = None
    authorization: Annotated[
        SecretRef | None, read.secret(), "What the header authorization tells the collector."
    ] = None
    queue: Annotated[
        int, read.whole(1, 1_000_000), "Spans that wait for it; more are dropped, and counted."
    ] = 2048


class OwnerSettings(Struct, frozen=True, kw_only=True):
    """The `[owner]` section: the conversations of people with their agents."""

    agent: Annotated[
        str | None,
        read.text(),
        "Who is asked where nobody is named; by default the only agent of the kind engine, or the "
        "default agent.",
    ] = None
    orchestrator: Annotated[
        str | None, read.text(), "Who is asked where a message begins with several handles."
    ] = None
    relay: Annotated[
        bool, read.truth(), "Whether an agent that is mentioned in an answer is asked as well."
    ] = True
    model_context: Annotated[
        tuple[str, ...],
        read.members(),
        'The members of client_context that models are told; ["*"] is all of them.',
    ] = ()
    tool_context: Annotated[
        tuple[str, ...],
        read.members(),
        'The members of client_context that tools are given; ["*"] is all of them.',
    ] = ()
    hold_approvals: Annotated[
        float | None,
        read.seconds(most=3600),
        "Seconds that a stream stays open at a question, for its answer; not set: it ends there.",
    ] = None
    history: Annotated[
        int, read.whole(1, 1000), "Messages of a conversation that an agent is told."
    ] = 200
    content_bytes: Annotated[
        int, read.whole(1024, 8_388_608), "The most that one message may have."
    ] = 262_144
    conversations: Annotated[
        int, read.whole(1, 1_000_000), "Conversations that one owner may have."
    ] = 10_000
    messages: Annotated[int, read.whole(2, 100_000), "Messages that one conversation may have."] = (
        2_000
    )


class InboxSettings(Struct, frozen=True, kw_only=True):
    """The `[inbox]` section: what the operator is notified of, and how long a question waits."""

    notify: Annotated[
        tuple[str, ...],
        read.hooks(),
        "URLs that are told what calls ask for, and of webhooks given up; a list, or one.",
    ] = ()
    expires: Annotated[
        int, read.whole(1, MOST_DAYS * 24), "Hours a call waits for an answer; then it has failed."
    ] = 24
