"""What an operator can set, section by section, as typed and frozen values.

Each field is the key as it is typed in `carnet.toml`; beside its type stand the reader that checks
it and the sentence that explains it. Amounts are micro-units, secrets are references.

Not here: finding, merging and checking the values (`loading`), and opening secrets (`secrets`).
"""

from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Struct, structs

from carnet.config import readers as read
from carnet.config.dialogue.orchestrator import (
    LIST,
    BranchTimeout,
    FannedOut,
    First,
    Join,
    OnFailure,
)
from carnet.config.dialogue.participants import MOST_TURNS, ParticipantSettings, taking_part
from carnet.config.engine import (
    MOST_TOKENS,
    AgentBudgets,
    CallerSystem,
    EngineSettings,
    ModelSettings,
    SystemFile,
    SystemText,
)
from carnet.config.limits import (
    DailySpendingLimit,
    LedgerSettings,
    Limits,
    LogSettings,
    MaxCost,
    OnBudget,
    RetentionSettings,
    SessionSettings,
    SpendingLimit,
    StoreSettings,
)
from carnet.config.outbound import (
    DEFAULT_MEMBERS,
    FORM_HELP,
    EgressSettings,
    InboxSettings,
    LogNames,
    OutboxSettings,
    OwnerSettings,
    PeerSettings,
    SignatureForm,
    TelemetrySettings,
)
from carnet.config.readers import SecretRef
from carnet.config.tools import ToolSettings, tool_names
from carnet.config.trust.callers import CallerSettings, PolicySettings, field_name
from carnet.config.trust.identity import Allow, Audience, Auth, IdentitySettings, OAuthOut
from carnet.config.trust.payers import Authorization, MayForward, PayerSettings
from carnet.core.call import Price

MOST_DEPTH = 1000  # beyond it a limit is a mistake, not a limit
KINDS = (
    *("python", "openai", "tangle", "samvad", "a2a", "agents_api", "engine"),
    *("conversation", "orchestrator"),
)


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """The `[gateway]` section."""

    host: Annotated[str, read.text(), "The address the gateway listens on."] = "127.0.0.1"
    port: Annotated[int, read.whole(0, 65_535), "The port; 0 lets the system choose."] = 8700
    domain: Annotated[str, read.domain(), "The domain of this organisation."] = "carnet.localhost"
    public_url: Annotated[
        str, read.url(), "Where others reach this gateway; by default http://host:port."
    ] = "http://127.0.0.1:8700"
    max_depth: Annotated[
        int, read.whole(1, MOST_DEPTH), "Tangle: the first depth that is refused."
    ] = 4
    max_chain_depth: Annotated[
        int, read.whole(1, MOST_DEPTH), "agents-api: the last depth that is answered."
    ] = 16
    max_hops: Annotated[
        int, read.whole(1, MOST_DEPTH), "Mentionable: the last hop, which is answered and final."
    ] = 4
    hard_max_depth: Annotated[
        int | None, read.whole(1, MOST_DEPTH), "Clamps all of the above, if set."
    ] = None
    strangers: Annotated[
        bool,
        read.truth(),
        "Whether agents of domains that are no peers may be called, by their addresses.",
    ] = False
    stranger_price_limit: Annotated[
        int, read.amount(), "What one of them may ask for a call before a person is asked."
    ] = 0
    injection_classifier: Annotated[
        str | None,
        read.target(),
        "module:function, given a payload: a second opinion that refuses it with True.",
    ] = None
    trusted_proxies: Annotated[
        tuple[str, ...],
        read.networks(),
        "Reverse proxies whose X-Forwarded-For, X-Forwarded-Proto and Forwarded are believed.",
    ] = ()
    certificate_header: Annotated[
        str | None, field_name(), "The header by which proxies tell a caller's certificate (R33)."
    ] = None
    legacy_cards: Annotated[bool, read.truth(), "A2A cards also serve clients of 0.3."] = True
    cors_origins: Annotated[
        tuple[str, ...],
        read.origins(),
        'Web pages whose scripts may call this gateway, by their origins; ["*"] is every page.',
    ] = ()
    task_polling: Annotated[
        Literal["open", "signed"],
        read.one_of("open", "signed"),
        "Who may poll a task: whoever knows its id, or its sender alone, by signature.",
    ] = "open"
    drain_seconds: Annotated[
        float, read.seconds(most=3600), "How long running calls may take to end at shutdown."
    ] = 25.0
    grace_seconds: Annotated[
        float,
        read.seconds(most=3600),
        "How long whatever still runs then may take; the process ends without it.",
    ] = 10.0


