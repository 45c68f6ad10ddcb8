"""What a call carries on its way out, and how it is signed.

Stamps are written whatever dialect it leaves in. Signed are the seed's three components, or
everything with the travel document.

Law 1. What is signed is what is sent: the body as it is, the path and the authority of the URL, and
       every header that tells the chain.
Law 2. Every signature has a time and a nonce of its own, so that a repeat is a new request.
Law 3. A travel document never says more than the call was given: depth, last depth, path, deadline
       and budget are those of its carnet.
Law 4. A call to another agent carries the callee's document as it was given; nothing is counted.
Law 5. The payer's credential leaves only to a callee that is listed for it, byte for byte. If it
       would have to and may not, the call is not made: without it the wrong party would pay.
Law 6. All calls of a run belong to one trace: the one that came, or one that the run names.
"""

from hashlib import blake2b
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from carnet.core.call import AGENT_OWNED, FORWARD_USER, Call
from carnet.core.chain.carnet import Carnet, Trace
from carnet.core.people.address import is_handle, parse_handle
from carnet.core.people.delegation import narrower
from carnet.core.people.identity import Account, Secret
from carnet.core.people.proof import SECOND_US, Document, Spending
from carnet.errors import DepthExceeded, PeerNotListed
from carnet.ports.trust.keys import Signer, SigningKeys
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import Outbound
from carnet.wire import travel
from carnet.wire.crypto import digests, ed25519, signatures
from carnet.wire.dialects.a2a.extensions import envoys
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.log_names import write_log_names
from carnet.wire.stamps.stamp import MINIMUM, Leaving, Stamps, Written, write_trace

HOLDS_SECONDS: Final = 60  # how long a document of ours is good for

_DIGEST: Final = "content-digest"
_DIGEST_NAME: Final = b"content-digest"
_INPUT: Final = "signature-input"
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_MILLISECONDS: Final = 1000


class Signing:
    """Signs requests with the key that is ours now."""

    def __init__(
        self,
        *,
        keys: SigningKeys,
        domain: str,
        clock: Clock,
        ids: Ids,
        stamps: Stamps = STAMPS,
    ) -> None:
        """`domain` is ours: who signs. What `stamps` write is covered."""
        self.domain = domain
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._stamps = stamps

    def signer(self) -> Signer:
        """The key that signs now."""
        return self._keys.signer()

    def public_key(self) -> str:
        """The key that signs now, as others write it down."""
        return ed25519.write_public_key(self._keys.signer().public)

    def sign_samvad(self, request: Outbound, /, *, path: str, newline: bool = True) -> Outbound:
        """Sign in the form of the seed: method, path and digest, with a newline at the end (R8).

        `path` is the one that its clients sign, without the prefix of an agent. RFC 9421 has the
        whole one, and no newline.
        """
        signer = self._keys.signer()
        digest = digests.write(request.body)
        fields = signatures.write(
            signatures.Request(
                method=request.method,
                authority="",  # like every header but the digest it is not covered
                path=path,
                headers=Headers([(_DIGEST_NAME, digest.encode())]),
            ),
            components=MINIMUM,
            keyid=signer.kid,
            created=self._clock.wall_us() // SECOND_US,
            sign=signer.sign,
            newline=newline,
        )
        headers = {**request.headers, _DIGEST: digest, **fields}
        given = fields[_INPUT]
        noted = f"{request.method} {request.url} {path} {newline:d}\n{digest}\n{given}"
        return msgspec.structs.replace(request, headers=headers, signed=noted)

    def sign_carnet(
        self,
        request: Outbound,
        carnet: Carnet,
        /,
        *,
        audience: str,
        payer: Account | None = None,
        budget: Spending | None = None,
    ) -> Outbound:
        """Sign in our own profile, with the travel document.

        Args:
            request: What is to be sent, its chain headers included.
            carnet: The document of the callee.
            audience: The domain that is meant to receive it.
            payer: Who pays, as we know it.
            budget: What the callee may spend; what the carnet has left is less or the same.
        """
        signer = self._keys.signer()
        digest = digests.write(request.body)
        document = self._document(carnet, audience=audience, digest=digest, keyid=signer.kid)
        document = msgspec.structs.replace(
            document, payer=payer, budget=narrower(carnet.budget, budget)
        )
        headers = {
            **request.headers,
            _DIGEST: digest,
            travel.HEADER: travel.write(document, sign=signer.sign),
        }
        seen = _seen(request, headers)
        fields = signatures.write(
            seen,
            components=travel.cover(seen, self._stamps),
            keyid=signer.kid,
            created=document.issued,
            sign=signer.sign,
            nonce=self._ids.token(),
            tag=travel.TAG,
        )
        noted = (
            f"{request.method} {request.url} {seen.path} 0\n{headers[_DIGEST]}\n{fields[_INPUT]}"
        )
        return msgspec.structs.replace(request, headers={**headers, **fields}, signed=noted)

    def sign_whole(self, request: Outbound, /) -> Outbound:
        """Sign in our own profile without a document, as a client does who brings an answer."""
        signer = self._keys.signer()
        headers = {**request.headers, _DIGEST: digests.write(request.body)}
        seen = _seen(request, headers)
        fields = signatures.write(
            seen,
            components=travel.cover(seen, self._stamps),
            keyid=signer.kid,
            created=self._clock.wall_us() // SECOND_US,
            sign=signer.sign,
            nonce=self._ids.token(),
            tag=travel.TAG,
        )
        noted = (
            f"{request.method} {request.url} {seen.path} 0\n{headers[_DIGEST]}\n{fields[_INPUT]}"
        )
        return msgspec.structs.replace(request, headers={**headers, **fields}, signed=noted)

    def sign_envoys(self, request: Outbound, /) -> Outbound:
        """Sign as Envoys does: our key is named by where it is shown."""
        signer = self._keys.signer()
        headers = {**request.headers, _DIGEST: digests.write(request.body)}
        seen = _seen(request, headers)
        fields = envoys.write(
            seen,
            keyid=envoys.address_of(self.domain, signer.kid),
            created=self._clock.wall_us() // SECOND_US,
            nonce=self._ids.token(),
            sign=signer.sign,
            stamps=self._stamps,
        )
        noted = (
            f"{request.method} {request.url} {seen.path} 0\n{headers[_DIGEST]}\n{fields[_INPUT]}"
        )
        return msgspec.structs.replace(request, headers={**headers, **fields}, signed=noted)

    def _document(self, carnet: Carnet, *, audience: str, digest: str, keyid: str) -> Document:
        if len(carnet.path) > travel.MOST_PATH:  # a shorter one could hide a loop
            most = travel.MOST_PATH
            raise DepthExceeded(observed=len(carnet.path), limit=most + 1, leaving=True)
        now = self._clock.wall_us()
        return Document(
            issuer=self.domain,
            audience=audience,
            issued=now // SECOND_US,
            expires=now // SECOND_US + HOLDS_SECONDS,
            run=carnet.run,
            turn=carnet.turn,
            parent_turn=carnet.parent_turn,
            depth=carnet.depth,
            last_depth=carnet.bound(carnet.depth),
            path=carnet.path,
            deadline_ms=self._deadline(carnet.deadline, now),
            on_behalf_of=carnet.on_behalf_of,
            digest=digest,
            keyid=keyid,
        )

    def _deadline(self, deadline: float | None, now: int) -> int | None:
        """The deadline by the wall clock, which is the only one that two machines share."""
        if deadline is None:
            return None
        left = deadline - self._clock.steady_us() / SECOND_US
        return int((now / SECOND_US + left) * _MILLISECONDS)


