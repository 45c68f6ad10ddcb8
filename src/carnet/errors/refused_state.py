"""Refused for how things stand: the turn was used, runs or waits, or there is no room now."""

from carnet.errors.base import Refused


class IdempotencyMismatch(Refused, code="idempotency_mismatch", status=422):
    """This turn id was used before with another request. The first result is untouched."""

    template = "This turn was used before with a different request."
    hint = "Repeat the exact request, or use a new turn id."


class RunAlreadyStarted(Refused, code="run_already_started", status=409):
    """The run id was used before, and this dialect runs every id at most once.

    What came of it is not told again: who has lost the answer asks for the run by its id.
    """

    template = "The run_id has already been claimed for execution."
    hint = "Send it with a new run id, or none; 'carnet run show' tells what became of the first."


class RunOwnerForbidden(Refused, code="run_owner_forbidden", status=403):
    """The run id was used before in another session."""

    template = "The run_id was claimed in another session."
    hint = "Send it with a new run id, or none."


class InProgress(Refused, code="in_progress", status=409, retryable=True):
    """The same turn is running and will outlast this caller's deadline."""

    template = "This turn is still running."
    hint = "Repeat the same request after the time that Retry-After gives."


class DefinitionChanged(Refused, code="definition_changed", status=409):
    """An agent that runs again made other calls or other steps than the first time.

    What is kept of the turn does not fit it any more. Of a step (`visit.step`) its place among the
    steps is told; its name, and the one that is kept there, are in the log. A conversation that is
    gone on with is told so where it is not the one that the run began with.
    """

    template = "The agent made a different call than the one recorded under this turn id."
    hint = "Start a new run; keep the order of calls and steps a function of the agent's input."

    def __init__(
        self, detail: str = "", /, *, step: int | None = None, changed: str | None = None
    ) -> None:
        """`step` is the place of a step, counted from 1; `changed` what of a conversation."""
        given: dict[str, int | str | None] = {"step": step, "changed": changed}
        facts = {name: value for name, value in given.items() if value is not None}
        super().__init__(detail, **facts)

    @property
    def safe_text(self) -> str:
        """The sentence a peer may read: of a step its place, never its name."""
        step, changed = self.facts.get("step"), self.facts.get("changed")
        if changed is not None:
            return f"The {changed} of the conversation is not the one that this run began with."
        if step is None:
            return super().safe_text
        return f"Step {step} of the agent is not the one that is kept under this turn id."


class AnswerAwaited(Refused):
    """An agent asks for something before it goes on."""

    hint = (
        "Send the same request again with 'carnet-resolution: STATE;outcome=accepted', or rejected."
        " Until then it is told as waiting."
    )

    def __init__(self, detail: str = "", /, *, kind: str = "input") -> None:
        """`kind` is a word of ours for what is asked for."""
        super().__init__(detail, kind=kind)


class InputRequired(AnswerAwaited, code="input_required"):
    """The agent needs an answer before it goes on. Its turn waits and holds its money."""

    template = "The agent waits for an answer before it goes on: {kind}."


class ApprovalRequired(AnswerAwaited, code="approval_required"):
    """The agent asks for leave before it goes on. Its turn waits and holds its money."""

    template = "The agent waits for an approval before it goes on."


class ConsentRequired(AnswerAwaited, code="consent_required"):
    """The agent asks for consent before it goes on. Its turn waits and holds its money."""

    template = "The agent waits for consent before it goes on."


class SignInRequired(AnswerAwaited, code="sign_in_required", status=401):
    """Somebody has to sign in before the agent goes on. Its turn waits and holds its money."""

    template = "The agent waits for somebody to sign in before it goes on."


class PaymentWanted(AnswerAwaited, code="payment_wanted", status=402, sent_as="payment_required"):
    """The agent asks for a payment before it goes on. Its turn waits and holds its money.

    Clients are sent the code payment_required, with what is asked for beside it: `interrupt`.
    """

    template = "The agent waits for a payment before it goes on."


