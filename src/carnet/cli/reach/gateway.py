"""How a command reaches a gateway: where it is, with which token, and what it says.

Law 1. A token made here for the operator goes to the gateway of this configuration and to no other:
       to the configured address, or to the one that our gateway wrote beside its database. It lives
       five minutes at the most and ends with the command.
Law 2. What a gateway refuses is raised with its own words.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from carnet.cli.failures import GatewayError
from carnet.cli.invocation import Invocation
from carnet.cli.scopes import OPERATOR
from carnet.cli.times import SECOND
from carnet.config import Settings
from carnet.core.people.identity import OPERATOR_NAME, Secret
from carnet.errors import (
    CarnetError,
    PeerAgentNotFound,
    PeerUnreachable,
    ProviderError,
    ProviderUnavailable,
    TokenInvalid,
    Unreachable,
    Upstream,
    UsageInvalid,
)
from carnet.ports.trust.trust import NewToken
from carnet.ports.world.http_client import Bounds, HttpAnswer, HttpClient, Outbound
from carnet.wire.grammar.sse import SseEvent, SseReader

OPERATOR_SECONDS: Final = 300
SEEN_WITHIN_SECONDS: Final = 2.0  # a running gateway learns of a new token within a second
LOOK_AGAIN_SECONDS: Final = 0.2
QUICK: Final = Bounds(connect_seconds=3, first_byte_seconds=10, idle_seconds=10, total_seconds=30)

_OK = range(200, 300)
_OTHERS = 0o022  # who else could have written it
_MOST_URL = 300


class Place(Struct, frozen=True):
    """A gateway: its address, and whether a token from our own store may go there."""

    url: str
    is_ours: bool


async def find_place(
    invocation: Invocation, http: HttpClient, env: Mapping[str, str] = os.environ
) -> Place:
    """The gateway that CARNET_URL names, else that of the configuration, wherever it listens."""
    url = env.get("CARNET_URL", "").rstrip("/")
    if not url:
        place = await own_place(invocation.settings, http)
        if place is None:
            host = invocation.settings.gateway.host
            raise Unreachable(url=f"{host} (its port is 0: the system chooses one at every start)")
        return place
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageInvalid(
            reason="CARNET_URL is no http or https URL.",
            fix="Set it to the address of a gateway, such as http://127.0.0.1:8700, or unset it.",
        )
    return Place(url, is_ours=_is_ours(invocation, url))


async def own_place(settings: Settings, http: HttpClient) -> Place | None:
    """Where our gateway wrote that it listens, if it still answers there; else where it should.

    Of port 0 nobody knows where it should.
    """
    written = written_url(settings)
    if written:
        place = Place(written, is_ours=True)
        if await is_answering(http, place):
            return place
    return Place(gateway_url(settings), is_ours=True) if settings.gateway.port else None


def _is_ours(invocation: Invocation, url: str) -> bool:
    """Whether a URL is the gateway of the configuration at hand, if there is one."""
    try:
        settings = invocation.settings
    except CarnetError:
        return False
    return url in {gateway_url(settings), written_url(settings)}


def gateway_url(settings: Settings) -> str:
    """Where the gateway of a configuration is reached from this machine."""
    from carnet.assembly.banner import local_address

    return local_address(settings)


def written_url(settings: Settings) -> str | None:
    """The address that a gateway of this configuration wrote when it began to listen."""
    from carnet.assembly.serve import address_file

    path = address_file(settings)
    try:
        with path.open() as file:
            is_private = not os.fstat(file.fileno()).st_mode & _OTHERS
            url = file.read(_MOST_URL).strip()
    except (OSError, UnicodeDecodeError):
        return None
    return url if is_private and url.startswith("http://") else None


def read_token(given: str) -> Secret:
    """A token as it was given: its text, or `@FILE`."""
    if not given.startswith("@"):
        return Secret(given)
    path = Path(given[1:]).expanduser()
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        raise UsageInvalid(
            reason=f"The token file {path} cannot be read or is empty.",
            fix="Name a file that holds one token, or give the token itself.",
        )
    return Secret(text)


class Credential(Struct, frozen=True):
    """A token to send. A gateway may not know yet one that is new."""

    token: Secret
    is_new: bool = False

    @property
    def headers(self) -> dict[str, Secret]:
        """The header that carries it."""
        return {"authorization": Secret(f"Bearer {self.token.reveal()}")}


def credential_of(request: Outbound, *, is_new: bool) -> Credential:
    """The credential that a request was made with."""
    sent = request.secrets["authorization"].reveal()
    return Credential(Secret(sent.removeprefix("Bearer ")), is_new=is_new)


@asynccontextmanager
async def credential(
    invocation: Invocation, place: Place, given: str | None = None
) -> AsyncIterator[Credential]:
    """The token to send: the one given, CARNET_TOKEN, or one made for this command."""
    text = given or os.environ.get("CARNET_TOKEN")
    if text:
        yield Credential(read_token(text))
    elif place.is_ours:
        async with operator_token(invocation.settings) as secret:
            yield Credential(secret, is_new=True)
    else:
        raise UsageInvalid(
            reason=f"Calls to {place.url} need a token, and none was given.",
            fix="Give one with --as TOKEN, --as @FILE or CARNET_TOKEN; its operator makes it with "
            "'carnet tokens create NAME'.",
        )


@asynccontextmanager
async def reached(
    invocation: Invocation, http: HttpClient, given: str | None = None
) -> AsyncIterator[tuple[Place, Credential]]:
    """The gateway and the token to send there."""
    place = await find_place(invocation, http)
    async with credential(invocation, place, given) as by:
        yield place, by


@asynccontextmanager
async def operator_token(settings: Settings) -> AsyncIterator[Secret]:
    """A token for the person who can read the store anyway; it ends with the command."""
    from carnet.assembly.store import opened
    from carnet.runtime.system import SystemClock, SystemIds

    clock = SystemClock()
    async with opened(settings) as store:
        name = f"{OPERATOR_NAME}#{SystemIds().uuid()[:8]}"  # of one account: a repeat is replayed
        now = clock.wall_us()
        new = NewToken(name=name, scopes=OPERATOR, expires=now + OPERATOR_SECONDS * SECOND)
        _, secret = await store.tokens.create(new, now)
        try:
            yield secret
        finally:
            await store.tokens.revoke(name, clock.wall_us())


@asynccontextmanager
async def open_http() -> AsyncIterator[HttpClient]:
    """An HTTP client, for the length of a command."""
    from carnet.runtime.egress.client import EgressClient

    http = EgressClient()
    try:
        yield http
    finally:
        await http.close()


@asynccontextmanager
async def sending(
    http: HttpClient, request: Outbound, *, token_is_new: bool = False
) -> AsyncIterator[HttpAnswer]:
    """Send a request; an answer that is an error is raised, with the gateway's own words."""
    waited = 0.0 if token_is_new else SEEN_WITHIN_SECONDS
    while True:
        try:
            async with http.send(request) as answer:
                if answer.status not in _OK:
                    raise error_in(answer, await answer.read())
                yield answer
                return
        except ProviderUnavailable as error:
            raise Unreachable(error.detail, url=_origin(request.url)) from error
        except GatewayError as error:
            # A token made a moment ago is new to the gateway: nothing was run, so ask again.
            if error.facts.get("code") != TokenInvalid.code or waited >= SEEN_WITHIN_SECONDS:
                raise
        waited += LOOK_AGAIN_SECONDS
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def read_events(answer: HttpAnswer) -> AsyncIterator[SseEvent]:
    """The server-sent events of an answer."""
    reader = SseReader(max_event_bytes=1024 * 1024, deliver_trailing=True)
    async for chunk in answer.chunks():
        for event in reader.feed(chunk):
            yield event
    for event in reader.close():
        yield event


