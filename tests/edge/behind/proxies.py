"""Real proxies in front of a gateway, and what each of them forwarded as a request of its own.

Each marks every request that it forwards. Between it and the gateway lies a wire that keeps what
passes: a request that somebody has hidden in another has no mark.
"""

import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from carnet.testing.address import Address
from carnet.testing.wait import until

BIN = Path(sys.executable).parent
NAMED = re.compile(rb"\r\nx-correlation-id:[ \t]*(\S+)", re.IGNORECASE)
SECONDS = 2  # that a proxy gives a client for its request
HEAD_END = b"\r\n\r\n"


class Tap:
    """Passes connections on to a port of this machine, and keeps what was sent on them."""

    def __init__(self, port: int) -> None:
        self.mark = "x-passed-on"  # which no client of the tests sends
        self.sent: list[bytearray] = []  # on each connection, by the proxy
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self._listener.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """Take no more, and wait for what is open: proxy and gateway have ended."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def forwarded(self) -> Counter[str]:
        """The requests that were forwarded, by the names that their senders gave them."""
        found: Counter[str] = Counter()
        mark = b"\r\n" + self.mark.encode() + b":"
        for sent in map(bytes, self.sent):
            for match in re.finditer(re.escape(mark), sent.lower()):
                begin = sent.rfind(HEAD_END, 0, match.start())
                head = sent[max(begin, 0) : sent.find(HEAD_END, match.start())]
                found += Counter([name.decode("latin-1") for name in NAMED.findall(head)])
        return found

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.sent.append(bytearray())
                passing = threading.Thread(target=self._pass, args=(near, self.sent[-1]))
                passing.start()
                self._threads.append(passing)

    def _pass(self, near: socket.socket, kept: bytearray) -> None:
        """Pass on what either side says, until one of them closes."""
        with near, socket.create_connection(("127.0.0.1", self._port)) as far, suppress(OSError):
            while True:
                for side in select.select([near, far], [], [])[0]:
                    data = side.recv(65_536)
                    if not data:
                        return
                    if side is near:
                        kept += data
                    (far if side is near else near).sendall(data)


@contextmanager
def running(command: list[str], folder: Path, fds: tuple[int, ...] = ()) -> Iterator[None]:
    """A program in a folder of its own, until the block ends."""
    env = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  a program that the checks install
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=fds,
        )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def caddy(folder: Path, tap: Tap) -> Iterator[int]:
    """Caddy, which reads requests as the HTTP library of Go does; its port."""
    at = Address()
    at.listen()  # it takes a socket that listens
    settings = folder / "Caddyfile"
    timeouts = " ".join(
        f"\n\t\t\t{name} {SECONDS}s" for name in ("read_body", "read_header", "idle")
    )
    settings.write_text(
        "{\n\tadmin off\n\tauto_https off\n\tpersist_config off\n"
        f"\tservers {{\n\t\ttimeouts {{{timeouts}\n\t\t}}\n\t}}\n}}\n"
        f"http:// {{\n\tbind fd/{at.fd}\n\treverse_proxy 127.0.0.1:{tap.port} {{\n"
        f"\t\theader_up {tap.mark} 1\n\t}}\n}}\n"
    )
    command = [str(BIN / "caddy"), "run", "--config", str(settings), "--adapter", "caddyfile"]
    with running(command, folder, (at.fd,)):
        until(lambda: _answers(at.port), seconds=60)
        yield at.port
    at.close()


@contextmanager
def envoy(folder: Path, tap: Tap) -> Iterator[int]:
    """Envoy, whose reader of requests is its own, in C++; its port."""
    settings, admin = folder / "envoy.json", folder / "admin.txt"
    settings.write_text(json.dumps(_envoy(tap)))
    command = [str(BIN / "envoy"), "-c", str(settings), "--admin-address-path", str(admin)]
    command += ["--use-dynamic-base-id", "--concurrency", "1", "--log-level", "error"]
    with running(command, folder):
        until(lambda: admin.exists() and ":" in admin.read_text(), seconds=60)
        port = int(admin.read_text().rsplit(":", 1)[1])
        until(lambda: _listeners(port), seconds=60)
        (listening,) = _listeners(port)
        until(lambda: _answers(listening), seconds=60)
        yield listening


def _listeners(admin: int) -> list[int]:
    line = http.client.HTTPConnection("127.0.0.1", admin, timeout=5)
    try:
        line.request("GET", "/listeners?format=json")
        found = json.loads(line.getresponse().read())
    finally:
        line.close()
    return [
        int(each["local_address"]["socket_address"]["port_value"])
        for each in found.get("listener_statuses", [])
    ]


def _answers(port: int) -> bool:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        line.request("GET", "/healthz")
        return line.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        line.close()


def _at(port: int) -> dict[str, object]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _envoy(tap: Tap) -> dict[str, object]:
    route = {
        "match": {"prefix": "/"},
        "route": {"cluster": "gateway", "timeout": "10s"},
        "request_headers_to_add": [{"header": {"key": tap.mark, "value": "1"}}],
    }
    seconds = f"{SECONDS}s"
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network"
        ".http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "front",
        "request_timeout": seconds,
        "request_headers_timeout": seconds,
        "common_http_protocol_options": {"idle_timeout": seconds},
        "route_config": {"virtual_hosts": [{"name": "a", "domains": ["*"], "routes": [route]}]},
        "http_filters": [
            {
                "name": "router",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
                },
            }
        ],
    }
    endpoint = {"endpoint": {"address": _at(tap.port)}}
    return {
        "admin": {"address": _at(0)},
        "static_resources": {
            "listeners": [
                {
                    "name": "front",
                    "address": _at(0),
                    "filter_chains": [
                        {"filters": [{"name": "http", "typed_config": manager}]},
                    ],
                }
            ],
            "clusters": [
                {
                    "name": "gateway",
                    "type": "STATIC",
                    "load_assignment": {
                        "cluster_name": "gateway",
                        "endpoints": [{"lb_endpoints": [endpoint]}],
                    },
                }
            ],
        },
    }
