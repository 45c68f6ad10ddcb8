"""The ASGI application: one table of routes, one boundary for errors.

In it the endpoint of one dialect admits its calls and has them answered; the same for every
dialect.

Law 1. Whatever an endpoint raises becomes one answer of the closed enum. What is not ours becomes
       `internal` with an incident id, and its details go to the log.
Law 2. A wrong token is counted wherever it was refused; from an address that sends too many, the
       next one is refused before its request is read.
Law 3. Malformed in any part is malformed; absent is not malformed.
Law 4. Stamps are read before the body, unless the dialect brings a signature of its own: then what
       stands beside it is looked at once that could be read.
Law 5. A task is judged as any call before it is accepted: what is wrong with it is told at once.
Law 6. Body and claim end with admission: nothing of them is held while an answer is open.
Law 7. Who cannot be admitted by its head is refused before a body is waited for or, if it is large,
       parsed; what is still to come is dropped. A large body that is signed is compared with its
       digest, and parsed once the signature holds (A75).
Law 8. A body over 64 KiB is parsed beside the event loop: others are answered meanwhile (A73). One
       caller has its turn as `gateway.bodies` says (A99).
"""

import logging
from collections.abc import Awaitable, Callable

from msgspec import structs

from carnet import faults
from carnet.core.call import Call, Claim
from carnet.core.chain.carnet import Mark
from carnet.core.chain.turn_id import is_keyed
from carnet.core.people.proof import Document
from carnet.errors import (
    CarnetError,
    HookRefused,
    Internal,
    InvalidJson,
    SessionInvalid,
    ShuttingDown,
    TokenInvalid,
    TooManyFailures,
)
from carnet.gateway.answer import REPLAYED_FIELD, Answering
from carnet.gateway.bodies import LARGE_BYTES, LargeBodies, LargeBody
from carnet.gateway.claims.brought import with_key, with_resolution
from carnet.gateway.claims.payment import with_payment
from carnet.gateway.loops.turn_calls import TurnCalls
from carnet.gateway.people.signed_in import CookieRequests, Dispatch
from carnet.gateway.published import Published
from carnet.guards.caller.failures import Failures
from carnet.http.exchange import (
    Access,
    Disconnected,
    Exchange,
    Receive,
    Scope,
    Send,
    read_authorization,
)
from carnet.http.refusal import Refusing
from carnet.ports.world.clock import Clock, Ids
from carnet.telemetry import Metrics
from carnet.wire import travel
from carnet.wire.crypto.components import Request
from carnet.wire.dialects.dialect import Arrival, Dialect, Way
from carnet.wire.dialects.policy import RESOLUTION_COVERED, RESOLUTION_START
from carnet.wire.grammar.headers import refuse_lookalikes
from carnet.wire.stamps.prefer import PREFER_START, with_wait
from carnet.wire.stamps.stamp import KEY_START, Stamps
from carnet.wire.travel.budget import BUDGET_COVERED, BUDGET_START, with_budget
from carnet.wire.travel.payment import PAYS

logger = logging.getLogger("carnet.gateway")

OPEN = frozenset({b"/healthz", b"/readyz", b"/openapi.json"})  # nobody needs a token for these


class App:
    """Routes requests to endpoints."""

    def __init__(
        self,
        *,
        router: Dispatch,
        refusing: Refusing,
        access: Access,
        failures: Failures,
        clock: Clock,
        ids: Ids,
        metrics: Metrics,
        cookies: CookieRequests,
    ) -> None:
        """`router` has the endpoints, `refusing` the words of refusals; `ids` names incidents.

        `cookies` has the requests of browsers answered.
        """
        self._dispatch = router
        self._write_refusal = refusing
        self._access = access
        self.failures = failures
        self._clock = clock
        self._ids = ids
        self._metrics = metrics
        self._cookies = cookies
        self.open = 0  # requests that are being answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise RuntimeError("this application speaks HTTP only")
        exchange = Exchange(scope, receive, send)
        self.open += 1
        try:
            if self.failures.any and exchange.path not in OPEN:
                await self._check_failures(exchange)
            await (self._by_cookie if exchange.has_cookie else self._dispatch)(exchange)
        except Disconnected:
            return
        except (TokenInvalid, SessionInvalid, HookRefused) as error:
            await self._refuse(exchange, self._counted(exchange, error))
        except CarnetError as error:
            await self._refuse(exchange, error)
        except Exception as error:  # noqa: BLE001  the edge: RecursionError, MemoryError, all
            await self._refuse(exchange, self._incident(error))
        finally:
            self.open -= 1

    def _by_cookie(self, exchange: Exchange) -> Awaitable[None]:
        return self._cookies(exchange, self._dispatch)

    async def _check_failures(self, exchange: Exchange) -> None:
        """Refuse the next wrong token of an address at its limit, and read no more of it."""
        try:
            self.failures.check(_address(exchange), self._clock.monotonic())
        except TooManyFailures:
            await self._access.check_at_once(exchange)

    def _counted(self, exchange: Exchange, error: CarnetError) -> CarnetError:
        try:
            self.failures.note(_address(exchange), self._clock.monotonic())
        except TooManyFailures as too_many:
            return too_many
        return error

    def _incident(self, error: BaseException) -> Internal:
        internal = Internal(type(error).__name__, incident=self._ids.uuid())
        logger.error(
            "unforeseen %s",
            type(error).__name__,
            exc_info=error,
            extra={"incident": internal.facts["incident"], "code": internal.code},
        )
        return internal

    async def _refuse(self, exchange: Exchange, error: CarnetError) -> None:
        self._metrics.refusals.labels(error.code).inc()
        if exchange.started:
            raise error  # the server closes the connection: a half answer is no answer
        logger.info(
            "refused",
            extra={
                "correlation_id": error.run or exchange.line.correlation,
                "run": error.run,
                "code": error.code,
                "detail": str(error),
                "client": _address(exchange),
            },
        )
        await exchange.reply(*self._write_refusal(error, exchange.path))