class WaitRequired(AnswerAwaited, code="wait_required", status=429, sent_as="rate_limited"):
    """An agent elsewhere takes no more for now, and says so by a policy. The turn waits.

    Clients are sent the code rate_limited, with what is asked for beside it: `interrupt`.
    """

    template = "An agent that was called asks to be asked again later."


class RecoveryRequired(AnswerAwaited, code="unavailable", status=503):
    """An agent elsewhere cannot answer for now, and says so by a policy. The turn waits."""

    template = "An agent that was called waits until it is available again."


class LegalRestriction(Refused, code="legal_restriction", status=451, public=("said",)):
    """An agent elsewhere may not answer for legal reasons. Nobody can answer that; it is over."""

    template = "An agent that was called may not answer this for legal reasons."
    hint = "Do not repeat it; the operator finds what the other side said with 'carnet run show'."


class PolicyForbidden(Refused, code="policy_forbidden", public=("said",)):
    """The policy of an agent elsewhere forbids the call. Nobody can answer that; it is over."""

    template = "The policy of an agent that was called forbids this."
    hint = "Do not repeat it; the operator finds what the other side said with 'carnet run show'."


class Declined(Refused, code="declined"):
    """What the agent asked for was answered with no, and it cannot go on without."""

    template = "What the agent asked for was declined: {kind}."
    hint = "Ask again under a new turn id, and answer what it asks for."

    def __init__(self, detail: str = "", /, *, kind: str = "input") -> None:
        """`kind` is a word of ours for what was asked for."""
        super().__init__(detail, kind=kind)


class InterruptExpired(Refused, code="interrupt_expired", status=410):
    """The turn waited for an answer that did not come in its time. What it held was given back."""

    template = "What this turn waited for was not answered in its time."
    hint = "Ask again under a new turn id."


class AnswerForbidden(Refused, code="answer_forbidden", public=("reason",)):
    """Who answers may see the question, and it is somebody else's to agree to."""

    template = "It is not yours to answer: {reason}."
    hint = (
        "Who is asked answers it. For payments a person may name you:"
        " carnet inbox allow NAME --up-to AMOUNT."
    )


class AnsweredOtherwise(Refused, code="answered_otherwise", status=409):
    """The question was answered before, and not so. The first answer stands."""

    template = "This was answered before, otherwise."
    hint = "Look at the answer that stands: carnet inbox show ID"


class PolicyStateInvalid(Refused, code="policy_state_invalid", status=409):
    """The answer is none that a turn waits for: it was used before, came late, or is a guess."""

    template = "No turn waits for this answer, or no longer."
    hint = "Repeat the request without it: you are told what the turn waits for, or its answer."


class PersonExists(Refused, code="person_exists", status=409):
    """Somebody who has not ended has this name, this number or one of these addresses."""

    template = "Somebody has this name, this number or one of these addresses already."
    hint = "Choose another one; 'carnet people list' shows who is known."


class Cancelled(Refused, code="cancelled", status=409, retryable=True):
    """The turn was cancelled before it ended: by its readers leaving, or on request."""

    template = "This turn was cancelled before it ended."
    hint = "Send the same request again to run it once more under the same turn id."


class ConversationBusy(Refused, code="conversation_busy", status=409, retryable=True):
    """An answer is being given in this conversation; there is one at a time."""

    template = "An answer is being given in this conversation."
    hint = "Wait for its end, or stop it: POST /conversations/ID/stop. Then send the same again."

    @property
    def retry_after(self) -> int:
        """Whole seconds until another try makes sense: one, if nobody knows better."""
        return super().retry_after or 1


class ConversationFull(Refused, code="conversation_full", status=409, public=("limit",)):
    """The conversation holds as many messages as one may."""

    template = "This conversation has {limit} messages, which is the most that one may have."
    hint = "Begin another one: send the message without X-Conversation-ID."


class TooManyConversations(Refused, code="too_many_conversations", status=409, public=("limit",)):
    """The owner has as many conversations as one may."""

    template = "This owner has {limit} conversations, which is the most that one may have."
    hint = "Delete one that is not needed any more, or go on in one: X-Conversation-ID."


