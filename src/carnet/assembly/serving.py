"""Running a gateway process: open the store, listen, drain, close."""

import errno
import logging
import socket
import sys

from carnet.assembly.building import Gateway, build
from carnet.assembly.storing import open_from
from carnet.config import Settings
from carnet.errors import ConfigInvalid
from carnet.gateway.server import make_server, run
from carnet.runtime.system import SystemClock, SystemIds
from carnet.telemetry import start_logging

logger = logging.getLogger("carnet.serve")


def serve(settings: Settings, *, host: str | None = None, port: int | None = None) -> int:
    """Run until a signal; the exit code."""
    listening = settings.listening_at(host, port)
    check_port(listening)
    sink = start_logging()
    try:
        return run(lambda: _serve(listening))
    finally:
        sink.close()


async def _serve(settings: Settings) -> int:
    clock, ids = SystemClock(), SystemIds()
    store = await open_from(settings, exclusive=True)
    try:
        await store.start()
        gateway = build(settings, store, clock, ids)
    except BaseException:
        await store.close()
        raise
    try:
        await _listen(settings, gateway)
    finally:
        await gateway.close()
    logger.info("stopped")
    return 0


async def _listen(settings: Settings, gateway: Gateway) -> None:
    at = settings.gateway

    def announce() -> None:
        logger.info("listening", extra={"path": settings.gateway.public_url})
        sys.stderr.write(banner(settings))
        sys.stderr.flush()

    server = make_server(
        gateway.app, host=at.host, port=at.port, drain=gateway.drain, on_listening=announce
    )
    await server.serve()


def banner(settings: Settings) -> str:
    """What a person sees when the gateway is up: where it is and a line to paste."""
    gateway = settings.gateway
    url = gateway.public_url
    name = settings.default_agent or next(iter(settings.agents), "AGENT")
    token = settings.base / "var" / "starter.token"
    credential = f'$(cat "{token}")' if token.exists() else "$CARNET_TOKEN"
    agents = ", ".join(settings.agents) or "none yet: add an [agents.NAME] section"
    return (
        f"\nCarnet serves {gateway.domain} at {url}\n"
        f"  agents   {agents}\n"
        f"  config   {settings.source}\n"
        "\nTry it:\n"
        f"  curl -s {url}/v1/chat/completions \\\n"
        f'    -H "authorization: Bearer {credential}" \\\n'
        "    -H 'content-type: application/json' \\\n"
        f'    -d \'{{"model": "{name}",'
        ' "messages": [{"role": "user", "content": "hello"}]}\'\n\n'
    )


def check_port(settings: Settings) -> None:
    """Refuse to start on a port that is taken, before anything is opened."""
    at = settings.gateway
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((at.host, at.port))
        except OSError as error:
            raise ConfigInvalid(key="gateway.port", reason=_why(error, at.host, at.port)) from None


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use by another program; stop it, or use another port: "
            f"carnet serve --port {port + 1}"
        )
    if error.errno == errno.EACCES:
        return f"this user may not listen on port {port}; use one above 1023"
    return f"cannot listen on {host}:{port} ({error.strerror})"
