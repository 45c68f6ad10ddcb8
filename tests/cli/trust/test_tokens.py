"""Tokens and peers from the command line."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

URL = "http://127.0.0.1:8702"


def test_a_token_is_printed_once_and_alone_on_stdout(cli: Cli, home: Path) -> None:
    ran = cli("tokens", "create", "alice")
    assert ran.code == 0
    token = ran.out.strip()
    assert len(token) > 20
    assert " " not in token
    assert "alice" in ran.err
    assert token not in cli("tokens", "list").out
    assert token.encode() not in b"".join(p.read_bytes() for p in home.rglob("var/carnet.db*"))


@pytest.mark.usefixtures("home")
def test_a_plain_token_has_the_documented_permissions(cli: Cli) -> None:
    page = cli("tokens", "create", "alice", "--format", "json").page
    assert page["name"] == "alice"
    assert page["scopes"] == [
        *("call:*", "call:remote", "memory:read", "memory:write", "pay"),
        *("run:cancel", "run:read", "triggers"),
    ]
    assert (page["forwardable"], page["may_forward_authorization"]) == (False, False)
    assert (page["peer"], page["rate"], page["limit"], page["expires"]) == (None,) * 4


@pytest.mark.usefixtures("home")
def test_a_token_can_be_narrowed_and_bound(cli: Cli) -> None:
    page = cli(
        *("tokens", "create", "globex", "--scope", "call:echo", "--scope", "pay"),
        *("--forwardable", "--may-forward-authorization", "--peer", "globex.example"),
        *("--rate", "60/min", "--limit", "2.5", "--expires", "30d", "--format", "json"),
    ).page
    assert page["scopes"] == ["call:echo", "pay"]
    assert page["forwardable"] is page["may_forward_authorization"] is True
    assert (page["peer"], page["rate"], page["limit"]) == ("globex.example", "60/min", "2.5")
    assert page["expires"] > page["created"]
    listed = cli("tokens", "list", "--format", "json").page["tokens"]
    assert [entry["name"] for entry in listed] == ["globex", "starter"]
    assert listed[0] == {name: value for name, value in page.items() if name != "token"}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--scope", "cal:*"], "Did you mean 'call:*'?"),
        (["--rate", "sixty"], "60/min"),
        (["--limit", "much"], "0.25"),
        (["--expires", "soon"], "30d"),
        (["--peer", "globex"], "DNS name"),
    ],
)
def test_what_cannot_be_is_refused_with_the_form_it_should_have(
    cli: Cli, options: list[str], part: str
) -> None:
    ran = cli("tokens", "create", "x", *options)
    assert ran.code == 2
    assert part in ran.err


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("name", ["", "a b", "operator", "x" * 65])
def test_a_token_needs_a_name_of_its_own(cli: Cli, name: str) -> None:
    assert cli("tokens", "create", name).code == 2


@pytest.mark.usefixtures("home")
def test_a_name_is_taken_until_its_token_has_ended(cli: Cli) -> None:
    assert cli("tokens", "create", "alice").code == 0
    again = cli("tokens", "create", "alice")
    assert again.code == 2
    assert "carnet tokens revoke alice" in again.err
    assert cli("tokens", "revoke", "alice").code == 0
    assert cli("tokens", "create", "alice").code == 0


@pytest.mark.usefixtures("home")
def test_an_ended_token_leaves_the_list_unless_all_are_asked_for(cli: Cli) -> None:
    cli("tokens", "create", "alice")
    cli("tokens", "revoke", "alice")
    assert "alice" not in cli("tokens", "list").out
    rows = cli("tokens", "list", "--all", "--format", "json").page["tokens"]
    assert {row["name"]: row["state"] for row in rows} == {"alice": "revoked", "starter": "live"}


@pytest.mark.usefixtures("home")
def test_revoking_what_is_not_there_says_so(cli: Cli) -> None:
    ran = cli("tokens", "revoke", "nobody")
    assert ran.code == 2
    assert "carnet tokens list" in ran.err


@pytest.mark.usefixtures("home")
def test_rows_can_be_had_as_lines_of_json(cli: Cli) -> None:
    cli("tokens", "create", "alice")
    assert len(cli("tokens", "list", "--format", "jsonl").out.splitlines()) == 2


# ------------------------------------------------------------------------------------- peers


def test_a_peer_is_admitted_changed_listed_and_forgotten(cli: Cli, home: Path) -> None:
    (home / "t").write_text("peer-credential\n")
    added = cli("peers", "add", "b.example", "--url", URL + "/", "--token-file", "t")
    assert added.code == 0
    assert added.out.startswith(f"Known: b.example at {URL}.")
    assert "Payers' credentials may not travel to it, and may not come from it." in added.out
    assert "@name@b.example" in added.out
    assert "--token-file" not in added.out
    assert cli("peers", "add", "b.example", "--credit", "100").code == 0
    listed = cli("peers", "add", "b.example", "--may-forward-authorization")
    assert "Payers' credentials may travel to it, and may come from it." in listed.out
    assert "may go to it and come from it" in " ".join(cli("help", "peers", "add").out.split())
    assert cli("peers", "list", "--format", "json").page["peers"] == [
        {
            "domain": "b.example",
            "url": URL,
            "dialect": "tangle",
            "auth": "auto",
            "may_forward_authorization": True,
            "has_token": True,
            "credit": "100",
            "max_cost": "1",
            "certificate": None,
            "from_file": False,
        }
    ]
    assert "peer-credential" not in cli("peers", "list").out
    assert cli("peers", "remove", "b.example").code == 0
    assert cli("peers", "remove", "b.example").code == 2
    assert "carnet peers add" in cli("peers", "list").out


def test_a_peers_credential_is_sealed_in_the_store(cli: Cli, home: Path) -> None:
    (home / "t").write_text("peer-credential\n")
    cli("peers", "add", "b.example", "--url", URL, "--token-file", "t")
    stored = b"".join(p.read_bytes() for p in home.rglob("var/*") if p.is_file())
    assert b"peer-credential" not in stored


@pytest.mark.usefixtures("home")
def test_a_peer_without_a_token_is_told_how_it_gets_one(cli: Cli) -> None:
    ran = cli("peers", "add", "b.example", "--url", URL)
    assert "carnet peers add b.example --token-file FILE" in ran.out


@pytest.mark.usefixtures("home")
def test_a_peers_credential_can_come_from_the_environment(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("B_TOKEN", "x")
    ran = cli("peers", "add", "b.example", "--url", URL, "--token-env", "B_TOKEN")
    assert ran.code == 0
    assert cli("peers", "list", "--format", "json").page["peers"][0]["has_token"]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["agent://x.example"], "carnet peers add agent://x.example --key BASE64"),
        (["b.example"], "--url URL"),
        (["b.example", "--url", "gw"], "http or https URL"),
        (["b", "--url", URL], "DNS name"),
        (["b.example", "--url", URL, "--credit", "x"], "--credit"),
        (["b.example", "--url", URL, "--token-env", "NOT_SET"], "NOT_SET is not set"),
        (["b.example", "--url", URL, "--token-file", "a", "--token-env", "b"], "Give one"),
    ],
)
def test_a_peer_that_cannot_be_admitted_is_refused(cli: Cli, words: list[str], part: str) -> None:
    ran = cli("peers", "add", *words)
    assert ran.code == 2
    assert part in ran.err


def test_a_peer_of_the_file_is_listed_and_left_to_the_file(cli: Cli, home: Path) -> None:
    config = home / "carnet.toml"
    config.write_text(config.read_text() + f'[peers."b.example"]\nurl = "{URL}"\n')
    assert cli("peers", "list", "--format", "json").page["peers"][0]["from_file"] is True
    for words in (["add", "b.example", "--credit", "1"], ["remove", "b.example"]):
        ran = cli("peers", *words)
        assert ran.code == 2
        assert '[peers."b.example"]' in ran.err


# ------------------------------------------------------------------- agents, config, ledger


@pytest.mark.usefixtures("home")
def test_agents_are_listed_from_the_configuration(cli: Cli) -> None:
    (agent,) = cli("agents", "list", "--format", "json").page["agents"]
    assert (agent["name"], agent["kind"], agent["default"]) == ("echo", "python", True)
    listed = cli("agents", "list").out
    assert "agents:echo" in listed
    assert "TRUST" not in listed  # it is about signed callers, of which there are none yet


def test_config_check_says_the_file_can_be_used(cli: Cli, home: Path) -> None:
    ran = cli("config", "check")
    assert ran.code == 0
    assert f"{home / 'carnet.toml'} can be used (1 agent, 0 peers)." in ran.out
    assert "agents" not in sys.modules  # what was imported to look at it has gone again


MODEL = '[agents.m]\nkind = "openai"\nurl = "http://x.example/v1"\napi_key = {env = "NO_KEY"}\n'
PEER = f'[peers."b.example"]\nurl = "{URL}"\ntoken = {{file = "no"}}\n'


@pytest.mark.parametrize(
    ("text", "agents", "key"),
    [
        ("", "import nothing_of_that_name\n", "agents.echo.target"),
        ("", "ecco = 1\n", "agents.echo.target"),
        (MODEL, "", "agents.m.api_key"),
        (PEER, "", 'peers."b.example".token'),
    ],
)
def test_config_check_looks_up_what_the_file_names(
    cli: Cli, home: Path, text: str, agents: str, key: str
) -> None:
    config = home / "carnet.toml"
    config.write_text(config.read_text() + text)
    if agents:
        (home / "agents.py").write_text(agents)
    ran = cli("config", "check")
    assert ran.code == 2
    assert key in ran.err


def test_config_check_needs_the_folder_of_the_store_and_the_keys(cli: Cli, home: Path) -> None:
    config = home / "carnet.toml"
    config.write_text(config.read_text().replace("sqlite:var/", "sqlite:elsewhere/"))
    assert "mkdir -p" in cli("config", "check").err
    (home / "var" / "secrets.key").write_text("{}")
    assert "[store] secrets" in cli("config", "check").err


@pytest.mark.usefixtures("home")
def test_config_show_tells_values_with_their_origin_and_no_secret(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARNET__GATEWAY__PORT", "9009")
    shown = cli("config", "show").out
    assert "port = 9009 " in shown
    assert "# environment CARNET__GATEWAY__PORT" in shown
    assert 'domain = "acme.example"' in shown
    assert "# carnet.toml:8" in shown
    assert 'secrets = "***"' in shown
    values = cli("config", "show", "--format", "json").page["values"]
    entry = next(v for v in values if (v["section"], v["key"]) == ("store", "secrets"))
    assert entry["value"] == "***"
    assert entry["reference"] == '{file = "var/secrets.key"}'


@pytest.mark.usefixtures("home")
def test_an_empty_ledger_and_no_runs_say_what_to_do(cli: Cli) -> None:
    assert "No postings" in cli("ledger").out
    assert cli("ledger", "--format", "json").page["entries"] == []
    assert "carnet call" in cli("runs").out
    assert cli("runs", "--format", "json").page == {"runs": [], "next": None}


@pytest.mark.usefixtures("home")
def test_a_run_that_is_not_there_is_refused_by_its_code(cli: Cli) -> None:
    ran = cli("run", "show", "conv_none", "--format", "json")
    assert ran.code == 1
    assert ran.error["code"] == "run_not_found"


@pytest.mark.usefixtures("home")
def test_the_store_is_up_to_date_by_itself(cli: Cli) -> None:
    assert "up to date" in cli("migrate").out


@pytest.mark.usefixtures("home")
def test_prune_says_what_it_forgot(cli: Cli) -> None:
    page = cli("prune", "--format", "json").page
    assert page["turns"] == 0
