"""Every exception of Carnet, drawn as a tree.

    CarnetError
    ├── Malformed            the request cannot be read; sending it again changes nothing
    │   ├── InvalidJson  InvalidRequest  MalformedCallerContext  ChainMismatch
    │   ├── UnsupportedProtocolVersion  AddressInvalid  SchemaInvalid
    │   ├── NonceInvalid  TimestampInvalid  TravelDocumentInvalid  KeyInvalid
    │   ├── CallbackForbidden
    │   ├── BodyTooLarge  MediaTypeUnsupported  EncodingUnsupported
    │   └── the edge         MalformedRequest  HeadersTooLarge  UriTooLong  HeaderTimeout
    │                        BodyTimeout
    ├── Refused              the request was understood and may not run
    │   ├── who              TokenMissing  TokenInvalid  PermissionMissing  TooManyFailures
    │   ├── proof            SignatureMissing  SignatureInvalid  SignatureExpired
    │   │                    InsufficientCoverage  HeaderNotSigned  DigestInvalid
    │   │                    DigestMismatch  DestinationMismatch  KeyUnknown  KeyRevoked
    │   │                    NonceReplayed  TimestampOutOfWindow
    │   ├── delegation       DelegationInvalid  DelegationWidened  DelegationExceeded
    │   │                    DelegationReplayed
    │   ├── content          InjectionDetected  SkillNotFound  SkillForbidden
    │   ├── where            AgentNotFound  PeerUnknown  PeerAgentNotFound  RunNotFound
    │   │                    TaskNotFound  LetterNotFound  RouteNotFound
    │   │                    MethodNotAllowed
    │   ├── chain            DepthExceeded  ChainFinal  RunCallsExceeded  LoopDetected
    │   ├── money            PaymentRequired  SpendingLimitReached  PayerRefused
    │   ├── forwarding       ForwardingNotAllowed  PeerNotListed
    │   ├── turns            IdempotencyMismatch  InProgress  DefinitionChanged  Cancelled
    │   │                    InputRequired  InterruptExpired  PolicyStateInvalid
    │   └── load             RateLimited  TooManyCalls  TooManyStreams  Overloaded
    │                        ShuttingDown  TokenBudgetExceeded  TooManyTasks
    ├── Upstream             someone we called did not answer properly
    │   └── ProviderError  ProviderUnavailable  ProviderTimeout  CircuitOpen  PeerRefused
    │       PeerBusy  PeerUnreachable  PeerResponseInvalid  EgressRefused  AgentFailed
    ├── Ours                 our own fault; the detail is in the log under the incident id
    │   └── Internal  StorageUnavailable  OutcomeUnknown
    └── ConfigInvalid  UsageInvalid  Unreachable      at the command line, never on the wire

Law 1. `str(error)` is for our logs; `safe_text` is for peers. It is a fixed template filled with
       integers, our own ids and words of ours; never with what a peer sent.
Law 2. Every leaf has its own `code`, a `status`, a `hint` (the next step) and says whether the same
       request may be sent again (`retryable`). Its docstring is what `carnet explain CODE` prints.
Law 3. The enum is closed: whatever else is raised becomes `Internal` at the edge.
"""

from collections.abc import Iterator
from typing import ClassVar

Fact = int | str | None


class _Facts(dict[str, Fact]):
    """What a template is filled with; a fact that nobody gave must not hide the error itself."""

    def __missing__(self, name: str) -> str:
        return "unknown"


class CarnetError(Exception):
    """The root of the tree."""

    code: ClassVar[str] = ""
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    template: ClassVar[str] = ""
    hint: ClassVar[str] = ""
    public: ClassVar[tuple[str, ...]] = ()

    def __init__(self, detail: str = "", /, **facts: Fact) -> None:
        """Keep `detail` for the log and `facts` for the template."""
        self.detail = detail
        self.facts = facts
        self.run: str | None = None  # of the request that met it, if it named one
        super().__init__(detail)

    @property
    def safe_text(self) -> str:
        """The sentence a peer may read."""
        return self.template.format_map(_Facts(self.facts))

    @property
    def next_step(self) -> str:
        """What the caller can do about it."""
        return self.hint.format_map(_Facts(self.facts))

    @property
    def retry_after(self) -> int | None:
        """Whole seconds until another try makes sense, if we know."""
        value = self.facts.get("retry_after")
        return value if isinstance(value, int) else None

    def public_facts(self) -> dict[str, Fact]:
        """The machine-readable facts that go beside the message."""
        return {name: self.facts[name] for name in self.public if self.facts.get(name) is not None}

    def __str__(self) -> str:
        """For our logs: code, sentence and raw detail."""
        return f"{self.code}: {self.safe_text}" + (f" ({self.detail})" if self.detail else "")


class Malformed(CarnetError):
    """The request cannot be read."""

    status = 400


class InvalidJson(Malformed):
    """The body is not JSON in our strict reading.

    Duplicate keys, NaN, numbers beyond 2^53, lone surrogates, a byte-order mark, text after the
    value and more than 32 levels are all refused: two parsers could disagree about them.
    """

    code = "invalid_json"
    template = "The request body is not valid JSON: {reason}."
    hint = "Send one UTF-8 JSON object without duplicate keys."

    def __init__(self, reason: str) -> None:
        """Say what was wrong in words of ours."""
        super().__init__(reason=reason)


