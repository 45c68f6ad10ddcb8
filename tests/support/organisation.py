"""The organisation of `carnet.testing.stage`, with the requests that these tests make."""

import json
import os
import subprocess
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from carnet.testing import stage
from tests.support.commands import CARNET, commands
from tests.support.http import HeaderList, Reply, chat_body, request

environment = stage.environment
_launched: weakref.WeakSet[stage.Gateway] = weakref.WeakSet()
_shared: weakref.WeakSet[stage.Gateway] = weakref.WeakSet()


LOOP_SECONDS = 0.25  # of work, that may keep everybody else waiting


class Launched(stage.Gateway):
    """A gateway process that a test cannot leave behind; see `ended_with_it`.

    A test fails when something held the event loop of its gateway (A73).
    """

    may_hold_loop = False  # an agent of the test does so on purpose
    _read = 0  # bytes of the log that were looked through

    def launch(self, *, env: Mapping[str, str] | None = None) -> None:
        super().launch(env=env)
        _launched.add(self)

    def ended(self) -> int:
        code = super().ended()
        held = self.held()
        assert self.may_hold_loop or not held, held
        return code

    def held(self) -> list[dict[str, Any]]:
        """What the log says of work that held the loop, since it was looked at last."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as log:
            log.seek(self._read)
            lines = log.read()
        self._read += len(lines)
        records = [
            json.loads(line) for line in lines.splitlines() if b"event loop was held" in line
        ]
        return [line for line in records if line["cpu"] > LOOP_SECONDS]

    def begin(self, out: IO[bytes], err: IO[bytes], env: dict[str, str]) -> stage.ChildProcess:
        """Fork it from a process that has it loaded already."""
        if any(env.get(name) != os.environ.get(name) for name in env if name.startswith("PYTHON")):
            return super().begin(out, err, env)  # what Python reads as it starts
        with Path(os.devnull).open("rb") as nothing:
            fds = (nothing.fileno(), out.fileno(), err.fileno(), self.address.fd)
            words = ("serve", "--fd")
            return commands().start(CARNET, words, at=self.folder, env=env, fds=fds)


class Organisation(Launched, stage.Organisation):
    """One gateway, driven the way its operator would."""

    def try_carnet(
        self, *words: str, at: Path | None = Path(), env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line, in a process that has it loaded already."""
        if any(name.startswith("PYTHON") for name in env or ()):
            return super().try_carnet(*words, at=at, env=env)  # what Python reads as it starts
        folder = Path.cwd() if at is None else self.folder / at
        return commands().run(words, at=folder, env=environment(env), seconds=stage.COMMAND_SECONDS)

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


@contextmanager
def ended_with_it() -> Iterator[None]:
    """What is launched inside and runs when it is left is killed: a test takes no other with it."""
    before = set(_launched)
    yield
    for each in set(_launched) - before - set(_shared):
        each.kill()


@contextmanager
def shared_with_others() -> Iterator[None]:
    """What is launched inside belongs to several tests: it outlives the one that asked first."""
    before = set(_launched)
    yield
    _shared.update(set(_launched) - before)
