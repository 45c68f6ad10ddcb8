"""How a turn was asked for over the wire, as far as the record has it, and how to ask it again.

Law 1. What is shown was there. What the record does not have is named as not kept: no path, header
       or signature is made up from what usually is sent.
Law 2. No credential and no signature is recorded, so none is shown: where one stood, it is said.
Law 3. A command is for a shell: whatever it holds is quoted.
"""

from shlex import quote
from typing import Any, Final

from carnet.console.runs.transcript import asked_text
from carnet.wire.grammar import json
from carnet.wire.stamps import tangle
from carnet.wire.travel import HEADER as DOCUMENT

Page = dict[str, Any]

CHAT_PATH: Final = "/v1/chat/completions"
OPENAI: Final = "openai"
REDACTED: Final = "*** (not recorded)"
# The six headers of the Tangle stamp, by what the record calls them.
HEADERS: Final = {
    "depth": tangle.FORWARDED_DEPTH,
    "run": tangle.RUN_ID,
    "turn": tangle.TURN_ID,
    "parent_turn": tangle.PARENT_TURN_ID,
    "speaker": tangle.SPEAKER,
    "forwarded": tangle.FORWARDED_AUTHORIZATION,
}
_SIGNED: Final = "signature"  # how a caller is known that has signed its request
# What an answer names of its chain, by its dialect. One of A2A may be a task that was not over.
_BOTH: Final = ("run", "turn")
_ANSWERED: Final = {OPENAI: _BOTH, "agents_api": _BOTH, "samvad": ("run",)}
_FORM: Final = frozenset({"stream", "stream_options"})  # how an answer is written, not what it says
_NAMES: Final = {
    OPENAI: "OpenAI chat completions",
    "samvad": "SAMVAD",
    "a2a": "A2A, as JSON-RPC",
    "a2a_http": "A2A, over HTTP",
    "agents_api": "agents-api",
}


def wire_of(run: str, turn: Page, url: str) -> Page:
    """The request and the answer of a turn; `request` is None where no request is recorded."""
    wire = turn.get("wire")
    came: Page | None = wire if wire is not None and wire["path"] is not None else None
    return {
        "turn": turn["turn"],
        "agent": turn["agent"],
        "actor": turn["actor"],
        "state": turn["state"],
        "code": turn["code"],
        "is_kept": wire is not None,
        "is_passed_on": any(leg["ordinal"] is None for leg in turn["legs"]),
        "request": None if came is None else _request(run, turn, came),
        "body": turn.get("asked"),
        "answer": [] if came is None else _answer_fields(run, turn, came),
        "answered": turn.get("answered"),
        "legs": turn["legs"],
        "sent": [_sent(leg) for leg in turn["legs"]],
        "tokens": turn["tokens"],
        "curl": _curl(url, turn),
        "is_cut": turn.get("is_cut", False),
    }


def _request(run: str, turn: Page, wire: Page) -> Page:
    dialect = wire["dialect"]
    is_signed = wire["by"] == _SIGNED
    return {
        "method": "POST",
        "path": wire["path"],
        "dialect": _NAMES.get(dialect, dialect),
        "headers": _fields(run, turn, wire, is_signed=is_signed),
        "signature": {"sender": wire["sender"], "key": wire["key"], "base": wire["base"]}
        if is_signed
        else None,
    }


def _fields(run: str, turn: Page, wire: Page, *, is_signed: bool) -> list[Page]:
    proofs = ("signature-input", "signature") if is_signed else ("authorization",)
    fields = [_field(name, REDACTED) for name in proofs]
    if wire["has_document"]:
        fields.append(_field(DOCUMENT, REDACTED))
    known = {**turn, "run": run, "forwarded": REDACTED}
    return fields + [
        _field(HEADERS[name], str(known[name]))
        for name in wire["tangle"]
        if known[name] is not None
    ]


