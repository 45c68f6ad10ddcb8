"""`carnet init` and `carnet doctor`: from an empty folder to one that can be served."""

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from carnet.assembly.store import open_from
from carnet.config import load
from carnet.ports.world.outbox import Delivery, Outcome
from carnet.testing.stage import COMMAND_SECONDS, environment
from tests.cli.conftest import Cli, Ran
from tests.support.commands import commands


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def typed_apart(folder: Path, *words: str) -> Ran:
    """Type a command in a process of its own: it may import the agents of the folder."""
    ran = commands().run(words, at=folder, env=environment(), seconds=COMMAND_SECONDS)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def test_init_writes_what_a_gateway_needs(cli: Cli, tmp_path: Path) -> None:
    ran = cli("init", "org", "--domain", "acme.example", "--port", "8765", "--format", "json")
    assert ran.code == 0
    folder = tmp_path / "org"
    assert ran.page["created"] == [
        "carnet.toml",
        "agents.py",
        "var/secrets.key",
        "var/starter.token",
    ]
    settings = load(folder / "carnet.toml", {})
    assert (settings.gateway.domain, settings.gateway.port) == ("acme.example", 8765)
    assert settings.default_agent == "echo"
    assert settings.agents["echo"].trust == "public"
    assert "async def echo(visit):" in (folder / "agents.py").read_text()
    assert (folder / "var" / "carnet.db").exists()


def test_init_keeps_secrets_to_their_owner(home: Path) -> None:
    assert mode_of(home / "var") == 0o700
    assert mode_of(home / "var" / "secrets.key") == 0o600
    assert mode_of(home / "var" / "starter.token") == 0o600


def test_init_says_what_comes_next(cli: Cli) -> None:
    here = cli("init")
    assert here.code == 0
    assert "carnet serve" in here.out
    assert "carnet call echo hello" in here.out
    elsewhere = cli("init", "other")
    assert "carnet -c other/carnet.toml serve" in elsewhere.out


def test_init_never_prints_the_token_or_the_keys(cli: Cli, tmp_path: Path) -> None:
    ran = cli("init")
    token = (tmp_path / "var" / "starter.token").read_text().strip()
    assert token not in ran.out + ran.err


def test_init_never_overwrites(cli: Cli, home: Path) -> None:
    config, agents = home / "carnet.toml", home / "agents.py"
    config.write_text(config.read_text() + "# mine\n")
    agents.write_text("mine = 1\n")
    before = {path: path.read_bytes() for path in home.rglob("*.t*")}
    ran = cli("init", ".", "--domain", "other.example")
    assert ran.code == 0
    assert "nothing was changed" in ran.out
    assert {path: path.read_bytes() for path in home.rglob("*.t*")} == before
    assert agents.read_text() == "mine = 1\n"


def test_init_adds_what_is_missing_beside_a_configuration_of_ones_own(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "carnet.toml").write_text('[store]\nsecrets = {file = "keys/own.key"}\n')
    page = cli("init", "--format", "json").page
    assert page["kept"] == ["carnet.toml"]
    assert page["created"] == ["keys/own.key", "var/starter.token"]
    assert not (tmp_path / "agents.py").exists()


def test_init_restores_what_was_lost(cli: Cli, home: Path) -> None:
    token = home / "var" / "starter.token"
    before = token.read_text()
    token.unlink()
    (home / "agents.py").unlink()
    assert cli("init", "--format", "json").page["created"] == ["agents.py", "var/starter.token"]
    assert token.read_text() != before
    assert mode_of(token) == 0o600
    rows = cli("tokens", "list", "--all", "--format", "json").page["tokens"]
    assert [row["state"] for row in rows] == ["live", "revoked"]


def test_a_starter_token_that_was_ended_is_not_made_again(cli: Cli, home: Path) -> None:
    cli("tokens", "revoke", "starter")
    (home / "var" / "starter.token").unlink()
    assert cli("init").code == 0
    assert not (home / "var" / "starter.token").exists()


