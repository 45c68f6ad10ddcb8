"""The card of anybody's agent: what it says, as far as we use it.

Law 1. What decides where a request goes is judged strictly: interfaces, their URLs and versions.
       Members that we do not know pass.
Law 2. A card without `supportedInterfaces` is one of 0.3, and is read in its words.
Law 3. What cannot be read raises `PeerUnreachable`, with nothing of the peer's in its safe text.
Law 4. `read_card(write(facts))` tells what the facts told.
"""

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field

from carnet.errors import InvalidJson, PeerUnreachable
from carnet.wire.dialects.a2a.card.facts import DeclaredExtension
from carnet.wire.dialects.a2a.card.signature import MOST_SIGNATURES, CardSignature
from carnet.wire.grammar import json

MOST_SKILLS: Final = 256
MOST_INTERFACES: Final = 32
MOST_EXTENSIONS: Final = 128
HTTP_BINDINGS: Final = frozenset({"JSONRPC", "HTTP+JSON"})
LEGACY: Final = "0.3"

_URL: Final = re.compile(
    r"https?://(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]{0,1024})?",
    re.ASCII,
)
_VERSION: Final = re.compile(r"([0-9]{1,4}\.[0-9]{1,4})(?:\.[0-9A-Za-z.+-]{1,32})?", re.ASCII)
_KINDS: Final = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}


class CardInterface(Struct, frozen=True, kw_only=True):
    """One way in which an agent can be reached."""

    url: str  # as it stands; of JSONRPC and HTTP+JSON an absolute http(s) URL
    binding: str
    version: str  # major and minor
    tenant: str | None = None  # to be repeated in every request


class CardSkill(Struct, frozen=True, kw_only=True):
    """One skill, as a card of the protocol shows it."""

    id: str
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()  # empty: those of the agent
    output_modes: tuple[str, ...] = ()


class AuthScheme(Struct, frozen=True, kw_only=True):
    """One way to authenticate: its kind in the words of OpenAPI, and what it says of it."""

    kind: str  # apiKey | http | oauth2 | openIdConnect | mutualTLS; empty for one not known
    given: dict[str, Any] = {}


