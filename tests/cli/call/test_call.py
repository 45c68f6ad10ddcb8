"""The request that `carnet call` makes, and what it says when nobody answers."""

import asyncio
import io
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from carnet.assembly.store import open_from
from carnet.config import Settings, load
from carnet.core.people.identity import Token
from carnet.testing.address import Address
from tests.cli.conftest import Cli
from tests.support.plain import saying_only


def stored_tokens(settings: Settings) -> Sequence[Token]:
    async def read() -> Sequence[Token]:
        store = await open_from(settings, exclusive=False)
        try:
            return await store.tokens.list()
        finally:
            await store.close()

    return asyncio.run(read())


@pytest.fixture
def closed() -> Iterator[Address]:
    """Where nobody listens."""
    with Address() as held:
        yield held


@pytest.fixture
def nobody(home: Path) -> str:
    """The address of a gateway that does not run."""
    return load(home / "carnet.toml", {}).gateway.public_url


def test_a_dry_run_prints_the_exact_request_and_sends_nothing(cli: Cli, nobody: str) -> None:
    page = cli("call", "echo", "hello", "--dry-run", "--format", "json").page
    assert page == {
        "method": "POST",
        "url": f"{nobody}/v1/chat/completions",
        "headers": {
            "content-type": "application/json",
            "accept": "application/json",
            "authorization": "Bearer ***",
        },
        "body": {
            "model": "echo",
            "messages": [{"role": "user", "content": "hello"}],
            "stream": False,
        },
    }


def test_a_dry_run_is_readable_and_hides_the_token(cli: Cli, nobody: str) -> None:
    ran = cli("call", "echo", "hi", "--dry-run", "--as", "sk-shown-nowhere", "--stream")
    assert ran.out.startswith(f"POST {nobody}/v1/chat/completions\n")
    assert "authorization: Bearer ***" in ran.out
    assert "include_usage" in ran.out
    assert "sk-shown-nowhere" not in ran.out + ran.err


@pytest.mark.usefixtures("nobody")
def test_a_dash_reads_the_text_from_standard_input(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe"))
    page = cli("call", "echo", "-", "--dry-run", "--format", "json").page
    assert page["body"]["messages"][0]["content"] == "from a pipe"


@pytest.mark.usefixtures("nobody")
def test_an_origin_sends_run_and_turn_but_never_a_depth(cli: Cli) -> None:
    page = cli(
        "call", "echo", "x", "--run", "r1", "--turn", "t1", "--dry-run", "--format", "json"
    ).page
    assert page["headers"]["x-tangle-runid"] == "r1"
    assert page["headers"]["x-tangle-turnid"] == "t1"
    assert not [name for name in page["headers"] if "depth" in name]


def test_a_dry_run_to_a_peer_shows_the_request_that_goes_through_the_gateway(
    cli: Cli, nobody: str
) -> None:
    page = cli("call", "@critic@b.example", "x", "--dry-run", "--format", "json").page
    assert page["url"] == f"{nobody}/v1/chat/completions"
    assert page["body"]["model"] == "@critic@b.example"


def test_a_dry_run_to_an_identity_shows_the_request_that_goes_through_the_gateway(
    cli: Cli, nobody: str
) -> None:
    cli("peers", "add", "b.example", "--url", "http://127.0.0.1:9", "--dialect", "samvad")
    page = cli("call", "agent://b.example", "x", "--dry-run", "--format", "json").page
    assert page["url"] == f"{nobody}/v1/chat/completions"
    assert page["body"]["model"] == "agent://b.example"
    ran = cli("call", "agent://b.example", "x", "--dry-run", "--key", "k")
    assert (ran.code, "--direct" in ran.err) == (2, True)


def test_a_direct_dry_run_shows_the_request_as_it_would_go_to_the_peer(
    cli: Cli, home: Path
) -> None:
    (home / "t").write_text("peer-credential\n")
    cli("peers", "add", "b.example", "--url", "http://127.0.0.1:8702", "--token-file", "t")
    ran = cli("call", "@critic@b.example", "x", "--dry-run", "--direct", "--format", "json")
    assert ran.page["url"] == "http://127.0.0.1:8702/agents/critic/v1/chat/completions"
    assert ran.page["body"]["model"] == "critic"
    assert ran.page["headers"]["authorization"] == "Bearer ***"
    assert "peer-credential" not in ran.out


@pytest.mark.usefixtures("home")
def test_a_direct_call_to_an_unknown_peer_is_refused(cli: Cli) -> None:
    ran = cli("call", "@critic@nowhere.example", "x", "--direct")
    assert ran.code == 1
    assert "carnet peers add" in ran.err


@pytest.mark.usefixtures("home")
def test_a_local_agent_has_no_direct_way(cli: Cli) -> None:
    assert "Leave out --direct" in cli("call", "echo", "x", "--direct").err


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://127.0.0.1:9", "http://127.0.0.1:9/v1/chat/completions"),
        ("http://127.0.0.1:9/v1/", "http://127.0.0.1:9/v1/chat/completions"),
        ("http://127.0.0.1:9/v1/chat/completions", "http://127.0.0.1:9/v1/chat/completions"),
        (
            "http://127.0.0.1:9/agents/echo",
            "http://127.0.0.1:9/agents/echo/v1/chat/completions",
        ),
    ],
)
def test_a_url_is_called_directly_in_the_dialect_that_is_named(
    cli: Cli, address: str, url: str
) -> None:
    ran = cli("call", address, "x", "--dialect", "openai", "--dry-run", "--format", "json")
    assert ran.page["url"] == url
    assert "authorization" not in ran.page["headers"]  # our operator is nobody there


