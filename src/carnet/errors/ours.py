"""Our own fault; the detail is in the log under the incident id."""

from carnet.errors.base import Ours


class Internal(Ours, code="internal", public=("incident",)):
    """Something we did not foresee. The log has the details under the incident id."""

    template = "Something went wrong in this gateway (incident {incident})."
    hint = "Tell the operator the incident id."

    def __init__(self, detail: str = "", *, incident: str = "unrecorded") -> None:
        """`incident` finds the log line."""
        super().__init__(detail, incident=incident)


class StorageUnavailable(Ours, code="storage_unavailable", status=503):
    """The store cannot be written; nothing was run or billed."""

    template = "This gateway cannot write its journal at the moment."
    hint = "Send the same request again later; nothing was run."

    @property
    def retry_after(self) -> int:
        """Whole seconds until another try makes sense: one, if nobody knows better."""
        return super().retry_after or 1


class OutcomeUnknown(Ours, code="outcome_unknown", status=503):
    """It is not known how the turn ended: the store failed while its end was written.

    A task also ends so when it was lost five times: the gateways that ran it died, or its end could
    not be written. It is not run again by itself then; something about it may end processes.
    """

    template = "It is not known whether this turn was recorded."
    hint = "Send the same request with the same turn id; it will not be billed twice."
