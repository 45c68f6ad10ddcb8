"""`carnet serve` as a person sees it: where it listens, how commands find it, how it stops."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from carnet.assembly.serve import farewell
from carnet.assembly.sockets import bound
from carnet.cli.reach.gateway import written_url
from carnet.config import load
from tests.cli.conftest import Cli
from tests.support.http import request
from tests.support.organisation import Organisation

SLOW = '''
"""An agent that takes very long."""

import asyncio
import pathlib


async def echo(visit):
    """Say that it began, then wait."""
    pathlib.Path("begun").write_text("")
    await asyncio.sleep(60)
'''


@contextmanager
def serving(
    folder: Path, *options: str, inherited: Sequence[int] = ()
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A gateway and what it prints until the line to paste."""
    with subprocess.Popen(  # noqa: S603  our own command
        [sys.executable, "-m", "carnet", "serve", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=inherited,
    ) as process:
        assert process.stderr is not None
        output = ""
        while '"messages"' not in output:
            line = process.stderr.readline()
            assert line, output
            output += line
        try:
            yield process, output
        finally:
            process.kill()


def test_a_gateway_on_another_port_is_found_by_every_command(tmp_path: Path) -> None:
    acme = Organisation(tmp_path, "acme.example")
    written = tmp_path / "var" / "gateway.url"
    with serving(tmp_path, "--port", "0") as (process, output):
        url = written.read_text().strip()
        assert url.startswith("http://127.0.0.1:")
        assert url not in {acme.url, "http://127.0.0.1:0"}
        assert f"Carnet serves acme.example at {url}\n" in output
        assert f"curl -i {url}/v1/chat/completions" in output
        assert stat.S_IMODE(written.stat().st_mode) == 0o600
        assert request("GET", f"{url}/.well-known/agent.json").json["url"] == url
        assert acme.carnet("call", "echo", "hi").stdout == "hi\n"
        assert acme.json("runs")["runs"]
        checks = {check["what"]: check["message"] for check in acme.json("doctor")["checks"]}
        assert checks["port"] == f"Our gateway answers at {url}."
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
    assert process.returncode == 0, err
    assert err.endswith("Stopping.\n")
    assert any(json.loads(line).get("path") == url for line in out.splitlines())
    assert not written.exists()


def test_the_first_line_of_the_log_tells_where_a_gateway_of_port_0_listens(
    cli: Cli, tmp_path: Path
) -> None:
    assert cli("init", ".", "--port", "0").code == 0
    with serving(tmp_path) as (process, _):
        url = (tmp_path / "var" / "gateway.url").read_text().strip()
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
    assert (first["message"], first["path"]) == ("listening", url)
    assert not url.endswith(":0")


def test_a_gateway_of_port_0_that_does_not_run_is_nowhere(cli: Cli) -> None:
    assert cli("init", ".", "--port", "0").code == 0
    ran = cli("call", "echo", "hi")
    assert ran.code == 3
    assert "its port is 0" in ran.err
    checks = {each["what"]: each for each in cli("--format", "json", "doctor").page["checks"]}
    assert checks["port"]["message"].startswith("A port is chosen at every start")


def test_a_gateway_listens_on_the_socket_that_it_was_handed(cli: Cli, home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        url = f"http://127.0.0.1:{given.getsockname()[1]}"
        with serving(home, "--fd", str(given.fileno()), inherited=[given.fileno()]):
            assert (home / "var" / "gateway.url").read_text().strip() == url
            assert request("GET", f"{url}/.well-known/agent.json").json["url"] == url
            assert cli("call", "echo", "hi").out == "hi\n"


def test_what_is_handed_down_is_a_tcp_socket_with_a_port(cli: Cli, home: Path) -> None:
    with (
        (home / "carnet.toml").open() as file,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket() as unbound,
    ):
        for given, why in ((file, "is no socket"), (unix, "no TCP"), (unbound, "not bound")):
            ran = cli("serve", "--fd", str(given.fileno()))
            assert (ran.code, why in ran.err) == (2, True), ran.err


@pytest.mark.usefixtures("home")
def test_a_port_is_refused_where_somebody_listens(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = cli("serve", "--port", str(taken.getsockname()[1]))
    assert ran.code == 2
    assert "is in use by another program" in ran.err


@pytest.mark.parametrize("host", ["192.0.2.1", "bad..name"])
def test_a_host_that_is_none_of_ours_is_named_as_such(cli: Cli, home: Path, host: str) -> None:
    ran = cli("serve", "--host", host)
    assert ran.code == 2
    assert f"--host: '{host}' is no address of this machine" in ran.err
    config = home / "carnet.toml"
    config.write_text(config.read_text().replace('host = "127.0.0.1"', f'host = "{host}"', 1))
    assert f"gateway.host: '{host}' is no address of this machine" in cli("serve").err


def test_a_host_with_several_addresses_has_one_port_on_all(home: Path) -> None:
    settings = load(home / "carnet.toml", {}).listening_at("localhost", 0)
    with bound(settings) as (real, sockets):
        assert {each.getsockname()[1] for each in sockets} == {real.gateway.port} != {0}


def test_a_port_that_is_taken_at_another_address_of_the_host_is_chosen_anew(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = socket.socket
    rivals: list[socket.socket] = []

    class Rivalled(socket.socket):
        """The first time that a chosen port is asked for elsewhere, somebody was quicker."""

        def bind(self, address: Any) -> None:
            if address[1] and not rivals:
                rivals.append(plain())
                rivals[0].bind(address)
            super().bind(address)

    found = socket.getaddrinfo("127.0.0.1", 0, type=socket.SOCK_STREAM)
    found += socket.getaddrinfo("127.0.0.2", 0, type=socket.SOCK_STREAM)
    settings = load(home / "carnet.toml", {}).listening_at("localhost", 0)
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        patched.setattr(socket, "socket", Rivalled)
        with bound(settings) as (real, sockets):
            assert [each.getsockname() for each in sockets] == [
                ("127.0.0.1", real.gateway.port),
                ("127.0.0.2", real.gateway.port),
            ]
    rivals[0].close()


def test_an_address_that_a_dead_gateway_left_is_not_believed(tmp_path: Path) -> None:
    acme = Organisation(tmp_path, "acme.example")
    written = tmp_path / "var" / "gateway.url"
    written.write_text("http://127.0.0.1:9\n")
    written.chmod(0o600)
    ran = acme.try_carnet("call", "echo", "hi")
    assert ran.returncode == 3
    assert acme.url in ran.stderr


@pytest.mark.parametrize(
    ("text", "mode", "believed"),
    [
        ("http://127.0.0.1:8800\n", 0o600, "http://127.0.0.1:8800"),
        ("http://127.0.0.1:8800\n", 0o666, None),
        ("", 0o600, None),
        ("file:///etc/passwd", 0o600, None),
    ],
)
def test_an_address_is_believed_if_only_its_owner_could_write_it(
    home: Path, text: str, mode: int, believed: str | None
) -> None:
    written = home / "var" / "gateway.url"
    written.write_text(text)
    written.chmod(mode)
    assert written_url(load(home / "carnet.toml", {})) == believed


def test_our_token_goes_to_the_address_that_our_gateway_wrote(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARNET_URL", "http://127.0.0.1:9")
    assert cli("call", "echo", "x").code == 2  # no token for a stranger
    (home / "var" / "gateway.url").write_text("http://127.0.0.1:9\n")
    (home / "var" / "gateway.url").chmod(0o600)
    assert cli("call", "echo", "x").code == 3  # one of ours, which does not answer


def test_ctrl_c_says_what_is_being_finished_and_a_second_one_stops(tmp_path: Path) -> None:
    acme = Organisation(tmp_path, "acme.example")
    acme.configure("", agents=SLOW)
    os.mkfifo(tmp_path / "begun")
    with serving(tmp_path, "--port", "0") as (process, _):
        caller = threading.Thread(target=acme.try_carnet, args=("call", "echo", "x"))
        caller.start()
        (tmp_path / "begun").read_text()  # until the agent runs
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while "Finishing" not in (line := process.stderr.readline()):
            assert line
        assert line == "Finishing 1 call, up to 25 s; Ctrl-C again stops now.\n"
        process.send_signal(signal.SIGINT)
        process.wait(15)
        caller.join()


def test_a_farewell_counts() -> None:
    assert "Finishing 2 calls, up to 2.5 s" in farewell(2, 2.5)
    assert farewell(0, 25) == "\nStopping.\n"


def test_a_store_with_broken_pages_is_told_with_what_to_do(cli: Cli, home: Path) -> None:
    path = home / "var" / "carnet.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = database.execute("PRAGMA page_size").fetchone()
        roots = "SELECT rootpage FROM sqlite_master WHERE rootpage > 0 AND tbl_name = 'turn'"
        pages = [page for (page,) in database.execute(roots)]
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
    ran = cli("serve", "--port", "0")
    assert ran.code == 2
    assert str(path) in ran.err
    assert "malformed" in ran.err
    assert "backup" in ran.err
