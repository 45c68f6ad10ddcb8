"""Requests of agents-api: from what came to a claim, or to a question about a pending action.

    message/send, tasks/send                 a claim
    message/stream, tasks/sendSubscribe      the same, answered by a stream
    agents/resolve-pending-action            a claim that goes on with the run that waits
    agents/get-pending-action                a question

Law 1. The frame is judged first, then the parameters, then the name of the method.
Law 2. The name of an agent is made of letters, digits and `._-`, and is read as its slug.
Law 3. A run has the name that its caller gives it, and no name is run twice (`exactly_once`).
Law 4. Who resolves is who has authenticated: the name that a request gives is asked for and not
       believed.
"""

import re
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.call import ANY_AGENT, Ask, Claim
from carnet.core.messages.events import Message
from carnet.core.people.identity import Secret
from carnet.errors import InvalidRequest, PermissionMissing, RouteNotFound
from carnet.wire.dialects.agents_api.chat_input import (
    ChatInput,
    read_chat,
    read_input,
    read_params,
    write_input,
)
from carnet.wire.dialects.agents_api.form import Decision, RunForm
from carnet.wire.dialects.agents_api.parts import read_name, refused
from carnet.wire.dialects.dialect import Arrival, Question, TaskQuestion
from carnet.wire.grammar import json

NAME: Final = "agents_api"
OVER_HTTP: Final = "agents_api_http"  # the chat, and actions by their paths

SENDS: Final = frozenset({"message/send", "tasks/send"})
STREAMS: Final = frozenset({"message/stream", "tasks/sendSubscribe"})
RESOLVE: Final = "agents/resolve-pending-action"
SHOW: Final = "agents/get-pending-action"
JSONRPC: Final = "jsonrpc"
METHOD: Final = "method"

MOST_METHOD: Final = 64
MOST_ACTION: Final = 512
MOST_VALUE_BYTES: Final = 64 * 1024  # of what is decided beside, as JSON
DECISION: Final = "must be accepted or rejected"

_NAMED: Final = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
_NO_SLUG: Final = re.compile(r"[^a-z0-9_]+", re.ASCII)
_ODD: Final = re.compile(r"[^A-Za-z0-9_./$-]+", re.ASCII)
_ACTION: Final = re.compile(r"([0-9A-Za-z-]{1,64})\.([!-~]{1,400})", re.ASCII)
_WORD: Final = "agents_pending_action_"
_CONTEXT_BYTES: Final = 16


def slug(name: str) -> str:
    """The name of an agent as it is looked for."""  # agents-api:body:slug
    return _NO_SLUG.sub("-", name.lower()).strip("-")


def read_slug(name: str) -> str:
    """The slug of a name in a path; nobody may call what has none."""
    if _NAMED.fullmatch(name) is None:
        raise RouteNotFound
    found = slug(name)
    if not found:
        raise PermissionMissing(permission="call")
    return found


# ------------------------------------------------------------------ JSON-RPC


def read_rpc(arrival: Arrival) -> Claim | Question:
    """What is asked by JSON-RPC."""
    body = json.read_object(arrival.body)
    name = body.get("id")
    arrival.request_id = name if isinstance(name, str) or type(name) is int else None
    agent = read_slug(arrival.names["name"])
    if body.get(JSONRPC) != "2.0":
        raise InvalidRequest(JSONRPC, 'must be "2.0"')
    method, params = body.get(METHOD), body.get("params")
    if not isinstance(method, str):
        method = ""
    if not isinstance(params, dict):
        params = {}
    form = RunForm(id=arrival.request_id)
    if method == RESOLVE:
        return read_decision(params, arrival, agent, form)
    if method == SHOW:
        resolved = params.get("include_resolved") is True
        return action_question(params.get("action_id"), agent, replace(form, resolved=resolved))
    given = read_params(params)
    if method not in SENDS and method not in STREAMS:
        raise _unknown(method)
    arrival.in_stream = method in STREAMS
    form = replace(form, run=given.run_id, deltas=body.get("tokenStreaming") is not False)
    return chat_claim(given, arrival, agent, form, stream=arrival.in_stream)


def _unknown(method: str) -> InvalidRequest:
    error = InvalidRequest(METHOD, "is not the name of one")
    error.facts[METHOD] = _ODD.sub("?", method[:MOST_METHOD])
    return error


# ------------------------------------------------------------------ a chat, and actions by path


