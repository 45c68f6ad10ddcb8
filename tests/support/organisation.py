"""An organisation for tests: a folder, a configuration and a real gateway process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support.http import HeaderList, Reply, chat_body, request

START_SECONDS = 20.0
STOP_SECONDS = 15.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Organisation:
    """One gateway, driven the way its operator would."""

    def __init__(self, folder: Path, domain: str) -> None:
        self.folder = folder
        self.domain = domain
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.carnet("init", str(folder), "--domain", domain, "--port", str(self.port), at=None)
        self.token = (folder / "var" / "starter.token").read_text().strip()

    def carnet(
        self, *arguments: str, at: Path | None = Path(), env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line; raises if it fails."""
        done = self.try_carnet(*arguments, at=at, env=env)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done

    def try_carnet(
        self, *arguments: str, at: Path | None = Path(), env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        command = [sys.executable, "-m", "carnet.cli.main", *arguments]
        return subprocess.run(  # noqa: S603  our own command
            command,
            cwd=None if at is None else self.folder / at,
            env=environment(env),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        """Run the command line and read its JSON."""
        return json.loads(self.carnet("--format", "json", *arguments).stdout)

    def new_token(self, name: str, *options: str) -> str:
        """Make a token."""
        return str(self.json("tokens", "create", name, *options)["token"])

    def configure(self, text: str, *, agents: str | None = None) -> None:
        """Add to the configuration; replace the agents' module."""
        config = self.folder / "carnet.toml"
        config.write_text(config.read_text() + "\n" + text)
        if agents is not None:
            (self.folder / "agents.py").write_text(agents)

    def start(self, *, env: dict[str, str] | None = None) -> None:
        """Start the gateway and wait until it answers."""
        command = [sys.executable, "-m", "carnet.cli.main", "serve"]
        with (
            (self.folder / "log.jsonl").open("ab") as out,
            (self.folder / "err.txt").open("ab") as err,
        ):
            self.process = subprocess.Popen(  # noqa: S603  our own command
                command, cwd=self.folder, env=environment(env), stdout=out, stderr=err
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((self.folder / "err.txt").read_text())
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            return request("GET", self.url + "/healthz").status == 200
        except OSError:
            return False

    def stop(self) -> int:
        """End it politely; its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        if self.process is None:
            return 0
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(number)
        return process.wait(STOP_SECONDS)

    def died(self) -> bool:
        """Wait for the process to end by itself; whether it was killed."""
        assert self.process is not None
        return self.process.wait(STOP_SECONDS) == -signal.SIGKILL

    def chat(
        self,
        text: str = "hi",
        model: str | None = "echo",
        *,
        token: str | None = None,
        headers: HeaderList = (),
        path: str = "/v1/chat/completions",
        **more: Any,
    ) -> Reply:
        """Ask an agent."""
        fields = [
            ("authorization", f"Bearer {token or self.token}"),
            ("content-type", "application/json"),
            *headers,
        ]
        return request("POST", self.url + path, fields, chat_body(text, model, **more))

    def get(self, path: str, *, token: str | None = None, headers: HeaderList = ()) -> Reply:
        """Read a page."""
        fields = [("authorization", f"Bearer {token or self.token}"), *headers]
        return request("GET", self.url + path, fields)

    def log_lines(self) -> list[str]:
        """The lines of its log so far; the last one may be on its way, and is left out."""
        whole, _, _ = (self.folder / "log.jsonl").read_text(errors="replace").rpartition("\n")
        return whole.splitlines()

    def written(self) -> bytes:
        """Everything this organisation wrote: logs, database, configuration."""
        parts = [path.read_bytes() for path in self.folder.rglob("*") if path.is_file()]
        return b"\n".join(parts)


def environment(more: dict[str, str] | None) -> dict[str, str]:
    """The environment of our own commands: nothing of it is about another gateway."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CARNET")}
    kept.pop("CLI_BRIDGE_MAX_DEPTH", None)
    kept.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile it all again
    return {**kept, **(more or {})}