def _address(exchange: Exchange) -> str:
    return exchange.client[0] if exchange.client is not None else "unknown"


SECRET = b"carnet-webhook-secret"
_BRING_PROOF = frozenset({"call", "any"})

Secrets = Callable[[str], str]  # what we share with whoever asked for a task


class DialectEndpoint:
    """Takes the calls of one dialect."""

    def __init__(
        self,
        dialect: Dialect,
        answering: Answering,
        *,
        published: Published,
        stamps: Stamps,
        wake: Callable[[], None],
        secret: Secrets | None,
        bodies: LargeBodies,
        turns: TurnCalls | None = None,
    ) -> None:
        """`wake` is told of a new task; `secret` gives what callbacks are signed with.

        `bodies` are the large ones of all endpoints; `turns` takes the calls of loops elsewhere.
        """
        self._bodies = bodies
        self._turns = turns
        self._dialect = dialect
        self._answering = answering
        self._published = published
        self._stamps = stamps
        self._wake = wake
        self._secret = secret

    async def call(self, way: Way, exchange: Exchange, agent: str | None = None) -> None:
        """Have a call answered at once."""
        try:
            began = self._answering.begin()
        except ShuttingDown:
            began = 0.0
            if self._turns is None or await self._turns.find(exchange.headers) is None:
                raise  # only what runs may still call others
        call = await self._admitted(way, exchange, agent)
        if call is not None:
            await self._answering.answer(exchange, call, began)

    async def task(self, way: Way, exchange: Exchange, agent: str | None = None) -> None:
        """Accept a call for later; who names a callback is told the secret that signs it."""
        began = self._answering.begin()
        call = await self._admitted(way, exchange, agent)
        if call is None:
            return
        self._wake()
        status, headers, body = self._dialect.accepted(call)
        if call.callback is not None and self._secret is not None:
            headers.append((SECRET, self._secret(_sender(call)).encode()))
        if call.known and is_keyed(call.carnet.turn):
            headers.append(REPLAYED_FIELD)
        faults.point("reply.before_write")
        await exchange.reply(status, headers, body)
        faults.point("reply.after_write")
        self._answering.note_accepted(exchange, call, began)

    async def _admitted(self, way: Way, exchange: Exchange, agent: str | None) -> Call | None:
        """The call that a request makes; None where it was made out of another turn."""
        dialect, answering = self._dialect, self._answering
        arrival = Arrival(
            way,
            exchange.headers,
            head=lambda: request_of(exchange),
            stamps=self._stamps,
            agent=agent,
            by_host=lambda: self._published.named(exchange),
        )
        arrival.correlation, arrival.path = exchange.line.correlation, exchange.path
        arrival.is_proxied = exchange.line.is_proxied
        if not dialect.is_signed:
            stamped = arrival.stamped()
            arrival.run = stamped.run if way.kind == "call" else None
        entered: list[LargeBody] = []  # where the body is a large one
        claim: Claim | None = None
        try:
            arrival.body = await answering.receive(
                exchange, lambda: self._enter(arrival, exchange, entered)
            )
            if exchange.line.held:  # a large one is read beside the loop, of those who are known
                await self._vouch(arrival)
                claim = await entered[0].read(self._read, arrival)
            else:
                claim = self._read(arrival)
            return await answering.admit(claim)
        except CarnetError as error:
            if await self._called(error, claim, exchange, entered):
                return None
            raise await self._refusal(arrival, error) from None
        finally:
            for place in entered:
                place.leave()

    async def _called(
        self, error: CarnetError, claim: Claim | None, exchange: Exchange, entered: list[LargeBody]
    ) -> bool:
        """Whether it is a call that a loop makes out of its turn; then it has been answered."""
        while entered:  # its body was read, or is refused: others' may be
            entered.pop().leave()
        if self._turns is None or claim is None:
            return False
        return await self._turns.answer(exchange, claim, error)

    async def _enter(self, arrival: Arrival, exchange: Exchange, entered: list[LargeBody]) -> None:
        """Refuse a stranger; let a large body wait for those of the same caller."""
        name = await self._vouch(arrival)
        length = exchange.headers.read_count("content-length") or 0
        if not entered and (exchange.line.held or length > LARGE_BYTES):
            entered.append(await self._bodies.enter(name))

    async def _refusal(self, arrival: Arrival, error: CarnetError) -> CarnetError:
        """What is told of an error; a stranger is not told what is wrong with its body."""
        if isinstance(error, InvalidJson):
            try:
                await self._vouch(arrival)
            except CarnetError as refusal:
                error = refusal
        if error.run is None:
            error.run = arrival.run
        return error

    async def _vouch(self, arrival: Arrival) -> str:
        """Refuse a stranger before its body is waited for, or parsed if it is large; who it is."""
        proof = self._dialect.proof(arrival)
        if proof is None and not self._dialect.is_signed and arrival.way.kind in _BRING_PROOF:
            proof = travel.read_proof(arrival.request, arrival.body or None, arrival.stamps)
        if proof is not None or not self._dialect.is_signed:
            try:
                return await self._answering.vouch(read_authorization(arrival.headers), proof)
            except TokenInvalid:
                calls = None if self._turns is None else await self._turns.find(arrival.headers)
                if calls is None:
                    raise
                return f"turn:{id(calls)}"
        return ""  # nobody that is known: it is refused by what it has not signed

    def _read(self, arrival: Arrival) -> Claim:
        claim = self._dialect.read(arrival)
        if not isinstance(claim, Claim):
            raise Internal("a dialect has read a question where calls come in")
        if self._dialect.is_signed and claim.marks:  # whatever is refused from here on names it
            arrival.run = claim.marks[0].run
        if claim.correlation != arrival.correlation:  # its dialect has no word for it
            claim = structs.replace(claim, correlation=arrival.correlation)
        if self._dialect.is_signed:
            return with_stamps(claim, arrival)
        if arrival.way.kind == "call":
            return with_proof(claim, arrival)
        return with_payment(with_resolution(with_key(claim, arrival), arrival), arrival)