def _field(name: str, value: str) -> Page:
    return {"name": name, "value": value, "is_chain": name in HEADERS.values()}


def _answer_fields(run: str, turn: Page, wire: Page) -> list[Page]:
    """What an answer says of the chain, if it was one and came at once."""
    names = _ANSWERED.get(wire["dialect"], ())
    if turn["state"] != "done" or str(wire["path"]).endswith(("/tasks", "/agent/task")):
        return []
    return [_field(HEADERS[name], {**turn, "run": run}[name]) for name in names]


def _sent(leg: Page) -> Page:
    """A call to another organisation: where it went, with which headers, and what was signed."""
    signed, headers = leg.get("signed"), leg.get("headers")
    fields = [_field(name, value) for name, value in (headers or {}).items()]
    if signed is not None:
        fields = [
            _field("content-digest", signed["digest"]),
            _field("signature-input", signed["input"]),
            _field("signature", REDACTED),
            *fields,
        ]
    dialect = leg.get("dialect") or ""
    return {
        "to": leg["to"],
        "turn": leg["turn"],
        "dialect": _NAMES.get(dialect, dialect),
        "url": None if signed is None else signed["url"],
        "method": None if signed is None else signed["method"],
        "headers": None if headers is None else fields,
        "base": None if signed is None else signed["base"],
        "status": leg["status"],
        "code": leg["code"],
        "cost": leg["cost"],
        "peer_status": leg["peer_status"],
        "peer_code": leg["peer_code"],
        "has_receipt": leg["receipt"] is not None,
        "receipt": leg["receipt"],
    }


def request_again(turn: Page) -> Page | None:
    """A chat request that asks the same; None where the record does not say enough."""
    asked = turn.get("asked")
    if not isinstance(asked, dict):
        return None
    text, skill = asked_text(asked), asked.get("skill")
    if isinstance(asked.get("messages"), list) and asked["messages"]:
        left = _FORM | {"skill", "payload"}
        body = {name: value for name, value in asked.items() if name not in left}
    elif text or isinstance(skill, str):
        content = text or json.write_text(asked.get("payload") or {})
        body = {"messages": [{"role": "user", "content": content}]}
    else:
        return None
    if isinstance(skill, str):
        body["carnet"] = {"skill": skill, "payload": asked.get("payload") or {}}
    return {**body, "model": turn["agent"]}


def same_request(turn: Page, actor: str) -> Page | None:
    """The request that a turn was, for whoever made it: one that is answered from its record.

    None where it would not be: it is somebody else's, has not ended well, or was asked elsewise.
    """
    wire, asked = turn.get("wire"), turn.get("asked")
    if wire is None or not isinstance(asked, dict) or turn.get("answered") is None:
        return None
    is_chat = wire["dialect"] == OPENAI and str(wire["path"]).endswith(CHAT_PATH)
    is_hers = turn["actor"] == actor and wire["by"] == "token" and "forwarded" not in wire["tangle"]
    if not is_chat or not is_hers or turn["state"] != "done":
        return None
    return {name: value for name, value in asked.items() if name not in _FORM}


def chain_fields(run: str, turn: Page) -> dict[str, str]:
    """The headers that name a turn."""
    fields = {tangle.RUN_ID: run, tangle.TURN_ID: str(turn["turn"])}
    if turn["parent_turn"] is not None:
        fields[tangle.PARENT_TURN_ID] = str(turn["parent_turn"])
    if turn["depth"]:
        fields[tangle.FORWARDED_DEPTH] = str(turn["depth"])
    return fields


def _curl(url: str, turn: Page) -> str | None:
    body = request_again(turn)
    if body is None:
        return None
    return " \\\n  ".join(
        [
            f"curl -i {quote(url + CHAT_PATH)}",
            '-H "authorization: Bearer $CARNET_TOKEN"',
            "-H 'content-type: application/json'",
            f"-d {quote(json.write(body).decode())}",
        ]
    )
