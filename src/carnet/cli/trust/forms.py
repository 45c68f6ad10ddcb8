"""Tokens, peers and agents on their way between the command line and the store.

Law. A page never holds a credential; it says whether there is one.
"""

import re
from pathlib import Path
from typing import Any, Final, cast

from msgspec import structs

from carnet.cli.scopes import PLAIN, check_scope
from carnet.cli.source import Sight
from carnet.cli.times import SECOND, read_rate, read_span, write_rate
from carnet.config import SecretRef, Settings, resolve_secret
from carnet.config.readers import Wrong, url
from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.money.budget import Ceilings, read_ceilings
from carnet.core.people.address import check_domain, check_identity, check_local
from carnet.core.people.identity import OPERATOR_NAME, Secret, Token
from carnet.core.people.permissions import written_out
from carnet.errors import AddressInvalid, InvalidRequest, UsageInvalid
from carnet.ports.trust.trust import NewToken, Peer, Whose
from carnet.wire.grammar.times import when

_WORD: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)


def new_token(name: str, options: dict[str, Any], now: int) -> NewToken:
    """What `tokens create` was asked for."""
    _check_token_name(name)
    calls, seconds = read_rate(options["rate"]) if options["rate"] else (None, 60)
    span = read_span(options["expires"], option="--expires")
    peer, limit = options["peer"], options["limit"]
    scopes = written_out(map(check_scope, options["scopes"]))
    agent, allow, deny = options["agent"], _listed(options["allow"]), _listed(options["deny"])
    if agent is not None and scopes and allow is None:
        allow = scopes  # what was written down is the most, and not what is safe by default
    return NewToken(
        name=name,
        scopes=scopes or PLAIN,
        agent=agent,
        client=_word(options["client"], "--client"),
        workspace=_word(options["workspace"], "--workspace"),
        allow=allow,
        deny=deny,
        chain_depth=options["chain_depth"],
        budgets=_budgets(options["budgets"]),
        peer=_domain(peer) if peer else None,
        forwardable=options["forwardable"],
        may_forward=options["may_forward"],
        rate_calls=calls,
        rate_seconds=seconds,
        spending_limit=read_amount(limit, "--limit") if limit else None,
        expires=None if span is None else now + span * SECOND,
    )


def token_page(token: Token, now: int) -> dict[str, Any]:
    """A token as it is listed."""
    rate, limit = token.rate_calls, token.spending_limit
    ended = "revoked" if token.revoked is not None else "expired"
    return {
        "name": token.name,
        "prefix": token.prefix,
        "state": "live" if token.is_live(now) else ended,
        "scopes": sorted(token.scopes),
        "taken_back": list(token.taken_back),
        "person": token.holder,
        "service": token.service,
        "peer": token.peer,
        "agent": token.agent,
        "client": token.client,
        "workspace": token.workspace,
        "allow": None if token.ceiling.allow is None else sorted(token.ceiling.allow),
        "deny": sorted(token.ceiling.deny),
        "chain_depth": token.chain_depth,
        "budgets": dict(token.budgets),
        "account": token.peer or token.payer or token.account,
        "forwardable": token.forwardable,
        "may_forward_authorization": token.may_forward,
        "rate": None if rate is None else write_rate(rate, token.rate_seconds),
        "limit": None if limit is None else format_amount(limit),
        "created": when(token.created),
        "expires": when(token.expires),
        "last_used": when(token.last_used),
    }


def _listed(given: tuple[str, ...]) -> frozenset[str] | None:
    """Permissions of a ceiling; a wide one stays as it is, since it is a bound and no grant."""
    return frozenset(map(check_scope, given)) or None


def _budgets(given: tuple[str, ...]) -> Ceilings:
    """Named budgets, as `--budget` has them."""
    try:
        return read_ceilings(list(given))
    except ValueError as error:
        raise UsageInvalid(
            reason=f"--budget: {error}.",
            fix="Write turns=N, tool_calls=N, tool_calls_NAME=N or wall_clock_seconds=N.",
        ) from None


def _word(text: str | None, option: str) -> str | None:
    if text is not None and not _WORD.fullmatch(text):
        raise UsageInvalid(
            reason=f"{option} is not in its form.",
            fix="Write one word of 1 to 64 letters, digits, '.', '_', ':' or '-'.",
        )
    return text


