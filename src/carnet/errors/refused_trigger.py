"""Refused by a hook or a schedule, or by who keeps them."""

from carnet.errors.base import Refused


class HookRefused(Refused, code="hook_refused", status=401):
    """There is no such hook, or what was sent to it is not signed as it asks for.

    The two look alike on purpose: nobody finds out by asking which hooks there are.
    """

    template = "There is no such hook, or this request is not signed as it asks for."
    hint = (
        "Check the address and the secret: 'carnet hooks show NAME' tells its owner the address and"
        " how it is signed, 'carnet hooks rotate NAME' makes a new secret."
    )


class TriggerPaused(Refused, code="trigger_paused", status=409, retryable=True):
    """The hook or schedule is paused, or the token that it ran with has ended. Nothing is kept."""

    template = "It is paused."
    hint = "Its owner lets it go on ('carnet hooks resume NAME', 'carnet schedules resume NAME')."


class TriggerNotFound(Refused, code="trigger_not_found", status=404):
    """No hook or schedule of yours has that name."""

    template = "You have none of that name."
    hint = "'carnet hooks list' and 'carnet schedules list' show those that you have."


class TriggerExists(Refused, code="trigger_exists", status=409):
    """A hook, or a schedule, of yours has that name."""

    template = "You have one of that name already."
    hint = "Choose another name, or delete the one that is there."


class TooManyTriggers(Refused, code="too_many_triggers", status=429, public=("limit",)):
    """The person has as many hooks, or schedules, as she may."""

    template = "You have {limit} of them, which is the most that one person may have."
    hint = "Delete one, or ask the operator to raise [triggers] hooks or schedules."


class TooManyFirings(
    Refused, code="too_many_firings", status=429, retryable=True, public=("limit",)
):
    """As much of this person's wants to be begun as may. What was sent is not kept."""

    template = "{limit} conversations of this owner are still to begin, which is the most."
    hint = "Send the same again after the time of Retry-After."
