"""WebFinger (RFC 7033) for agents: from `acct:name@domain` to the card of the agent.

    GET https://DOMAIN/.well-known/webfinger?resource=acct:NAME@DOMAIN

Law 1. The subject is lower-cased; links stand in their order: the card, then the page for people.
Law 2. Of a document of others the subject must be whom we asked for, and the card's link is https,
       or http where that was asked for in the same way. The former name of the link is read, and
       never written.
Law 3. `read_card_url(write_document(...))` is the card's URL.
"""

from typing import Any, Final

from carnet.core.people.address import Address, parse_acct
from carnet.errors import AddressInvalid, InvalidJson, PeerUnreachable
from carnet.wire.grammar import json
from carnet.wire.grammar.query import Query

PATH: Final = "/.well-known/webfinger"
MEDIA: Final = "application/jrd+json"
ACCEPT: Final = "application/jrd+json, application/json"
CARD_REL: Final = "https://mentionable.dev/ns/rel/agent-card"
FORMER_CARD_REL: Final = "https://mentionable.dev/agent-card"
PROFILE_REL: Final = "http://webfinger.net/rel/profile-page"
MOST_LINKS: Final = 64
MOST_URL: Final = 2048
MOST_ASKED: Final = 400  # characters of a resource


def read_resource(query: Query) -> Address | None:
    """Whom a question is about, in lower case; None if it is nobody that an agent could be."""
    values = query.get("resource", [])
    if len(values) != 1 or len(values[0]) > MOST_ASKED:
        return None
    try:
        return parse_acct(values[0].lower())
    except AddressInvalid:
        return None


def write_document(address: Address, *, card: str, page: str, rels: list[str]) -> dict[str, Any]:
    """What is told of an agent; of its links those of `rels`, all if there are none."""
    links = [
        {"rel": CARD_REL, "type": "application/json", "href": card},
        {"rel": PROFILE_REL, "type": "text/html", "href": page},
    ]
    wanted = [link for link in links if not rels or link["rel"] in rels]
    return {"subject": acct_of(address), "links": wanted}


def acct_of(address: Address) -> str:
    """An address as WebFinger names it."""
    return f"acct:{address.local.lower()}@{address.domain}"


def question_of(address: Address) -> str:
    """The path and query that ask for an agent."""
    return f"{PATH}?resource=acct%3A{address.local}%40{address.domain}"


def read_card_url(body: bytes, address: Address) -> str:
    """Where the card of an agent is, by what its domain tells of it."""
    try:
        stated = json.read_object(body)
    except InvalidJson:
        raise PeerUnreachable("what WebFinger answers is no JSON") from None
    subject = stated.get("subject")
    if not isinstance(subject, str) or subject.lower() != acct_of(address):
        raise PeerUnreachable("WebFinger tells of another subject")
    links = stated.get("links")
    if not isinstance(links, list) or len(links) > MOST_LINKS:
        raise PeerUnreachable(f"WebFinger tells no list of at most {MOST_LINKS} links")
    for rel in (CARD_REL, FORMER_CARD_REL):
        for link in links:
            if isinstance(link, dict) and link.get("rel") == rel:
                return _url(link.get("href"))
    raise PeerUnreachable("WebFinger names no card of an agent")


def _url(value: object) -> str:
    is_url = isinstance(value, str) and value.startswith(("https://", "http://"))
    if not isinstance(value, str) or not is_url or len(value) > MOST_URL:
        raise PeerUnreachable("WebFinger names a card that is no URL")
    return value
