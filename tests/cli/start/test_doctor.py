"""What the doctor says of gateways that run: our own, and those of others."""

import json
from collections.abc import Iterator
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

from carnet.testing.wait import until
from tests.cli.conftest import Cli
from tests.faults.stores import move_to
from tests.stores.support import servers
from tests.stores.support.proxies import Proxy
from tests.support.federation import introduce, organisation
from tests.support.organisation import Organisation

Pair = tuple[Organisation, Organisation]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    acme = organisation(folder / "acme", "acme.example")
    globex = organisation(folder / "globex", "globex.example")
    introduce(acme, globex)
    globex.start()
    yield acme, globex
    assert globex.stop() == 0


def findings(gateway: Organisation, what: str) -> list[tuple[str, str]]:
    """What the doctor finds, by its status."""
    ran = gateway.try_carnet("doctor", "--format", "jsonl")
    checks = [json.loads(line) for line in ran.stdout.splitlines()]
    return [(check["status"], check["message"]) for check in checks if check["what"] == what]


def test_a_token_that_the_peer_ended_is_found(pair: Pair, tmp_path: Path) -> None:
    _, globex = pair
    initech = organisation(tmp_path / "initech", "initech.example")
    introduce(initech, globex)
    assert findings(initech, "peers") == [
        ("ok", f"globex.example answers at {globex.url}."),
    ]
    globex.carnet("tokens", "revoke", "from-initech.example")
    ((status, message),) = until(
        lambda: findings(initech, "peers"), lambda found: found[0][0] != "ok"
    )
    assert status == "fail"
    assert "does not take our token" in message


def test_a_peer_that_calls_itself_otherwise_is_found(pair: Pair, tmp_path: Path) -> None:
    _, globex = pair
    initech = organisation(tmp_path / "initech", "initech.example")
    initech.configure(f'[peers."hooli.example"]\nurl = "{globex.url}"\n')
    ((status, message),) = findings(initech, "peers")
    assert status == "fail"
    assert "calls itself globex.example" in message


def test_a_peer_is_not_added_by_another_name_than_its_own(pair: Pair) -> None:
    acme, globex = pair
    refused = acme.try_carnet("peers", "add", "hooli.example", "--url", globex.url)
    assert refused.returncode == 2
    assert f"{globex.url} calls itself globex.example, not hooli.example" in refused.stderr
    assert "hooli" not in acme.carnet("peers", "list").stdout
    itself = globex.try_carnet("peers", "add", "hooli.example", "--url", globex.url)
    assert "is this gateway itself" in itself.stderr
    assert acme.try_carnet("peers", "add", "globex.example", "--url", globex.url).returncode == 0


@pytest.mark.usefixtures("home")
def test_we_are_no_peer_of_ourselves(cli: Cli) -> None:
    ran = cli("peers", "add", "acme.example", "--url", "http://127.0.0.1:9")
    assert ran.code == 2
    assert "acme.example is this organisation itself" in ran.err


def test_an_agent_that_is_called_like_a_person_is_found(cli: Cli, home: Path) -> None:
    """A57: `people add` refuses the other way round."""
    assert cli("people", "add", "alice").code == 0
    assert "called like the person" not in cli("doctor").out
    with (home / "carnet.toml").open("a") as config:
        config.write('[agents.a1ice]\ntarget = "agents:echo"\n')
    assert "The agent a1ice is called like the person alice" in cli("doctor").out


def test_a_model_that_is_a_gateway_is_found(pair: Pair, tmp_path: Path) -> None:
    _, globex = pair
    initech = organisation(tmp_path / "initech", "initech.example")
    initech.configure(f'[agents.model]\nkind = "openai"\nurl = "{globex.url}/v1"\n')
    assert ("warn", True) in [
        (status, "is the gateway globex.example: run, depth and payer do not travel" in message)
        for status, message in findings(initech, "agents")
    ]


