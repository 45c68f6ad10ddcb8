"""Someone we called did not answer properly."""

from carnet.errors.base import BY_CODE, Facts, Upstream


class ProviderError(Upstream, code="provider_error", public=("peer_code",)):
    """The agent or model behind the gateway answered with something that is not an answer."""

    template = "The agent behind this gateway did not give a proper answer."
    hint = "Repeat the request; the operator finds the cause in the log under this run and turn."


class ProviderUnavailable(Upstream, code="provider_unavailable", status=503):
    """The agent or model behind the gateway cannot be reached."""

    template = "The agent behind this gateway cannot be reached."
    hint = "Repeat the request later; 'carnet doctor' shows which upstreams answer."


class ProviderTimeout(Upstream, code="provider_timeout", status=504):
    """The agent or model behind the gateway did not answer in time."""

    template = "The agent behind this gateway did not answer in time."
    hint = "Repeat the request, or ask the operator to raise the agent's timeout."


class OfModel(Upstream):
    """A model answered, and refused."""


class ContextTooLong(OfModel, code="context_length_exceeded", status=400, retryable=False):
    """The conversation is longer than the model behind the agent can read."""

    template = "The conversation is longer than the model behind this agent can read."
    hint = "Send fewer or shorter messages, or ask for fewer tokens."


class ModelRefused(OfModel, code="model_refused", status=400, retryable=False):
    """The model behind the agent refused the request: a parameter, or what it says."""

    template = "The model behind this agent refused the request."
    hint = "Change the request; the operator finds the model's own words with 'carnet run show'."


class ModelKeyRefused(OfModel, code="model_key_refused", retryable=False):
    """The provider of the model does not take the key that this gateway has for it."""

    template = "The provider of the model behind this agent does not take this gateway's key."
    hint = "The operator checks api_key of the agent; 'carnet run show' has the provider's words."


class ModelQuotaExceeded(OfModel, code="model_quota_exceeded", status=503):
    """What this gateway may use at the provider of the model is used up."""

    template = "What this gateway may use at the provider of the model is used up."
    hint = "The operator settles it with the provider; then repeat the request."


class ModelRateLimited(OfModel, code="model_rate_limited", status=429):
    """The provider of the model takes no more requests of this gateway for the moment."""

    template = "The provider of the model takes no more requests for the moment."
    hint = "Repeat the request after the time that Retry-After gives, or in a moment."


class ModelNotFound(OfModel, code="model_not_found", retryable=False):
    """The provider does not have the model that the agent is configured with."""

    template = "The provider does not have the model that this agent is configured with."
    hint = "The operator checks model and url of the agent."


class CircuitOpen(Upstream, code="circuit_open", status=503):
    """The upstream failed several times in a row and is left alone for a moment."""

    template = (
        "The agent behind this gateway failed repeatedly and is left alone for {retry_after} s."
    )
    hint = "Repeat the request after the time that Retry-After gives."


class PeerRefused(
    Upstream,
    code="peer_refused",
    retryable=False,
    public=("peer_status", "peer_code", "peer_reason", "peer_field", "peer_detail"),
):
    """The other organisation's gateway refused the call. Its code is given if we know the word."""

    template = "The other organisation's gateway refused this call ({peer_status} {peer_code})."
    hint = "'carnet explain {peer_code}' tells what its code means; its operator can tell why."

    @property
    def next_step(self) -> str:
        """What a Carnet there would advise, if it is one and says why; in our own words.

        Another gateway of the signed dialect that refuses to believe us may lack our key.
        """
        facts = self.facts
        field = facts.get("peer_field")
        kind = BY_CODE.get(str(facts.get("peer_reason") or (field and facts.get("peer_code"))))
        if kind is not None:
            about = f" about the field '{field}'" if field else ""
            if facts.get("peer_detail"):
                about = f" ({facts['peer_detail']})"
            return f"It says {kind.code}{about}. {kind.hint.format_map(Facts(facts))}"
        if facts.get("peer_code") == "AUTH_FAILED" and facts.get("key"):
            return (
                "If it does not know us, give its operator our identity and key (trust_peer): "
                f"{facts['sender']} {facts['key']}"
            )
        if facts.get("peer_code") in {None, "unrecognised"}:
            return "Its operator can tell why."
        return super().next_step


class PeerBusy(Upstream, code="peer_busy", status=503, public=("peer_status", "peer_code")):
    """The other organisation's gateway could not take the call just now and may take it later."""

    template = "The other organisation's gateway is busy ({peer_status} {peer_code})."
    hint = "Repeat the request after the time that Retry-After gives."

    @property
    def safe_text(self) -> str:
        """Whoever has used its tokens of the day may have to wait for hours: that is not busy."""
        if self.facts.get("peer_code") != "TOKEN_BUDGET_EXCEEDED":
            return super().safe_text
        return (
            "The other organisation's gateway gives us no more tokens for now "
            f"({self.facts.get('peer_status')} TOKEN_BUDGET_EXCEEDED)."
        )


class PeerCredentialMissing(
    Upstream, code="peer_credential_missing", retryable=False, public=("schemes",)
):
    """The card of the called agent asks for a credential that this gateway does not have for it."""

    template = "The called agent asks for a credential that this gateway has not: {schemes}."
    hint = (
        "The operator gives the agent a 'token' (bearer) or an 'api_key' (key in a header); "
        "nothing else is spoken."
    )


class PeerUnreachable(Upstream, code="peer_unreachable"):
    """The card or the key of another organisation could not be fetched within its bounds."""

    template = "What the other side publishes about itself could not be read."
    hint = "Try again later; its operator can tell whether its card is served."


class PeerResponseInvalid(Upstream, code="peer_response_invalid"):
    """The other side's answer does not carry the proof that it must, or a wrong one."""

    template = "The answer of the other side is not signed as it must be."
    hint = (
        "Try again; if it goes on, compare what is pinned for it ('carnet peers list') with the "
        "keys that it shows ('carnet agents inspect ADDRESS'), and tell its operator."
    )


class StatementInvalid(Upstream, code="statement_invalid", retryable=False, public=("reason",)):
    """What should be a partner's statement is none, is another's, or is not signed by its key."""

    template = "The statement cannot be used: {reason}."
    hint = "Ask the partner for it again; 'carnet peers list' shows which key it must be signed by."

    def __init__(self, *, reason: str) -> None:
        """`reason` is one of our own phrases."""
        super().__init__(reason, reason=reason)


class EgressRefused(Upstream, code="egress_refused", retryable=False):
    """The address of that destination may not be dialled from this gateway."""

    template = "That destination may not be called from this gateway."
    hint = "The operator allows one with [egress] allow; private addresses are refused by default."


class AgentFailed(Upstream, code="agent_failed", status=500):
    """The agent's own code raised an error."""

    template = "The agent failed while answering."
    hint = "Repeat the request; the operator finds the cause in the log under this run and turn."


class FaultInjected(Upstream, code="fault_injected", status=500, retryable=False):
    """Somebody had a call of hers fail, to see how that looks: the agent was not asked."""

    template = "This call was made to fail, to see how that looks; the agent was not asked."
    hint = "Choose no fault in the playground to have it answered."


class ToolUnusable(Upstream, code="tool_error"):
    """A tool that the agent needs cannot be used: what runs it is broken, not what it was asked."""

    template = "A tool that this agent needs cannot be used."
    hint = "Repeat the request later; the operator finds the cause in the log under this run."