class InvalidRequest(Malformed):
    """The body is JSON but not the shape this endpoint takes. The field is named."""

    code = "invalid_request"
    template = "The field '{field}' {reason}."
    hint = "Correct the field and send the request again; /openapi.json shows the shape."
    public = ("field",)

    def __init__(self, field: str, reason: str) -> None:
        """Name the field and what it should be."""
        super().__init__(field=field, reason=reason)


class MalformedCallerContext(Malformed):
    """A header that tells the chain (depth, run, turn, payer) is not well formed.

    It is never guessed at: reading a broken depth as 0 would reset the recursion bound.
    """

    code = "malformed_caller_context"
    template = "The header '{header}' {reason}."
    hint = "Send the header once, in the form its specification gives, or leave it out."
    public = ("header",)

    def __init__(self, header: str, reason: str) -> None:
        """Name the header (ours) and what is wrong with it."""
        super().__init__(header=header, reason=reason)


class ChainMismatch(Malformed):
    """Two stamps on one request tell different stories about the chain."""

    code = "chain_mismatch"
    template = "The chain headers of this request contradict one another: {reason}."
    hint = "Send one run id, and no depth 0 beside a depth above 0."

    def __init__(self, reason: str) -> None:
        """Say which part contradicts."""
        super().__init__(reason=reason)


class UnsupportedProtocolVersion(Malformed):
    """The request asks for a version of the Tangle protocol that this gateway does not speak."""

    code = "unsupported_protocol_version"
    template = "This gateway speaks version 0 of the Tangle protocol only."
    hint = "Leave out x-tangle-protocol-version, or send 0."


class AddressInvalid(Malformed):
    """An agent address is not in its one stored form."""

    code = "address_invalid"
    status = 422
    template = "The agent address is not valid: {reason}."
    hint = "Write it as @name@domain, agent://domain or the name of a local agent, in lower case."

    def __init__(self, reason: str) -> None:
        """Say what is wrong with it."""
        super().__init__(reason=reason)


class SchemaInvalid(Malformed):
    """The payload does not match the schema of the skill. The field and the constraint are named.

    The value itself is never repeated.
    """

    code = "schema_invalid"
    status = 422
    template = "Field '{field}' {constraint}"
    hint = "Correct the field; the card of the agent shows the schema of the skill."
    public = ("field",)

    def __init__(self, field: str, constraint: str) -> None:
        """Name the field, a path within the payload, and the constraint in words of ours."""
        super().__init__(field=field, constraint=constraint)


class NonceInvalid(Malformed):
    """The nonce of a signed request is not 8 to 64 visible ASCII characters."""

    code = "nonce_invalid"
    template = "The nonce is not 8 to 64 visible ASCII characters."
    hint = "Send a fresh random nonce with every request; a UUID will do."


class TimestampInvalid(Malformed):
    """The time of a signed request is not written as RFC 3339 in UTC, or not as whole seconds."""

    code = "timestamp_invalid"
    template = "The timestamp cannot be read."
    hint = "Write it as 2026-11-15T06:46:52Z; 'created' of a signature is in whole seconds."


class TravelDocumentInvalid(Malformed):
    """The `carnet` header is not a travel document: a JWS of at most 4 KiB with its claims."""

    code = "travel_document_invalid"
    template = "The carnet header {reason}."
    hint = "A Carnet gateway writes it; leave the header out if yours is none."

    def __init__(self, reason: str) -> None:
        """Say what is wrong with it in words of ours."""
        super().__init__(reason=reason)


class KeyInvalid(Malformed):
    """A public key is not a usable Ed25519 key.

    It must be the padded base64 of 32 bytes that encode a point of the main group in its one
    canonical form. Keys of small or mixed order verify forged signatures.
    """

    code = "key_invalid"
    status = 422
    template = "The key is not a usable Ed25519 public key: {reason}."
    hint = "Take the 32 raw bytes of the public key in base64, as its owner's card shows them."

    def __init__(self, reason: str) -> None:
        """Say what is wrong with it in words of ours."""
        super().__init__(reason=reason)


class CallbackForbidden(Malformed):
    """The address for a callback is one that no peer may make this gateway call.

    It must be https, a public name or address, on port 443 or 8443, and must not have said 410.
    The operator names exceptions: `[egress] allow = ["127.0.0.1:9000"]` lets it also be private,
    plain http, and on that port.
    """

    code = "callback_forbidden"
    status = 422
    template = "This gateway does not call back to that address: {reason}."
    hint = (
        "Name a public https address, or leave the callback out and poll the task; the operator "
        "of this gateway can except its host:port with [egress] allow."
    )
    public = ("reason",)

    def __init__(self, detail: str = "", /, *, reason: str = "it is not a public address") -> None:
        """`reason` is one of our own phrases; never text of a peer."""
        super().__init__(detail, reason=reason)


