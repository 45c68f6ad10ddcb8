"""Public keys on their way between the command line and the store.

Law. A key that would verify forged signatures is refused before anything is written.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from carnet.cli.trust.forms import read_identity
from carnet.config import Settings
from carnet.core.people.address import host_of, is_agent_uri, skeleton
from carnet.errors import UsageInvalid
from carnet.ports.trust.keys import PinnedKey
from carnet.wire.crypto.ed25519 import read_public_key

_KID: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}", re.ASCII)


def read_name(name: str) -> tuple[str, str]:
    """Whom `peers` is about: the identity and its host, whichever of them was typed."""
    if not is_agent_uri(name):
        return f"agent://{name}", name
    sender = read_identity(name)
    return sender, host_of(sender)


def new_pinned_key(sender: str, options: dict[str, Any], now: int) -> PinnedKey | None:
    """The key that `peers add` was given; none if it was given none."""
    text, kid = options["key"], options["kid"]
    if kid is not None and not _KID.fullmatch(kid):
        raise UsageInvalid(
            reason="--kid is no name of a key.",
            fix="Give the kid as the card of the peer shows it, or leave it out.",
        )
    if text:
        return PinnedKey(sender=sender, public=read_public_key(text), kid=kid, added=now)
    if kid is not None:
        raise UsageInvalid(
            reason="--kid names a key that was not given.",
            fix=f"Give both: carnet peers add {sender} --key BASE64 --kid {kid}",
        )
    return None


def refuse_without_key(sender: str) -> None:
    """Say what `peers add agent://...` is for."""
    raise UsageInvalid(
        reason=f"The key of {sender} was not given.",
        fix=f"Pin it: carnet peers add {sender} --key BASE64",
    )


def refuse_look_alike(host: str, known: Iterable[str]) -> None:
    """Refuse a host that a hurried reader takes for one that is known."""  # A57
    for other in known:
        if other != host and skeleton(other) == skeleton(host):
            raise UsageInvalid(
                reason=f"{host} looks like {other}, which is known here.",
                fix=f"Check the spelling; if both are meant, forget {other} first.",
            )


def refuse_keys_of_the_file(settings: Settings, sender: str) -> None:
    """Leave what carnet.toml pins to carnet.toml."""
    peer = settings.peers.get(host_of(sender))
    if peer is not None and peer.keys:
        raise UsageInvalid(
            reason=f"The keys of {sender} are written in {settings.source.name}.",
            fix=f"Edit 'keys' in the section [peers.\"{host_of(sender)}\"] there.",
        )


def pinned_text(page: dict[str, Any]) -> str:
    """What was pinned, for people."""
    which = f"the keyid {page['kid']}" if page["kid"] else "whatever keyid they name"
    return (
        f"Pinned the key of {page['sender']}.\n"
        f"Its signed calls are verified with it, with {which}. A running gateway notices within"
        " a second."
    )
