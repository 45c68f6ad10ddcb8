"""The two organisations of the exchanges, and the only file that knows how gateways are started.

Acme is asked; Globex is whom it calls. Whatever one of them sends the other passes a tap, so that
neither has to know where the other listens before both do: each listens where the system lets it.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from carnet.testing.wait import until
from tests.exchanges.cases.parts import play
from tests.exchanges.tap import Passed, Tap, passing_on
from tests.support.http import request
from tests.support.organisation import environment
from tests.support.signing.signed import Sender

HERE = Path(__file__).parent
ACME, GLOBEX = "acme.example", "globex.example"
START_SECONDS = 60.0

ALICE = Sender("agent://client-alice", kid="k-alice", seed=b"a" * 32)
BOB = Sender("agent://client-bob", kid="k-bob", seed=b"b" * 32)
INITECH = Sender("agent://initech.example", kid="k-initech", seed=b"i" * 32)

PINS: list[tuple[str, ...]] = [
    ("peers", "add", one.identity, "--key", one.public, "--kid", one.kid)
    for one in (ALICE, BOB, INITECH)
]
TOKENS: dict[str, tuple[tuple[str, ...], ...]] = {
    "globex": (("from-acme", "--peer", ACME, "--may-forward-authorization"),),
    "acme": (
        ("overseer", "--scope", "*"),
        ("roaming", "--forwardable"),
        ("bare", "--scope", "call:echo"),
        ("reader", "--scope", "run:read"),
        ("poor", "--limit", "0.0003"),
        ("penniless", "--limit", "0", "--forwardable"),
        ("rated", "--rate", "2/h"),
        ("forwarder", "--may-forward-authorization"),
        ("from-globex", "--peer", GLOBEX, "--may-forward-authorization"),
        ("ended", "--forwardable"),
    ),
}
LATER: dict[str, list[tuple[str, ...]]] = {
    "globex": PINS,
    "acme": [*PINS, ("tokens", "revoke", "ended")],
}

# Several command lines in one process: each is a line of JSON.
_COMMANDS = """
import json, sys
from carnet.cli.main import main
for line in sys.stdin:
    sys.argv = ["carnet", "--format", "jsonl", *json.loads(line)]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    sys.stdout.flush()
"""
_LISTENS = re.compile(rb"\"path\":\"http://127\.0\.0\.1:(\d+)")


class Gateway:
    """One organisation: its folder, its tokens and its process."""

    def __init__(self, folder: Path, name: str, taps: dict[str, Tap]) -> None:
        """Write what its operator would write, and make what its operator would make."""
        self.name = name
        self.folder = folder / name
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        (self.folder / "var").mkdir(parents=True)
        text = (HERE / f"{name}.toml").read_text()
        for tap in taps.values():
            mark = tap.name.replace(" ", "_")
            text = text.replace(f"@{mark}_url@", tap.url).replace(f"@{mark}_port@", str(tap.port))
        (self.folder / "carnet.toml").write_text(text)
        (self.folder / "agents.py").write_text((HERE / "agents_module.py").read_text())
        self.keep("model.key", "sk-of-the-model")
        self.keep("globex.token", "not yet")
        made = [("tokens", "create", *words) for words in TOKENS[name]]
        lines = [("init", "."), *made, *LATER[name]]
        pages = [page["token"] for page in self._command(*lines) if "token" in page]
        names = [words[0] for words in TOKENS[name]]
        self.tokens = {**dict(zip(names, pages, strict=True)), name: self._starter()}

    def _starter(self) -> str:
        return (self.folder / "var" / "starter.token").read_text().strip()

    def keep(self, name: str, secret: str) -> None:
        """A secret that its configuration names."""
        path = self.folder / "var" / name
        path.write_text(secret)
        path.chmod(0o600)

    def _command(self, *lines: tuple[str, ...]) -> list[dict[str, Any]]:
        done = subprocess.run(  # noqa: S603  our own command
            [sys.executable, "-c", _COMMANDS],
            cwd=self.folder,
            env=environment(None),
            input="\n".join(json.dumps(line) for line in lines).encode(),
            capture_output=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return [json.loads(line) for line in done.stdout.splitlines() if line]

    def start(self) -> None:
        """Start it and wait until it says where it listens."""
        log = self.folder / "log.jsonl"
        command = [sys.executable, "-m", "carnet.cli.main", "serve"]
        with log.open("wb") as out:
            self._process = subprocess.Popen(  # noqa: S603  our own command
                command, cwd=self.folder, env=environment(None), stdout=out, stderr=out
            )
        found = until(self._listens)
        assert found is not None
        self.port = int(found[1])

    def _listens(self) -> re.Match[bytes] | None:
        """Where, once its log says so."""
        log = self.folder / "log.jsonl"
        assert self._process is not None, "it was not started"
        assert self._process.poll() is None, log.read_text()
        return _LISTENS.search(log.read_bytes())

    def kill(self) -> None:
        """End it, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def published(self) -> list[dict[str, str]]:
        """The keys it publishes."""
        page = request("GET", f"http://127.0.0.1:{self.port}/.well-known/carnet.json").json
        found: list[dict[str, str]] = page["keys"]
        return found


class Scene(Struct, kw_only=True):
    """What an exchange may use."""

    gateways: dict[str, Gateway]
    taps: dict[str, Tap]
    passed: list[Passed]

    @property
    def tokens(self) -> dict[str, str]:
        return {name: text for one in self.gateways.values() for name, text in one.tokens.items()}

    def literals(self) -> dict[str, str]:
        """What differs from one start to the next, and what it is called instead."""
        found = {token: f"<token {name}>" for name, token in self.tokens.items()}
        for name, gateway in self.gateways.items():
            found[f"127.0.0.1:{gateway.port}"] = f"<{name}>"
            for key in gateway.published():
                found |= {key["kid"]: f"<kid {name}>", key["key"]: f"<key {name}>"}
        for name, tap in self.taps.items():
            found[f"127.0.0.1:{tap.port}"] = f"<{name}>"
        return found


@contextmanager
def running(folder: Path) -> Iterator[Scene]:
    """Both gateways and all taps, until the context is left, whatever happened in it."""
    passed: list[Passed] = []
    gateways: dict[str, Gateway] = {}
    taps = {
        "parts": Tap("parts", play, passed, tells=False),
        "to globex": Tap("to globex", passing_on(lambda: gateways["globex"].port), passed),
        "to acme": Tap("to acme", passing_on(lambda: gateways["acme"].port), passed),
    }
    with ExitStack() as stack, ThreadPoolExecutor(2) as both:
        for tap in taps.values():
            stack.callback(tap.start().stop)
        gateways |= zip(
            ("acme", "globex"),
            both.map(lambda name: Gateway(folder, name, taps), ("acme", "globex")),
            strict=True,
        )
        gateways["acme"].keep("globex.token", gateways["globex"].tokens["from-acme"])
        for gateway in gateways.values():
            stack.callback(gateway.kill)
        list(both.map(Gateway.start, gateways.values()))
        yield Scene(gateways=gateways, taps=taps, passed=passed)
