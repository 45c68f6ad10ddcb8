"""A wire to PostgreSQL that can be cut, or go silent."""

import asyncio
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

PORT = 5432


class Proxy:
    """Listens on a socket file of its own, and passes everything on while it is up."""

    def __init__(self, url: str, folder: Path) -> None:
        self._target = urlsplit(url)
        self._folder = folder
        self._server: asyncio.Server | None = None
        self._open: set[StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.speaking = asyncio.Event()  # while it is not set, nothing is passed on
        self.speaking.set()
        user = self._target.username or "postgres"
        password = f":{self._target.password}" if self._target.password else ""
        host = quote(str(folder), safe="")
        self.url = f"postgresql://{user}{password}@{self._target.path}?host={host}&port={PORT}"

    async def up(self) -> None:
        path = self._folder / f".s.PGSQL.{PORT}"
        self._server = await asyncio.start_unix_server(self._serve, path)

    async def down(self) -> None:
        """Refuse new connections and cut those there are."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
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

    def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        if self._server is None:  # it was accepted, and cut before it was served
            writer.transport.abort()
            return
        self._open.add(writer)
        task = asyncio.get_running_loop().create_task(self._pass_both(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_both(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Pass on until one side ends or the wire is cut; whatever happens, both are closed."""
        ends = {writer}
        try:
            far_reader, far_writer = await self._connect()
            ends.add(far_writer)
            if not writer.is_closing():
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
