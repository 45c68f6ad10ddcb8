"""What cannot be read: sending it again changes nothing, unless it came too slowly."""

from carnet.errors.base import Malformed


class _Reasoned(Malformed):
    """Said with what is wrong, in words of ours."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason=reason)


class InvalidJson(_Reasoned, code="invalid_json"):
    """The body is not JSON in our strict reading.

    Duplicate keys, NaN, numbers beyond 2^53, lone surrogates, a byte-order mark, text after the
    value and more than 32 levels are all refused: two parsers could disagree about them.
    """

    template = "The request body is not valid JSON: {reason}."
    hint = "Send one UTF-8 JSON object without duplicate keys."


class InvalidRequest(Malformed, code="invalid_request", public=("field",)):
    """The body is JSON but not the shape this endpoint takes. The field is named."""

    template = "The field '{field}' {reason}."
    hint = "Correct the field and send the request again; /openapi.json shows the shape."

    def __init__(self, field: str, reason: str) -> None:
        """Name the field and what it should be."""
        super().__init__(field=field, reason=reason)


class MalformedCallerContext(Malformed, code="malformed_caller_context", public=("header",)):
    """A header that tells the chain (depth, run, turn, payer) is not well formed.

    It is never guessed at: reading a broken depth as 0 would reset the recursion bound.
    """

    template = "The header '{header}' {reason}."
    hint = "Send the header once, in the form its specification gives, or leave it out."

    def __init__(self, header: str, reason: str) -> None:
        """Name the header (ours) and what is wrong with it."""
        super().__init__(header=header, reason=reason)


class ChainMismatch(_Reasoned, code="chain_mismatch"):
    """Two stamps on one request tell different stories about the chain."""

    template = "The chain headers of this request contradict one another: {reason}."
    hint = "Send one run id, and no depth 0 beside a depth above 0."


class UnsupportedProtocolVersion(Malformed, code="unsupported_protocol_version"):
    """The request asks for a version of the Tangle protocol that this gateway does not speak."""

    template = "This gateway speaks version 0 of the Tangle protocol only."
    hint = "Leave out x-tangle-protocol-version, or send 0."


class AddressInvalid(_Reasoned, code="address_invalid", status=422):
    """An agent address is not in its one stored form."""

    template = "The agent address is not valid: {reason}."
    hint = "Write it as @name@domain, agent://domain or the name of a local agent, in lower case."


class SchemaInvalid(Malformed, code="schema_invalid", status=422, public=("field",)):
    """The payload does not match the schema of the skill. The field and the constraint are named.

    The value itself is never repeated.
    """

    template = "Field '{field}' {constraint}"
    hint = "Correct the field; the card of the agent shows the schema of the skill."

    def __init__(self, field: str, constraint: str) -> None:
        """Name the field, a path within the payload, and the constraint in words of ours."""
        super().__init__(field=field, constraint=constraint)


class NonceInvalid(Malformed, code="nonce_invalid"):
    """The nonce of a signed request is not 8 to 64 visible ASCII characters."""

    template = "The nonce is not 8 to 64 visible ASCII characters."
    hint = "Send a fresh random nonce with every request; a UUID will do."


class TimestampInvalid(Malformed, code="timestamp_invalid"):
    """The time of a signed request is not written as RFC 3339 in UTC, or not as whole seconds."""

    template = "The timestamp cannot be read."
    hint = "Write it as 2026-11-15T06:46:52Z; 'created' of a signature is in whole seconds."


class TravelDocumentInvalid(_Reasoned, code="travel_document_invalid"):
    """The `carnet` header is not a travel document: a JWS of at most 4 KiB with its claims."""

    template = "The carnet header {reason}."
    hint = "A Carnet gateway writes it; leave the header out if yours is none."


class KeyInvalid(_Reasoned, code="key_invalid", status=422):
    """A public key is not a usable Ed25519 key.

    It must be the padded base64 of 32 bytes that encode a point of the main group in its one
    canonical form. Keys of small or mixed order verify forged signatures.
    """

    template = "The key is not a usable Ed25519 public key: {reason}."
    hint = "Take the 32 raw bytes of the public key in base64, as its owner's card shows them."


class CallbackForbidden(Malformed, code="callback_forbidden", status=422, public=("reason",)):
    """The address for a callback is one that no peer may make this gateway call.

    It must be https, a public name or address, on port 443 or 8443, and must not have said 410.
    The operator names exceptions: `[egress] allow = ["127.0.0.1:9000"]` lets it also be private,
    plain http, and on that port.
    """

    template = "This gateway does not call back to that address: {reason}."
    hint = (
        "Name a public https address, or leave the callback out and poll the task; the operator "
        "of this gateway can except its host:port with [egress] allow."
    )

    def __init__(self, detail: str = "", /, *, reason: str = "it is not a public address") -> None:
        """`reason` is one of our own phrases; never text of a peer."""
        super().__init__(detail, reason=reason)


class BodyTooLarge(Malformed, code="body_too_large", status=413, public=("limit",)):
    """The request body is larger than this endpoint takes."""

    template = "The request body is larger than {limit} bytes."
    hint = "Send less, or ask the operator to raise [limits] chat_body_bytes or body_bytes."


class MediaTypeUnsupported(Malformed, code="media_type_unsupported", status=415):
    """The content type is not application/json in UTF-8."""

    template = "This endpoint takes application/json in UTF-8."
    hint = "Send the header content-type: application/json."


class EncodingUnsupported(Malformed, code="encoding_unsupported", status=415):
    """The body has a content-encoding; bodies are taken as they are, never decompressed."""

    template = "This gateway takes no content-encoding other than identity."
    hint = "Send the body uncompressed."


class MalformedRequest(Malformed, code="malformed_request"):
    """The request is not HTTP/1.1 that every server would read the same way.

    Two lengths, a length beside chunks, no host or two, folded lines and the like are how one
    request is made to look like two. It is refused before anything reads it, and the connection
    is closed.
    """

    template = "This is not a request that can be read in one way only: {reason}."
    hint = "Send plain HTTP/1.1, each framing field once, with the path alone as its target."

    def __init__(self, reason: str, detail: str = "") -> None:
        """Say what was wrong in words of ours; `detail` is what the parser said."""
        super().__init__(detail, reason=reason)


class HeadersTooLarge(Malformed, code="headers_too_large", status=431, public=("limit", "fields")):
    """The request line and the header fields are larger, or more, than this gateway takes."""

    template = "The head of this request has more than {limit} bytes or {fields} fields."
    hint = "Send less, or ask the operator to raise [limits] header_bytes or header_fields."


class UriTooLong(Malformed, code="uri_too_long", status=414, public=("limit",)):
    """The path and query are longer than this gateway takes."""

    template = "The path and query of this request are longer than {limit} bytes."
    hint = "Send a shorter one, or ask the operator to raise [limits] url_bytes."


class HeaderTimeout(Malformed, code="header_timeout", status=408, retryable=True):
    """The head of the request did not arrive in the time it may take. Nothing was run."""

    template = "The head of this request did not arrive in time."
    hint = "Send the request again, its head at once; [limits] header_seconds is the time it has."


class BodyTimeout(Malformed, code="body_timeout", status=408, retryable=True):
    """The body of the request did not arrive in the time it may take. Nothing was run."""

    template = "The body of this request did not arrive in time."
    hint = "Send the request again without pauses; [limits] body_seconds is the time a body has."
