"""How a request was written, which says how its answer is: the binding, the version, what it wants.

Law. What is kept of it with a call is plain data: a task that is told later is told in the same
form, by whichever process.
"""

from typing import Any, Final, Literal

from msgspec import Struct, convert, to_builtins

from carnet.core.call import Call

Binding = Literal["rpc", "http"]
Version = Literal["1.0", "0.3"]

CURRENT: Final = "1.0"
FORMER: Final = "0.3"
JSON: Final = "application/json"


class Form(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one request was written."""

    binding: Binding = "rpc"
    version: Version = "1.0"
    id: str | int | None = None  # of the JSON-RPC request
    history: int | None = None  # how many messages of it are wanted; None: all
    artifacts: bool = True
    extensions: tuple[str, ...] = ()  # that the caller has activated
    media: str = JSON  # of an answer over HTTP+JSON
    message: dict[str, Any] | None = None  # what was said, as it came
    reply: dict[str, Any] | None = None  # and what was said when the task asked for something
    seen: str | None = None  # the last frame of a stream that the caller was told

    def kept(self) -> dict[str, Any]:
        """As it is kept with a call."""
        kept: dict[str, Any] = to_builtins(self)
        return kept

    def kept_with(self, message: dict[str, Any], history: int | None) -> dict[str, Any]:
        """The same with what was said, and how much of that is wanted again."""
        kept: dict[str, Any] = to_builtins(self)
        kept["message"] = message
        if history is not None:
            kept["history"] = history
        return kept


PLAIN: Final = Form()


def form_of(call: Call) -> Form:
    """How a call was written; as plainly as can be where that is not known."""
    kept = call.ask.form
    return PLAIN if not kept else convert(kept, Form)