def read_whose(name: str | None, whose: dict[str, str | None]) -> tuple[Whose, str]:
    """Whose tokens `tokens revoke` was asked to end."""
    given = {kind: value for kind, value in whose.items() if value}
    if name is not None or len(given) != 1:
        raise UsageInvalid(
            reason="One token is revoked, or all of one agent, person or client.",
            fix="Give a NAME, or one of --agent, --person and --client.",
        )
    [(kind, value)] = given.items()
    return cast("Whose", kind), value


def is_about_the_peer(options: dict[str, Any]) -> bool:
    """Whether `peers add` was given something of the peer's gateway, and not a key alone."""
    return any(value is not None for name, value in options.items() if name not in {"key", "kid"})


def changed_peer(known: Peer | None, domain: str, options: dict[str, Any]) -> Peer:
    """What `peers add` was asked for; what was not said stays as it was."""
    plain = ("dialect", "may_forward", "auth")
    given: dict[str, Any] = {name: options[name] for name in plain if options[name] is not None}
    if options["url"]:
        given["url"] = _url(options["url"])
    if options["credit"]:
        given["credit"] = read_amount(options["credit"], "--credit")
    if options["max_cost"]:
        given["most_cost"] = read_amount(options["max_cost"], "--max-cost")
    token = _peer_token(options)
    if token is not None:
        given["token"] = token
    if known is not None:
        return structs.replace(known, **given)
    if "url" not in given:
        raise UsageInvalid(
            reason=f"{domain} is new here, and where its gateway is was not said.",
            fix=f"Say it: carnet peers add {domain} --url URL",
        )
    return Peer(domain=_domain(domain), **given)


def agent_page(settings: Settings, name: str, sight: Sight) -> dict[str, Any]:
    """An agent as it is listed."""
    agent = settings.agents[name]
    return {
        "name": name,
        "kind": agent.kind,
        "where": agent.target or agent.url,
        "model": agent.model,
        "default": settings.default_agent == name,
        "price": format_amount(agent.price),
        "price_in": format_amount(agent.price_in),
        "price_out": format_amount(agent.price_out),
        "currency": settings.ledger.currency,
        "skills": list(sight.skills),
        "unseen": sight.unseen or None,
    }


def _check_token_name(name: str) -> None:
    try:
        check_local(name)
    except AddressInvalid:
        raise UsageInvalid(
            reason=f"'{name}' is no name for a token.",
            fix="Use 1 to 64 letters, digits, '.', '_' or '-'.",
        ) from None
    if name == OPERATOR_NAME:
        raise UsageInvalid(
            reason=f"'{OPERATOR_NAME}' is the account of the tokens that commands make.",
            fix="Choose another name.",
        )


def _domain(text: str) -> str:
    try:
        return check_domain(text)
    except AddressInvalid:
        raise UsageInvalid(
            reason=f"'{text}' is no lower-case DNS name of two or more labels.",
            fix="Write the domain alone, such as globex.example, without a port.",
        ) from None


def _url(text: str) -> str:
    try:
        address: str = url().read(text)
    except Wrong as wrong:
        raise UsageInvalid(
            reason=f"--url {wrong}.", fix="Give the address of the peer's gateway."
        ) from None
    return address


def read_identity(text: str) -> str:
    """An identity that was typed, in its stored form."""
    try:
        return check_identity(text)
    except AddressInvalid:
        raise UsageInvalid(
            reason=f"'{text}' is no identity.",
            fix="Write agent:// and a lower-case host, such as agent://globex.example, or the name"
            " that a client makes of its key: agent://client-KID.",
        ) from None


def read_amount(text: str, option: str) -> int:
    """An amount that was typed, in millionths."""
    try:
        return parse_amount(text)
    except InvalidRequest as error:
        raise UsageInvalid(
            reason=f"{option} {text}: an amount {error.facts['reason']}.",
            fix="Write it such as 100 or 0.25.",
        ) from None


def _peer_token(options: dict[str, Any]) -> Secret | None:
    file, variable = options["token_file"], options["token_env"]
    if file and variable:
        raise UsageInvalid(
            reason="--token-file and --token-env name two tokens.", fix="Give one of them."
        )
    if variable:
        return resolve_secret(SecretRef(env=variable), Path.cwd(), key="--token-env")
    if file:
        return resolve_secret(SecretRef(file=str(file)), Path.cwd(), key="--token-file")
    return None
