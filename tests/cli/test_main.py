"""The command line itself: help, suggestions, formats, exit codes, no tracebacks."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

import carnet
from carnet import __version__
from carnet.cli import main
from carnet.cli.failures import (
    OURS,
    REFUSED,
    UNREACHABLE,
    UNVERIFIED,
    USAGE,
    GatewayError,
    error_object,
    exit_code,
)
from carnet.cli.invocation import Invocation, program
from carnet.cli.operate import operate
from carnet.cli.times import write_span
from carnet.errors import (
    AddressInvalid,
    CarnetError,
    ConfigInvalid,
    DepthExceeded,
    Internal,
    PeerBusy,
    PeerResponseInvalid,
    ProviderTimeout,
    ProviderUnavailable,
    TokenInvalid,
    Unreachable,
    UsageInvalid,
    leaves,
)
from tests.cli.conftest import Cli

SOURCE = str(Path(main.__file__).parents[2])
HEAVY = (
    *("httptools", "uvicorn", "uvloop", "rich"),
    *("sqlite3", "nacl", "prometheus_client", "msgspec"),
)


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    ran = subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-c", code],
        env={"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def test_help_lists_every_command_under_what_it_is_for(cli: Cli) -> None:
    ran = cli("--help")
    assert ran.code == 0
    for title, commands in main.GROUPS.items():
        assert title.capitalize() in ran.out
        for command in commands:
            assert f"\n  {command.name} " in ran.out


def test_carnet_alone_shows_the_help(cli: Cli) -> None:
    ran = cli()
    assert (ran.code, ran.out) == (0, cli("--help").out)


def test_every_command_explains_itself_and_takes_the_global_options(cli: Cli) -> None:
    def visit(command: click.Command, *path: str) -> None:
        ran = cli(*path, "--help")
        assert ran.code == 0
        assert "--format" in ran.out
        assert "--config" in ran.out
        assert command.help
        if isinstance(command, click.Group):
            for name, child in command.commands.items():
                visit(child, *path, name)

    visit(main.carnet)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom carnet.cli.main import run\nrun(['--help'])\n"
        f"print('heavy:', [n for n in {HEAVY!r} if n in sys.modules])"
    )
    assert python(code).splitlines()[-1] == "heavy: []"


MOST_LOADED = 200  # modules; 151 when this was written, 80 of them the standard library's


def test_help_loads_little_more_than_the_interpreter_with_click() -> None:
    """What a command costs before it does anything is what it loads; a clock would be of others."""
    code = (
        "import sys\nimport click\nbefore = set(sys.modules)\n"
        "from carnet.cli.main import run\nrun(['--help'])\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = python(code).splitlines()[-1].split()
    assert len(loaded) < MOST_LOADED, loaded


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["rnus"], "'runs'"),
        (["tokens", "creat"], "'create'"),
        (["call", "--strem"], "'--stream'"),
        (["--fromat", "json"], "'--format'"),
        (["tokens", "end", "alice"], "'revoke'"),
        (["keys", "delete", "k-1"], "'revoke'"),
        (["peers", "end", "globex.example"], "'revoke-key' or 'remove'"),
        (["peers", "revoke", "globex.example"], "'revoke-key'"),
        (["tokens", "new", "alice"], "'create'"),
        (["help", "rnus"], "'runs'"),
        (["start"], "'serve'"),
        (["status"], "'doctor'"),
        (["show", "last"], "'runs' or 'run'"),
    ],
)
def test_a_near_miss_is_answered_with_a_suggestion(cli: Cli, words: list[str], near: str) -> None:
    ran = cli(*words)
    assert ran.code == USAGE
    assert near in ran.err
    assert "--help" in ran.err
    assert ran.out == ""


def test_help_with_a_command_is_the_help_of_that_command(cli: Cli) -> None:
    assert cli("help") == cli("--help")
    assert cli("help", "peers", "add") == cli("peers", "add", "--help")


@pytest.mark.parametrize(
    "words", [["tokens"], ["tokens", "revoke"], ["keys", "revoke"], ["peers", "revoke-key"]]
)
def test_one_word_says_that_a_token_or_a_key_is_taken_no_more(cli: Cli, words: list[str]) -> None:
    text = " ".join(cli(*words, "--help").out.lower().split())
    assert "revoke" in text
    assert " end " not in text


def test_a_group_alone_shows_its_help_and_is_bad_usage(cli: Cli) -> None:
    ran = cli("tokens")
    assert ran.code == USAGE
    assert "create" in ran.err


@pytest.mark.parametrize("words", [["--format", "json", "rnus"], ["rnus", "--format=json"]])
def test_a_mistake_is_told_in_the_format_that_was_asked_for(cli: Cli, words: list[str]) -> None:
    ran = cli(*words)
    assert ran.code == USAGE
    assert ran.error["code"] == "usage_invalid"
    assert ran.error["docs"] == "/-/errors/usage_invalid"
    assert set(ran.error) == {"code", "message", "hint", "docs"}


def test_without_a_configuration_the_way_to_one_is_told(cli: Cli) -> None:
    ran = cli("config", "check")
    assert ran.code == USAGE
    assert "There is no carnet.toml" in ran.err
    assert "carnet init" in ran.err


def test_a_bad_configuration_is_exit_2_with_key_and_place(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "carnet.toml").write_text("[gateway]\nprot = 1\n")
    ran = cli("config", "check")
    assert ran.code == USAGE
    assert "gateway.prot: is no known key (carnet.toml:2). Did you mean 'port'?" in ran.err
    assert "Traceback" not in ran.err


def test_a_malformed_depth_variable_is_exit_2(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "carnet.toml").write_text("")
    monkeypatch.setenv("CLI_BRIDGE_MAX_DEPTH", "four")
    ran = cli("serve")
    assert ran.code == USAGE
    assert "CLI_BRIDGE_MAX_DEPTH" in ran.err


def test_what_we_did_not_foresee_is_our_fault_and_no_traceback(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(operate.version, "callback", broken)
    ran = cli("version")
    assert ran.code == OURS
    assert "ZeroDivisionError" in ran.err
    assert "Traceback" not in ran.err
    assert cli("version", "--format", "json").error["code"] == "internal"
    monkeypatch.setenv("CARNET_DEBUG", "1")
    assert "Traceback" in cli("version").err


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ConfigInvalid, USAGE),
        (UsageInvalid, USAGE),
        (AddressInvalid, USAGE),
        (DepthExceeded, REFUSED),
        (TokenInvalid, REFUSED),
        (Unreachable, UNREACHABLE),
        (ProviderUnavailable, UNREACHABLE),
        (ProviderTimeout, UNREACHABLE),
        (PeerResponseInvalid, UNVERIFIED),
        (Internal, OURS),
    ],
)
def test_errors_become_the_documented_exit_codes(kind: type[CarnetError], code: int) -> None:
    assert exit_code(kind) == code


def test_every_error_has_an_exit_code() -> None:
    assert {exit_code(kind) for kind in leaves()} == {REFUSED, USAGE, UNREACHABLE, UNVERIFIED, OURS}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"code": "bridge_depth_exceeded"}, 429, REFUSED),
        ({"code": "provider_timeout"}, 504, UNREACHABLE),
        ({"code": "something_else"}, 418, REFUSED),
        ({}, 502, UNREACHABLE),
        ({}, 500, OURS),
    ],
)
def test_what_a_gateway_says_becomes_an_exit_code(
    body: dict[str, str], status: int, code: int
) -> None:
    assert GatewayError(body, status).exit_code == code


def test_an_error_in_json_has_the_fields_of_the_http_error() -> None:
    error = error_object(DepthExceeded(observed=4, limit=4))
    assert error == {
        "code": "bridge_depth_exceeded",
        "message": "This call arrived at depth 4; the limit here is 4.",
        "observed": 4,
        "limit": 4,
        "hint": DepthExceeded.hint,
        "docs": "/-/errors/bridge_depth_exceeded",
    }


def test_output_has_no_color_off_a_terminal(cli: Cli) -> None:
    assert "\x1b" not in cli("--help").out


def test_version_is_told_in_every_format(cli: Cli) -> None:
    assert cli("--version").out == f"carnet {__version__}\n"
    assert cli("version").out.startswith(f"carnet {__version__} ")
    assert cli("version", "--format", "json").page["carnet"] == __version__


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(cli: Cli, shell: str) -> None:
    ran = cli("completion", shell)
    assert ran.code == 0
    assert "_CARNET_COMPLETE" in ran.out


def test_help_texts_are_not_cut_off(cli: Cli) -> None:
    for words in ([], *([name] for name in ("tokens", "peers", "run", "config"))):
        assert "..." not in cli(*words, "--help").out.replace("[ARGS]...", "")


@pytest.mark.parametrize(
    ("called", "typed"),
    [
        (".venv/bin/carnet", ".venv/bin/carnet"),
        ("/srv/x/carnet", "/srv/x/carnet"),
        ("/srv/x/carnet/__main__.py", f"{Path(sys.executable).name} -m carnet"),
        ("/srv/x/pytest", "carnet"),
    ],
)
def test_commands_are_printed_with_the_name_that_was_typed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, called: str, typed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [called])
    assert program() == typed
    spelled = Invocation().spell("Wait for it: carnet tasks wait ID")
    assert spelled == f"Wait for it: {typed} tasks wait ID"
    assert Invocation().spell("'carnet --help' shows") == f"'{typed} --help' shows"
    if "/" in typed:  # a path is no command to be spelled again
        assert Invocation().spell(spelled) == spelled


def test_every_line_of_a_hint_is_indented_and_a_wait_is_told(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object, **__: object) -> None:
        raise GatewayError({"code": "provider_timeout", "message": "Late.", "hint": "A\nB"}, 504)

    monkeypatch.setattr(operate.version, "callback", late)
    assert cli("version").err == "Error: Late.\n  A\n  B\n"


def test_whose_tokens_are_used_up_is_told_for_how_long(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the SAMVAD agent says it to us, and as our own gateway passes it on."""
    spent = PeerBusy(peer_status=429, peer_code="TOKEN_BUDGET_EXCEEDED", retry_after=18_001)

    def refused(*_: object, **__: object) -> None:
        raise spent

    monkeypatch.setattr(operate.version, "callback", refused)
    text = cli("version").err
    assert "busy" not in text
    assert "no more tokens for now (429 TOKEN_BUDGET_EXCEEDED)" in text
    assert "Retry-After: 5 h 1 min\n" in text
    assert cli("version", "--format", "json").error["retry_after"] == 18_001