class A2aCard(Struct, frozen=True, kw_only=True):
    """What a card tells, as far as we use it."""

    name: str
    description: str
    version: str
    interfaces: tuple[CardInterface, ...]  # in the order of preference
    streaming: bool = False
    push_notifications: bool = False
    extended: bool = False
    extensions: tuple[DeclaredExtension, ...] = ()
    skills: tuple[CardSkill, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    schemes: dict[str, AuthScheme] = {}
    requirements: tuple[dict[str, tuple[str, ...]], ...] = ()  # one of them is to be met
    organization: str | None = None
    is_legacy: bool = False
    signatures: tuple[CardSignature, ...] = ()
    members: dict[str, Any] = {}  # all of it, for the signatures

    def interface(self, *bindings: str, versions: tuple[str, ...]) -> CardInterface | None:
        """The first interface of one of the bindings and versions that are spoken."""
        spoken = (each for each in self.interfaces if each.version in versions)
        return next((each for each in spoken if each.binding in bindings), None)

    @property
    def required(self) -> tuple[str, ...]:
        """The URIs of the extensions that a client must take part in."""
        return tuple(each.uri for each in self.extensions if each.required)


_Words = Annotated[list[str], Meta(max_length=256)]


class _Interface(Struct, rename="camel"):
    url: str
    protocol_binding: str
    protocol_version: str
    tenant: str = ""


class _LegacyInterface(Struct):
    url: str
    transport: str


class _Skill(Struct, rename="camel"):
    id: str
    name: str = ""
    description: str = ""
    tags: _Words = []
    examples: _Words = []
    input_modes: _Words | None = None
    output_modes: _Words | None = None


class _Extension(Struct):
    uri: str
    description: str | None = None
    required: bool | None = None
    params: dict[str, Any] | None = None


class _Capabilities(Struct, rename="camel"):
    streaming: bool | None = None
    push_notifications: bool | None = None
    extended_agent_card: bool | None = None
    extensions: Annotated[list[_Extension], Meta(max_length=MOST_EXTENSIONS)] | None = None


class _Provider(Struct):
    organization: str = ""
    url: str = ""


class _Signature(Struct):
    protected: str
    signature: str


class _Scopes(Struct):
    list: _Words = []


class _Need(Struct):
    schemes: dict[str, _Scopes] = {}


class _Card(Struct, rename="camel"):
    name: str
    version: str
    description: str = ""
    capabilities: _Capabilities = field(default_factory=_Capabilities)
    supported_interfaces: Annotated[list[_Interface], Meta(max_length=MOST_INTERFACES)] | None = (
        None
    )
    provider: _Provider | None = None
    skills: Annotated[list[_Skill], Meta(max_length=MOST_SKILLS)] = []
    default_input_modes: _Words = []
    default_output_modes: _Words = []
    security_schemes: dict[str, dict[str, Any]] | None = None
    security_requirements: list[_Need] | None = None
    signatures: Annotated[list[_Signature], Meta(max_length=MOST_SIGNATURES)] | None = None
    # Of 0.3:
    url: str | None = None
    preferred_transport: str | None = None
    protocol_version: str | None = None
    additional_interfaces: (
        Annotated[list[_LegacyInterface], Meta(max_length=MOST_INTERFACES)] | None
    ) = None
    security: list[dict[str, _Words]] | None = None
    supports_authenticated_extended_card: bool | None = None


def read_card(body: bytes) -> A2aCard:
    """Read anybody's card; whoever fetched it has bounded its size."""
    try:
        members = json.read_object(body)
        card = msgspec.convert(members, _Card)
    except InvalidJson as error:
        raise PeerUnreachable(f"the card is not JSON: {error.safe_text}") from None
    except msgspec.ValidationError as error:
        raise PeerUnreachable(f"the card lacks what it must have: {error}") from None
    is_legacy = card.supported_interfaces is None
    found = _legacy_interfaces(card) if is_legacy else _interfaces(card.supported_interfaces or [])
    given = card.capabilities
    is_extended = given.extended_agent_card or card.supports_authenticated_extended_card
    return A2aCard(
        name=card.name,
        description=card.description,
        version=card.version,
        interfaces=found,
        streaming=given.streaming is True,
        push_notifications=given.push_notifications is True,
        extended=is_extended is True,
        extensions=tuple([_extension(each) for each in given.extensions or ()]),
        skills=tuple([_skill(each) for each in card.skills]),
        input_modes=tuple(card.default_input_modes),
        output_modes=tuple(card.default_output_modes),
        schemes={name: _scheme(each) for name, each in (card.security_schemes or {}).items()},
        requirements=_requirements(card),
        organization=card.provider.organization or None if card.provider else None,
        is_legacy=is_legacy,
        signatures=tuple(
            [CardSignature(each.protected, each.signature) for each in card.signatures or ()]
        ),
        members=members,
    )


def _interfaces(given: list[_Interface]) -> tuple[CardInterface, ...]:
    if not given:
        raise PeerUnreachable("the card names no interface")
    return tuple(
        [
            _interface(each.url, each.protocol_binding, each.protocol_version, each.tenant)
            for each in given
        ]
    )


def _legacy_interfaces(card: _Card) -> tuple[CardInterface, ...]:
    if card.url is None:
        raise PeerUnreachable("the card names no interface")
    version = card.protocol_version or LEGACY
    first = _interface(card.url, card.preferred_transport or "JSONRPC", version)
    more = [_interface(one.url, one.transport, version) for one in card.additional_interfaces or ()]
    return (first, *(each for each in more if each != first))


def _interface(url: str, binding: str, version: str, tenant: str = "") -> CardInterface:
    known = _VERSION.fullmatch(version)
    if known is None:
        raise PeerUnreachable("an interface of the card has a version that is none")
    if binding in HTTP_BINDINGS and _URL.fullmatch(url) is None:
        raise PeerUnreachable("an interface of the card has no absolute http or https URL")
    return CardInterface(url=url, binding=binding, version=known[1], tenant=tenant or None)


def _skill(given: _Skill) -> CardSkill:
    return CardSkill(
        id=given.id,
        name=given.name,
        description=given.description,
        tags=tuple(given.tags),
        examples=tuple(given.examples),
        input_modes=tuple(given.input_modes or ()),
        output_modes=tuple(given.output_modes or ()),
    )


def _extension(given: _Extension) -> DeclaredExtension:
    return DeclaredExtension(
        uri=given.uri,
        description=given.description or "",
        required=given.required is True,
        params=given.params or {},
    )


def _scheme(given: dict[str, Any]) -> AuthScheme:
    """One of 1.0, which is named by its one member, or of 0.3, which has a type."""
    for name, kind in _KINDS.items():
        if isinstance(given.get(name), dict):
            return AuthScheme(kind=kind, given=given[name])
    legacy = given.get("type")
    return AuthScheme(kind=str(legacy) if legacy in _KINDS.values() else "", given=given)


def _requirements(card: _Card) -> tuple[dict[str, tuple[str, ...]], ...]:
    needs = card.security_requirements
    if needs is not None:
        return tuple([{n: tuple(s.list) for n, s in need.schemes.items()} for need in needs])
    return tuple([{n: tuple(s) for n, s in need.items()} for need in card.security or ()])
