"""Asking the operator's policy before a turn is claimed: what it denies leaves no trace."""

from collections.abc import Awaitable, Callable

from carnet.core.call import Call
from carnet.guards.admission.transaction import Entry, let_go
from carnet.ports.trust.policy import OperatorPolicy

ClaimTurn = Callable[[Entry], Awaitable[Call]]


def asking(policy: OperatorPolicy | None, claim: ClaimTurn) -> ClaimTurn:
    """What claims turns, and asks the operator's policy before; as it is where there is none."""
    if policy is None:
        return claim

    async def ask(entry: Entry) -> Call:
        try:
            await policy.ask_call(entry.admitted)
        except BaseException:  # it may have been given up as well: nothing stays set aside
            let_go(entry)
            raise
        return await claim(entry)

    return ask
