"""Refused for what is asked: its content, where it goes, its chain, who pays, what it forwards."""

from carnet.errors.base import Fact, Refused


class InjectionDetected(Refused, code="injection_detected", status=400):
    """The payload holds a phrase that is used to take over language models."""

    template = "The payload looks like an attempt to instruct the agent behind its back."
    hint = "Rephrase it; the operator can switch the scan off for an agent."


class SkillNotFound(Refused, code="skill_not_found", status=404, public=("suggestion",)):
    """The agent has no skill of that name. A near one is suggested if there is one."""

    template = "The agent has no such skill."
    hint = "Ask for one of its card, which 'carnet agents inspect ADDRESS' shows."

    def __init__(self, detail: str = "", /, *, suggestion: str = "", way: str = "") -> None:
        """`suggestion` is the name of a skill of ours.

        `way` is what the operator does to reach skills of an agent that is asked in chat alone.
        """
        ways = {"way": way} if way else {}
        super().__init__(detail, suggestion=suggestion or None, **ways)

    @property
    def next_step(self) -> str:
        """What helps: a better name, or another way to the agent."""
        way = self.facts.get("way")
        if way is None:
            return super().next_step
        return f"It is asked in chat, which knows no skills. If it speaks SAMVAD: {way}"

    @property
    def safe_text(self) -> str:
        """The sentence a peer may read, with the nearest name of our own."""
        near = self.facts.get("suggestion")
        return super().safe_text + (f" Did you mean '{near}'?" if near else "")


class SkillForbidden(Refused, code="skill_forbidden", public=("trust",)):
    """The trust that the skill asks for was not shown: who you are is known, and it is not enough.

    `authenticated` wants a token of this gateway in `auth`; `trusted-peers` a sender on its list.
    """

    template = "This skill is for callers of trust '{trust}'."
    hint = "Ask the operator for a token (authenticated) or to be listed (trusted-peers)."

    def __init__(self, detail: str = "", /, *, trust: str = "trusted-peers") -> None:
        """`trust` is one of our three words."""
        super().__init__(detail, trust=trust)


class AgentNotFound(Refused, code="agent_not_found", status=404):
    """No agent of that name is served here."""

    template = "No agent of that name is served here.{suggestion}"
    hint = "GET /v1/models or 'carnet agents list' shows the agents."

    def __init__(self, detail: str = "", *, suggestion: str = "") -> None:
        """Offer the nearest name of our own, if there is one."""
        near = f" Did you mean '{suggestion}'?" if suggestion else ""
        super().__init__(detail, suggestion=near)


class PeerUnknown(Refused, code="peer_unknown", status=404):
    """The address names an organisation that this gateway has not admitted as a peer."""

    template = "This gateway has no peer of that domain."
    hint = "The operator admits one with 'carnet peers add DOMAIN --url URL'."


class StrangerKeyChanged(Refused, code="stranger_key_changed", status=403, public=("domain",)):
    """An organisation that is no peer shows other keys than when we first met it (R42)."""

    template = "{domain} shows other keys than when this gateway first met it."
    hint = (
        "Nothing was sent. A person who has asked there confirms the change with "
        "'carnet peers confirm {domain}'."
    )


class PeerAgentNotFound(Refused, code="peer_agent_not_found", status=404):
    """The other side shows no card for that agent, or that of another one. Nothing was sent."""

    template = "The other side has no agent of that name."
    hint = "Check the name; 'carnet agents inspect ADDRESS' shows who is there."


class ConversationNotFound(Refused, code="conversation_not_found", status=404):
    """There is no conversation of yours with this id."""

    template = "There is no such conversation."
    hint = "List yours: GET /conversations"


class MessageNotFound(Refused, code="message_not_found", status=404):
    """There is no message with this id in the conversation, or none that this can be done with."""

    template = "There is no such message in this conversation."
    hint = "Look at its messages: GET /conversations/ID"


class RunNotFound(Refused, code="run_not_found", status=404):
    """No run of that id is visible to this caller."""

    template = "No run of that id is visible to this token."
    hint = "'carnet runs' or GET /runs lists the runs this token may read."


class SessionNotFound(Refused, code="session_not_found", status=404):
    """There is no such session, it has ended, or it is somebody else's."""

    template = "There is no such session of yours."
    hint = "'GET /sessions' lists yours; 'carnet sessions list' those of everybody."


class PersonNotFound(Refused, code="person_not_found", status=404):
    """Nobody of that name is known here, or she has ended, or this token may not know of her."""

    template = "There is nobody of that name."
    hint = "'carnet people list' or GET /people lists everybody, for who may see them."


class TaskNotFound(Refused, code="task_not_found", status=404):
    """There is no such task, or it ended longer ago than tasks are kept."""

    template = "There is no such task."
    hint = "Check the id; finished tasks are forgotten when the operator's retention has passed."


