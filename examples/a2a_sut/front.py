"""A gateway with the agent of the conformance kit, at http://127.0.0.1:9999, without a token.

The kit sends none, and Carnet admits nobody without one. So this small front stands before the
gateway: it listens on this machine alone and gives every request the token that it made for the
kit, which may call this one agent. The kit also sends the same message again where it wants a new
task, which to Carnet is a repeat; so each request says with a key of its own that it is none. The
gateway is real, with a store that is gone when it ends.

    make a2a-sut          then, in another terminal: run_tck.py --sut-host http://127.0.0.1:9999

Run nothing like it where others can connect.
"""

import asyncio
import contextlib
import json
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HOST, PORT = "127.0.0.1", 9999  # another port may be given as an argument
MOST_HEAD = 64 * 1024
HERE = Path(__file__).parent
CARNET = str(Path(sys.executable).with_name("carnet"))


def main() -> None:
    """Serve until Ctrl-C."""
    at = socket.create_server((HOST, int(sys.argv[1]) if sys.argv[1:] else PORT))
    with tempfile.TemporaryDirectory() as name, socket.create_server((HOST, 0)) as behind:
        folder = Path(name)
        shutil.copy(HERE / "sut.py", folder)
        config = (HERE / "carnet.toml").read_text()
        (folder / "carnet.toml").write_text(config.replace(f":{PORT}", f":{at.getsockname()[1]}"))
        token = prepare(folder)
        serving = [CARNET, "serve", "--fd", str(behind.fileno())]
        with subprocess.Popen(serving, cwd=folder, pass_fds=[behind.fileno()]) as gateway:  # noqa: S603
            try:
                with contextlib.suppress(KeyboardInterrupt):
                    asyncio.run(front(at, behind.getsockname()[1], token))
            finally:
                gateway.terminate()


def prepare(folder: Path) -> str:
    """The token of the kit, at a new store."""
    start = [CARNET, "init", str(folder), "--quiet"]
    subprocess.run(start, check=True)  # noqa: S603
    scopes = ["--scope", "call:tck", "--scope", "run:read", "--scope", "run:cancel"]
    make = [CARNET, "tokens", "create", "kit", *scopes, "--format", "json"]
    made = subprocess.run(make, cwd=folder, check=True, capture_output=True)  # noqa: S603
    return str(json.loads(made.stdout)["token"])


async def front(at: socket.socket, behind: int, token: str) -> None:
    """Give every request the token, and pass it on."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await relay(reader, writer, behind, token)
        writer.close()

    server = await asyncio.start_server(serve, sock=at, limit=MOST_HEAD)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    async with server:
        url = f"http://{HOST}:{at.getsockname()[1]}"
        print(f"The agent of the conformance kit is at {url}", flush=True)
        await ended.wait()


async def relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, behind: int, token: str
) -> None:
    """One request a connection: all but these fields of its head is passed on as it is."""
    first, _, rest = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
    kept = [line for line in rest.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    fields = {name.strip().lower(): value for name, _, value in (k.partition(b":") for k in kept)}
    body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
    ours = [b"connection: close"]
    if b"authorization" not in fields:
        ours.append(b"authorization: Bearer " + token.encode())
    if b'"taskId"' not in body:  # what is said to a task belongs to it
        ours.append(b"idempotency-key: " + secrets.token_hex(16).encode())
    inward, outward = await asyncio.open_connection(HOST, behind)
    outward.write(b"\r\n".join([first, *ours, *kept]) + body)
    both = {asyncio.create_task(copy(reader, outward)), asyncio.create_task(copy(inward, writer))}
    try:  # whoever leaves first ends it for the other
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in both:
            each.cancel()
        outward.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes, until it ends."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


if __name__ == "__main__":
    main()