class BodyTooLarge(Malformed):
    """The request body is larger than this endpoint takes."""

    code = "body_too_large"
    status = 413
    template = "The request body is larger than {limit} bytes."
    hint = "Send less, or ask the operator to raise [limits] chat_body_bytes or body_bytes."
    public = ("limit",)


class MediaTypeUnsupported(Malformed):
    """The content type is not application/json in UTF-8."""

    code = "media_type_unsupported"
    status = 415
    template = "This endpoint takes application/json in UTF-8."
    hint = "Send the header content-type: application/json."


class EncodingUnsupported(Malformed):
    """The body has a content-encoding; bodies are taken as they are, never decompressed."""

    code = "encoding_unsupported"
    status = 415
    template = "This gateway takes no content-encoding other than identity."
    hint = "Send the body uncompressed."


class MalformedRequest(Malformed):
    """The request is not HTTP/1.1 that every server would read the same way.

    Two lengths, a length beside chunks, no host or two, folded lines and the like are how one
    request is made to look like two. It is refused before anything reads it, and the connection
    is closed.
    """

    code = "malformed_request"
    template = "This is not a request that can be read in one way only: {reason}."
    hint = "Send plain HTTP/1.1, each framing field once, with the path alone as its target."

    def __init__(self, reason: str, detail: str = "") -> None:
        """Say what was wrong in words of ours; `detail` is what the parser said."""
        super().__init__(detail, reason=reason)


class HeadersTooLarge(Malformed):
    """The request line and the header fields are larger, or more, than this gateway takes."""

    code = "headers_too_large"
    status = 431
    template = "The head of this request has more than {limit} bytes or {fields} fields."
    hint = "Send less, or ask the operator to raise [limits] header_bytes or header_fields."
    public = ("limit", "fields")


class UriTooLong(Malformed):
    """The path and query are longer than this gateway takes."""

    code = "uri_too_long"
    status = 414
    template = "The path and query of this request are longer than {limit} bytes."
    hint = "Send a shorter one, or ask the operator to raise [limits] url_bytes."
    public = ("limit",)


class HeaderTimeout(Malformed):
    """The head of the request did not arrive in the time it may take. Nothing was run."""

    code = "header_timeout"
    status = 408
    retryable = True
    template = "The head of this request did not arrive in time."
    hint = "Send the request again, its head at once; [limits] header_seconds is the time it has."


class BodyTimeout(Malformed):
    """The body of the request did not arrive in the time it may take. Nothing was run."""

    code = "body_timeout"
    status = 408
    retryable = True
    template = "The body of this request did not arrive in time."
    hint = "Send the request again without pauses; [limits] body_seconds is the time a body has."


class Refused(CarnetError):
    """The request was understood and may not run."""

    status = 403


class TokenMissing(Refused):
    """The endpoint needs a bearer token and none came with the request."""

    code = "token_missing"
    status = 401
    template = "This endpoint needs a bearer token."
    hint = "Send 'authorization: Bearer TOKEN'; 'carnet tokens create NAME' makes one."


class TokenInvalid(Refused):
    """The bearer token is unknown, revoked or expired. The three look alike on purpose."""

    code = "token_invalid"
    status = 401
    template = "The bearer token is not valid here."
    hint = "Use a current token; 'carnet tokens list' shows which exist, 'tokens create' makes one."


class TooManyFailures(Refused):
    """The address this request came from has sent too many wrong tokens within a minute.

    Nobody is locked out: a valid token is accepted from there as before.
    """

    code = "too_many_failures"
    status = 429
    retryable = True
    template = "Too many wrong tokens came from this address within a minute; the limit is {limit}."
    hint = "Use a current token; a wrong one is looked at again after the time of Retry-After."
    public = ("limit",)


class PermissionMissing(Refused):
    """The caller is known, but its token does not hold the permission this call needs."""

    code = "permission_missing"
    template = "This token lacks the permission '{permission}'."
    hint = "Ask the operator for a token with --scope {permission}."
    public = ("permission",)


class SignatureMissing(Refused):
    """The request must be signed and is not."""

    code = "signature_missing"
    status = 401
    template = "This endpoint takes signed requests."
    hint = "Sign the request (RFC 9421) with the key that your card publishes."


class SignatureInvalid(Refused):
    """The signature does not hold for this request.

    There must be exactly one, over this method, path and body, made with the Ed25519 key that the
    keyid names.
    """

    code = "signature_invalid"
    status = 401
    template = "The signature of the request does not hold."
    hint = "Sign exactly what is sent, with the key of your card; a proxy must change none of it."


class SignatureExpired(Refused):
    """The signature says itself that it has expired."""

    code = "signature_expired"
    status = 401
    template = "The signature of the request has expired."
    hint = "Sign the request anew."


class InsufficientCoverage(Refused):
    """The signature does not cover what it must: method, path, digest, and with them the rest."""

    code = "insufficient_coverage"
    status = 401
    template = "The signature does not cover all it must."
    hint = "Cover @method, @path and content-digest, or the whole profile of a Carnet."