class InterruptNotFound(Refused, code="interrupt_not_found", status=404):
    """No call of yours asks for anything under that id, or it is no longer kept."""

    template = "There is no such question."
    hint = "'carnet inbox' shows what waits for an answer."


class RuleNotFound(Refused, code="rule_not_found", status=404):
    """No answer of yours for the future has that number, or it holds no more."""

    template = "There is no such rule."
    hint = "'carnet inbox rules' shows those that hold, each with its number."


class MemoryFileNotFound(Refused, code="memory_file_not_found", status=404):
    """The memory of this person at this agent has no such file, or no such version of it."""

    template = "There is no such file in this memory, or no such version of it."
    hint = "'carnet memory list AGENT' or GET /memory/{{agent}} lists the files."


class DeliveryNotFound(Refused, code="delivery_not_found", status=404):
    """There is no webhook of that id in the outbox, or it is no longer kept.

    Deliveries that have ended are forgotten after the operator's retention. Only the command
    line asks for them.
    """

    template = "There is no such webhook delivery."
    hint = "'carnet outbox list' shows which there are."


class RouteNotFound(Refused, code="not_found", status=404):
    """Nothing is served at that path."""

    template = "Nothing is served at this path."
    hint = "/openapi.json lists the paths."


class MethodNotAllowed(Refused, code="method_not_allowed", status=405):
    """The path exists, the method does not."""

    template = "This path does not take that method."
    hint = "/openapi.json lists the methods of each path."

    def __init__(self, detail: str = "", /, *, allow: str = "") -> None:
        """`allow` is what it takes, for the header of that name."""
        super().__init__(detail, allow=allow)


class DepthExceeded(
    Refused,
    code="bridge_depth_exceeded",
    status=429,
    public=("observed", "limit", "stamp", "ceiling", "root"),
):
    """The chain of agents calling agents is as long as this gateway allows.

    Terminal: the same call will be refused again, so clients must not retry it. `stamp` is what the
    limit belongs to: the headers of one convention, or `chain_depth`, the budget of an agent or of
    a token, which also tells its `ceiling` and the `root` of the chain.
    """

    template = "This call arrived at depth {observed}; the limit here is {limit}."
    hint = "Answer from what you have, or ask the operator of this gateway to raise max_depth."

    def __init__(
        self,
        *,
        observed: int,
        limit: int,
        leaving: bool = False,
        stamp: str | None = None,
        budget_of: str | None = None,
        root: str | None = None,
    ) -> None:
        """`limit` is exclusive: the first depth that is refused; `leaving` is a call from here.

        `stamp` is the one that the limit belongs to (R36). `budget_of` is whose budget has ended,
        and `root` the request that the chain began with, as the caller has named it.
        """
        more: dict[str, Fact] = {"leaving": 1} if leaving else {}
        if stamp is not None:
            more["stamp"] = stamp
        if budget_of is not None:
            more |= {"stamp": CHAIN_DEPTH, "ceiling": limit, "budget_of": budget_of}
            more |= {} if root is None else {"root": root}
        super().__init__(observed=observed, limit=limit, **more)

    @property
    def safe_text(self) -> str:
        """The sentence a peer may read; a call that did not leave has not arrived anywhere.

        A peer that refuses ours need not tell its limit: none is made up for it.
        """
        if self.facts.get("limit") is None:
            return f"This call arrived at depth {self.facts.get('observed')}; limit: not told."
        is_budget = self.facts.get("stamp") == CHAIN_DEPTH
        what = "the budget chain_depth" if is_budget else "the limit"
        words = "A call from here would be" if self.facts.get("leaving") else "This call arrived"
        return f"{words} at depth {self.facts['observed']}; {what} here is {self.facts['limit']}."

    @property
    def next_step(self) -> str:
        """What the caller can do about it: each limit is raised by a setting of its own."""
        setting = _SETTINGS.get(str(self.facts.get("stamp")), "max_depth")
        if self.facts.get("budget_of") is not None:
            setting = f"chain_depth of the {self.facts['budget_of']}"
        return self.hint.replace("max_depth", setting)


CHAIN_DEPTH = "chain_depth"  # the budget of an agent or of a token
_SETTINGS = {"caller_context": "max_chain_depth", CHAIN_DEPTH: CHAIN_DEPTH}


class ChainFinal(Refused, code="chain_final", status=429, public=("hop", "hops")):
    """This hop is the last of its chain; it may answer but not call on."""

    template = (
        "This is the final hop ({hop} of {hops}) of its chain; it may not call another agent."
    )
    hint = "Synthesize a conclusion from what you have."

    def __init__(self, *, hop: int, hops: int) -> None:
        """`hop` of `hops`."""
        super().__init__(hop=hop, hops=hops)


