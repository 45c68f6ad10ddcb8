"""Policy parts of Mentionable, `https://mentionable.dev/ns/policy/v0.1`.

    {kind, code, title, message, message_translations, url, action_label, data, auth_challenges,
     retry_after_seconds, state}

A part is an interrupt here. What it says that an interrupt has no word for is kept beside it, as it
came, and told again by whoever passes it on.

Law 1. A kind that we do not know is kept, up and down, and is never an answer.
Law 2. The names in `data` are those of domains, and none is ours to write at every gateway. What an
       interrupt has that a part has no member for, an amount, a schema, options, stands next to it
       under our own extension. What the part of somebody else costs, its words say.
Law 3. A link is shown if it is `https` and leads to the host of the agent whose part it is
       (`bound`); the part is shown without it otherwise.
"""

import re
from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from carnet.core.messages.interrupt import MOST_DATA_BYTES, POLICY, WITHHELD, Interrupt
from carnet.core.people.address import is_handle, parse_handle
from carnet.errors import CarnetError
from carnet.wire.dialects.a2a.extensions.questions.state import read_state, write_state
from carnet.wire.dialects.a2a.extensions.row import PayloadBroken, members, printable
from carnet.wire.dialects.policy import MOST_INTERRUPTS, MOST_WORDS, read_interrupts
from carnet.wire.grammar import json
from carnet.wire.grammar.mentionable import whole

POLICY_URI: Final = "https://mentionable.dev/ns/policy/v0.1"
POLICY_ALIAS: Final = "https://mentionable.dev/spec/policy/v0.1"  # that is read, never written

FORM: Final = POLICY  # the name of the row

# The kinds of the specification, and two that Carnet has beside.
KINDS: Final = {
    "consent_required": "consent",
    "unauthorized": "sign_in",
    "payment_required": "payment",
    "forbidden": "forbidden",
    "too_many_requests": "rate_limited",
    "unavailable_for_legal_reasons": "legal",
    "service_unavailable": "unavailable",
    "approval_required": "approval",
    "input_required": "input",
}
STATUSES: Final = {
    401: "unauthorized",
    402: "payment_required",
    403: "forbidden",
    429: "too_many_requests",
    451: "unavailable_for_legal_reasons",
    503: "service_unavailable",
}

MOST_KIND: Final = 128
MOST_STATE: Final = 1024
MOST_TITLE: Final = 200  # characters, of a title and of an action label
MOST_LANGUAGES: Final = 32
MOST_CHALLENGES: Final = 8
MOST_KEPT_BYTES: Final = MOST_DATA_BYTES - 4096  # the rest is for where it is answered

_WIRE_KINDS: Final = {kind: name for name, kind in KINDS.items()}
_STATE: Final = re.compile(r"[!-+\--:<-~]{1,1024}", re.ASCII)  # that every way up can carry
_FOREIGN: Final = "policy"  # how the states begin that had to be written otherwise
_LANGUAGE: Final = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}){0,6}", re.ASCII)
_REVERSED: Final = re.compile(r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9_/-]{1,63}){1,8}", re.ASCII)
_HTTPS: Final = re.compile(r"https://[!-\[\]-~]{1,2040}", re.ASCII | re.IGNORECASE)
_MARKS: Final = frozenset(  # members that other data has hardly ever beside a kind and a message
    {"state", "code", "action_label", "message_translations", "auth_challenges"}
)
_OWN: Final = frozenset(
    {"message", "url", "state", "retry_after_seconds", "expires_at", "type", WITHHELD}
)
_MEMBERS: Final = _OWN | {
    *("kind", "code", "title", "message_translations", "action_label", "data", "auth_challenges"),
}


# ------------------------------------------------------------------ which data is a part


def part_of(value: object, *, is_advertised: bool, has_succeeded: bool = False) -> Any:
    """The policy part that a data part holds; None where it is other data.

    Somebody whose card has the extension means it by whatever has the members of a part. Of others
    the kinds that are known count, beside something that did not succeed.
    """
    if not isinstance(value, dict):
        return None
    for key in (POLICY_URI, POLICY_ALIAS, FORM):  # which say what they hold
        inner = value.get(key)
        if isinstance(inner, dict) and isinstance(inner.get("kind"), str):
            return inner
    kind = value.get("kind")
    if isinstance(kind, str) and kind in KINDS:
        return value if is_advertised or not has_succeeded else None
    has_words = isinstance(kind, str) and isinstance(value.get("message"), str)
    is_like_one = not has_succeeded or _MEMBERS.issuperset(value) or not _MARKS.isdisjoint(value)
    return value if is_advertised and has_words and is_like_one else None


# ------------------------------------------------------------------ called: read


def read_parts(values: Sequence[object], currency: str) -> tuple[Interrupt, ...]:
    """What policy parts ask for. The links in them are not bound to anybody yet."""
    entries = [_entry(members(value)) for value in values[:MOST_INTERRUPTS]]
    return read_interrupts(entries, currency=currency)


def _entry(given: dict[str, Any]) -> dict[str, Any]:
    """A part as the members of an interrupt; what it says beside is kept in one of them."""
    kind = given.get("kind")
    if not isinstance(kind, str) or not 0 < len(kind) <= MOST_KIND or not _is_visible(kind):
        raise PayloadBroken("has no kind")
    url, state = given.get("url"), given.get("state")
    return {
        "id": f"int_{_digest(given)}",
        "kind": KINDS.get(kind, kind),
        "message": given.get("message"),
        "state": state_as_carried(state) if isinstance(state, str) and state else None,
        "url": url if isinstance(url, str) and _HTTPS.fullmatch(url) else None,
        "retry_after": whole(given.get("retry_after_seconds")),
        "expires_at": given.get("expires_at"),
        FORM: _kept(given, kind, is_withheld=url is not None),
    }


