"""A wire to PostgreSQL that can be cut, or go silent.

Law. When it is down, no connection of it is open, nor on its way to be served: what is accepted is
     noted in the same step, which a server of asyncio does not do.
"""

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

PORT = 5432
MOST_WAITING = 128


class Proxy:
    """Listens on a socket file of its own, and passes everything on while it is up."""

    def __init__(self, url: str, folder: Path) -> None:
        self._target = urlsplit(url)
        self._folder = folder
        self._listener: socket.socket | None = None
        self._open: set[StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.speaking = asyncio.Event()  # while it is not set, nothing is passed on
        self.speaking.set()
        user = self._target.username or "postgres"
        password = f":{self._target.password}" if self._target.password else ""
        host = quote(str(folder), safe="")
        self.url = f"postgresql://{user}{password}@{self._target.path}?host={host}&port={PORT}"

    async def up(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.settimeout(0)
        self._listener.bind(str(self._folder / f".s.PGSQL.{PORT}"))
        self._listener.listen(MOST_WAITING)
        asyncio.get_running_loop().add_reader(self._listener, self._accept, self._listener)

    def _accept(self, listener: socket.socket) -> None:
        try:
            line, _ = listener.accept()
        except OSError:  # whoever called has gone again
            return
        line.settimeout(0)
        task = asyncio.get_running_loop().create_task(self._serve(line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def down(self) -> None:
        """Refuse new connections and cut those there are."""
        listener, self._listener = self._listener, None
        if listener is not None:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
            (self._folder / f".s.PGSQL.{PORT}").unlink(missing_ok=True)
        for writer in list(self._open):
            writer.transport.abort()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _connect(self) -> tuple[StreamReader, StreamWriter]:
        query = parse_qs(self._target.query)
        if "host" in query:
            return await asyncio.open_unix_connection(f"{query['host'][0]}/.s.PGSQL.{PORT}")
        return await asyncio.open_connection(self._target.hostname, self._target.port or PORT)

    async def _serve(self, line: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=line)
        self._open.add(writer)
        await self._pass_both(reader, writer)

    async def _pass_both(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Pass on until one side ends or the wire is cut; whatever happens, both are closed."""
        ends = {writer}
        try:
            far_reader, far_writer = await self._connect()
            ends.add(far_writer)
            if self._listener is not None:  # else it was cut before both ends were there
                self._open.add(far_writer)
                await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        except OSError:
            return  # the server takes nobody: who asks through this wire finds it cut
        finally:
            self._open -= ends
            for end in ends:
                end.transport.abort()

    async def _pass(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                await self.speaking.wait()
                writer.write(data)
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
