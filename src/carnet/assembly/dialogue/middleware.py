"""Stands in front of an application that is not ours, and reads where a request is in its chain.

    app = carnet.Middleware(app)

It asks nobody who they are: that stays with the application. What a stamp says can only narrow what
is done for the request.

Law 1. Every stamp that rides on the headers is read as a gateway reads it: bounded, and refused
       where it is not in its form. A malformed depth is never 0.
Law 2. A chain that is too deep is refused with 429 before the application sees the request.
Law 3. A forwarded credential is taken from those whom the program has listed, otherwise the request
       is refused (R5). It is in no scope: calls out carry it, and nobody reads it.
Law 4. What is no HTTP request passes as it came.
"""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from carnet.assembly.dialogue.depth import first_refused
from carnet.core.chain.carnet import Carnet, check_depth, merge
from carnet.core.chain.turn_id import OUR_RUNS
from carnet.core.people.identity import Secret
from carnet.errors import CarnetError, ForwardingNotAllowed, HeadersTooLarge
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.chain.call_chain import CHAIN, InboundChain
from carnet.runtime.dialogue.inbound import caller_of
from carnet.runtime.system import SystemClock, SystemIds
from carnet.wire.dialects.openai.refusals import write_error
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import ROWS
from carnet.wire.stamps.stamp import Stamps, read_trace
from carnet.wire.stamps.tangle import DEFAULT_MAX_DEPTH

logger = logging.getLogger("carnet.middleware")

MOST_FIELDS: Final = 256
MOST_FIELD_BYTES: Final = 64 * 1024  # names and values of all fields
SCOPE: Final = "carnet"  # what the travel document is called in the scope
_SECOND_US: Final = 1_000_000

AsgiScope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp = Callable[[AsgiScope, AsgiReceive, AsgiSend], Awaitable[None]]
ListsCaller = Callable[[AsgiScope], bool]


def _nobody(_: AsgiScope) -> bool:
    return False


class Middleware:
    """An ASGI application in front of another one."""

    def __init__(
        self,
        app: AsgiApp,
        *,
        max_depth: int = DEFAULT_MAX_DEPTH,
        may_forward: ListsCaller = _nobody,
        timeout: float | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        """Stand in front of `app`.

        Args:
            app: What answers the requests.
            max_depth: The first depth that is refused; CLI_BRIDGE_MAX_DEPTH has the last word.
            may_forward: Whether who sends a request is listed: whether the credential that it
                forwards says who pays. By default nobody is.
            timeout: Seconds that the calls of one request have, counted from its beginning.
            clock: The time, for tests.
            ids: The names of new runs and turns, for tests.
        """
        last_depth = first_refused(max_depth) - 1
        self._app = app
        self._stamps = Stamps(ROWS, configured={"tangle": last_depth}, default=last_depth)
        self._may_forward = may_forward
        self._timeout = timeout
        self._clock: Clock = clock or SystemClock()
        self._ids: Ids = ids or SystemIds()

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Let a request through that stands where it may, with its travel document."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            chain = self._read(scope)
        except CarnetError as error:
            await _refuse(error, send)
            return
        token = CHAIN.set(chain)
        try:
            await self._app({**scope, SCOPE: chain.carnet}, receive, send)
        finally:
            CHAIN.reset(token)

    def _read(self, scope: AsgiScope) -> InboundChain:
        fields = _fields(scope["headers"])
        headers = Headers(fields)
        stamped = self._stamps.read(headers)
        position = merge(stamped.marks)
        check_depth(position)  # tangle:depth:refuse
        self._check_forwarding(stamped.forwarded, scope)
        now = self._clock.steady_us() / _SECOND_US
        carnet = Carnet(
            run=position.run or f"{OUR_RUNS}{self._ids.ordered_uuid()}",
            turn=position.turn or f"turn_{self._ids.uuid()}",
            depth=position.depth,
            last_depth=position.last_depth,
            bound_by=position.bound_by,
            parent_turn=position.parent_turn,
            speaker=position.speaker,
            run_is_ours=position.run is None,
            deadline=None if self._timeout is None else now + self._timeout,
            trace=read_trace(headers),
        )
        last_depth = self._stamps.limits.default
        lines = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]
        return InboundChain(
            carnet,
            stamped.forwarded,
            caller=caller_of(lines, stamped.forwarded),
            last_depth=last_depth,
            clock=self._clock,
        )

    def _check_forwarding(self, credential: Secret | None, scope: AsgiScope) -> None:
        if credential is not None and not self._may_forward(scope):
            raise ForwardingNotAllowed


def _fields(raw: Any) -> list[tuple[bytes, bytes]]:
    """The fields as a stamp reads them, if they are not too many."""
    fields: list[tuple[bytes, bytes]] = []
    size = 0
    for name, value in raw:
        size += len(name) + len(value)
        if size > MOST_FIELD_BYTES or len(fields) == MOST_FIELDS:
            raise HeadersTooLarge(limit=MOST_FIELD_BYTES, fields=MOST_FIELDS)
        fields.append((bytes(name).lower(), bytes(value)))
    return fields


async def _refuse(error: CarnetError, send: AsgiSend) -> None:
    logger.info("refused", extra={"code": error.code, "detail": str(error)})
    status, headers, body = write_error(error)
    fields = {**headers, "content-length": str(len(body))}
    written = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": written})
    await send({"type": "http.response.body", "body": body})
