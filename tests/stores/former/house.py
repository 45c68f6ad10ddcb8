"""The gateway of a former store, and the one server that it was told to call.

What is kept in the files names that server as `RECORDED`, which nobody listens on. Where it listens
now is written in its place before a gateway reads it.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from carnet.testing.wait import PATIENCE_SECONDS, until
from tests.exchanges.cases.carnets import Travelling
from tests.exchanges.stage import Answer as Got
from tests.exchanges.stage import exchange
from tests.exchanges.tap import Answer, Passed, Received, Tap
from tests.support.organisation import environment
from tests.support.signing.signed import Sender, Signed, message

HERE = Path(__file__).parent
RECORDED = "127.77.3.9:18471"
ALICE = Sender("agent://client-alice", kid="k-alice", seed=b"a" * 32)
_LISTENS = re.compile(rb"\"path\":\"http://127\.0\.0\.1:(\d+)")
_COMPLETION = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "from afar"},
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "total_tokens": 3,
        "cost": "0.001",
        "currency": "credits",
        "run_cost": "0.001",
    },
}


def elsewhere(broken: int) -> Callable[[Received], Answer]:
    """A gateway and hooks; one of the hooks answers with the status that is given."""
    hooks = {"/hooks/well": 200, "/hooks/gone": 410, "/hooks/broken": broken}

    def play(received: Received) -> Answer:
        if received.target in hooks:
            return Answer(status=hooks[received.target])
        fields = [("content-type", "application/json")]
        return Answer(headers=fields, body=json.dumps(_COMPLETION).encode())

    return play


class Hooks(NamedTuple):
    """The server that is called: where it listens, and what it received."""

    address: str
    received: list[Passed]

    def named_in(self, text: str) -> str:
        """What was kept, with the address of now."""
        return text.replace(RECORDED, self.address)

    def recorded(self, text: str) -> str:
        """What is to be kept."""
        return text.replace(self.address, RECORDED)


@contextmanager
def listening(*, broken: int) -> Iterator[Hooks]:
    """The server that is called, while the context is entered."""
    received: list[Passed] = []
    tap = Tap("hooks", elsewhere(broken), received).start()
    try:
        yield Hooks(f"127.0.0.1:{tap.port}", received)
    finally:
        tap.stop()


class House:
    """A gateway in a folder."""

    def __init__(self, folder: Path, hooks: Hooks) -> None:
        self.folder = folder
        self.hooks = f"http://{hooks.address}/hooks"
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return (self.folder / "var" / "starter.token").read_text().strip()

    def carnet(self, *arguments: str) -> Any:
        """Run the command line and read its JSON."""
        command = [sys.executable, "-m", "carnet.cli.main", "--format", "json", *arguments]
        done = subprocess.run(  # noqa: S603  our own command
            command,
            cwd=self.folder,
            env=environment(None),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def start(self) -> None:
        log = self.folder / "log.jsonl"
        command = [sys.executable, "-m", "carnet.cli.main", "serve"]
        with log.open("wb") as out:
            self._process = subprocess.Popen(  # noqa: S603  our own command
                command, cwd=self.folder, env=environment(None), stdout=out, stderr=out
            )
        until(lambda: self._ended() or _LISTENS.search(log.read_bytes()))
        found = _LISTENS.search(log.read_bytes())
        assert found is not None, log.read_text()
        self.port = int(found[1])

    def _ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    # ------------------------------------------------------------------------------ asking

    def send(self, request: Signed) -> Got:
        return exchange(self.port, request, self.host)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Got:
        """Ask with the starter token; underscores of header names stand for hyphens."""
        fields = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = b"" if body is None else json.dumps(body).encode()
        return self.send(
            Signed(method=method, target=path, headers=tuple(fields.items()), body=data)
        )

    def chat(self, agent: str, text: str, run: str, *, stream: bool = False) -> Got:
        body = {**asking(agent, text), "stream": stream}
        ids = {"x_tangle_runid": run, "x_tangle_turnid": f"{run}-turn"}
        return self.ask("POST", "/v1/chat/completions", body, **ids)

    def task(self, agent: str, text: str, hook: str) -> str:
        body = {**asking(agent, text), "callback": f"{self.hooks}/{hook}"}
        return str(self.ask("POST", "/tasks", body).json["taskId"])

    def has_ended(self, task: str) -> bool:
        return self.ask("GET", f"/tasks/{task}").json["status"] in {"done", "failed"}


def asking(agent: str, text: str) -> dict[str, Any]:
    return {"model": agent, "messages": [{"role": "user", "content": text}]}


def travelling(house: House, nonce: str) -> Signed:
    """A call of another Carnet: the same turn whenever it is made, under another nonce."""
    ids: dict[str, Any] = {"run": "travelled", "turn": "travelled-turn"}
    return Travelling(house.host).request("paid", "hi", nonce=nonce, **ids)


def signed(nonce: str, *, path: str = "/agent/message", agent: str = "", **given: Any) -> Signed:
    """A signed call: the same turn whenever it is made, under another nonce."""
    to = f"agent://{agent}.acme.example" if agent else "agent://acme.example"
    target = f"/agents/{agent}{path}" if agent else path
    ids = {"traceId": "signed", "spanId": "signed-turn"}
    return message(ALICE, to, target=target, nonce=nonce, **{**ids, **given})
