"""Delegation tokens on their way between the command line and their readers.

Law 1. What a gateway would refuse for its form or its links is not made.
Law 2. A page that shows a token says what each link of it grants, and whether it narrows the one
       before it.
"""

import re
import sys
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from carnet.cli.failures import GatewayError
from carnet.cli.times import SECOND, read_span
from carnet.cli.trust.forms import read_amount, read_identity
from carnet.core.money.amount import format_amount
from carnet.core.people.delegation import (
    MOST_SECONDS,
    Delegation,
    check_chain,
    check_link,
    check_times,
    may_go_on,
)
from carnet.core.people.proof import Spending
from carnet.errors import (
    CarnetError,
    DelegationInvalid,
    UsageInvalid,
)
from carnet.ports.trust.keys import Signer
from carnet.runtime.system import SystemClock, SystemIds
from carnet.wire.crypto import delegation as tokens
from carnet.wire.grammar.times import when

LIFE: Final = "15m"
_MOST_BYTES: Final = 2 * tokens.MAX_BYTES
_MOST_NAME: Final = 255  # no file has a longer name, and hardly a token is as short
_FORM: Final = re.compile(r"[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]*", re.ASCII)
_GOOD: Final = frozenset({"first", "narrows"})


def granted(
    issuer: str,
    signer: Signer,
    subject: str | None,
    options: dict[str, Any],
    *,
    currency: str | None,
) -> Delegation:
    """The token that was asked for, with its text."""
    now = SystemClock().wall_us()
    parent = tokens.read(given(options["parent"])) if options["parent"] else None
    if parent is not None:
        check_times(parent, now)
    wanted = Delegation(
        issuer=issuer,
        subject=_identity(subject, "SUBJECT", "Say who may use it: carnet tokens delegate SUBJECT"),
        scope=_scope(options["scopes"], parent),
        hops=options["depth"] or (1 if parent is None else parent.hops - 1),
        issued=now // SECOND,
        expires=_end(options["expires"], parent, now // SECOND),
        audience=_audience(options, issuer, parent),
        token_id=SystemIds().uuid() if _is_named(options) else None,
        once=options["once"] or (parent is not None and parent.once),
        budget=_budget(options, currency, parent),
        actors=(parent.subject,) if options["sdk"] and parent is not None else (),
        parent=parent,
        is_ours=not options["sdk"],
        keyid=signer.kid,
    )
    check_chain(wanted)
    if options["sdk"]:  # what they read has no place for it; `act` says whom it is from
        wanted = replace(wanted, parent=None)
    return replace(wanted, text=tokens.write(wanted, sign=signer.sign))


def _is_named(options: dict[str, Any]) -> bool:
    """Whether it has an id, by which it is used once or ended."""
    return not options["sdk"] or options["once"] or bool(options["person"])


def _identity(text: str | None, what: str, fix: str) -> str:
    if not text:
        raise UsageInvalid(reason=f"{what} is missing.", fix=fix)
    return read_identity(text)


def _scope(scopes: tuple[str, ...], parent: Delegation | None) -> tuple[str, ...]:
    if scopes:
        return tuple(dict.fromkeys(scopes))
    if parent is None:
        raise UsageInvalid(
            reason="What may be asked for was not said.",
            fix="Name the skills: --scope SKILL, or --scope '*' for all of them.",
        )
    return parent.scope


def _audience(options: dict[str, Any], issuer: str, parent: Delegation | None) -> str | None:
    text = options["audience"]
    if options["sdk"]:
        if text:
            raise UsageInvalid(
                reason="The SDKs refuse a token that says whom it is for.",
                fix="Leave out --for, or --sdk where a Carnet is asked.",
            )
        return None if parent is None or may_go_on(issuer, parent) else parent.audience
    if not text and parent is not None and not may_go_on(issuer, parent):
        text = parent.audience
    return _identity(text, "--for", "Say whom it may be presented to: --for agent://DOMAIN")


def _end(text: str | None, parent: Delegation | None, now: int) -> int:
    seconds = read_span(text or LIFE, option="--expires", never=False) or 0
    if seconds > MOST_SECONDS:
        raise UsageInvalid(
            reason=f"--expires {text} is longer than a day.", fix="Nobody takes one: write 24h."
        )
    end = now + seconds
    return end if text or parent is None else min(end, parent.expires)


def _budget(
    options: dict[str, Any], currency: str | None, parent: Delegation | None
) -> Spending | None:
    above = (None if parent is None else parent.budget) or Spending()
    money = above.money if options["budget"] is None else read_amount(options["budget"], "--budget")
    budget = Spending(
        money=money,
        currency=None if money is None else above.currency or currency or "credits",
        calls=options["calls"] or above.calls,
        tokens=options["max_tokens"] or above.tokens,
    )
    return None if budget == Spending() else budget


def given(text: str) -> str:
    """A token: its text, the file that holds it (also as @FILE), or `-` for standard input."""
    if text == "-":
        return _filled(sys.stdin.read(_MOST_BYTES), "standard input")
    file = Path(text.removeprefix("@")).expanduser()
    if not text.startswith("@") and (len(text) > _MOST_NAME or not file.exists()):
        return _formed(text.strip())
    try:
        with file.open() as opened:
            return _filled(opened.read(_MOST_BYTES), f"'{file}'")
    except (OSError, UnicodeDecodeError):
        raise UsageInvalid(
            reason=f"'{file}' cannot be read.", fix="Name a file that holds one token."
        ) from None


def _filled(text: str, where: str) -> str:
    if text.strip():
        return text.strip()
    raise UsageInvalid(
        reason=f"There is no delegation token in {where}.",
        fix="Make one: carnet tokens delegate SUBJECT --scope SKILL --for AGENT",
    )


def _formed(text: str) -> str:
    """A text that may be a token; a short one that cannot be was meant as the name of a file."""
    if len(text) > _MOST_NAME or _FORM.fullmatch(text):
        return text
    raise UsageInvalid(
        reason=f"'{text}' is no token, and there is no file of that name.",
        fix="Give the token itself, the file that holds it, or - to read it.",
    )


def presented(text: str, sender: str) -> str:
    """A token that a call of ours may bring along: what anybody would refuse is not sent."""
    token = given(text)
    last = tokens.read(token)
    check_times(last, SystemClock().wall_us())
    check_chain(last)
    if last.subject != sender:
        facts = {
            "code": DelegationInvalid.code,
            "message": f"The delegation is for {last.subject}, and this call is signed by "
            f"{sender}.",
            "hint": "Sign with the key of whom it is for: --key FILE. 'carnet tokens delegate "
            "--show TOKEN' shows what a token says.",
        }
        raise GatewayError(facts, DelegationInvalid.status)
    return token


def grant_page(grant: Delegation) -> dict[str, Any]:
    """A token that was made."""
    return {
        "token": grant.text,
        **_link_page(grant),
        "links": len(grant.chain()),
        "form": "carnet" if grant.is_ours else "sdk",
    }


def _link_page(link: Delegation) -> dict[str, Any]:
    return {
        "issuer": link.issuer,
        "subject": link.subject,
        "audience": link.audience,
        "scope": list(link.scope),
        "maxDepth": link.hops,
        "issued": when(link.issued * SECOND) if link.issued else None,
        "expires": when(link.expires * SECOND),
        "once": link.once,
        "jti": link.token_id,
        "kid": link.keyid or None,
        "budget": _budget_page(link.budget),
    }


def _budget_page(budget: Spending | None) -> dict[str, Any] | None:
    if budget is None:
        return None
    return {
        "money": None if budget.money is None else format_amount(budget.money),
        "currency": budget.currency,
        "calls": budget.calls,
        "tokens": budget.tokens,
    }


def chain_page(text: str) -> dict[str, Any]:
    """What a token grants, link by link."""
    now = SystemClock().wall_us()
    links = tokens.read(given(text)).chain()
    pages = [
        {"link": number, **_link_page(link), "state": _state(link, number, now)}
        for number, link in enumerate(links, 1)
    ]
    return {"links": pages, "holds": all(page["state"] in _GOOD for page in pages)}


def _state(link: Delegation, number: int, now: int) -> str:
    try:
        check_times(replace(link, parent=None), now)
        if link.hops < 1:
            return "no hop is left"
        if link.parent is None:
            return "first"
        check_link(link.parent, link, number)
    except CarnetError as error:
        widened = error.facts.get("claim")
        return f"widens {widened}" if widened else str(error.facts["reason"])
    return "narrows"
