"""Where the addresses of participants lead."""

from pathlib import Path

import pytest

from carnet.core.messages.events import joined_text
from carnet.errors import PeerUnreachable
from carnet.runtime.dialogue.callees import Callees
from carnet.testing.clock import FakeClock, FakeIds
from tests.runtime.peer import Peer, answering, leading_to, opened, reply
from tests.runtime.scene import collect, completion, make_call


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("@critic@globex.example", "globex.example"),
        ("agent://critic.globex.example", "critic.globex.example"),
    ],
)
async def test_an_address_of_the_signed_dialect_leads_to_the_card_of_its_host(
    address: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    lookup, asked = leading_to()
    async with opened(lookup=lookup) as http:
        callees = Callees(clock=FakeClock(), ids=FakeIds(), currency="credits", http=http)
        with pytest.raises(PeerUnreachable):
            await collect(callees.elsewhere(address), make_call())
        await callees.close()
    assert set(asked) == {host}


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/agents/critic", "/agents/critic/v1/chat/completions"),
        ("/agents/critic/v1/", "/agents/critic/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("", "/v1/chat/completions"),
    ],
)
async def test_a_url_leads_to_its_chat_completions(path: str, asked: str) -> None:
    async with Peer(answering(reply(completion("well")))) as peer, opened() as http:
        callees = Callees(clock=FakeClock(), ids=FakeIds(), currency="credits", http=http)
        url = f"http://127.0.0.1:{peer.port}{path}"
        events = await collect(callees.elsewhere(url), make_call())
        assert joined_text(events) == "well"
        assert peer.requests[0].lines[0] == f"POST {asked} HTTP/1.1"
