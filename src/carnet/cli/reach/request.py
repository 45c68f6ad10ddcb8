"""The request that `carnet call` sends: to the gateway, or with --direct to the agent itself.

Law 1. The caller is an origin: no depth header, no parent turn.
Law 2. A token made here for the operator is never sent to anybody but our own gateway.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from carnet.cli.invocation import Invocation
from carnet.cli.reach.gateway import find_place, reached, read_token
from carnet.cli.reach.payment import brought
from carnet.core.chain.terms import read_terms
from carnet.core.people.address import Address, is_agent_uri, is_handle, parse_handle
from carnet.core.people.identity import Secret
from carnet.errors import InvalidRequest, PeerUnknown, UsageInvalid
from carnet.ports.trust.trust import Peer
from carnet.ports.world.http_client import Bounds, HttpClient, Outbound
from carnet.wire.dialects import DIALECTS, by_peer, openai
from carnet.wire.travel.budget import BUDGET
from carnet.wire.travel.payment import PAYMENT

CHAT = "/v1/chat/completions"
TASKS = "/tasks"


Composed = tuple[Outbound, bool]  # the request, and whether its token was made just now


class CallOptions(Struct, kw_only=True):
    """What the command line said."""

    address: str
    text: str | None = None
    skill: str | None = None
    payload: dict[str, Any] = {}
    key: str | None = None
    token: str | None = None
    stream: bool = False
    dialect: str | None = None
    dry_run: bool = False
    direct: bool = False
    run: str | None = None
    turn: str | None = None
    timeout: float = 600.0
    model: str | None = None
    task: bool = False
    no_wait: bool = False
    callback: str | None = None
    delegate: str | None = None
    budget: str | None = None
    on_budget: str | None = None
    voucher: str | None = None

    @property
    def bounds(self) -> Bounds:
        """How long the answer may take, in each respect."""
        seconds = self.timeout
        return Bounds(first_byte_seconds=seconds, idle_seconds=seconds, total_seconds=seconds)

    @property
    def is_url(self) -> bool:
        """Whether the address is that of an endpoint."""
        return self.address.startswith(("http://", "https://"))

    @property
    def is_a2a(self) -> bool:
        """Whether it is for an agent that speaks A2A, at a URL."""
        return self.is_url and self.dialect == "a2a"

    @property
    def is_agents_api(self) -> bool:
        """Whether it is for an agent that speaks agents-api, at a URL."""
        return self.is_url and self.dialect == "agents_api"

    @property
    def is_signed(self) -> bool:
        """Whether the call leaves from here, signed."""
        if self.is_url:
            return any(each.is_signed for each in DIALECTS if each.name == self.dialect)
        is_named = is_agent_uri(self.address) or (self.goes_signed and is_handle(self.address))
        return is_named and self.direct

    @property
    def goes_signed(self) -> bool:
        """Whether it goes straight to an agent elsewhere: only what is signed carries it."""
        return self.task or self.delegate is not None


@asynccontextmanager
async def compose(
    invocation: Invocation, asked: CallOptions, http: HttpClient
) -> AsyncIterator[Composed]:
    """The request; a token made for it lives as long as the context."""
    if asked.is_url:
        yield _to_endpoint(asked), False
    elif asked.direct:
        yield await _to_peer(invocation, asked), False
    else:
        async with _to_gateway(invocation, asked, http) as composed:
            yield composed


def describe(request: Outbound) -> dict[str, Any]:
    """A request as it would be sent, its secrets as ***."""
    hidden = {name: "Bearer ***" if name == "authorization" else "***" for name in request.secrets}
    return {
        "method": request.method,
        "url": request.url,
        "headers": {**request.headers, **hidden},
        "body": msgspec.json.decode(request.body),
    }


def _check_budget(asked: CallOptions) -> None:
    if asked.budget is None:
        if asked.on_budget is not None:
            raise UsageInvalid(
                reason="--on-budget says what to do when a budget is used up.",
                fix="Add --budget 0.50, or --budget money=0.50,calls=20,tokens=5000,seconds=60.",
            )
        return
    try:
        read_terms(budget_of(asked))
    except InvalidRequest:
        raise UsageInvalid(
            reason=f"'{asked.budget}' is no budget.",
            fix="Write --budget 0.50, or --budget money=0.50,calls=20,tokens=5000,seconds=60.",
        ) from None
    if asked.is_signed or asked.is_a2a:
        raise UsageInvalid(
            reason="--budget bounds a call that goes through our gateway.",
            fix="Leave out --direct, --delegate and --dialect.",
        )


def budget_of(asked: CallOptions) -> str:
    """The budget that it is sent with."""
    on = "" if asked.on_budget is None else f",on={asked.on_budget}"
    return f"{asked.budget}{on}"


def check(asked: CallOptions) -> None:
    """Refuse options that do not go together."""
    if "@" in asked.address and not (asked.is_url or is_handle(asked.address)):
        raise UsageInvalid(
            reason=f"'{asked.address}' is no address of an agent.",
            fix=f"Did you mean '@{asked.address}'?",
        )
    _check_budget(asked)
    for option, value in (("--run", asked.run), ("--turn", asked.turn)):
        if value is not None and not (value.isascii() and value.isprintable() and value.strip()):
            raise UsageInvalid(
                reason=f"{option} holds characters that cannot travel in a header.",
                fix="Use visible ASCII characters.",
            )
    if asked.model and not asked.is_url:
        raise UsageInvalid(
            reason="--model is for URLs; elsewhere the address names the agent.",
            fix="Leave out --model.",
        )
    if asked.is_url and asked.dialect is None:
        raise UsageInvalid(
            reason="A URL does not say what is spoken there.",
            fix="Add --dialect openai, samvad, a2a or agents_api.",
        )
    if asked.skill is not None and asked.is_url and not (asked.is_signed or asked.is_a2a):
        raise UsageInvalid(
            reason="An OpenAI-compatible endpoint has no skills.",
            fix="Give a text, or use --dialect samvad or --dialect a2a.",
        )
    if asked.key and not asked.is_signed:
        raise UsageInvalid(
            reason="--key is for calls that are signed here.",
            fix="Add --direct to an agent:// address, or --dialect samvad to a URL.",
        )
    _check_task(asked)


def _check_task(asked: CallOptions) -> None:
    if asked.task and asked.stream:
        raise UsageInvalid(
            reason="A task has no stream: its result comes when it has ended.",
            fix="Leave out --task or --stream.",
        )
    if asked.no_wait and not asked.task:
        raise UsageInvalid(reason="--no-wait is for tasks.", fix="Add --task.")
    if asked.goes_signed and asked.is_a2a:
        raise UsageInvalid(
            reason="An A2A agent decides itself what is a task, and knows no delegations of ours.",
            fix="Leave out --task and --delegate: its task is followed to its end.",
        )
    if asked.goes_signed and asked.is_url and not asked.is_signed:
        raise UsageInvalid(
            reason="An OpenAI-compatible endpoint knows neither tasks nor delegations.",
            fix="Leave out --task and --delegate, or use --dialect samvad.",
        )
    if asked.delegate is not None and not asked.is_signed:
        raise UsageInvalid(
            reason="A delegation goes with a call that is signed, to an agent elsewhere.",
            fix="Give agent://host, @name@domain of another organisation, or a URL with --dialect "
            "samvad.",
        )


@asynccontextmanager
async def _to_gateway(
    invocation: Invocation, asked: CallOptions, http: HttpClient
) -> AsyncIterator[Composed]:
    path = TASKS if asked.task else CHAT
    if asked.dry_run:  # the token is not shown, so none is made
        place = await find_place(invocation, http)
        yield _request(asked, f"{place.url}{path}", asked.address, Secret("")), False
        return
    async with reached(invocation, http, asked.token) as (place, by):
        yield _request(asked, f"{place.url}{path}", asked.address, by.token), by.is_new


async def _to_peer(invocation: Invocation, asked: CallOptions) -> Outbound:
    address = parse_handle(asked.address) if is_handle(asked.address) else None
    if address is None or address.domain == invocation.settings.gateway.domain:
        raise UsageInvalid(
            reason=f"'{asked.address}' is served by your own gateway, so there is no direct way.",
            fix="Leave out --direct; it is for @name@domain of a peer and for URLs.",
        )
    peer = await find_peer(invocation, address.domain)
    _refuse_other_dialect(peer, address)
    url = f"{peer.url}/agents/{quote(address.local, safe='')}{CHAT}"
    token = given_token(asked) or peer.token
    if token is None:
        raise UsageInvalid(
            reason=f"{peer.domain} has given us no token: it knows us by our signature.",
            fix=f"Sign the call: agent://{address.local}.{peer.domain} --direct. Or give a token "
            "with --as.",
        )
    return _request(asked, url, address.local, token)


def _refuse_other_dialect(peer: Peer, address: Address) -> None:
    """Refuse a peer that does not read what is written here: chat completions."""
    dialect = by_peer().get(peer.dialect)
    if dialect is openai.DIALECT:
        return
    if dialect is not None and dialect.is_signed:
        raise UsageInvalid(
            reason=f"{peer.domain} speaks {dialect.name.upper()}, whose agents are addressed by "
            "agent://.",
            fix=f"Use agent://{address.local}.{address.domain}, or leave out --direct.",
        )
    raise UsageInvalid(
        reason=f"{peer.domain} speaks {peer.dialect}, which this command does not.",
        fix="Leave out --direct: our gateway calls it.",
    )


def _to_endpoint(asked: CallOptions) -> Outbound:
    path = urlsplit(asked.address).path
    url = asked.address.rstrip("/")
    if not path.endswith("/chat/completions"):
        url += "/chat/completions" if path.rstrip("/").endswith("/v1") else CHAT
    _, _, name = path.partition("/agents/")
    model = asked.model or name.partition("/")[0] or "default"
    return _request(asked, url, model, given_token(asked))


async def find_peer(invocation: Invocation, domain: str) -> Peer:
    """A peer of the configuration or of its store, or PeerUnknown."""
    from carnet.assembly.store import opened

    async with opened(invocation.settings) as store:
        peer = store.peers.find(domain)
    if peer is None:
        raise PeerUnknown(domain)
    return peer


def given_token(asked: CallOptions) -> Secret | None:
    """The token that was given with the command or in the environment."""
    text = asked.token or os.environ.get("CARNET_TOKEN")
    return read_token(text) if text else None


def _spoken(asked: CallOptions) -> str:
    """What is said in words, for readers that know no skills."""
    return msgspec.json.encode(asked.payload).decode() if asked.text is None else asked.text


def _request(asked: CallOptions, url: str, model: str, token: Secret | None) -> Outbound:
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": _spoken(asked)}],
        "stream": asked.stream,
    }
    if asked.skill is not None:
        body["carnet"] = {"skill": asked.skill, "payload": asked.payload}
    if asked.callback is not None:
        body["callback"] = asked.callback
    if asked.stream:
        body["stream_options"] = {"include_usage": True}
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if asked.stream else "application/json",
    }
    if asked.run:
        headers["x-tangle-runid"] = asked.run
    if asked.turn:
        headers["x-tangle-turnid"] = asked.turn
    if asked.budget:
        headers[BUDGET] = budget_of(asked)
    secrets = {} if token is None else {"authorization": Secret(f"Bearer {token.reveal()}")}
    return Outbound(
        url=url,
        body=msgspec.json.encode(body),
        headers=headers,
        secrets=secrets | payment_of(asked),
        bounds=asked.bounds,
    )


def payment_of(asked: CallOptions) -> dict[str, Secret]:
    """The header of the payment that was given with the command, or in the environment."""
    payment = brought(asked.voucher)
    return {} if payment is None else {PAYMENT: payment}