def read_http(arrival: Arrival) -> Claim | Question:
    """What is asked by a path."""
    if arrival.way.name == "show":
        wanted = (arrival.request.query or "") == "include_resolved=true"
        form = RunForm(resolved=wanted)
        return action_question(arrival.names["action"], ANY_AGENT, form)
    body = json.read_object(arrival.body)
    if arrival.way.name == "resolve":
        params = {**body, "action_id": arrival.names["action"]}
        return read_decision(params, arrival, ANY_AGENT, RunForm())
    agent = body.get("agent")
    found = slug(agent) if isinstance(agent, str) and len(agent) <= MOST_ACTION else ""
    if not found:
        raise InvalidRequest("agent", "must be the name of an agent")
    return chat_claim(read_chat(body), arrival, found, RunForm(), stream=False)


# ------------------------------------------------------------------ claims


def chat_claim(
    given: ChatInput, arrival: Arrival, agent: str, form: RunForm, *, stream: bool
) -> Claim:
    """The claim that a turn of a chat makes, whether it is asked or was asked before."""
    headers, stamped = arrival.headers, arrival.stamped()
    request = write_input(given)
    digest = sha256(request).digest()
    session = given.session_id or _session(digest)
    authorization = headers.get("authorization")
    return Claim(
        dialect=NAME,
        agent=agent,
        ask=Ask(messages=given.messages(), stream=stream, context=session, form=form.kept()),
        digest=digest,
        request=request,
        key=None if given.run_id is None else f"agents_api/{given.run_id}",
        marks=stamped.marks,
        authorization=None if authorization is None else Secret(authorization),
        forwarded=stamped.forwarded,
        context=stamped.context,
        correlation=arrival.correlation,
        path=arrival.path,
        exactly_once=True,
    )


def read_again(request: bytes, arrival: Arrival, agent: str) -> Claim:
    """The claim that a recorded request made."""
    given = read_input(request)
    return chat_claim(given, arrival, agent, RunForm(run=given.run_id), stream=False)


def read_asked(request: bytes) -> Ask:
    """What a recorded request asked."""
    given = read_input(request)
    session = given.session_id or _session(sha256(request).digest())
    return Ask(messages=given.messages(), context=session)


def _session(digest: bytes) -> str:
    """What a run belongs to whose caller names no session."""
    return "session_" + sha256(b"session\0" + digest).hexdigest()[: 2 * _CONTEXT_BYTES]


def read_decision(params: dict[str, Any], arrival: Arrival, agent: str, form: RunForm) -> Claim:
    """What decides a pending action."""
    task, _ = action_place(params.get("action_id"))
    decision = params.get("decision")
    if decision not in ("accepted", "rejected"):  # agents-api:action:decision
        raise refused("decision", DECISION, f"{_WORD}invalid_decision")
    resolver = read_name(params.get("resolver"), "resolver")
    if resolver is None or not resolver.strip():
        raise refused("resolver", "must say who decides", f"{_WORD}missing_resolver")
    outcome: Decision = "accepted" if decision == "accepted" else "rejected"
    wants = replace(
        form,
        action=str(params["action_id"]).strip(),
        decision=outcome,
        value=_value(params.get("payload")),
    )
    empty = ChatInput(message="")
    claim = chat_claim(empty, arrival, agent, wants, stream=False)
    ask = replace(claim.ask, messages=(Message("user", ()),))
    return replace(claim, ask=ask, continues=task)


def _value(payload: object) -> object:
    """What is decided beside: the member `value` of a payload, or all of it."""
    if payload is None or payload == {}:
        return None
    if not isinstance(payload, dict):
        raise InvalidRequest("payload", "must be an object")
    if len(json.write(payload)) > MOST_VALUE_BYTES:
        raise InvalidRequest("payload", f"must have at most {MOST_VALUE_BYTES} bytes")
    return payload["value"] if payload.keys() == {"value"} else payload


def action_question(action: object, agent: str, form: RunForm) -> TaskQuestion:
    """The question for one pending action."""
    named = _named(action)
    task, _ = split_action(named) or ("", "")
    wants = replace(form, action=named)
    history = {} if form.resolved else {"history": 0}
    return TaskQuestion(
        about="task", task=task, agent=agent, form={**wants.kept(), **history}, or_nothing=True
    )


def _named(action: object) -> str:
    if not isinstance(action, str) or not action.strip() or len(action) > MOST_ACTION:
        raise refused("action_id", "must name a pending action", f"{_WORD}missing_action_id")
    return action.strip()


def action_place(action: object) -> tuple[str, str]:
    """The task and the interrupt that an action stands for; nobody has another."""
    return split_action(_named(action)) or ("", "")


def split_action(action: str) -> tuple[str, str] | None:
    """The same of a name; None for one that we never gave."""
    found = _ACTION.fullmatch(action)
    return None if found is None else (found[1], found[2])


def action_id(task: str, interrupt: str) -> str:
    """The name of a pending action: that of its task, and what this calls it."""
    return f"{task}.{interrupt}"
