"""A call that is made to fail, so that somebody sees how that looks.

Law 1. No header, body or path of a call asks for it. The line of an exchange says so that the
       playground has made in this process, for who has signed in and shows the csrf token of her
       session; the server makes no such line.
Law 2. It is for who may end runs, as the playground is, and for that one call: the agent is not
       asked, and nothing that counts its failures hears of it.
Law 3. It ends under a code of its own, which its record keeps: nobody takes it for the agent's.
"""

from typing import Final

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.messages.events import End, Failed
from carnet.core.messages.output import Output
from carnet.errors import CarnetError, FaultInjected, PermissionMissing

NEEDED: Final = "run:cancel"


def made_to_fail(call: Call) -> Call:
    """The call with what fails in the place of its agent."""
    error: CarnetError = FaultInjected()
    if not call.caller.may(NEEDED):
        error = PermissionMissing(permission=NEEDED)

    async def failing(_: Call, __: Output, /) -> End:
        return Failed.of(error)

    return replace(call, target=replace(call.target, agent=failing))
