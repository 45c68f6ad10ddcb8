"""The exchange of tokens (RFC 8693) as a form, its answer, and what it is refused with.

Law 1. Each member stands once, or the request is none; a member that is not known is passed over
       as RFC 6749 wants, one that names another actor is refused.
Law 2. Scopes are words of the profile with one space between them; nothing else is one.
Law 3. A refusal has a code of RFC 6749 or 8693 and words of ours, and repeats nothing that came.
"""

import re
from typing import Any, Final, Literal
from urllib.parse import parse_qsl

from msgspec import Struct

from carnet.core.trust.federation import MESSAGE_SCOPES, SCOPES, TASK_SCOPES

GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT: Final = "urn:ietf:params:oauth:token-type:jwt"
ACCESS: Final = "urn:ietf:params:oauth:token-type:access_token"
JWT_BEARER: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
MOST_BYTES: Final = 64 * 1024
MOST_MEMBERS: Final = 32

ErrorCode = Literal[
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
    "server_error",
]
STATUSES: Final[dict[str, int]] = {"invalid_client": 401, "server_error": 503}

_FORM: Final = re.compile(r"[!-~]*", re.ASCII)


class ExchangeRefused(Exception):
    """An exchange that is not made: a code for programs, and words of ours."""

    def __init__(self, code: ErrorCode, words: str) -> None:
        super().__init__(words)
        self.code: ErrorCode = code
        self.words = words

    @property
    def status(self) -> int:
        """Of HTTP."""
        return STATUSES.get(self.code, 400)

    def page(self) -> dict[str, str]:
        """What is answered."""
        return {"error": self.code, "error_description": self.words}


class ExchangeRequest(Struct, frozen=True, kw_only=True):
    """What is asked for, as it came."""

    subject_token: str
    client_assertion: str
    resource: str
    scopes: tuple[str, ...]
    client_id: str | None = None

    @property
    def wants_messages(self) -> bool:
        """Whether it is for more than a task that was begun."""
        return any(each in MESSAGE_SCOPES for each in self.scopes)


def read_request(body: bytes) -> ExchangeRequest:
    """What a form asks for."""
    form = _form(body)
    if form.get("grant_type") != GRANT:
        raise ExchangeRefused("unsupported_grant_type", "Only the exchange of tokens is offered.")
    if {"actor_token", "actor_token_type"} & form.keys():
        raise ExchangeRefused("invalid_request", "The client is the actor: send no actor_token.")
    if "client_assertion" not in form or form.get("client_assertion_type") != JWT_BEARER:
        raise ExchangeRefused("invalid_client", "Authenticate by private_key_jwt.")
    if form.get("subject_token_type") != JWT or "subject_token" not in form:
        raise ExchangeRefused("invalid_request", "The subject_token is a JWT, and says so.")
    if form.get("requested_token_type", ACCESS) != ACCESS:
        raise ExchangeRefused("invalid_request", "Only access tokens are given.")
    if "resource" not in form:
        raise ExchangeRefused("invalid_target", "Name the resource that the card tells.")
    return ExchangeRequest(
        subject_token=form["subject_token"],
        client_assertion=form["client_assertion"],
        resource=form["resource"],
        scopes=_scopes(form.get("scope", "")),
        client_id=form.get("client_id"),
    )


def write_answer(token: str, scopes: tuple[str, ...], seconds: int) -> dict[str, Any]:
    """What an exchange is answered with."""
    return {
        "access_token": token,
        "issued_token_type": ACCESS,
        "token_type": "Bearer",
        "expires_in": seconds,
        "scope": " ".join(scopes),
    }


def write_metadata(issuer: str, token_endpoint: str, jwks: str) -> dict[str, Any]:
    """What a client is told of the endpoint (RFC 8414)."""
    return {
        "issuer": issuer,
        "token_endpoint": token_endpoint,
        "jwks_uri": jwks,
        "response_types_supported": [],
        "grant_types_supported": [GRANT],
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["EdDSA"],
        "scopes_supported": list(SCOPES),
    }


def request_form(
    *, subject_token: str, client_assertion: str, resource: str, scopes: tuple[str, ...]
) -> dict[str, str]:
    """The form by which a client of ours asks."""
    return {
        "grant_type": GRANT,
        "subject_token": subject_token,
        "subject_token_type": JWT,
        "client_assertion": client_assertion,
        "client_assertion_type": JWT_BEARER,
        "requested_token_type": ACCESS,
        "resource": resource,
        "scope": " ".join(scopes),
    }


def _form(body: bytes) -> dict[str, str]:
    text = body.decode("latin-1")
    try:
        if _FORM.fullmatch(text) is None:
            raise ValueError  # noqa: TRY301  told as any other that is no form
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=MOST_MEMBERS,
        )
    except ValueError:
        raise ExchangeRefused("invalid_request", "The body is no form.") from None
    if len({name for name, _ in pairs}) != len(pairs):
        raise ExchangeRefused("invalid_request", "A member stands twice.")
    return dict(pairs)


def _scopes(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(text.split(" ")))
    if not all(each in (*MESSAGE_SCOPES, *TASK_SCOPES) for each in found):
        raise ExchangeRefused("invalid_scope", f"The scopes are {', '.join(SCOPES)}.")
    return found