def test_the_model_of_an_endpoint_can_be_named_and_only_there(cli: Cli) -> None:
    words = ("x", "--model", "some-model", "--dry-run", "--format", "json")
    page = cli("call", "http://127.0.0.1:9", *words, "--dialect", "openai").page
    assert page["body"]["model"] == "some-model"
    assert cli("call", "echo", *words).code == 2


def test_a_url_without_a_dialect_is_bad_usage(cli: Cli) -> None:
    ran = cli("call", "http://127.0.0.1:9", "x")
    assert ran.code == 2
    assert "--dialect openai" in ran.err


@pytest.mark.usefixtures("nobody")
def test_a_skill_is_asked_for_by_name_with_text_and_json_fields(cli: Cli) -> None:
    words = ("agent://b.example", "skill=add", "a:=2", "note=two", "--format", "json")
    page = cli("call", "echo", "skill=add", "a:=2", "note=two", "--dry-run", *words[-2:]).page
    assert page["body"]["carnet"] == {"skill": "add", "payload": {"a": 2, "note": "two"}}
    assert page["body"]["messages"][0]["content"] == '{"a":2,"note":"two"}'


@pytest.mark.usefixtures("nobody")
def test_a_text_beside_a_skill_is_its_field_text(cli: Cli) -> None:
    words = ("call", "echo", "some words", "--skill", "tell", 'skill:="x"', "--dry-run")
    page = cli(*words, "--format", "json").page
    payload = {"text": "some words", "skill": "x"}
    assert page["body"]["carnet"] == {"skill": "tell", "payload": payload}


@pytest.mark.usefixtures("nobody")
def test_one_word_is_what_to_say_whatever_it_holds(cli: Cli) -> None:
    page = cli("call", "echo", "a=b", "--dry-run", "--format", "json").page
    assert page["body"]["messages"][0]["content"] == "a=b"
    assert "carnet" not in page["body"]


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to say"),
        (("a=1", "b=2"), "no skill"),
        (("one", "two"), "more than one text"),
        (("skill=x", "a:={"), "no JSON"),
        (("skill=book", "--skill", "answer"), "more than one skill: 'answer' and 'book'"),
        (("skill=book", "skill=answer"), "more than one skill: 'book' and 'answer'"),
        (("x", "--key", "k"), "--key is for"),
    ],
)
def test_words_that_make_no_sense_are_bad_usage(
    cli: Cli, words: tuple[str, ...], message: str
) -> None:
    ran = cli("call", "echo", *words, "--dry-run")
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.usefixtures("home")
def test_our_own_identity_has_no_direct_way(cli: Cli) -> None:
    for address in ("agent://acme.example", "agent://echo.acme.example"):
        assert "no direct way" in cli("call", address, "x", "--direct").err


@pytest.mark.usefixtures("home")
def test_a_handle_without_its_first_sign_is_told_what_was_meant(cli: Cli) -> None:
    ran = cli("call", "clerk@b.example", "x")
    assert (ran.code, "Did you mean '@clerk@b.example'?" in ran.err) == (2, True)


@pytest.mark.usefixtures("home")
def test_a_direct_call_to_a_peer_without_a_token_is_to_be_signed(cli: Cli) -> None:
    cli("peers", "add", "b.example", "--url", "http://127.0.0.1:9")
    ran = cli("call", "@clerk@b.example", "x", "--direct")
    assert (ran.code, "agent://clerk.b.example --direct" in ran.err) == (2, True)


def test_skills_are_not_asked_of_an_openai_endpoint(cli: Cli) -> None:
    ran = cli("call", "http://127.0.0.1:9", "skill=x", "--dialect", "openai")
    assert (ran.code, "no skills" in ran.err) == (2, True)


@pytest.mark.usefixtures("home")
def test_a_handle_of_a_samvad_peer_is_called_directly_by_its_identity(cli: Cli) -> None:
    cli("peers", "add", "b.example", "--url", "http://127.0.0.1:9", "--dialect", "samvad")
    ran = cli("call", "@critic@b.example", "x", "--direct")
    assert (ran.code, "agent://critic.b.example" in ran.err) == (2, True)