class RunCallsExceeded(Refused, code="run_calls_exceeded", status=429, public=("limit",)):
    """One run has made as many calls through this gateway as it may."""

    template = "This run has made {limit} calls here, which is the most a run may make."
    hint = "Start a new run, or ask the operator to raise [limits] run_calls."


class LoopDetected(Refused, code="loop_detected", status=409):
    """The chain has come back to an agent that it passed already.

    `[agents.NAME] reentry = true` lets an agent be called again within its own chain.
    """

    template = "The call came back to an agent that its chain has passed already."
    hint = "Answer from what you have; the operator may set reentry for the agent."


def _numbers(facts: dict[str, Fact]) -> str:
    """What a call may cost and what is left for it, as far as either is told."""
    if facts.get("needed") is None:
        return ""
    left = "" if facts.get("left") is None else f", and {facts['left']} is left"
    return f" It may cost {facts['needed']}{left}."


class PaymentRequired(Refused, code="payment_required", status=402, public=("needed", "left")):
    """The agent has a price and nobody with credit stands behind this call."""

    template = "This agent has a price and the payer of this call has no credit here."
    hint = "The operator grants credit: carnet peers add DOMAIN --url URL --credit AMOUNT"

    @property
    def safe_text(self) -> str:
        """The sentence, with its numbers where they are the caller's to know."""
        return super().safe_text + _numbers(self.facts)


class SpendingLimitReached(
    Refused, code="spending_limit_reached", status=402, public=("needed", "left")
):
    """The payer's spending limit or credit does not cover this call. Nothing was run or billed."""

    template = "The payer's limit does not cover this call."
    hint = "Ask the operator to raise the limit; 'carnet ledger' shows what was spent."

    @property
    def safe_text(self) -> str:
        """The sentence, with its numbers where they are the caller's to know."""
        return super().safe_text + _numbers(self.facts)


_NAMED = ("turns", "tool_calls", "wall_clock_seconds")  # what the names of budgets begin with
_RAISE = {
    "call": "carnet budget set RUN --calls N --tokens N --money AMOUNT",
    "run": "carnet budget set RUN --calls N --tokens N --money AMOUNT",
    "agent": "carnet budget set agent:NAME --money AMOUNT, or [agents.NAME] spending_limit",
    "agent budgets": "[agents.NAME] budgets in carnet.toml",
    "token budgets": "carnet tokens create NAME --budget NAME=N, for a new token",
}


class BudgetExceeded(
    Refused,
    code="budget_exceeded",
    status=402,
    public=("budget", "part", "observed", "limit"),
):
    """Nothing is left of a budget: that of the call, its token, person, peer, agent or run.

    Refused before anything leaves: what it was for was not run or billed. `part` says of what
    nothing is left: money, calls, tokens, seconds, or a named budget such as turns or tool_calls.
    """

    template = "The budget of this {budget} has no {part} left: {observed} of {limit}."
    hint = "Answer from what you have, or have it raised: {fix}."

    @property
    def next_step(self) -> str:
        """The command that raises it."""
        subject = str(self.facts.get("budget", "call"))
        if str(self.facts.get("part")).startswith(_NAMED):
            subject = f"{subject} budgets"
        fix = _RAISE.get(subject, f"carnet budget set {subject}:NAME --money AMOUNT")
        return self.hint.format(fix=fix)


class BillUnpaid(Refused, code="bill_unpaid", status=402, public=("unpaid",)):
    """An earlier call cost more than the payer's limit had left, and that is not settled.

    Calls that cannot cost anything are answered.
    """

    template = "The payer owes {unpaid} above its limit; until that is settled, no call may cost."
    hint = "Pay it, or ask the operator: carnet ledger settle QUOTA"


class PayerRefused(Refused, code="payer_refused", status=402):
    """The forwarded credential is one of ours but revoked, expired or not allowed to pay."""

    template = "The forwarded credential cannot pay here."
    hint = "Ask the person who started the run for a current credential; nobody else was billed."


class ForwardingNotAllowed(Refused, code="forwarding_not_allowed"):
    """The caller sent a forwarded credential but is not listed as an inter-agent caller.

    Neither the caller nor the owner of the credential was billed.
    """

    template = "This caller may not forward another party's credential."
    hint = (
        "The operator lists a caller with --may-forward-authorization (tokens create, peers add)."
    )


class PeerNotListed(Refused, code="peer_not_listed"):
    """A credential would have to be forwarded to a peer that is not listed for it.

    The call was not sent: without the credential the wrong party would pay.
    """

    template = "The payer's credential may not be forwarded to that peer."
    hint = "The operator lists it: carnet peers add DOMAIN --url URL --may-forward-authorization."

    @property
    def next_step(self) -> str:
        """Where no operator lists anybody, what the program does."""
        fix = self.facts.get("fix")
        return super().next_step if fix is None else str(fix)
