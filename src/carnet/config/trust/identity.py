"""Whom this gateway trusts, who may call its agents, and how it is known to others.

    [identity]
    trusted = [{ issuer = "slack.example", subject_prefixes = ["slack:T123/"] }]

    [identity.oauth."https://login.acme.example"]
    jwks_url = "https://login.acme.example/keys"
    scopes = { "a2a:message.send" = ["call:*"] }

    [agents.books]
    allow = [{ subject = "@agent-a@globex.example", on_behalf_of = "mailto:*" }]

Law. What is wrong in a table is told with its place and its key.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, TypeVar

from msgspec import Struct

from carnet.config import readers as read
from carnet.config.readers import SecretRef, ValueReader, Wrong
from carnet.core.people.evidence import ANYTHING, AllowRule, TrustedIssuer
from carnet.core.people.grant import issuer_name
from carnet.core.people.permissions import is_permission
from carnet.core.trust.did import read_did
from carnet.core.trust.federation import FederationRule
from carnet.errors import AddressInvalid

MOST_ISSUERS: Final = 64
MOST_RULES: Final = 256
_PATTERN: Final = re.compile(r"[!-)+-~]{0,511}\*?", re.ASCII)  # a star at its end alone

T = TypeVar("T")


class OAuthIssuerSettings(Struct, frozen=True, kw_only=True):
    """One issuer of access tokens."""

    issuer: str
    jwks_url: str | None = None
    introspection_url: str | None = None
    client_id: str | None = None
    client_secret: SecretRef | None = None
    audience: tuple[str, ...] = ()
    scopes: dict[str, tuple[str, ...]] = {}
    credit: int = 0


class OAuthClientSettings(Struct, frozen=True, kw_only=True):
    """How access tokens for an agent elsewhere are obtained."""

    token_url: str
    client_id: str
    client_secret: SecretRef
    scope: str | None = None
    resource: str | None = None


def _pattern() -> ValueReader:
    def check(value: str) -> str:
        if not value or _PATTERN.fullmatch(value) is None:
            raise ValueError
        return value

    return read.text_reader("a name, or the beginning of one with a '*' at its end", check)


def _patterns() -> ValueReader:
    def check(value: str) -> str:
        if not value or _PATTERN.fullmatch(value) is None:
            raise ValueError
        return value

    return read.many("names, or beginnings of such with a '*' at their end", check)


def _did() -> ValueReader:
    def check(value: str) -> str:
        try:
            read_did(value)
        except AddressInvalid:
            raise ValueError from None
        return value

    return read.text_reader("a name such as did:web:connector.example", check)


def _words() -> ValueReader:
    def check(value: str) -> str:
        if not (0 < len(value) <= 256 and value.isprintable() and " " not in value):  # noqa: PLR2004
            raise ValueError
        return value

    return read.many("words without spaces", check)


def _scopes() -> ValueReader:
    expects = 'a table of scopes and permissions, such as {"a2a:message.send" = ["call:*"]}'

    def check(value: str) -> str:
        if not is_permission(value):
            raise ValueError
        return value

    listed = read.many('permissions, such as "call:echo"', check)

    def given(value: Any) -> dict[str, tuple[str, ...]]:
        if not isinstance(value, dict):
            raise Wrong(f"should be {expects}")
        return {str(scope): listed.read(rights) for scope, rights in value.items()}

    return ValueReader(expects, given, given)


_TRUSTED: Final[Mapping[str, ValueReader]] = {
    "issuer": read.text(),
    "methods": _words(),
    "assurance": _words(),
    "subject_prefixes": _words(),
}
_ALLOW: Final[Mapping[str, ValueReader]] = {
    "subject": _pattern(),
    "on_behalf_of": _pattern(),
    "action": _pattern(),
}
_ISSUER: Final[Mapping[str, ValueReader]] = {
    "jwks_url": read.url(),
    "introspection_url": read.url(),
    "client_id": read.text(),
    "client_secret": read.secret(),
    "audience": _words(),
    "scopes": _scopes(),
    "credit": read.amount(),
}
_FEDERATION: Final[Mapping[str, ValueReader]] = {
    "issuer": _did(),
    "methods": _words(),
    "subjects": _patterns(),
    "agents": _words(),
    "credit": read.amount(),
}
_CLIENT: Final[Mapping[str, ValueReader]] = {
    "token_url": read.url(),
    "client_id": read.text(),
    "client_secret": read.secret(),
    "scope": read.text(),
    "resource": read.text(),
}


def _table(value: Any, keys: Mapping[str, ValueReader], needs: tuple[str, ...]) -> dict[str, Any]:
    """The values of one table."""
    if not isinstance(value, dict):
        raise Wrong(f"should be a table with {', '.join(keys)}")
    found: dict[str, Any] = {}
    for key, each in value.items():
        if key not in keys:
            near = get_close_matches(key, list(keys), n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(keys)}"
            raise Wrong(f"has '{key}', which is no key: {hint}")
        try:
            found[key] = keys[key].read(each)
        except Wrong as wrong:
            raise Wrong(f"has '{key}', which {wrong}") from None
    for key in needs:
        if key not in found:
            raise Wrong(f"needs '{key}'")
    return found


def _from_text(read_value: Callable[[Any], T], expects: str) -> Callable[[str], T]:
    def from_text(value: str) -> T:
        try:
            return read_value(tomllib.loads(f"value = {value}")["value"])
        except tomllib.TOMLDecodeError:
            raise Wrong(f"should be {expects}") from None

    return from_text


def _listed(expects: str, most: int, build: Callable[[Any], T]) -> ValueReader:
    def given(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list) or len(value) > most:
            raise Wrong(f"should be {expects}")
        found: list[T] = []
        for place, each in enumerate(value, 1):
            try:
                found.append(build(each))
            except Wrong as wrong:
                raise Wrong(f"has a table in place {place} that {wrong}") from None
        return tuple(found)

    return ValueReader(expects, given, _from_text(given, expects))


def trusted_issuers() -> ValueReader:
    """Issuers of evidence, and how far each is believed."""
    expects = 'a list of tables, such as [{issuer = "globex.example"}]'
    return _listed(
        expects, MOST_ISSUERS, lambda each: TrustedIssuer(**_table(each, _TRUSTED, ("issuer",)))
    )


def allowed() -> ValueReader:
    """Who may call an agent."""
    expects = (
        f'a list of tables, such as [{{subject = "@a@globex.example", action = "{ANYTHING}"}}]'
    )
    return _listed(expects, MOST_RULES, lambda each: AllowRule(**_table(each, _ALLOW, ())))


def federated() -> ValueReader:
    """Connectors, and which of their users are known here."""
    expects = (
        'a list of tables, such as [{issuer = "did:web:connector.example", methods = ["urn:..."], '
        'subjects = ["slack:T123/*"]}]'
    )
    needs = ("issuer", "methods", "subjects")
    listed = _listed(
        expects, MOST_ISSUERS, lambda each: FederationRule(**_table(each, _FEDERATION, needs))
    )

    def given(value: Any) -> tuple[FederationRule, ...]:
        rules: tuple[FederationRule, ...] = listed.read(value)
        issuers = {rule.issuer for rule in rules}
        hosts = {read_did(issuer).domain for issuer in issuers}
        if len(hosts) < len(issuers):  # the users of both would be the same callers
            raise Wrong("names two issuers of one host")
        return rules

    return ValueReader(expects, given, _from_text(given, expects))


def token_issuers() -> ValueReader:
    """Issuers of access tokens, by the URLs that their tokens name them by."""
    expects = 'sections, such as [identity.oauth."https://login.acme.example"]'

    def given(value: Any) -> tuple[OAuthIssuerSettings, ...]:
        if not isinstance(value, dict) or len(value) > MOST_ISSUERS:
            raise Wrong(f"should be {expects}")
        return tuple([_issuer(str(name), each) for name, each in value.items()])

    return ValueReader(expects, given, _from_text(given, expects))


def same_issuers(identity: "IdentitySettings", domain: str) -> str | None:
    """A name that two issuers would have in records, or one and this gateway; None: all differ."""
    rules = {read_did(rule.issuer).domain for rule in identity.federation}
    names = [domain, *rules, *[issuer_name(each.issuer) for each in identity.oauth]]
    return next((name for name in names if names.count(name) > 1), None)


def _issuer(name: str, value: Any) -> OAuthIssuerSettings:
    if not name.startswith(("https://", "http://")) or not (name.isascii() and name.isprintable()):
        raise Wrong(f"has an issuer '{name[:60]}' that is no URL")
    try:
        found = _table(value, _ISSUER, ())
    except Wrong as wrong:
        raise Wrong(f"has an issuer '{name[:60]}' that {wrong}") from None
    settings = OAuthIssuerSettings(issuer=name, **found)
    if (settings.jwks_url is None) == (settings.introspection_url is None):
        raise Wrong(f"has an issuer '{name[:60]}' that needs 'jwks_url' or 'introspection_url'")
    is_client = settings.client_id is not None and settings.client_secret is not None
    if settings.introspection_url is not None and not is_client:
        raise Wrong(f"has an issuer '{name[:60]}' that needs 'client_id' and 'client_secret'")
    return settings


def obtained() -> ValueReader:
    """How access tokens are obtained."""
    expects = 'a table, such as {token_url = "https://...", client_id = "acme", ...}'

    def given(value: Any) -> OAuthClientSettings:
        needs = ("token_url", "client_id", "client_secret")
        return OAuthClientSettings(**_table(value, _CLIENT, needs))

    return ValueReader(expects, given, _from_text(given, expects))


class IdentitySettings(Struct, frozen=True, kw_only=True):
    """The `[identity]` section: whose word is believed."""

    trusted: Annotated[
        tuple[TrustedIssuer, ...] | None,
        trusted_issuers(),
        "Issuers of identity evidence: issuer, methods, assurance, subject_prefixes; without the "
        "list, peers are believed of their own names.",
    ] = None
    oauth: Annotated[
        tuple[OAuthIssuerSettings, ...],
        token_issuers(),
        'Issuers of access tokens, each a section [identity.oauth."https://..."].',
    ] = ()
    contact: Annotated[
        str | None, read.text(), "Whom those may ask who are refused by the list of an agent."
    ] = None
    federation: Annotated[
        tuple[FederationRule, ...],
        federated(),
        "Connectors whose users may exchange an assertion for an access token: issuer, methods, "
        "subjects, agents, credit.",
    ] = ()
    names: Annotated[
        Literal["handle", "mailto"],
        read.one_of("handle", "mailto"),
        "How people are named to agents that are called for them: @name@domain, or their verified "
        "address of mail.",
    ] = "handle"


Allow = Annotated[
    tuple[AllowRule, ...] | None,
    allowed(),
    "Who may call it: subject, on_behalf_of, action; once there is a list, nobody else.",
]
Auth = Annotated[
    Literal["auto", "jwt", "federation"],
    read.one_of("auto", "jwt", "federation"),
    "a2a: by what it knows us; jwt is a credential that our key signs, federation an access token "
    "that it gives for one, auto goes by its card.",
]
Audience = Annotated[
    str | None,
    read.text(),
    "a2a: whom our credentials and evidence are for; by default its address, by its URL.",
]
OAuthOut = Annotated[
    OAuthClientSettings | None,
    obtained(),
    "a2a: how access tokens for it are obtained: token_url, client_id, client_secret, scope, "
    "resource.",
]