class HeaderNotSigned(Refused):
    """A header that tells the chain, the payer or an identity stands outside the signature."""

    code = "header_not_signed"
    status = 401
    template = "A header of the request is not covered by its signature."
    hint = "Cover every chain and identity header, or leave them out; a query is covered or absent."


class DigestInvalid(Refused):
    """The Content-Digest header is missing or not one well-formed sha-256."""

    code = "digest_invalid"
    status = 401
    template = "The Content-Digest header is missing or not one sha-256."
    hint = "Send 'Content-Digest: sha-256=:BASE64:' of the body (RFC 9530)."


class DigestMismatch(Refused):
    """The body is not the one that the Content-Digest header was made for."""

    code = "digest_mismatch"
    status = 401
    template = "The body does not match its Content-Digest."
    hint = "Send the body unchanged, byte for byte, after its digest was made."


class DestinationMismatch(Refused):
    """The signed request is meant for somebody else."""

    code = "destination_mismatch"
    status = 401
    template = "The signed request is not addressed to this agent."
    hint = "Address it to the id that the card of this agent shows, and sign it anew."


class KeyUnknown(Refused):
    """No key of that sender and that keyid is known here, nor in its card.

    A card is looked at again within a minute: a key that is shown before it signs is never unknown.
    The operator of this gateway admits a sender that has no card with the command in the hint.
    """

    code = "key_unknown"
    status = 401
    template = "No key of this sender is known here."
    hint = (
        "Show the key in your card and try again in a minute; without a card, ask the operator to "
        "admit it: carnet peers add {sender} --key {key}"
    )
    listed: bool = False  # also of one that is made of a record

    def __init__(
        self, detail: str = "", /, *, sender: str = "agent://DOMAIN", listed: bool = False
    ) -> None:
        """`sender` is an identity in its stored form; never raw text of a peer.

        `listed` is one whose card is known, and needs no other way to be believed.
        """
        super().__init__(detail, sender=sender, key="BASE64")
        self.listed = listed

    @property
    def next_step(self) -> str:
        """A peer's key is in its card sooner or later; a pinned one would outlive its rotation."""
        if self.listed:
            return "Your card does not show this key yet; it is looked at again within a minute."
        return super().next_step


class KeyRevoked(Refused):
    """The key of the signature was revoked or has expired."""

    code = "key_revoked"
    status = 401
    template = "The key of the signature is no longer valid."
    hint = "Sign with an active key of your card."


class NonceReplayed(Refused):
    """A signed request with this nonce was accepted before: it runs once."""

    code = "nonce_replayed"
    status = 401
    template = "A request with this nonce was accepted before."
    hint = "Sign a new request with a new nonce."


class TimestampOutOfWindow(Refused):
    """The time of the signed request is too far from ours.

    The answer's Date header tells our time.
    """

    code = "timestamp_out_of_window"
    status = 401
    template = "The time of the request is outside the window that is accepted."
    hint = "Set the clock (our time is in the Date header) and sign the request anew."


class DelegationInvalid(Refused):
    """The delegation token, or one of those it was derived from, does not hold.

    Links are counted from the first token of the chain, which is link 1.
    """

    code = "delegation_invalid"
    status = 401
    template = "Link {link} of the delegation does not hold: {reason}."
    hint = "Ask its issuer for a new token, or call without one."
    public = ("link", "reason")

    def __init__(
        self,
        detail: str = "",
        /,
        *,
        reason: str = "it cannot be read",
        link: int = 1,
        issuer: str | None = None,
    ) -> None:
        """`reason` is one of our own phrases; never text of a peer.

        `issuer` is given where its key is not known: an identity in its stored form.
        """
        super().__init__(detail, reason=reason, link=link, issuer=issuer)

    @property
    def next_step(self) -> str:
        """An issuer that is not known may be admitted; the token is as good as any other then."""
        issuer = self.facts.get("issuer")
        if issuer is None:
            return super().next_step
        return f"Ask the operator to admit its issuer: carnet peers add {issuer} --key BASE64"


class DelegationWidened(Refused):
    """A token of the chain grants more than the one it was derived from: a delegation narrows."""

    code = "delegation_widened"
    status = 403
    template = "Link {link} of the delegation widens '{claim}' of the one before it."
    hint = "Issue it anew with no more than its parent grants: carnet tokens delegate --parent."
    public = ("link", "claim")

    def __init__(self, detail: str = "", /, *, claim: str = "scope", link: int = 2) -> None:
        """`claim` is the name of a claim that we know."""
        super().__init__(detail, claim=claim, link=link)


class DelegationExceeded(Refused):
    """The delegation does not reach as far as this call: its hops or its scope are used up.

    Of `--depth 2` one hop is for who shows the token and one for a call that the agent makes.
    """

    code = "delegation_exceeded"
    status = 403
    template = "The delegation does not cover this call: {reason}."
    hint = "Ask its issuer for one with the skill in --scope, or a larger --depth."
    public = ("reason",)

    def __init__(self, detail: str = "", /, *, reason: str = "no hop is left") -> None:
        """`reason` is one of our own phrases."""
        super().__init__(detail, reason=reason)