def with_proof(claim: Claim, arrival: Arrival) -> Claim:
    """The claim with the proof that the request brings along, if it brings one.

    Who signs is known by the signature: a token beside it, which nobody signed, is not looked at,
    nor a key that would name its turn.
    """
    names = arrival.headers.joined()
    if PREFER_START in names:
        claim = with_wait(claim, arrival.headers)
    is_bare = b"\nsignature-input" not in names
    is_alone = is_bare and BUDGET_START in names and names.count(b"\ncarnet") == 1
    if is_alone:
        claim = with_budget(claim, arrival.headers)
    if is_alone or (is_bare and b"\ncarnet" not in names):  # nearly every request
        claim = claim if PAYS not in names else with_payment(claim, arrival)
        return claim if KEY_START not in names else with_key(claim, arrival)
    proof = travel.read_proof(arrival.request, arrival.body, arrival.stamps)
    if proof is not None:
        marks = (*claim.marks, *_of_document(proof.document, arrival.stamps))
        claim = structs.replace(claim, proof=proof, marks=marks, authorization=None)
    elif KEY_START in names:
        claim = with_key(claim, arrival)
    claim = claim if PAYS not in names else with_payment(claim, arrival)
    brings = RESOLUTION_START in names or BUDGET_START in names
    return with_resolution(claim, arrival) if brings else claim


def with_stamps(claim: Claim, arrival: Arrival) -> Claim:
    """The claim of a dialect that signs by itself, with the stamps that its signature covers."""
    headers, stamps, proof = arrival.headers, arrival.stamps, claim.proof
    if proof is None or proof.profile != "carnet":  # then no stamp stands beside the signature
        refuse_lookalikes(headers, stamps.lookalikes)
        return claim
    stamped = arrival.stamped()
    document = travel.read_beside(headers, arrival.body)
    if RESOLUTION_COVERED in proof.bases[0] or BUDGET_COVERED in proof.bases[0]:
        claim = with_resolution(claim, arrival)
    if PAYS in proof.bases[0]:
        claim = with_payment(claim, arrival)
    return structs.replace(
        claim,
        proof=structs.replace(proof, document=document),
        marks=(*claim.marks, *stamped.marks, *_of_document(document, stamps)),
        forwarded=stamped.forwarded,
        context=stamped.context,
    )


def request_of(exchange: Exchange) -> Request:
    """The request as far as a signature can see it."""
    return Request(
        method=exchange.method,
        authority=exchange.headers.get("host") or "",
        path=str(exchange.path, "latin-1"),
        query=str(exchange.query, "latin-1") or None,
        headers=exchange.headers,
        scheme=exchange.scheme,
    )


def _of_document(document: Document | None, stamps: Stamps) -> tuple[Mark, ...]:
    last = stamps.limits.of
    return () if document is None else (travel.mark(document, last_depth=last("travel")),)


def _sender(call: Call) -> str:
    standing = call.caller.standing
    return call.caller.actor.name if standing is None else standing.sender