def test_a_time_to_wait_is_written_as_people_read_it() -> None:
    spans = {1: "1 s", 59: "59 s", 60: "1 min", 61: "2 min", 3600: "1 h", 86_399: "24 h"}
    assert {seconds: write_span(seconds) for seconds in spans} == spans


def test_what_a_peer_said_is_what_is_explained(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for inner, code in (("rate_limited", "rate_limited"), ("word_of_theirs", "peer_busy")):

        def busy(*_: object, inner: str = inner, **__: object) -> None:
            raise PeerBusy(peer_status=429, peer_code=inner)

        monkeypatch.setattr(operate.version, "callback", busy)
        assert f"More: carnet explain {code}\n" in cli("version").err


def test_the_public_names_are_found_by_dir() -> None:
    assert {"agent", "Visit", "DepthExceeded", "__version__"} <= set(dir(carnet))
    assert set(dir(carnet)) == {"__version__", *carnet.api.__all__}
    assert all(hasattr(carnet, name) for name in dir(carnet))


@pytest.mark.parametrize("module", ["carnet", "carnet.cli.main"])
def test_the_module_runs_as_a_program(module: str) -> None:
    ran = subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-m", module, "rnus"],
        env={"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == USAGE
    assert "Did you mean 'runs'?" in ran.stderr
