"""A2A cards for people: fetched, verified, shown and judged."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from carnet.cli.invocation import Invocation, in_line, table

if TYPE_CHECKING:
    from carnet.ports.world.http_client import HttpClient
    from carnet.runtime.peers.a2a.verification import CardVerification, JudgedCard
    from carnet.runtime.peers.cards import Fetching, Site
    from carnet.wire.dialects.a2a.card import A2aCard
    from carnet.wire.dialects.a2a.card.findings import CardFinding

CARD_PATH = "/.well-known/agent-card.json"
NAMED_PATH = "/.well-known/agent-card/"

_WORTH = {
    "verified": "holds",
    "broken": "does NOT hold",
    "unsigned": "none",
    "key-unknown": "not verified: no key that may be believed",
    "not-verifiable": "not verified: not made with EdDSA",
}
_SOURCES = {
    "pinned": "a key that you have pinned",
    "carnet.json": "a key that its own host shows in carnet.json",
    "jku": "a key that its own host shows",
}


def card_place(url: str) -> tuple[str, str] | None:
    """Where an agent is and the path of its A2A card, for a URL that names such a card."""
    trimmed = url.rstrip("/")
    if trimmed.endswith(CARD_PATH):
        return trimmed.removesuffix(CARD_PATH), CARD_PATH
    base, found, name = trimmed.rpartition(NAMED_PATH)
    return (base, found + name) if found and "/" not in name else None


async def inspect_card(
    invocation: Invocation, http: "HttpClient", site: "Site", path: str
) -> dict[str, Any]:
    """The page of a card."""
    from carnet.runtime.peers.cards import Fetching
    from carnet.wire.dialects.a2a.card import read_card

    fetching = Fetching(http)
    card = read_card(await fetching.page(site, path))
    async with _verification(invocation, fetching) as verification:
        return _page(site.url + path, card, await verification.judge(card, site))


async def judge_card(
    invocation: Invocation, fetching: "Fetching", site: "Site", body: bytes
) -> "list[CardFinding]":
    """What is wrong with a card."""
    from carnet.wire.dialects.a2a.card.findings import findings_of, signature_finding

    card, findings = findings_of(body, url=site.url)
    if card is None:
        return findings
    async with _verification(invocation, fetching) as verification:
        signature = signature_finding((await verification.judge(card, site)).verdict)
    return findings if signature is None else [*findings, signature]


@asynccontextmanager
async def _verification(
    invocation: Invocation, fetching: "Fetching"
) -> "AsyncIterator[CardVerification]":
    from carnet.assembly.store import opened
    from carnet.cli.reach.recipient import has_settings
    from carnet.runtime.peers.a2a.verification import CardVerification
    from carnet.runtime.system import SystemClock

    if not has_settings(invocation):
        yield CardVerification(fetching, lambda _identity: (), SystemClock())
        return
    async with opened(invocation.settings) as store:
        yield CardVerification(fetching, store.pinned.of, SystemClock())


def _page(url: str, card: "A2aCard", judged: "JudgedCard") -> dict[str, Any]:
    verdict = judged.verdict
    return {
        "url": url,
        "protocol": "a2a",
        "name": card.name,
        "description": card.description,
        "version": card.version,
        "provider": card.organization,
        "interfaces": [
            {
                "url": each.url,
                "binding": each.binding,
                "version": each.version,
                "tenant": each.tenant,
            }
            for each in card.interfaces
        ],
        "streaming": card.streaming,
        "push_notifications": card.push_notifications,
        "extended_card": card.extended,
        "extensions": [
            {"uri": each.uri, "required": each.required, "params": each.params}
            for each in card.extensions
        ],
        "schemes": {name: scheme.kind for name, scheme in card.schemes.items()},
        "needs": [
            {name: list(scopes) for name, scopes in need.items()} for need in card.requirements
        ],
        "skills": [
            {
                "id": skill.id,
                "description": skill.description,
                "tags": list(skill.tags),
                "examples": list(skill.examples),
                "input_modes": list(skill.input_modes or card.input_modes),
                "output_modes": list(skill.output_modes or card.output_modes),
            }
            for skill in card.skills
        ],
        "signature": {
            "state": verdict.state,
            "kid": verdict.kid,
            "key_from": judged.source,
            "detail": verdict.detail or None,
        },
    }


def page_text(page: dict[str, Any]) -> str:
    """The same for people."""
    ways = [[one["binding"], one["version"], one["url"]] for one in page["interfaces"]]
    skills = [
        [one["id"], ", ".join(one["tags"]), ", ".join(one["input_modes"]), one["description"]]
        for one in page["skills"]
    ]
    versions = sorted({one["version"] for one in page["interfaces"]}, reverse=True)
    own = {"streaming": "streams", "push_notifications": "notifies", "extended_card": "tells more"}
    able = [word for name, word in own.items() if page[name]]
    return "\n".join(
        [
            in_line(f"{page['name']} {page['version']}  (A2A {', '.join(versions)})"),
            *([in_line(page["description"])] if page["description"] else []),
            *([in_line(f"It {', '.join(able)}.")] if able else []),
            in_line(f"Callers need {_needs(page)}."),
            in_line(f"Signature: {_worth(page['signature'])}."),
            "",
            table(ways, ["BINDING", "VERSION", "URL"]),
            "",
            table(skills, ["SKILL", "TAGS", "TAKES", ""]),
            *_extensions(page),
        ]
    )


def _needs(page: dict[str, Any]) -> str:
    ways = [
        " and ".join(
            f"{name} ({', '.join(scopes)})" if scopes else name for name, scopes in need.items()
        )
        for need in page["needs"]
    ]
    return " or ".join(ways) or "nothing"


def _worth(signature: dict[str, Any]) -> str:
    source = _SOURCES.get(signature["key_from"])
    by = f", by {source} ({signature['kid']})" if source else ""
    return _WORTH[signature["state"]] + by


def _extensions(page: dict[str, Any]) -> list[str]:
    rows = [[one["uri"], "required" if one["required"] else ""] for one in page["extensions"]]
    return ["", table(rows, ["EXTENSION", ""])] if rows else []