class AgentSettings(Struct, frozen=True, kw_only=True):
    """One `[agents.NAME]` section."""

    kind: Annotated[
        str,
        read.one_of(*KINDS),
        "What answers: a Python function, an OpenAI-compatible model, a Tangle gateway, "
        "a SAMVAD or A2A agent, the agent loop of [engine], several agents in turn or at once.",
    ] = "python"
    target: Annotated[
        str | None,
        read.target(),
        "python: module:function, found beside carnet.toml; conversation: a carnet.Conversation.",
    ] = None
    default: Annotated[bool, read.truth(), "Whether it answers when no agent is named."] = False
    version: Annotated[str, read.text(), "The version of the agent that its card shows."] = "1.0.0"
    description: Annotated[
        str | None, read.text(), "What its card says about it; by default its name and domain."
    ] = None
    price: Annotated[int, read.amount(), "The price of one call."] = 0
    price_in: Annotated[int, read.amount(), "The price of a million tokens read."] = 0
    price_out: Annotated[int, read.amount(), "The price of a million tokens written."] = 0
    trust: Annotated[
        Literal["public", "authenticated", "trusted-peers"],
        read.one_of("public", "authenticated", "trusted-peers"),
        "Which signed callers may call it; unsigned ones always need a token.",
    ] = "authenticated"
    require_auth: Annotated[
        bool, read.truth(), "Whether every signed caller, a listed peer too, must bring a token."
    ] = False
    delegation_freshness: Annotated[
        Literal["pay", "all", "none"],
        read.one_of("pay", "all", "none"),
        "Which delegations are refused if it cannot be learned whether their issuer ended them.",
    ] = "pay"
    allow: Allow = None
    url: Annotated[
        str | None,
        read.url(),
        "Where it is; for samvad what stands before /agent/message, for a2a its card or its base, "
        "for agents_api what stands before /agents-api/v1.",
    ] = None
    model: Annotated[
        str | None,
        read.text(),
        "openai, tangle: the model to ask for there; engine: one of [models].",
    ] = None
    api_key: Annotated[
        SecretRef | None, read.secret(), "openai: how we authenticate to it; a2a: the key it asks."
    ] = None
    token: Annotated[
        SecretRef | None,
        read.secret(),
        "tangle, a2a, agents_api: how we authenticate to it; samvad: the token beside our "
        "signature.",
    ] = None
    auth: Auth = "auto"
    audience: Audience = None
    oauth: OAuthOut = None
    skill: Annotated[
        str | None,
        read.text(),
        "samvad, a2a: the skill that text is given to; samvad: by default chat, or its only one.",
    ] = None
    identity: Annotated[
        str | None,
        read.identity(),
        "samvad: the id of its card, such as agent://globex.example, if its host does not say it.",
    ] = None
    signature_form: Annotated[
        SignatureForm, read.one_of("auto", "samvad", "rfc9421", "carnet"), FORM_HELP
    ] = "auto"
    timeout: Annotated[float, read.seconds(), "Seconds one call may take."] = 600.0
    concurrency: Annotated[
        int | None, read.whole(1), "Calls it answers at once; by default as many as come."
    ] = None
    on_disconnect: Annotated[
        Literal["cancel", "finish"],
        read.one_of("cancel", "finish"),
        "What happens to a call when its last reader has gone.",
    ] = "cancel"
    auth_source: Annotated[
        Literal["forward-user", "agent-owned", "per-call"],
        read.one_of("forward-user", "agent-owned", "per-call"),
        "Who pays for the calls it makes: the person behind the run, or the agent itself.",
    ] = "forward-user"
    max_depth: Annotated[
        int | None, read.whole(1, MOST_DEPTH), "Lower than the gateway's, for this agent alone."
    ] = None
    chain_depth: Annotated[
        int | None, read.whole(1, MOST_DEPTH), "Its budget: the first depth that is refused."
    ] = None
    reentry: Annotated[
        bool, read.truth(), "Whether it may be called again within its own chain."
    ] = False
    injection_scan: Annotated[
        bool,
        read.truth(),
        "Whether payloads of signed calls to it are searched for phrases that take over models.",
    ] = True
    tokens_per_sender_per_day: Annotated[
        int | None,
        read.whole(1, MOST_TOKENS),
        "Tokens that one signed sender may use of it in a day; by default as [limits] says.",
    ] = None
    system: SystemText = None
    system_file: SystemFile = None
    caller_system: CallerSystem = False
    cues: Annotated[bool, read.truth(), "openai, engine: whether its model is told its hop."] = True
    tools: Annotated[
        tuple[str, ...] | None, tool_names(), "engine: what its model may use, if not as [engine]."
    ] = None
    log_names: LogNames = ()
    pass_members: Annotated[
        tuple[str, ...],
        read.members(),
        'openai: the members of a request that reach the model; ["*"] lets all of them pass.',
    ] = DEFAULT_MEMBERS
    max_iterations: Annotated[
        int | None,
        read.whole(1),
        "engine: how often the model is asked in one answer; by default as [engine] says.",
    ] = None
    max_tokens: Annotated[
        int | None,
        read.whole(1, MOST_TOKENS),
        "engine: tokens after which an answer ends; by default as [engine] says.",
    ] = None
    budgets: AgentBudgets = ()
    participants: Annotated[
        tuple[ParticipantSettings, ...] | None,
        taking_part(),
        "conversation: who takes part, by names of agents here or addresses.",
    ] = None
    order: Annotated[
        Literal["alternate", "round-robin"] | None,
        read.one_of("alternate", "round-robin"),
        "conversation: who speaks next; two alternate, more go round.",
    ] = None
    max_turns: Annotated[
        int | None, read.whole(1, MOST_TURNS), "conversation: turns after which it ends."
    ] = None
    max_spend: Annotated[
        int | None, read.amount(), "conversation: an amount that ends it once it is spent."
    ] = None
    agents: FannedOut = None
    join: Join = LIST
    first: First = None
    branch_timeout: BranchTimeout = None
    on_failure: OnFailure = "collect"
    retries: Annotated[
        int,
        read.whole(0, 3),
        "of remote kinds and openai: how many further requests one call may need; 0 for none.",
    ] = 2
    max_cost: MaxCost = None
    spending_limit: SpendingLimit = None
    daily_spending_limit: DailySpendingLimit = None
    on_budget: OnBudget = "refuse"
    may_forward_authorization: MayForward = False
    authorization: Authorization = "key"

    @property
    def has_system(self) -> bool:
        """Whether it has a system message of its own."""
        return self.system is not None or self.system_file is not None

    @property
    def full_price(self) -> Price:
        """The three prices together."""
        return Price(
            per_call=self.price, per_million_in=self.price_in, per_million_out=self.price_out
        )


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that was set, and where each value came from."""

    gateway: GatewaySettings
    store: StoreSettings
    ledger: LedgerSettings
    retention: RetentionSettings
    agents: dict[str, AgentSettings]
    peers: dict[str, PeerSettings]
    callers: dict[str, CallerSettings]
    payers: dict[str, PayerSettings]
    models: dict[str, ModelSettings]
    egress: EgressSettings
    identity: IdentitySettings
    outbox: OutboxSettings
    inbox: InboxSettings
    owner: OwnerSettings
    sessions: SessionSettings
    engine: EngineSettings
    tools: dict[str, ToolSettings]
    policy: PolicySettings
    log: LogSettings
    telemetry: TelemetrySettings
    limits: Limits
    source: Path  # carnet.toml
    base: Path  # its folder: paths and target modules are relative to it
    origins: dict[str, str]  # "gateway.port" -> "carnet.toml:4", "environment ...", "default"

    @property
    def default_agent(self) -> str | None:
        """The agent that answers when none is named: the one marked, or the only one."""
        marked = [name for name, agent in self.agents.items() if agent.default]
        if not marked and len(self.agents) == 1:
            marked = list(self.agents)
        return marked[0] if marked else None

    @property
    def needs_public_url(self) -> bool:
        """Whether it listens to other machines and nobody said where those reach it."""
        is_given = self.origins["gateway.public_url"] != "default"
        return self.gateway.host in ANYWHERE and not is_given

    @property
    def engine_sockets(self) -> dict[str, str]:
        """The files that stand behind names of hosts, for who asks the agent loop."""
        return self.engine.sockets(self.base)

    def listening_at(self, host: str | None, port: int | None) -> "Settings":
        """The same settings with the address that a command line gave."""
        changes = {"host": host, "port": port}
        given = {name: value for name, value in changes.items() if value is not None}
        origins = self.origins | {f"gateway.{name}": f"option --{name}" for name in given}
        gateway = structs.replace(self.gateway, **given)
        if origins["gateway.public_url"] == "default":
            gateway = structs.replace(gateway, public_url=local_url(gateway.host, gateway.port))
        return structs.replace(self, gateway=gateway, origins=origins)


ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  read, not bound


def local_url(host: str, port: int) -> str:
    """The URL of a listening address, as this machine reaches it."""
    host = ANYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


SECTIONS: dict[str, type[Struct]] = {
    "gateway": GatewaySettings,
    "store": StoreSettings,
    "ledger": LedgerSettings,
    "retention": RetentionSettings,
    "egress": EgressSettings,
    "identity": IdentitySettings,
    "outbox": OutboxSettings,
    "inbox": InboxSettings,
    "owner": OwnerSettings,
    "sessions": SessionSettings,
    "engine": EngineSettings,
    "policy": PolicySettings,
    "log": LogSettings,
    "telemetry": TelemetrySettings,
    "limits": Limits,
}
FAMILIES: dict[str, type[Struct]] = {
    "agents": AgentSettings,
    "peers": PeerSettings,
    "callers": CallerSettings,
    "payers": PayerSettings,
    "models": ModelSettings,
    "tools": ToolSettings,
}