def state_as_carried(state: str) -> str:
    """A state as every way up can carry it; nearly all can as they are."""
    if _STATE.fullmatch(state) and not state.startswith(f"{_FOREIGN}."):
        return state
    return write_state(_FOREIGN, [state])


def state_as_issued(state: str) -> str:
    """The same as its issuer knows it."""
    foreign = read_state(_FOREIGN, state, str)
    return state if foreign is None else str(foreign[0])


def _kept(given: dict[str, Any], kind: str, *, is_withheld: bool) -> dict[str, Any]:
    """What a part says that an interrupt has no word for, as far as it can be kept."""
    known: dict[str, Any] = {
        "kind": kind,
        "code": _line(given.get("code")),
        "title": _line(given.get("title")),
        "action_label": _line(given.get("action_label")),
        "message_translations": _translations(given.get("message_translations")),
        "auth_challenges": _challenges(given.get("auth_challenges")),
        "data": _data(given.get("data")),
    }
    more = {name: value for name, value in given.items() if name not in _MEMBERS}
    kept = {name: value for name, value in (known | more).items() if value}
    if is_withheld:
        kept[WITHHELD] = "url"  # until it is bound to its agent
    for name in (*more, "data", "auth_challenges", "message_translations"):
        if len(json.write(kept)) <= MOST_KEPT_BYTES:
            break
        kept.pop(name, None)  # the widest first, until it fits
    return kept


def _line(value: object) -> str | None:
    text = printable(value, MOST_TITLE).strip() if isinstance(value, str) else ""
    return text or None


def _translations(value: object) -> dict[str, Any]:
    """The words in other languages, by their tags (BCP 47)."""
    found: dict[str, Any] = {}
    given = value if isinstance(value, dict) else {}
    for tag, words in list(given.items())[:MOST_LANGUAGES]:
        message = words.get("message") if isinstance(words, dict) else None
        if isinstance(message, str) and message and _LANGUAGE.fullmatch(tag):
            title = _line(words.get("title"))
            text = printable(message, MOST_WORDS).strip()
            found[tag] = ({"title": title} if title else {}) | {"message": text}
    return found


def _challenges(value: object) -> list[dict[str, Any]]:
    given = value[:MOST_CHALLENGES] if isinstance(value, list) else []
    return [each for each in given if isinstance(each, dict) and _line(each.get("scheme"))]


def _data(value: object) -> dict[str, Any]:
    """What protocols say by names of their own; names that are nobody's are left out."""
    given = value if isinstance(value, dict) else {}
    return {name: held for name, held in given.items() if _REVERSED.fullmatch(name)}


def bound(asked: Interrupt, hosts: Collection[str]) -> Interrupt:
    """The same, with its link if that leads to one of these hosts, and without it otherwise.

    A host stands with its port where that is not the usual one of `https`.
    """
    kept = asked.policy
    if not kept:
        return asked
    url = asked.url if asked.url is not None and authority_of(asked.url) in hosts else None
    if url is not None:
        kept = {name: value for name, value in kept.items() if name != WITHHELD}
    return replace(asked, url=url, more={**(asked.more or {}), FORM: kept})


def authority_of(url: str) -> str | None:
    """The host that a link of `https` leads to; None for every other link."""
    if _HTTPS.fullmatch(url) is None:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if "@" in parts.netloc or not parts.hostname:
        return None
    return parts.hostname if port in {None, 443} else f"{parts.hostname}:{port}"


# ------------------------------------------------------------------ served: asked


def write_part(asked: Interrupt) -> dict[str, Any]:
    """An interrupt as a part."""
    kept = asked.policy
    kind = kept.get("kind") or _WIRE_KINDS.get(asked.kind, asked.kind)
    given = {
        **{name: value for name, value in kept.items() if name != WITHHELD},
        "kind": kind,
        "message": asked.message,
        "url": _link(asked),
        "retry_after_seconds": asked.retry_after,
        "state": state_as_issued(asked.state) or None,
        "expires_at": asked.expires_at,
    }
    if kind == "unauthorized":
        given.setdefault("auth_challenges", [{"scheme": "Bearer"}])
    return {name: value for name, value in given.items() if value is not None}


def _link(asked: Interrupt) -> str | None:
    """The link of a part that somebody else made was bound when it came; ours leads to us."""
    if asked.url is None or asked.policy:
        return asked.url
    authority, origin = authority_of(asked.url), asked.origin or ""
    if authority is None or not is_handle(origin):
        return None
    host, domain = authority.partition(":")[0], parse_handle(origin).domain
    return asked.url if host == domain or host.endswith(f".{domain}") else None


def failure_part(error: CarnetError) -> dict[str, Any] | None:
    """The part that tells what a task has failed with; None for what is no matter of policy."""
    kind = STATUSES.get(error.status)
    if kind is None or (kind == "too_many_requests" and not error.retryable):
        return None  # a chain that is too deep is no matter of waiting
    words = error.facts.get("said")
    given = {
        "kind": kind,
        "code": f"carnet:{error.sent_as or error.code}",
        "message": words if isinstance(words, str) and words else error.safe_text,
        "retry_after_seconds": error.retry_after,
        "auth_challenges": [{"scheme": "Bearer"}] if kind == "unauthorized" else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _digest(given: object) -> str:
    return blake2b(json.canonical(given), digest_size=12).hexdigest()


def _is_visible(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
