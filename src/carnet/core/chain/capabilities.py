"""What whoever is answered can do with the answer: whether it relays mentions (R37, R39).

It is told by whoever dispatches a call, and goes along with it.

Law 1. Who says nothing relays nothing: an agent then calls its siblings itself.
Law 2. Members that we do not know are kept and told on as they came (R19).
Law 3. A call that an agent makes itself is answered to that agent, which relays nothing; the rest
       of what is told stays true.
"""

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

NONE: Final = "none"
INLINE: Final = "inline"  # to write `@c@domain` is enough


class Capabilities(Struct, frozen=True, kw_only=True):
    """What the recipient of an answer can do."""

    mention_relay: str = NONE
    relay_members: dict[str, Any] = {}  # what else is said of the relay
    others: dict[str, Any] = {}  # what else is said

    @property
    def relays(self) -> bool:
        """Whether a mention in the answer is relayed."""
        return self.mention_relay == INLINE

    def unrelayed(self) -> "Capabilities":
        """The same for a call that an agent makes itself."""
        return replace(self, mention_relay=NONE, relay_members={})


UNTOLD: Final = Capabilities()
RELAYING: Final = Capabilities(mention_relay=INLINE)  # what the front of a person says
