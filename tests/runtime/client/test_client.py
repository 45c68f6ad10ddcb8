"""The client without a gateway: its key, where addresses lead, and what it keeps open."""

import traceback
from pathlib import Path

import pytest

import carnet
from carnet.errors import AddressInvalid, ConfigInvalid, PeerAgentNotFound, UsageInvalid
from carnet.runtime.agents.samvad_peer import as_text
from carnet.runtime.client.client import read_address
from carnet.runtime.client.key import load_key
from carnet.wire.crypto import ed25519
from tests.runtime.peers.globex import Globex, answer, card, form_of, refusal


def test_a_key_is_made_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "client.key"
    file.parent.mkdir()
    made = load_key(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert load_key(file).public == made.public
    assert load_key(tmp_path / "other.key").kid != made.kid
    assert [path.name for path in file.parent.iterdir()] == ["client.key"]
    assert ed25519.holds(made.public, b"x", made.sign(b"x"))


def test_no_folder_is_made_for_a_key_but_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    load_key()
    assert (tmp_path / ".carnet").stat().st_mode & 0o777 == 0o700
    with pytest.raises(ConfigInvalid, match="there is no folder"):
        load_key(tmp_path / "typo" / "client.key")
    assert not (tmp_path / "typo").exists()


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "client.key"
    load_key(file)
    file.chmod(0o640)
    with pytest.raises(ConfigInvalid, match="chmod 600"):
        load_key(file)


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!", "A" * 200])
def test_a_file_that_holds_no_key_is_told_so(tmp_path: Path, text: str) -> None:
    file = tmp_path / "client.key"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ConfigInvalid, match="holds no Ed25519 key"):
        load_key(file)


def test_a_key_that_cannot_be_made_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigInvalid, match="cannot be"):
        load_key(tmp_path / "file" / "client.key")


def test_a_key_does_not_show_its_private_half(tmp_path: Path) -> None:
    file = tmp_path / "client.key"
    key = load_key(file)
    assert file.read_text().strip() not in repr(key)
    assert key.public_text in repr(key)


@pytest.mark.parametrize(
    ("address", "url", "expected"),
    [
        ("agent://globex.example", "https://globex.example", "agent://globex.example"),
        (
            "@critic@globex.example",
            "https://globex.example/agents/critic",
            "agent://critic.globex.example",
        ),
        ("http://127.0.0.1:8700/", "http://127.0.0.1:8700", None),
        ("https://x.example/a/.well-known/agent.json", "https://x.example/a", None),
    ],
)
def test_an_address_leads_to_a_place(address: str, url: str, expected: str | None) -> None:
    assert read_address(address) == (url, expected)


@pytest.mark.parametrize("address", ["echo", "", "ftp://x.example"])
def test_what_is_no_address_is_told_so(address: str) -> None:
    with pytest.raises(UsageInvalid):
        read_address(address)


@pytest.mark.parametrize("address", ["agent://client-x", "agent://127.0.0.1", "@x@localhost"])
def test_an_address_without_a_domain_leads_nowhere(address: str) -> None:
    with pytest.raises(AddressInvalid):
        read_address(address)


@pytest.mark.parametrize(
    ("result", "text"),
    [({"text": "hi"}, "hi"), ({"reply": "hi"}, "hi"), ({"n": 1}, '{"n":1}'), ({}, "{}")],
)
def test_a_result_is_shown_as_its_only_text_or_as_json(
    result: dict[str, object], text: str
) -> None:
    assert as_text(result) == text


async def test_calls_share_their_connection_and_differ_in_nonce_trace_and_span(
    tmp_path: Path,
) -> None:
    async with (
        Globex(answer(text="well"), is_carnet=True) as peer,
        carnet.connect(f"http://127.0.0.1:{peer.port}", key=tmp_path / "k") as client,
    ):
        for _ in range(5):
            assert await client.call("chat", {"text": "a"}, text="b") == {"text": "well"}
        assert client.sender == f"agent://client-{client.key.kid}"
    assert peer.connections == 1
    assert [body["payload"] for body in peer.bodies] == [{"text": "b"}] * 5
    for name in ("nonce", "traceId", "spanId"):
        assert len({body[name] for body in peer.bodies}) == 5
    assert {form_of(request) for request in peer.posts} == {"samvad"}  # a person has no chain


async def test_a_client_can_be_told_trace_span_token_and_sender(tmp_path: Path) -> None:
    async with (
        Globex(answer(text="well")) as peer,
        carnet.connect(
            f"http://127.0.0.1:{peer.port}",
            key=tmp_path / "k",
            token="t1",
            sender="agent://me.example",
        ) as client,
    ):
        await client.within(trace_id="r", span_id="s", parent_span_id="p").chat("hi")
        await client.within(token="t2").chat("hi")
    first, second = peer.bodies
    assert (first["traceId"], first["spanId"], first["parentSpanId"]) == ("r", "s", "p")
    assert first["from"] == "agent://me.example"
    assert (first["auth"]["token"], second["auth"]["token"]) == ("t1", "t2")
    assert "parentSpanId" not in second


async def test_somebody_else_than_expected_is_not_called(tmp_path: Path) -> None:
    async with Globex(answer(text="well"), page=card(identity="agent://evil.example")) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        async with carnet.connect(url, key=tmp_path / "k", identity="agent://b.example") as client:
            with pytest.raises(PeerAgentNotFound):
                await client.chat("hi")
        assert peer.posts == []


async def test_a_client_without_a_gateway_reads_the_card_of_a_carnet(tmp_path: Path) -> None:
    async with (
        Globex(answer(text="well"), is_carnet=True) as peer,
        carnet.connect(f"http://127.0.0.1:{peer.port}", key=tmp_path / "k") as client,
    ):
        assert [skill.id for skill in (await client.card()).skills] == ["chat", "add"]


async def test_an_error_that_nobody_catches_says_what_to_do(tmp_path: Path) -> None:
    """Whoever is not known yet is told the command that admits it, with its own key."""
    refused = refusal(401, "AUTH_FAILED", {"carnet-code": "key_unknown"})
    async with Globex(refused) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        async with carnet.connect(url, key=tmp_path / "client.key") as client:
            for ask in (client.call("add"), client.chat("hi"), client.task("add")):
                with pytest.raises(carnet.CarnetError) as met:
                    await ask
                shown = "".join(traceback.format_exception(met.value))
                admit = f"carnet peers add {client.sender} --key {client.key.public_text}"
                assert shown.count(admit) == 1
                assert admit in met.value.next_step
