"""Starting receivers of webhooks, and reading what they received."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from carnet.testing.address import Address

ROOT = Path(__file__).parents[3]


class Receivers:
    """A running process of `tests.support.webhooks.receiver`."""

    def __init__(self, file: Path, ports: dict[str, int]) -> None:
        self._file = file
        self.ports = ports

    def url(self, name: str, path: str = "/in") -> str:
        return f"http://127.0.0.1:{self.ports[name]}{path}"

    def events(self, name: str, event: str = "request") -> list[dict[str, Any]]:
        """What one of them has noted so far; the last line may be on its way, and is left out."""
        text = self._file.read_text() if self._file.exists() else ""
        whole, _, _ = text.rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines()]
        return [line for line in lines if (line["name"], line["event"]) == (name, event)]

    def received(self, name: str) -> list[dict[str, Any]]:
        """The requests that one of them got, oldest first."""
        return self.events(name)


@contextmanager
def receiving(folder: Path, *names: str, **held: Address) -> Iterator[Receivers]:
    """Receivers of these behaviours, on ports of the system's choice or at addresses of ours."""
    file = folder / f"received-{len(list(folder.glob('received-*')))}.jsonl"
    file.touch()
    handed = [f"{name}={address.fd}" for name, address in held.items()]
    process = _start([str(file), *names, *handed], [address.fd for address in held.values()])
    try:
        assert process.stdout is not None
        yield Receivers(file, json.loads(process.stdout.readline()))
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _start(arguments: Sequence[str], fds: Iterable[int]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.webhooks.receiver", *arguments]
    return subprocess.Popen(  # noqa: S603  our own script
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, pass_fds=tuple(fds)
    )