class DelegationReplayed(Refused):
    """A delegation token that is good for one call was used before.

    All that was derived from it is used up with it. Link 1 is the first token of the chain.
    """

    code = "delegation_replayed"
    status = 401
    template = "Link {link} of the delegation is good for one call, which was made."
    hint = "Ask its issuer for another one."
    public = ("link",)

    def __init__(self, detail: str = "", /, *, link: int = 1) -> None:
        """`link` is the one that is good for one call."""
        super().__init__(detail, link=link)


class InjectionDetected(Refused):
    """The payload holds a phrase that is used to take over language models."""

    code = "injection_detected"
    status = 400
    template = "The payload looks like an attempt to instruct the agent behind its back."
    hint = "Rephrase it; the operator can switch the scan off for an agent."


class SkillNotFound(Refused):
    """The agent has no skill of that name. A near one is suggested if there is one."""

    code = "skill_not_found"
    status = 404
    template = "The agent has no such skill."
    hint = "Ask for one of its card, which 'carnet agents inspect ADDRESS' shows."
    public = ("suggestion",)

    def __init__(self, detail: str = "", /, *, suggestion: str = "", way: str = "") -> None:
        """`suggestion` is the name of a skill of ours.

        `way` is what the operator does to reach skills of an agent that is asked in chat alone.
        """
        ways = {"way": way} if way else {}
        super().__init__(detail, suggestion=suggestion or None, **ways)

    @property
    def next_step(self) -> str:
        """What helps: a better name, or another way to the agent."""
        way = self.facts.get("way")
        if way is None:
            return super().next_step
        return f"It is asked in chat, which knows no skills. If it speaks SAMVAD: {way}"

    @property
    def safe_text(self) -> str:
        """The sentence a peer may read, with the nearest name of our own."""
        near = self.facts.get("suggestion")
        return super().safe_text + (f" Did you mean '{near}'?" if near else "")


class SkillForbidden(Refused):
    """The trust that the skill asks for was not shown: who you are is known, and it is not enough.

    `authenticated` wants a token of this gateway in `auth`; `trusted-peers` a sender on its list.
    """

    code = "skill_forbidden"
    status = 403
    template = "This skill is for callers of trust '{trust}'."
    hint = "Ask the operator for a token (authenticated) or to be listed (trusted-peers)."
    public = ("trust",)

    def __init__(self, detail: str = "", /, *, trust: str = "trusted-peers") -> None:
        """`trust` is one of our three words."""
        super().__init__(detail, trust=trust)


class AgentNotFound(Refused):
    """No agent of that name is served here."""

    code = "agent_not_found"
    status = 404
    template = "No agent of that name is served here.{suggestion}"
    hint = "GET /v1/models or 'carnet agents list' shows the agents."

    def __init__(self, detail: str = "", *, suggestion: str = "") -> None:
        """Offer the nearest name of our own, if there is one."""
        near = f" Did you mean '{suggestion}'?" if suggestion else ""
        super().__init__(detail, suggestion=near)


class PeerUnknown(Refused):
    """The address names an organisation that this gateway has not admitted as a peer."""

    code = "peer_unknown"
    status = 404
    template = "This gateway has no peer of that domain."
    hint = "The operator admits one with 'carnet peers add DOMAIN --url URL'."


class PeerAgentNotFound(Refused):
    """The other side shows no card for that agent, or that of another one. Nothing was sent."""

    code = "peer_agent_not_found"
    status = 404
    template = "The other side has no agent of that name."
    hint = "Check the name; 'carnet agents inspect ADDRESS' shows who is there."


class RunNotFound(Refused):
    """No run of that id is visible to this caller."""

    code = "run_not_found"
    status = 404
    template = "No run of that id is visible to this token."
    hint = "'carnet runs' or GET /runs lists the runs this token may read."


class TaskNotFound(Refused):
    """There is no such task, or it ended longer ago than tasks are kept."""

    code = "task_not_found"
    status = 404
    template = "There is no such task."
    hint = "Check the id; finished tasks are forgotten when the operator's retention has passed."


class LetterNotFound(Refused):
    """There is no webhook of that id in the outbox, or it is no longer kept.

    Letters that arrived or died are forgotten after the operator's retention. Only the command line
    asks for them.
    """

    code = "letter_not_found"
    status = 404
    template = "There is no such letter."
    hint = "'carnet outbox list' shows which there are."


class RouteNotFound(Refused):
    """Nothing is served at that path."""

    code = "not_found"
    status = 404
    template = "Nothing is served at this path."
    hint = "/openapi.json lists the paths."


class MethodNotAllowed(Refused):
    """The path exists, the method does not."""

    code = "method_not_allowed"
    status = 405
    template = "This path does not take that method."
    hint = "/openapi.json lists the methods of each path."

    def __init__(self, detail: str = "", /, *, allow: str = "") -> None:
        """`allow` is what it takes, for the header of that name."""
        super().__init__(detail, allow=allow)