def _seen(request: Outbound, headers: dict[str, str]) -> signatures.Request:
    """The request as whoever receives it sees it."""
    parts = urlsplit(request.url)
    secrets = {name: secret.reveal() for name, secret in request.secrets.items()}
    fields = [(name.encode(), value.encode()) for name, value in {**headers, **secrets}.items()]
    return signatures.Request(
        method=request.method,
        authority=parts.netloc.removesuffix(_DEFAULT_PORTS.get(parts.scheme, "")),
        path=parts.path or "/",
        query=parts.query or None,
        headers=Headers(fields),
        scheme=parts.scheme,
    )


class Stamping(Struct, frozen=True, kw_only=True):
    """How the calls to one callee are stamped."""

    takes_credential: bool = False  # whether the payer's credential may leave to it
    forwards: str = FORWARD_USER  # "agent-owned" if calls to it are paid by the caller itself
    stamps: Stamps = STAMPS  # those that are written toward peers
    dialect: str = ""  # that it is called in
    log_names: tuple[str, ...] = ()  # of products whose logs find our calls by them
    host: str = ""  # the URL of this gateway, for those who are told who calls
    domain: str = ""  # ours, for the same

    def write(self, call: Call) -> tuple[dict[str, str], dict[str, Secret]]:
        """The headers of a call, and those that must not be logged."""
        written = self.written(call)
        return written.headers, written.secrets

    def written(self, call: Call) -> Written:
        """All that goes with a call: the same, and what rides in the metadata of its body."""
        carnet = call.carnet
        credential = call.credential
        forwarded = None if credential is None else self._forwarded(credential)
        stated = call.ask.capabilities
        leaving = Leaving(forwarded=forwarded, dialect=self.dialect, capabilities=stated)
        if self.host:
            leaving = msgspec.structs.replace(
                leaving,
                agent=acting(carnet, self.domain),
                host=self.host,
                user=call.caller.person or 0,
            )
        written = self.stamps.write(carnet, leaving)
        belongs_to = trace_of(carnet)
        headers = written.headers | write_trace(belongs_to, span_id(belongs_to, carnet.turn))
        if self.log_names:
            payer = str(call.payer.account)
            headers |= write_log_names(self.log_names, run=carnet.run, payer=payer)
        return Written(headers=headers, secrets=written.secrets, metadata=written.metadata)

    def _forwarded(self, credential: Secret) -> Secret | None:
        if self.forwards == AGENT_OWNED:
            return None
        if not self.takes_credential:  # R5
            raise PeerNotListed
        return credential


def acting(carnet: Carnet, domain: str) -> str:
    """The agent of ours that makes a call out; our domain where somebody calls through us."""
    last = carnet.path[-1] if carnet.path else ""
    if not is_handle(last):
        return domain
    handle = parse_handle(last)
    return handle.local if handle.domain == domain else domain


OWN: Final = Stamping()  # nobody's credential leaves


def trace_of(carnet: Carnet) -> Trace:
    """The trace of a call out. A run without one gets the same at every hop."""
    if carnet.trace is not None:
        return carnet.trace
    digest = blake2b(carnet.run.encode()).hexdigest()
    return Trace(digest[:32], digest[32:48])


def span_id(trace: Trace, turn: str) -> str:
    """The span of a call out: the same for every attempt, so that it needs no record."""
    return blake2b(f"{trace.trace_id}{turn}".encode(), digest_size=8).hexdigest()