def test_models_that_do_not_answer_and_files_that_are_not_there_are_found(
    pair: Pair, tmp_path: Path
) -> None:
    _, globex = pair
    gateway = organisation(tmp_path / "umbrella", "umbrella.example")
    gateway.configure(f'''
[models.gone]
url = "http://127.0.0.1:1/v1"
[models.there]
url = "{globex.url}/v1"
kind = "anthropic"
[engine]
model = "there"
[agents.assistant]
kind = "engine"
[agents.other]
kind = "engine"
system_file = "prompt.md"
''')
    assert [status for status, _ in findings(gateway, "models")] == ["warn", "ok"]
    found = {message: status for status, message in findings(gateway, "agents")}
    assert found["assistant is answered by the agent loop."] == "ok"
    assert any("agents.other.system_file" in message for message in found)
    checked = gateway.try_carnet("config", "check")
    assert checked.returncode == 2
    assert "prompt.md cannot be read" in checked.stdout + checked.stderr


def test_a_loop_that_is_not_there_is_found(pair: Pair, tmp_path: Path) -> None:
    _, globex = pair
    gateway = organisation(tmp_path / "umbrella", "umbrella.example")
    gateway.configure('[agents.assistant]\nkind = "engine"\n[engine]\nlisten = "LISTEN"\n')
    config = gateway.folder / "carnet.toml"
    written = config.read_text()
    for listen in ("http://127.0.0.1:1", "unix:var/engine.sock"):
        config.write_text(written.replace("LISTEN", listen))
        text = f"No agent loop answers at {listen}, [engine] listen; calls to it will fail."
        assert findings(gateway, "engine") == [("warn", text)]
    config.write_text(written.replace("LISTEN", globex.url))  # anything that answers
    assert findings(gateway, "engine") == []
    file = gateway.folder / "var" / "engine.sock"
    config.write_text(written.replace("LISTEN", f"unix:{file}"))
    with socket(AF_UNIX) as listening:
        listening.bind(str(file))
        listening.listen()
        assert findings(gateway, "engine") == []


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        ('"tools:gone"]', "agents.assistant.tools: the module 'tools' has no 'gone'"),
        ('"files"]\n[tools.files]\nmcp = ["no-such-program"]', "install it, or write where it is"),
    ],
)
def test_a_tool_that_cannot_be_built_is_found_when_code_is_loaded(
    tmp_path: Path, tools: str, says: str
) -> None:
    gateway = organisation(tmp_path / "acme", "acme.example")
    (gateway.folder / "tools.py").write_text("def here() -> str:\n    return 'hi'\n")
    model = '[models.m]\nurl = "http://127.0.0.1:1/v1"\n'
    gateway.configure(
        f'{model}[agents.assistant]\nkind = "engine"\ntools = ["tools:here", {tools}\n'
    )
    for command in ("doctor", "--load"), ("config", "check", "--load"):
        ran = gateway.try_carnet(*command)
        assert ran.returncode == 2
        assert says in ran.stdout + ran.stderr


@pytest.mark.parametrize("load", [(), ("--load",)])
def test_an_agent_that_takes_no_parameter_is_found(tmp_path: Path, load: tuple[str, ...]) -> None:
    gateway = organisation(tmp_path / "acme", "acme.example")
    (gateway.folder / "agents.py").write_text("async def echo():\n    return 'hi'\n")
    config = gateway.folder / "carnet.toml"
    config.write_text('[agents.echo]\ntarget = "agents:echo"\n')
    for command in (("doctor",), ("config", "check")):
        ran = gateway.try_carnet(*command, *load)
        assert ran.returncode == 2
        assert "'agents:echo' takes no parameter" in ran.stdout + ran.stderr


def test_our_gateway_with_its_database_down_is_our_gateway(
    server: servers.Server, tmp_path: Path
) -> None:
    database = server.create()
    gateway = organisation(tmp_path / "acme", "acme.example")

    async def make() -> Proxy:
        proxy = Proxy(database, tmp_path)
        await proxy.up()
        return proxy

    proxy = servers.elsewhere(make())
    move_to(gateway, proxy.url)
    gateway.start()
    assert [status for status, _ in findings(gateway, "port")] == ["ok"]
    servers.elsewhere(proxy.down())
    until(lambda: gateway.get("/readyz").status == 503)
    ((status, message),) = findings(gateway, "port")
    assert (status, message.partition(" at ")[0]) == ("fail", "Our gateway answers")
    assert "cannot take work now" in message
    assert [status for status, _ in findings(gateway, "store")] == ["fail"]
    gateway.kill()
    server.drop(database)
