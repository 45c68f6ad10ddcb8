"""The loop of a gateway's agents, served in its own process for others to ask."""

import http.client
import json
import signal
import socket
import stat
import threading
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from carnet.core.messages.events import Done
from tests.engine.process import PATH, Stream, asking, user
from tests.interop.engine.test_agents import TOOLS
from tests.support.http import request
from tests.support.model import Answer, Asked, Model, streamed
from tests.support.organisation import Organisation

CONFIG = """
[agents.assistant]
kind = "engine"

[models.small]
url = "{url}/v1"
retries = 0

[engine]
tools = ["tools:read_page"]
serve = true
"""


class FileConnection(http.client.HTTPConnection):
    """A connection to the socket of a file."""

    def __init__(self, file: Path) -> None:
        super().__init__("engine.invalid", timeout=60)
        self._file = file

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self._file))


def streaming(file: Path, token: str | None) -> FileConnection:
    line = FileConnection(file)
    fields = {"content-type": "application/json"}
    if token is not None:
        fields["authorization"] = f"Bearer {token}"
    line.request("POST", PATH, json.dumps(asking(user("Hi"))), fields)
    return line


def test_a_gateway_serves_the_loop_of_its_agents_at_a_socket_of_its_own(tmp_path: Path) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def wait(_: Asked) -> Answer:
        asked.set()
        assert go_on.wait(60)
        return streamed("In the end.")

    with Model().serving() as model, TemporaryDirectory(prefix="carnet-") as short:
        model.reply = lambda _: streamed("Hello.")
        file = Path(short) / "engine.sock"
        home = Organisation(tmp_path / "acme", "acme.example")
        home.configure(CONFIG.format(url=model.url) + f'listen = "unix:{file}"\n')
        (home.folder / "tools.py").write_text(TOOLS)
        token = home.new_token("asker", "--scope", "admin:engine")
        home.start()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        # Its agents are answered in the process, and others at the socket, behind Auth.
        assert home.chat("Hi", "assistant").text == "Hello."
        assert list(Stream(streaming(file, token)).events())[-1] == Done("stop")
        with closing(streaming(file, None)) as line:
            nobody = line.getresponse()
            assert (nobody.status, list(json.loads(nobody.read()))) == (401, ["code", "message"])
        fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
        assert request("POST", home.url + PATH, fields, b"{}").status == 404
        # It drains with its gateway.
        model.reply = wait
        running = Stream(streaming(file, token))
        assert asked.wait(60)
        home.signal(signal.SIGTERM)
        go_on.set()
        assert list(running.events())[-1] == Done("stop")
        assert home.ended() == 0
        assert not file.exists()
        home.close()


def test_to_serve_it_needs_a_place(tmp_path: Path) -> None:
    home = Organisation(tmp_path / "acme", "acme.example")
    home.configure("[engine]\nserve = true\n")
    done = home.try_carnet("serve", "--port", "0")
    assert done.returncode == 2
    assert "engine.listen" in done.stderr
    home.close()