class Deleted(Refused, code="deleted", status=410):
    """It was deleted by its owner. It is not run again and nobody is billed for it again."""

    template = "This was deleted by its owner."
    hint = "Ask again under new ids."


class RateLimited(Refused, code="rate_limited", status=429, retryable=True):
    """The caller made more calls than its token, or a sender without one, may for the moment."""

    template = "This caller has used up its rate; the next call is free in {retry_after} s."
    hint = "Wait as long as Retry-After says and send the same request again."


class TokenBudgetExceeded(
    Refused, code="token_budget_exceeded", status=429, retryable=True, public=("limit",)
):
    """The sender has used the tokens that the card of the agent grants it for this day (UTC)."""

    template = "This sender has used its {limit} tokens of today."
    hint = "Wait as long as Retry-After says: the budget is new at midnight UTC."


class TooManyTasks(Refused, code="too_many_tasks", status=429, retryable=True, public=("limit",)):
    """The caller has as many unfinished tasks at this agent as it may."""

    template = "This caller has {limit} unfinished tasks here, which is the most it may have."
    hint = "Wait for one to end, then send the same request again."


class TooManyQuestions(Refused, code="too_many_questions", status=429, public=("limit",)):
    """The turn was answered as often as it may, and its agent, or one that it called, asks on."""

    template = "This turn has waited {limit} times for an answer, which is the most it may."
    hint = (
        "Ask for less at a time, under a new turn id; the agent that asks is in 'carnet run show'."
    )


class TooManyWaiting(Refused, code="too_many_waiting", status=429, public=("limit",)):
    """As many calls of the caller wait for an answer as may. This one failed and holds nothing."""

    template = "This caller has {limit} calls that wait for an answer, which is the most it may."
    hint = "Answer one of them (carnet inbox), then send the same request again."


class TooManyCalls(Refused, code="too_many_calls", status=429, retryable=True, public=("limit",)):
    """The caller has as many calls open at once as it may."""

    template = "This caller has {limit} calls open, which is the most it may have."
    hint = "Wait for one to end, then send the same request again."


class TooManyStreams(
    Refused, code="too_many_streams", status=429, retryable=True, public=("limit",)
):
    """The caller has as many streamed answers open at once as it may."""

    template = "This caller has {limit} streams open, which is the most it may have."
    hint = "Read one to its end or close it, then send the same request again."


class Overloaded(Refused, code="overloaded", status=503, retryable=True):
    """The gateway has as much work queued as it takes."""

    template = "This gateway is at its capacity."
    hint = "Send the same request again after the time that Retry-After gives."

    @property
    def retry_after(self) -> int:
        """Whole seconds until another try makes sense: one, if nobody knows better."""
        return super().retry_after or 1


class TurnElsewhere(Refused, code="turn_elsewhere", status=421):
    """A call with the bearer of a turn came to a process that does not answer that turn.

    Several processes of one gateway share their store, and not the streams that they read.
    """

    template = "Another process of this gateway answers the turn of this bearer."
    hint = "Send the call to the process that asked: each of several has an engine of its own."


class ShuttingDown(Refused, code="shutting_down", status=503, retryable=True):
    """The gateway is draining before it stops; it takes no new work."""

    template = "This gateway is shutting down."
    hint = "Send the same request again in a moment; the turn id keeps it from running twice."


class MemoryChanged(Refused, code="memory_changed", status=409):
    """A file of a memory was written by somebody else since it was read. Nothing was written."""

    template = "The file is not as it was when you read it."
    hint = "Read it again, and send your change with the version that it has then."


class MemoryFull(Refused, code="memory_full", status=409, public=("limit", "what")):
    """A memory holds as much as it may: files, bytes in all, or bytes of one file."""

    template = "This memory holds no more than {limit} {what}."
    hint = "Shorten or delete files of it; the operator sets the bounds in [limits]."