def test_init_says_what_lost_keys_mean_and_renews_the_starter_token(cli: Cli, home: Path) -> None:
    before = (home / "var" / "starter.token").read_text()
    (home / "var" / "secrets.key").unlink()
    ran = cli("init")
    assert ran.code == 0
    assert "every token made before is void" in ran.err
    assert (home / "var" / "starter.token").read_text() != before
    assert cli("init").err == ""


def test_init_that_is_to_be_quiet_says_nothing_unless_something_is_amiss(
    cli: Cli, home: Path
) -> None:
    quiet = cli("init", "org", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert (home / "org" / "carnet.toml").exists()
    assert cli("--format", "json", "init", "org", "--quiet").out == ""
    (home / "org" / "var" / "secrets.key").unlink()
    assert "every token made before is void" in cli("init", "org", "--quiet").err


@pytest.mark.parametrize("domain", ["localhost", "Acme.Example", "acme.example:80", "10.0.0.1"])
def test_init_refuses_what_is_no_domain_and_writes_nothing(
    cli: Cli, tmp_path: Path, domain: str
) -> None:
    ran = cli("init", "org", "--domain", domain)
    assert ran.code == 2
    assert "DNS name" in ran.err
    assert not (tmp_path / "org").exists()


def test_init_says_why_a_folder_cannot_be_used(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = cli("init", "file/inside")
    assert ran.code == 2
    assert "cannot be used" in ran.err


# ------------------------------------------------------------------------------------ doctor


def test_doctor_finds_a_fresh_folder_in_order(home: Path) -> None:
    ran = typed_apart(home, "doctor", "--format", "json")
    page = json.loads(ran.out)
    assert (ran.code, page["ok"]) == (0, True), ran
    assert {check["what"] for check in page["checks"]} >= {
        *("config", "secrets", "agents", "port", "store", "lock")
    }
    assert {check["status"] for check in page["checks"]} == {"ok"}


def test_doctor_names_the_fix_for_each_fault(home: Path) -> None:
    (home / "var" / "secrets.key").chmod(0o644)
    (home / "agents.py").write_text("raise ValueError('broken on purpose')\n")
    config = home / "carnet.toml"
    peer = '[peers."globex.example"]\nurl = "http://127.0.0.1:9"\n'
    config.write_text(config.read_text() + peer)
    ran = typed_apart(home, "doctor", "--load")
    assert ran.code == 2
    assert "Traceback" not in ran.err
    lines = ran.out.splitlines()
    checks = {line[:15].strip(): (line, lines[n + 1]) for n, line in enumerate(lines[:-1])}
    assert "chmod 600" in checks["fail  secrets"][1]
    assert "broken on purpose" in checks["fail  agents"][0]
    assert "globex.example does not answer" in checks["warn  peers"][0]


def test_doctor_without_a_usable_configuration_says_so(cli: Cli, tmp_path: Path) -> None:
    assert cli("doctor").code == 2
    (tmp_path / "carnet.toml").write_text("[gatway]\n")
    ran = cli("doctor", "--format", "json")
    assert ran.code == 2
    assert ran.page["checks"][0]["status"] == "fail"
    assert "Did you mean 'gateway'?" in ran.page["checks"][0]["message"]


def test_doctor_reads_the_keys(home: Path) -> None:
    (home / "var" / "secrets.key").write_text("{}")
    ran = typed_apart(home, "doctor")
    assert ran.code == 2
    assert "restore it from a backup" in ran.out


def test_doctor_warns_of_upstreams_that_do_not_answer(home: Path) -> None:
    config = home / "carnet.toml"
    agent = '[agents.writer]\nkind = "openai"\nurl = "http://127.0.0.1:9/v1"\n'
    config.write_text(config.read_text() + agent)
    ran = typed_apart(home, "doctor")
    assert ran.code == 0
    assert "writer is at http://127.0.0.1:9/v1, where nothing answers" in ran.out


def test_doctor_tells_of_deliveries_that_died(home: Path) -> None:
    assert "No delivery is dead." in typed_apart(home, "doctor").out
    delivery = Delivery(
        id="msg_1",
        kind="callback",
        url="https://hooks.example/in",
        receiver="https://hooks.example",
        body=b"{}",
    )
    asyncio.run(let_die(home, delivery))
    ran = typed_apart(home, "doctor")
    assert ran.code == 0
    assert "1 delivery is dead." in ran.out
    assert "carnet outbox list --state dead" in ran.out


async def let_die(home: Path, delivery: Delivery) -> None:
    store = await open_from(load(home / "carnet.toml", {}), exclusive=False)
    try:
        await store.outbox.put([delivery], 1)
        (stored,) = await store.outbox.lease(1, until=2, at_most=1, per_receiver=1)
        assert await store.outbox.mark(stored, Outcome(state="dead", now=1, reason="it is down"))
    finally:
        await store.close()


@pytest.mark.parametrize("entry", ["http://127.0.0.1:9000", "127.0.0.1:99999"])
def test_what_serve_would_refuse_is_refused_by_check_and_doctor_too(home: Path, entry: str) -> None:
    config = home / "carnet.toml"
    config.write_text(f'{config.read_text()}\n[egress]\nallow = ["{entry}"]\n')
    for command, again in ((("config", "check"), "config check"), (("doctor",), "doctor")):
        ran = typed_apart(home, *command)
        output = ran.out + ran.err
        assert ran.code == 2, ran
        assert "egress.allow" in output
        assert f"carnet {again}" in output  # each promises what it shows itself


def test_doctor_warns_of_proxies_that_are_everybody(home: Path) -> None:
    config = home / "carnet.toml"
    everybody = 'trusted_proxies = ["10.0.0.7", "0.0.0.0/0"]'
    config.write_text(config.read_text().replace("[gateway]", f"[gateway]\n{everybody}"))
    ran = typed_apart(home, "doctor")
    assert ran.code == 0
    assert "trusted_proxies holds 0.0.0.0/0" in ran.out
    assert "10.0.0.7" not in ran.out


def test_doctor_finds_a_database_that_cannot_be_written(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "var" / "carnet.db"  # the superuser may write what is read-only: ask for it
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != file)
    ran = cli("doctor")
    assert ran.code == 2
    assert f"run: chmod u+w {file}" in ran.out


def test_doctor_says_how_to_make_keys_that_are_missing(home: Path) -> None:
    (home / "var" / "secrets.key").unlink()
    ran = typed_apart(home, "doctor")
    assert ran.code == 2
    assert "carnet init" in ran.out


def test_doctor_warns_where_file_and_store_both_speak(cli: Cli, home: Path) -> None:
    assert cli("peers", "add", "globex.example", "--url", "http://127.0.0.1:9").code == 0
    config = home / "carnet.toml"
    peer = '[peers."globex.example"]\nurl = "http://127.0.0.1:10"\n'
    config.write_text(config.read_text() + peer)
    checks = json.loads(typed_apart(home, "doctor", "--format", "json").out)["checks"]
    warned = [check for check in checks if check["status"] == "warn"]
    assert any("carnet.toml wins" in check["message"] for check in warned), checks


def test_init_leaves_nothing_that_others_may_write_whatever_the_umask(
    cli: Cli, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        assert cli("init", "deep/org").code == 0
    finally:
        os.umask(before)
    paths = [tmp_path / "deep", *(tmp_path / "deep").rglob("*")]
    assert len(paths) > 5
    assert [str(path) for path in paths if mode_of(path) & 0o022] == []


def test_hints_quote_folders_so_that_they_can_be_typed(cli: Cli, tmp_path: Path) -> None:
    started = cli("init", "my org")
    assert "carnet -c 'my org/carnet.toml' serve" in started.out
    (tmp_path / "my org" / "var" / "secrets.key").chmod(0o644)
    output = cli("-c", "my org/carnet.toml", "doctor").out
    assert f"chmod 600 '{tmp_path}/my org/var/secrets.key'" in output
    (tmp_path / "my org" / "var" / "secrets.key").unlink()
    output = cli("-c", "my org/carnet.toml", "doctor").out
    assert f"carnet init '{tmp_path}/my org'" in output
    (tmp_path / "my org" / "carnet.toml").write_text("[gateway]\nport = true\n")
    assert (
        "carnet -c 'my org/carnet.toml' config check" in cli("-c", "my org/carnet.toml", "runs").err
    )
