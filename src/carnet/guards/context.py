"""Is what a caller says of itself said by the host that it names?

It is verified where the host has signed it, where the key is shown that the host and we share, or
where a trusted proxy has verified its certificate. What is not verified is claimed: it is kept and
shown, its depth counts, its root is compared with what other stamps say, and no right follows.

Here is also how a call is held to the budget `chain_depth` of its agent or its token.

Law 1. A key that is shown must hold: else the call is refused, and nobody learns which hosts are
       listed. A certificate that is not the host's verifies nothing: proxies show everybody's.
Law 2. What the operator wrote down about a host is told of those alone that are verified.
"""

import re
from typing import Final

from carnet.core.chain.carnet import DepthLimits, within_budget
from carnet.core.people.caller_host import CallerHost
from carnet.core.people.identity import Context, StatedContext
from carnet.core.people.proof import Proof
from carnet.errors import CallerNotVerified
from carnet.guards.candidate import Candidate
from carnet.ports.trust.callers import CallerHosts

LAST_DEPTH: Final = DepthLimits().default  # of a chain that no stamp bounds

_URL: Final = re.compile(r"https?://([A-Za-z0-9.-]+)(?=[:/?#]|\Z)", re.ASCII)


class Hosts:
    """Judges contexts."""

    def __init__(self, callers: CallerHosts) -> None:
        """`callers` are the hosts that are listed."""
        self._callers = callers

    def judge(
        self, stated: StatedContext, proof: Proof | None, now: int
    ) -> tuple[Context, CallerHost | None]:
        """The context with whether it is believed, and the host that it is of, if it is listed."""
        host = self._callers.find(stated.host)
        if stated.key is not None:
            if host is None or not self._callers.holds(host, stated.key, now):
                raise CallerNotVerified
            verified = True
        else:
            verified = _has_signed(stated.host, proof) or _is_certified(stated, host)
        if not verified:
            host = None
        context = Context(
            agent=stated.agent,
            user=stated.user,
            host=stated.host,
            root=stated.root,
            verified=verified,
            depth=stated.depth,
            metadata={} if host is None else host.metadata,
        )
        return context, host


def _has_signed(host: str, proof: Proof | None) -> bool:
    """Whether the host that a caller names is the one whose signature covers what it says."""
    if proof is None or proof.document is None:
        return False
    named = _URL.match(host)
    return named is not None and named[1].lower() == proof.document.issuer


def _is_certified(stated: StatedContext, host: CallerHost | None) -> bool:
    shown = stated.certificate
    return host is not None and shown is not None and shown == host.certificate


def spend_depth(candidate: Candidate, ceiling: int, of: str, default: int) -> None:
    """Refuse a call for which the budget has ended, and let what it calls go no further.

    `of` is whose budget it is, `default` the last depth of a chain that no stamp bounds.
    """
    context, position = candidate.context, candidate.position
    root = position.run if context is None else context.root
    candidate.position = within_budget(position, ceiling, of=of, default=default, root=root)