class DepthExceeded(Refused):
    """The chain of agents calling agents is as long as this gateway allows.

    Terminal: the same call will be refused again, so clients must not retry it.
    """

    code = "bridge_depth_exceeded"
    status = 429
    template = "This call arrived at depth {observed}; the limit here is {limit}."
    hint = "Answer from what you have, or ask the operator of this gateway to raise max_depth."
    public = ("observed", "limit")

    def __init__(self, *, observed: int, limit: int, leaving: bool = False) -> None:
        """`limit` is exclusive: the first depth that is refused; `leaving` is a call from here."""
        super().__init__(observed=observed, limit=limit, **({"leaving": 1} if leaving else {}))

    @property
    def safe_text(self) -> str:
        """The sentence a peer may read; a call that did not leave has not arrived anywhere."""
        if self.facts.get("leaving"):
            return (
                "A call from here would be at depth {observed}; the limit here is {limit}.".format(
                    **self.facts
                )
            )
        return super().safe_text


class ChainFinal(Refused):
    """This hop is the last of its chain; it may answer but not call on."""

    code = "chain_final"
    status = 429
    template = (
        "This is the final hop ({hop} of {hops}) of its chain; it may not call another agent."
    )
    hint = "Synthesize a conclusion from what you have."
    public = ("hop", "hops")

    def __init__(self, *, hop: int, hops: int) -> None:
        """`hop` of `hops`."""
        super().__init__(hop=hop, hops=hops)


class RunCallsExceeded(Refused):
    """One run has made as many calls through this gateway as it may."""

    code = "run_calls_exceeded"
    status = 429
    template = "This run has made {limit} calls here, which is the most a run may make."
    hint = "Start a new run, or ask the operator to raise [limits] run_calls."
    public = ("limit",)


class LoopDetected(Refused):
    """The chain has come back to an agent that it passed already.

    `[agents.NAME] reentry = true` lets an agent be called again within its own chain.
    """

    code = "loop_detected"
    status = 409
    template = "The call came back to an agent that its chain has passed already."
    hint = "Answer from what you have; the operator may set reentry for the agent."


class PaymentRequired(Refused):
    """The agent has a price and nobody with credit stands behind this call."""

    code = "payment_required"
    status = 402
    template = "This agent has a price and the payer of this call has no credit here."
    hint = "The operator grants credit: carnet peers add DOMAIN --url URL --credit AMOUNT"


class SpendingLimitReached(Refused):
    """The payer's spending limit or credit does not cover this call. Nothing was run or billed.

    Nor is a call made for which nothing is left of the budget that the call above came with, its
    money or its tokens: that of a travel document, or of a delegation.
    """

    code = "spending_limit_reached"
    status = 402
    template = "The payer's limit does not cover this call."
    hint = "Ask the operator to raise the limit; 'carnet ledger' shows what was spent."


class PayerRefused(Refused):
    """The forwarded credential is one of ours but revoked, expired or not allowed to pay."""

    code = "payer_refused"
    status = 402
    template = "The forwarded credential cannot pay here."
    hint = "Ask the person who started the run for a current credential; nobody else was billed."


class ForwardingNotAllowed(Refused):
    """The caller sent a forwarded credential but is not listed as an inter-agent caller.

    Neither the caller nor the owner of the credential was billed.
    """

    code = "forwarding_not_allowed"
    template = "This caller may not forward another party's credential."
    hint = (
        "The operator lists a caller with --may-forward-authorization (tokens create, peers add)."
    )


class PeerNotListed(Refused):
    """A credential would have to be forwarded to a peer that is not listed for it.

    The call was not sent: without the credential the wrong party would pay.
    """

    code = "peer_not_listed"
    template = "The payer's credential may not be forwarded to that peer."
    hint = "The operator lists it: carnet peers add DOMAIN --url URL --may-forward-authorization."


class IdempotencyMismatch(Refused):
    """This turn id was used before with another request. The first result is untouched."""

    code = "idempotency_mismatch"
    status = 422
    template = "This turn was used before with a different request."
    hint = "Repeat the exact request, or use a new turn id."


class InProgress(Refused):
    """The same turn is running and will outlast this caller's deadline."""

    code = "in_progress"
    status = 409
    retryable = True
    template = "This turn is still running."
    hint = "Repeat the same request after the time that Retry-After gives."


class DefinitionChanged(Refused):
    """An agent that runs again made other calls or other steps than the first time.

    What is kept of the turn does not fit it any more. Of a step (`visit.step`) its place among the
    steps is told; its name, and the one that is kept there, are in the log.
    """

    code = "definition_changed"
    status = 409
    template = "The agent made a different call than the one recorded under this turn id."
    hint = "Start a new run; keep the order of calls and steps a function of the agent's input."

    def __init__(self, detail: str = "", /, *, step: int | None = None) -> None:
        """`step` is the place of a step that has changed, counted from 1."""
        super().__init__(detail, **({} if step is None else {"step": step}))

    @property
    def safe_text(self) -> str:
        """The sentence a peer may read: of a step its place, never its name."""
        step = self.facts.get("step")
        if step is None:
            return super().safe_text
        return f"Step {step} of the agent is not the one that is kept under this turn id."


