"""Organisations for a test: each a folder, a configuration and a real gateway process.

    with Stage(folder) as stage:
        acme = stage.organisation("acme.example", agents=Path("agents.py").read_text())
        acme.start()
        assert acme.ask("echo", "hello") == "hello"

Law 1. What is started here ends here: leaving a stage ends every process of it, whatever happened.
Law 2. An organisation keeps its address for life, over stops, kills and restarts.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Protocol, Self

from carnet.testing.address import HOST, Address
from carnet.testing.wait import PATIENCE_SECONDS, until

COMMAND_SECONDS: Final = 60
ANSWER_SECONDS: Final = 60
OK: Final = 200


class ChildProcess(Protocol):
    """What a gateway's process is asked: the part of `subprocess.Popen` that is used."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...

    def kill(self) -> None: ...


class Gateway:
    """One gateway process at an address of its own; it may be ended and started again."""

    def __init__(self, folder: Path, *, name: str = "") -> None:
        """`folder` holds the configuration. Its log and errors go to files there, by its `name`."""
        self.folder = folder
        self.address = Address()
        self.port = self.address.port
        self.url = self.address.url
        self.log = folder / f"{name or 'log'}.jsonl"
        self.errors = folder / (f"{name}.err" if name else "err.txt")
        self.process: ChildProcess | None = None
        self._watch: threading.Thread | None = None
        self._last: list[ChildProcess] = []  # what the finalizer would have to end
        weakref.finalize(self, _end, self._last)

    def start(self, *, env: Mapping[str, str] | None = None) -> None:
        """Start it and wait until it answers."""
        self.launch(env=env)
        self.wait()

    def launch(self, *, env: Mapping[str, str] | None = None) -> None:
        """Start it, and do not wait."""
        self.ended()
        if self._watch is not None:
            self._watch.join()  # the last one has let go of the address
        with self.log.open("ab") as out, self.errors.open("ab") as err:
            process = self.begin(out, err, environment(env))
        self.process = process
        self._last[:] = [process]
        self._watch = threading.Thread(
            target=_shut_after, args=(process, self.address), daemon=True
        )
        self._watch.start()

    def begin(self, out: IO[bytes], err: IO[bytes], env: dict[str, str]) -> ChildProcess:
        """Begin a process that serves on the address."""
        return subprocess.Popen(  # noqa: S603  our own command
            [*carnet_command(), "serve", "--fd", str(self.address.fd)],
            cwd=self.folder,
            env=env,
            stdout=out,
            stderr=err,
            pass_fds=[self.address.fd],
        )

    def wait(self) -> None:
        """Wait until it answers; ends it if it never does."""
        try:
            until(self._answers)
        except BaseException:
            self.kill()
            raise

    def _answers(self) -> bool:
        assert self.process is not None, "it was not started"
        assert self.process.poll() is None, self.errors.read_text()
        line = http.client.HTTPConnection(HOST, self.port, timeout=ANSWER_SECONDS)
        try:
            line.request("GET", "/healthz")
            return line.getresponse().status == OK
        except OSError:
            return False
        finally:
            line.close()

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        assert self.process is not None, "it was not started"
        self.process.send_signal(number)

    def stop(self) -> int:
        """End it politely, also if it is paused; its exit code. It is killed if it does not end."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def ended(self) -> int:
        """Wait until the process has ended by itself, and nobody listens any more; its exit code.

        One that was ended before has ended well.
        """
        if self.process is None:
            return 0
        process, self.process = self.process, None
        try:
            return process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
            process.wait()
            if self._watch is not None:
                self._watch.join()
            self._last.clear()

    def died(self) -> bool:
        """The same; whether it was killed."""
        return self.ended() == -signal.SIGKILL

    def _end(self, number: int) -> int:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.send_signal(signal.SIGCONT)
        return self.ended()

    def close(self) -> None:
        """End it, whatever it does, and give its address up."""
        self.kill()
        self.address.close()

    def log_lines(self) -> list[str]:
        """The lines of its log so far; the last one may be on its way, and is left out."""
        whole, _, _ = self.log.read_text(errors="replace").rpartition("\n")
        return whole.splitlines()


class Organisation(Gateway):
    """A gateway with its configuration, driven the way its operator would."""

    def __init__(self, folder: Path, domain: str) -> None:
        """Made as `carnet init` makes one, with its agent `echo` and a first token."""
        super().__init__(folder)
        self.domain = domain
        self.carnet("init", str(folder), "--domain", domain, "--port", str(self.port), at=None)
        self.token = (folder / "var" / "starter.token").read_text().strip()

    def carnet(
        self, *words: str, at: Path | None = Path(), env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line; a command that fails fails the test."""
        done = self.try_carnet(*words, at=at, env=env)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def try_carnet(
        self, *words: str, at: Path | None = Path(), env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line in the folder, or in one below it; what it said."""
        return subprocess.run(  # noqa: S603  our own command
            [*carnet_command(), *words],
            cwd=None if at is None else self.folder / at,
            env=environment(env),
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def json(self, *words: str) -> Any:
        """Run the command line and read its JSON."""
        return json.loads(self.carnet("--format", "json", *words).stdout)

    def new_token(self, name: str, *options: str) -> str:
        return str(self.json("tokens", "create", name, *options)["token"])

    def configure(self, text: str, *, agents: str | None = None) -> None:
        """Add to the configuration; replace the module `agents`."""
        config = self.folder / "carnet.toml"
        config.write_text(config.read_text() + "\n" + text)
        if agents is not None:
            (self.folder / "agents.py").write_text(agents)

    def ask(self, agent: str, text: str, *, token: str | None = None) -> str:
        """Ask an agent of it as a caller with a token would; the text of its answer."""
        body = {"model": agent, "messages": [{"role": "user", "content": text}]}
        fields = {
            "authorization": f"Bearer {token or self.token}",
            "content-type": "application/json",
        }
        line = http.client.HTTPConnection(HOST, self.port, timeout=ANSWER_SECONDS)
        try:
            line.request("POST", "/v1/chat/completions", json.dumps(body), fields)
            reply = line.getresponse()
            answer = reply.read()
        finally:
            line.close()
        assert reply.status == OK, (reply.status, answer)
        return str(json.loads(answer)["choices"][0]["message"]["content"])

    def written(self) -> bytes:
        """Everything this organisation wrote: logs, database, configuration."""
        parts = [path.read_bytes() for path in self.folder.rglob("*") if path.is_file()]
        return b"\n".join(parts)


class Stage:
    """Organisations in one folder, for the length of a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.organisations: list[Organisation] = []

    def organisation(self, domain: str, *, config: str = "", agents: str = "") -> Organisation:
        """A new one, not yet started: what `carnet init` writes, and this after it.

        `config` is added to its `carnet.toml`, `agents` to its `agents.py`.
        """
        folder = self.folder / domain
        folder.mkdir(parents=True)
        made = Organisation(folder, domain)
        self.organisations.append(made)
        starter = (folder / "agents.py").read_text()
        made.configure(config, agents=f"{starter}\n{agents}")
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.organisations:
            each.close()


def introduce(
    caller: Organisation,
    callee: Organisation,
    *,
    url: str | None = None,
    credit: str = "10",
    forwarding: bool = False,
) -> None:
    """Let one call the other: a token there, a peer here, and both list the other.

    `url` is where the caller finds the callee, if something stands in between.
    """
    options: Sequence[str] = ["--may-forward-authorization"] if forwarding else []
    token = callee.new_token(f"from-{caller.domain}", "--peer", caller.domain, *options)
    callee.carnet("peers", "add", caller.domain, "--url", caller.url, "--credit", credit, *options)
    secret = caller.folder / "var" / f"{callee.domain}.token"
    secret.write_text(token)
    secret.chmod(0o600)
    at = ["--url", url or callee.url, "--token-file", str(secret), "--credit", credit]
    caller.carnet("peers", "add", callee.domain, *at, *options)


def carnet_command() -> list[str]:
    """The command line of the Carnet that is imported here."""
    return [sys.executable, "-m", "carnet.cli.main"]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of our own commands: nothing of it is about another gateway."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CARNET")}
    kept.pop("CLI_BRIDGE_MAX_DEPTH", None)
    kept.pop("PYTHONDONTWRITEBYTECODE", None)  # many processes would compile it all again
    return {**kept, **(more or {})}


def _shut_after(process: ChildProcess, address: Address) -> None:
    """The socket outlives the process that listened; who calls must not wait for nobody."""
    process.wait()
    address.shut()


def _end(processes: list[ChildProcess]) -> None:
    for process in processes:
        process.kill()
        process.wait()
