"""Has what a schedule or a hook says answered, as if its owner had sent it herself.

Law 1. It is a call as any other: the gate judges it by the token that made the trigger, with all of
       the limits of that, and the agent cannot tell it from what she says.
Law 2. Its key names it: begun again after a crash it is the same call, and is run once.
"""

from hashlib import sha256

from carnet.core.call import Ask, Claim
from carnet.core.messages.events import Message
from carnet.core.people.identity import Secret
from carnet.guards.limits import Concurrency
from carnet.ports.calls.admission import Admission
from carnet.ports.calls.agent import Journal
from carnet.ports.calls.triggers import Begun, Firing
from carnet.ports.trust.trust import Lender
from carnet.wire.grammar import json


class CallStarter:
    """Makes the call of a firing."""

    def __init__(
        self, admission: Admission, journal: Journal, concurrency: Concurrency, tokens: Lender
    ) -> None:
        self._admission = admission
        self._journal = journal
        self._concurrency = concurrency
        self._tokens = tokens

    async def __call__(self, firing: Firing, begun: Begun, /) -> None:
        """Have it answered, and wait for the end of that."""
        request = json.canonical({"messages": [{"role": "user", "content": firing.content}]})
        with self._tokens.lent(firing.token) as lent:
            call = await self._admission.admit(
                Claim(
                    dialect="openai",
                    agent=firing.agent,
                    ask=Ask(messages=(Message.user(firing.content),)),
                    digest=sha256(request).digest(),
                    request=request,
                    authorization=Secret(f"Bearer {lent.reveal()}"),
                    key=firing.key,
                )
            )
        try:
            await begun(call.carnet.run)
            await self._journal.whole(call)
        finally:
            self._concurrency.leave(call.caller.actor.name, stream=False)