class InputRequired(Refused):
    """The agent needs an answer before it goes on. Its turn waits and holds its money."""

    code = "input_required"
    status = 403
    template = "The agent waits for an answer before it goes on: {kind}."
    hint = "Give the answer, then send the same request again: it is told as waiting until then."

    def __init__(self, detail: str = "", /, *, kind: str = "input") -> None:
        """`kind` is a word of ours for what is asked for."""
        super().__init__(detail, kind=kind)


class InterruptExpired(Refused):
    """The turn waited for an answer that did not come in its time. What it held was given back."""

    code = "interrupt_expired"
    status = 410
    template = "What this turn waited for was not answered in its time."
    hint = "Ask again under a new turn id."


class PolicyStateInvalid(Refused):
    """The answer is none that a turn waits for: it was used before, came late, or is a guess."""

    code = "policy_state_invalid"
    status = 409
    template = "No turn waits for this answer, or no longer."
    hint = "Repeat the request without it: you are told what the turn waits for, or its answer."


class Cancelled(Refused):
    """The turn was cancelled before it ended: by its readers leaving, or on request."""

    code = "cancelled"
    status = 409
    retryable = True
    template = "This turn was cancelled before it ended."
    hint = "Send the same request again to run it once more under the same turn id."


class RateLimited(Refused):
    """The caller made more calls than its token, or a sender without one, may for the moment."""

    code = "rate_limited"
    status = 429
    retryable = True
    template = "This caller has used up its rate; the next call is free in {retry_after} s."
    hint = "Wait as long as Retry-After says and send the same request again."


class TokenBudgetExceeded(Refused):
    """The sender has used the tokens that the card of the agent grants it for this day (UTC)."""

    code = "token_budget_exceeded"
    status = 429
    retryable = True
    template = "This sender has used its {limit} tokens of today."
    hint = "Wait as long as Retry-After says: the budget is new at midnight UTC."
    public = ("limit",)


class TooManyTasks(Refused):
    """The caller has as many unfinished tasks at this agent as it may."""

    code = "too_many_tasks"
    status = 429
    retryable = True
    template = "This caller has {limit} unfinished tasks here, which is the most it may have."
    hint = "Wait for one to end, then send the same request again."
    public = ("limit",)


class TooManyCalls(Refused):
    """The caller has as many calls open at once as it may."""

    code = "too_many_calls"
    status = 429
    retryable = True
    template = "This caller has {limit} calls open, which is the most it may have."
    hint = "Wait for one to end, then send the same request again."
    public = ("limit",)


class TooManyStreams(Refused):
    """The caller has as many streamed answers open at once as it may."""

    code = "too_many_streams"
    status = 429
    retryable = True
    template = "This caller has {limit} streams open, which is the most it may have."
    hint = "Read one to its end or close it, then send the same request again."
    public = ("limit",)


class Overloaded(Refused):
    """The gateway has as much work queued as it takes."""

    code = "overloaded"
    status = 503
    retryable = True
    template = "This gateway is at its capacity."
    hint = "Send the same request again after the time that Retry-After gives."

    @property
    def retry_after(self) -> int:
        """Whole seconds until another try makes sense: one, if nobody knows better."""
        return super().retry_after or 1


class ShuttingDown(Refused):
    """The gateway is draining before it stops; it takes no new work."""

    code = "shutting_down"
    status = 503
    retryable = True
    template = "This gateway is shutting down."
    hint = "Send the same request again in a moment; the turn id keeps it from running twice."


class Upstream(CarnetError):
    """Someone we called did not answer properly."""

    status = 502
    retryable = True


class ProviderError(Upstream):
    """The agent or model behind the gateway answered with something that is not an answer."""

    code = "provider_error"
    template = "The agent behind this gateway did not give a proper answer."
    hint = "Repeat the request; the operator finds the cause in the log under this run and turn."


class ProviderUnavailable(Upstream):
    """The agent or model behind the gateway cannot be reached."""

    code = "provider_unavailable"
    status = 503
    template = "The agent behind this gateway cannot be reached."
    hint = "Repeat the request later; 'carnet doctor' shows which upstreams answer."


class ProviderTimeout(Upstream):
    """The agent or model behind the gateway did not answer in time."""

    code = "provider_timeout"
    status = 504
    template = "The agent behind this gateway did not answer in time."
    hint = "Repeat the request, or ask the operator to raise the agent's timeout."


class CircuitOpen(Upstream):
    """The upstream failed several times in a row and is left alone for a moment."""

    code = "circuit_open"
    status = 503
    template = (
        "The agent behind this gateway failed repeatedly and is left alone for {retry_after} s."
    )
    hint = "Repeat the request after the time that Retry-After gives."


