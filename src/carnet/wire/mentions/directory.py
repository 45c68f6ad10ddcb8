"""The directory of the agents of an organisation, in the words of schema.org."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

PATH: Final = "/.well-known/mentionable-agents.json"


class DirectoryEntry(Struct, frozen=True, kw_only=True):
    """One agent of a directory."""

    name: str
    address: str
    description: str
    card: str  # its URL


def write_directory(domain: str, url: str, agents: Sequence[DirectoryEntry]) -> dict[str, Any]:
    """An organisation, with one contact point for each agent."""
    return {
        "@context": "https://schema.org",
        "@type": "Organization",
        "name": domain,
        "url": url,
        "contactPoint": [
            {
                "@type": "ContactPoint",
                "contactType": "agent",
                "name": each.name,
                "identifier": each.address,
                "description": each.description,
                "url": each.card,
            }
            for each in agents
        ],
    }