def test_a_card_that_nobody_serves_is_unreachable(
    cli: Cli, tmp_path: Path, closed: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    url = closed.url
    for words in (("agents", "inspect", url), ("call", url, "x", "--dialect", "samvad")):
        ran = cli(*words, "--format", "json")
        assert (ran.code, ran.error["code"]) == (3, "peer_unreachable")
        assert f"nothing answers at {url}" in ran.error["message"]
        assert "_un" not in ran.error["message"]  # no code of ours within a sentence
    assert (tmp_path / ".carnet" / "client.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("status", "code", "exit_code", "words"),
    [
        (404, "peer_agent_not_found", 1, "there is no card at http://127.0.0.1:"),
        (403, "peer_unreachable", 3, "was answered with 403"),
    ],
)
def test_a_card_that_is_not_there_is_told_from_one_that_is_not_shown(
    cli: Cli, tmp_path: Path, status: int, code: str, exit_code: int, words: str
) -> None:
    with saying_only(status) as url:
        for command in (
            ("agents", "inspect", url),
            ("call", url, "x", "--dialect", "samvad", "--key", str(tmp_path / "k")),
        ):
            ran = cli(*command, "--format", "json")
            assert (ran.code, ran.error["code"]) == (exit_code, code)
            assert words in ran.error["message"]
            assert "Check the address" in ran.error["hint"]


@pytest.mark.usefixtures("home")
def test_the_card_of_a_peer_is_looked_for_where_we_know_it_to_be(cli: Cli) -> None:
    with saying_only(404) as url:
        cli("peers", "add", "b.example", "--url", url)
        for address, path in (
            ("agent://b.example", ""),
            ("@clerk@b.example", "/agents/clerk"),
            ("agent://clerk.b.example", "/agents/clerk"),
        ):
            ran = cli("agents", "inspect", address)
            assert f"there is no card at {url}{path}/.well-known/agent.json" in ran.err


@pytest.mark.usefixtures("home")
def test_ids_that_cannot_travel_are_refused(cli: Cli) -> None:
    assert cli("call", "echo", "x", "--run", "a\nb", "--dry-run").code == 2


def test_without_a_gateway_the_command_that_starts_it_is_told(cli: Cli, nobody: str) -> None:
    ran = cli("call", "echo", "hello")
    assert ran.code == 3
    assert nobody in ran.err
    assert "carnet serve" in ran.err
    in_json = cli("call", "echo", "hello", "--format", "json")
    assert (in_json.code, in_json.error["code"]) == (3, "unreachable")


@pytest.mark.usefixtures("nobody")
def test_a_token_made_for_a_call_has_ended_with_it(cli: Cli) -> None:
    cli("call", "echo", "hello")
    rows = cli("tokens", "list", "--all", "--format", "json").page["tokens"]
    assert [row["name"] for row in rows] == ["starter"]  # nobody could use or end it
    settings = load(Path("carnet.toml"), {})
    (made,) = [token for token in stored_tokens(settings) if token.account == "operator"]
    assert made.name.startswith("operator#")
    assert made.revoked is not None
    assert made.forwardable is False


@pytest.mark.usefixtures("home")
def test_our_own_token_is_not_sent_to_another_machine(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARNET_URL", "https://gw.globex.example")
    ran = cli("call", "echo", "x")
    assert ran.code == 2
    assert "CARNET_TOKEN" in ran.err


@pytest.mark.parametrize("url", ["gw", "ftp://x", "http://"])
def test_a_gateway_address_that_is_none_is_refused(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("CARNET_URL", url)
    assert cli("call", "echo", "x", "--as", "t").code == 2


@pytest.mark.usefixtures("nobody")
def test_a_token_file_that_is_not_there_is_bad_usage(cli: Cli) -> None:
    ran = cli("call", "echo", "x", "--as", "@nowhere")
    assert ran.code == 2
    assert "token file" in ran.err


@pytest.mark.usefixtures("home")
def test_runs_of_another_gateway_are_not_looked_for_here(
    cli: Cli, closed: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARNET_URL", closed.url)
    assert cli("runs").code == 3
    assert cli("tail").code == 3


def test_the_time_that_a_gateway_asks_for_is_told(cli: Cli) -> None:
    class Busy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = b'{"error": {"code": "peer_busy", "message": "Not now."}}'
            self.send_response(503)
            self.send_header("retry-after", "7200")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        words = ("call", f"http://127.0.0.1:{server.server_port}", "x", "--dialect", "openai")
        text, error = cli(*words).err, cli(*words, "--format", "json").error
        server.shutdown()
    assert "Retry-After: 2 h\n" in text
    assert error["retry_after"] == 7200