def request_to(
    place: Place, method: str, path: str, by: Credential, *, bounds: Bounds = QUICK
) -> Outbound:
    """A request without a body."""
    return Outbound(
        method=method,
        url=f"{place.url}{path}",
        body=b"",
        headers={"accept": "*/*"},
        secrets=by.headers,
        bounds=bounds,
    )


async def is_answering(http: HttpClient, place: Place) -> bool:
    """Whether a gateway is there at all."""
    request = Outbound(method="GET", url=f"{place.url}/healthz", body=b"", headers={}, bounds=QUICK)
    try:
        async with http.send(request) as answer:
            return answer.status in _OK
    except Upstream:
        return False


def decode(data: bytes | str) -> dict[str, Any]:
    """A JSON object that a gateway sent."""
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError:
        raise ProviderError("the gateway sent something that is no JSON object") from None


def error_in(answer: HttpAnswer, body: bytes) -> GatewayError:
    """The error that an answer holds, with the run and the turn that its headers name."""
    status = answer.status
    try:
        page = decode(body)
    except ProviderError:
        page = {}
    error = page.get("error", page)
    if isinstance(error, dict) and error.get("message"):
        named = {**names_in(answer), **_conversation_in(answer)}
        return GatewayError({**error, **_wait_in(answer), **named}, status)
    return GatewayError(
        {
            "code": "provider_error",
            "message": f"The gateway answered with status {status} and no explanation.",
            "hint": "Check that the address is that of a Carnet gateway.",
        },
        status,
    )


def _conversation_in(answer: HttpAnswer) -> dict[str, str]:
    """The conversation in which something is kept though it was refused."""
    conversation = answer.header("x-conversation-id")
    return {"conversation_id": conversation} if conversation else {}


def _wait_in(answer: HttpAnswer) -> dict[str, int]:
    """The seconds that an answer says to wait, as a Carnet writes them."""
    seconds = answer.header("retry-after") or ""
    return {"retry_after": int(seconds)} if seconds.isascii() and seconds.isdigit() else {}


def unreadable(error: PeerUnreachable | PeerAgentNotFound) -> GatewayError:
    """The same for a person, who may know what to do about the reason; it is in our words."""
    hint = "Check the address; whoever runs what is there can tell whether it is up."
    message = f"{error.safe_text} Here: {error.detail}."
    return GatewayError({"code": error.code, "message": message, "hint": hint}, error.status)


def names_in(answer: HttpAnswer) -> dict[str, str]:
    """The run and the turn that an answer names."""
    named = {"run": answer.header("x-tangle-runid"), "turn": answer.header("x-tangle-turnid")}
    return {word: value for word, value in named.items() if value}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
