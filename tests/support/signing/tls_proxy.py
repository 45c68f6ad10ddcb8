"""A reverse proxy with TLS that asks callers for a certificate, as an operator has one in front.

It does what such proxies are told to do: it refuses who shows no certificate that it knows, takes
the header off what callers send, and writes it itself (RFC 9440).
"""

import asyncio
import base64
import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.support.http import HeaderList, Reply
from tests.support.signing.certificates import Certificate

FIELD = b"client-cert"


class TlsProxy:
    """One in front of a gateway."""

    def __init__(self, upstream: str, own: Certificate, known: list[Certificate]) -> None:
        """`upstream` is the gateway's URL; callers show one of the `known` certificates."""
        self._upstream = urlsplit(upstream)
        self._own = own
        self._context = own.serving()
        self._context.verify_mode = ssl.CERT_REQUIRED
        for each in known:
            self._context.load_verify_locations(each.path)
        self.port = 0

    async def serve(self, ready: threading.Event, end: asyncio.Event) -> None:
        """Pass requests on until the end."""
        server = await asyncio.start_server(self._pass, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            ready.set()
            await end.wait()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            shown: ssl.SSLObject = writer.get_extra_info("ssl_object")
            head = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
            kept = [line for line in head if line.partition(b":")[0].lower() != FIELD]
            der = base64.b64encode(shown.getpeercert(binary_form=True) or b"")
            length = [line for line in kept if line.lower().startswith(b"content-length:")]
            body = await reader.readexactly(int(length[0].partition(b":")[2]) if length else 0)
            added = [FIELD + b": :" + der + b":", b"x-forwarded-for: 203.0.113.7"]
            answer = await self._ask(b"\r\n".join([*kept, *added, b"", body]))
            writer.write(answer)
            await writer.drain()
        writer.close()

    async def _ask(self, request: bytes) -> bytes:
        host, port = self._upstream.hostname, self._upstream.port
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(request.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
        answer = await reader.read()
        writer.close()
        return answer

    def send(
        self,
        shows: Certificate | None,
        method: str,
        path: str,
        headers: HeaderList,
        body: bytes = b"",
    ) -> Reply:
        """Ask through it, as a caller that shows a certificate, or none."""
        context = self._own.trusting()
        if shows is not None:
            context.load_cert_chain(shows.path, shows.key)
        connection = http.client.HTTPSConnection(
            "localhost", self.port, context=context, timeout=60
        )
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, fields, response.read())
        finally:
            connection.close()


@contextmanager
def tls_proxy(upstream: str, own: Certificate, known: list[Certificate]) -> Iterator[TlsProxy]:
    """One that runs, in a thread of its own."""
    proxy = TlsProxy(upstream, own, known)
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    end = asyncio.Event()

    def run() -> None:
        loop.run_until_complete(proxy.serve(ready, end))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(30)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(30)