class PeerRefused(Upstream):
    """The other organisation's gateway refused the call. Its code is given if we know the word."""

    code = "peer_refused"
    retryable = False
    template = "The other organisation's gateway refused this call ({peer_status} {peer_code})."
    hint = "'carnet explain {peer_code}' tells what its code means; its operator can tell why."
    public = ("peer_status", "peer_code", "peer_reason", "peer_field", "peer_detail")

    @property
    def next_step(self) -> str:
        """What a Carnet there would advise, if it is one and says why; in our own words.

        Another gateway of the signed dialect that refuses to believe us may lack our key.
        """
        facts = self.facts
        field = facts.get("peer_field")
        kind = BY_CODE.get(str(facts.get("peer_reason") or (field and facts.get("peer_code"))))
        if kind is not None:
            about = f" about the field '{field}'" if field else ""
            if facts.get("peer_detail"):
                about = f" ({facts['peer_detail']})"
            return f"It says {kind.code}{about}. {kind.hint.format_map(_Facts(facts))}"
        if facts.get("peer_code") == "AUTH_FAILED" and facts.get("key"):
            return (
                "If it does not know us, give its operator our identity and key (trust_peer): "
                f"{facts['sender']} {facts['key']}"
            )
        if facts.get("peer_code") in {None, "unrecognised"}:
            return "Its operator can tell why."
        return super().next_step


class PeerBusy(Upstream):
    """The other organisation's gateway could not take the call just now and may take it later."""

    code = "peer_busy"
    status = 503
    template = "The other organisation's gateway is busy ({peer_status} {peer_code})."
    hint = "Repeat the request after the time that Retry-After gives."
    public = ("peer_status", "peer_code")

    @property
    def safe_text(self) -> str:
        """Whoever has used its tokens of the day may have to wait for hours: that is not busy."""
        if self.facts.get("peer_code") != "TOKEN_BUDGET_EXCEEDED":
            return super().safe_text
        return (
            "The other organisation's gateway gives us no more tokens for now "
            f"({self.facts.get('peer_status')} TOKEN_BUDGET_EXCEEDED)."
        )


class PeerUnreachable(Upstream):
    """The card or the key of another organisation could not be fetched within its bounds."""

    code = "peer_unreachable"
    status = 502
    retryable = True
    template = "What the other side publishes about itself could not be read."
    hint = "Try again later; its operator can tell whether its card is served."


class PeerResponseInvalid(Upstream):
    """The other side's answer does not carry the proof that it must, or a wrong one."""

    code = "peer_response_invalid"
    status = 502
    retryable = True
    template = "The answer of the other side is not signed as it must be."
    hint = (
        "Try again; if it goes on, compare what is pinned for it ('carnet peers list') with the "
        "keys that it shows ('carnet agents inspect ADDRESS'), and tell its operator."
    )


class EgressRefused(Upstream):
    """The address of that destination may not be dialled from this gateway."""

    code = "egress_refused"
    retryable = False
    template = "That destination may not be called from this gateway."
    hint = "The operator allows one with [egress] allow; private addresses are refused by default."


class AgentFailed(Upstream):
    """The agent's own code raised an error."""

    code = "agent_failed"
    status = 500
    template = "The agent failed while answering."
    hint = "Repeat the request; the operator finds the cause in the log under this run and turn."


class Ours(CarnetError):
    """Our own fault."""

    retryable = True


class Internal(Ours):
    """Something we did not foresee. The log has the details under the incident id."""

    code = "internal"
    template = "Something went wrong in this gateway (incident {incident})."
    hint = "Tell the operator the incident id."
    public = ("incident",)

    def __init__(self, detail: str = "", *, incident: str = "unrecorded") -> None:
        """`incident` finds the log line."""
        super().__init__(detail, incident=incident)


class StorageUnavailable(Ours):
    """The store cannot be written; nothing was run or billed."""

    code = "storage_unavailable"
    status = 503
    template = "This gateway cannot write its journal at the moment."
    hint = "Send the same request again later; nothing was run."

    @property
    def retry_after(self) -> int:
        """Whole seconds until another try makes sense: one, if nobody knows better."""
        return super().retry_after or 1


class OutcomeUnknown(Ours):
    """It is not known how the turn ended: the store failed while its end was written.

    A task also ends so when it was lost five times: the gateways that ran it died, or its end could
    not be written. It is not run again by itself then; something about it may end processes.
    """

    code = "outcome_unknown"
    status = 503
    template = "It is not known whether this turn was recorded."
    hint = "Send the same request with the same turn id; it will not be billed twice."


class ConfigInvalid(CarnetError):
    """A value of the configuration cannot be used. The key and where it came from are named.

    It is the first that was met; once it is corrected, 'carnet config check' shows the next.
    """

    code = "config_invalid"
    status = 500
    template = "{key}: {reason}"
    hint = "Correct it, then look whether more is wrong: carnet config check"


class UsageInvalid(CarnetError):
    """A command was given something it cannot use."""

    code = "usage_invalid"
    status = 400
    template = "{reason}"
    hint = "{fix}"


class Unreachable(CarnetError):
    """The gateway that a command wants to talk to does not answer."""

    code = "unreachable"
    status = 503
    template = "No gateway answers at {url}."
    hint = "Start it with: carnet serve"


def leaves(root: type[CarnetError] = CarnetError) -> Iterator[type[CarnetError]]:
    """Every class of the tree that can be raised, in the order it is written."""
    for child in root.__subclasses__():
        if child.code:
            yield child
        yield from leaves(child)


BY_CODE: dict[str, type[CarnetError]] = {leaf.code: leaf for leaf in leaves()}
