"""Where tokens are asked for: at the host of the agent, or at one that the operator lists."""

from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from carnet.errors import PeerCredentialMissing
from carnet.runtime.peers.a2a.federation import FederatedTokens, FederationOffer
from carnet.runtime.peers.a2a.own_evidence import Attesting, Caused
from carnet.testing.clock import FakeClock
from carnet.wire.grammar import json
from tests.runtime.peer import Peer, answering, opened, reply

NOBODY = cast("Attesting", None)  # nothing is vouched for before it is known to whom
CAUSE = Caused("@uma@acme.example", "session")


def page(**members: Any) -> bytes:
    return reply(json.write(members), headers={"content-type": "application/json"})


async def refused(peer: Peer, *, is_own: bool) -> str:
    """Why no token is asked for."""
    at = urlsplit(peer.url).netloc
    async with opened(allow=[at]) as http:
        tokens = FederatedTokens(
            http, NOBODY, FakeClock(), lambda url: is_own and urlsplit(url).netloc == at
        )
        with pytest.raises(PeerCredentialMissing) as error:
            await tokens.token(FederationOffer(f"http://{at}/meta", peer.url), CAUSE)
        await tokens.close()
    return str(error.value)


async def test_a_server_that_the_card_names_elsewhere_is_not_asked() -> None:
    async with Peer(answering(page(token_endpoint="https://globex.example/token"))) as peer:
        assert "another host" in await refused(peer, is_own=False)
        assert peer.requests == []


async def test_a_server_that_gives_tokens_elsewhere_is_shown_no_assertion() -> None:
    async with Peer(answering(page(token_endpoint="https://globex.example/token"))) as peer:
        assert "another host" in await refused(peer, is_own=True)
        assert len(peer.requests) == 1
