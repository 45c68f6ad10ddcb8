"""How a request was written, which says how its answer is.

Law. What is kept of it with a call is plain data: what is told later is told in the same form, by
whichever process.
"""

from typing import Any, Final, Literal

from msgspec import Struct, convert, to_builtins

from carnet.core.call import Call

Decision = Literal["accepted", "rejected"]


class RunForm(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one request was written."""

    id: str | int | None = None  # of the JSON-RPC request
    run: str | None = None  # what its caller calls the run
    deltas: bool = True  # whether a stream tells words as they come
    action: str | None = None  # the pending action that it decides, or asks for
    decision: Decision | None = None
    value: Any = None  # what is decided beside
    resolved: bool = False  # whether an action is wanted also when it was decided

    def kept(self) -> dict[str, Any]:
        """As it is kept with a call."""
        kept: dict[str, Any] = to_builtins(self)
        return kept


PLAIN: Final = RunForm()


def read_form(kept: dict[str, Any] | None) -> RunForm:
    """What was kept; as plainly as can be where that is nothing."""
    return PLAIN if not kept else convert(kept, RunForm)


def form_of(call: Call) -> RunForm:
    """How a call was written."""
    return read_form(call.ask.form)
