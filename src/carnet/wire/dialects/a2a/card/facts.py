"""What a card of ours tells, before it is written in the words of the protocol."""

import hashlib
from base64 import b64encode
from typing import Any, Final

from msgspec import Struct

from carnet.core.people.identity import Skill
from carnet.wire.dialects.dialect import AgentView, Terms

BEARER: Final = "bearer"  # what our one security scheme is called
MOST_ORIGIN_BYTES: Final = 64 * 1024  # of a card that is embedded whole

TERMS_URI: Final = "urn:carnet:a2a:terms:v1"
ORIGIN_URI: Final = "urn:carnet:a2a:origin:v1"


class DeclaredExtension(Struct, frozen=True, kw_only=True):
    """An extension as a card declares it."""

    uri: str
    description: str = ""
    required: bool = False
    params: dict[str, Any] = {}


class OriginCard(Struct, frozen=True, kw_only=True):
    """The card of an agent behind one of ours, as its server gave it (R22)."""

    url: str  # where it was read
    body: bytes

    def extension(self) -> DeclaredExtension:
        """How our card holds it: as the text that it is, so that its own signatures still hold."""
        digest = b64encode(hashlib.sha256(self.body).digest()).decode()
        params = {"url": self.url, "digest": f"sha-256=:{digest}:"}
        if len(self.body) <= MOST_ORIGIN_BYTES:
            params["card"] = self.body.decode()
        return DeclaredExtension(
            uri=ORIGIN_URI,
            description="The card of the agent behind this one, untouched, and its digest.",
            params=params,
        )


class Reach(Struct, frozen=True, kw_only=True):
    """An agent that a caller may call, as an extended card names it."""

    name: str
    card: str  # its URL


class A2aFacts(Struct, frozen=True, kw_only=True):
    """What a card of ours tells."""

    name: str
    version: str
    description: str
    url: str  # before `/a2a`
    organization: str
    organization_url: str
    permission: str  # that a token must hold
    skills: tuple[Skill, ...]
    terms: Terms | None = None
    extensions: tuple[DeclaredExtension, ...] = ()  # beside those of the terms and the origin
    origin: OriginCard | None = None
    is_legacy: bool = True  # clients of 0.3 are to read it too
    may_call: tuple[Reach, ...] = ()  # of an extended card: what its reader may call here

    @property
    def declared(self) -> tuple[DeclaredExtension, ...]:
        """All extensions."""
        own = [] if self.terms is None else [_terms(self.terms, self.may_call)]
        origin = [] if self.origin is None else [self.origin.extension()]
        return (*self.extensions, *own, *origin)


def _terms(terms: Terms, may_call: tuple[Reach, ...]) -> DeclaredExtension:
    known = {name: value for name, value in terms.page().items() if value not in (None, [])}
    agents = [{"name": one.name, "card": one.card} for one in may_call]
    return DeclaredExtension(
        uri=TERMS_URI,
        description="What a call costs, and what bounds it.",
        params=known | ({"agents": agents} if agents else {}),
    )


def facts_of(
    view: AgentView,
    *,
    permission: str,
    domain: str,
    public_url: str,
    extensions: tuple[DeclaredExtension, ...] = (),
    origin: OriginCard | None = None,
    is_legacy: bool = True,
) -> A2aFacts:
    """What the card of an agent tells to everybody."""
    return A2aFacts(
        name=view.name,
        version=view.version,
        description=view.description,
        url=view.url.rstrip("/"),
        organization=domain,
        organization_url=public_url,
        permission=permission,
        skills=view.skills,
        terms=view.terms,
        extensions=extensions,
        origin=origin,
        is_legacy=is_legacy,
    )
