"""What cannot be read: sending it again changes nothing, unless it came too slowly."""

from carnet.errors.base import Malformed


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
