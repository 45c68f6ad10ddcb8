"""The operations of A2A: from what a request says to a claim, or to a question about what exists.

    SendMessage, SendStreamingMessage      a claim; one that names a task goes on with that, and so
                                           does one that resolves what a task waits for
    everything else                        a question

Law 1. Both bindings and both versions come here as the same objects: those of A2A 1.0.
Law 2. The same message of the same caller is the same call, however often it is sent: its id and
       what it says name it, unless its chain does.
Law 3. Where the caller names no context, the message names one: it is told in the answer.
Law 4. What extensions say is read once, and kept beside what was asked as what it is: claimed.
Law 5. A credential in metadata is neither recorded, nor told again, nor part of what was asked.
       A message that goes on with a task is not recorded, and has it until it was compared.
Law 6. What is vouched for is kept beside what was asked, as it came: believed by nobody yet.
"""

from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.call import Ask, CallbackWish, Claim
from carnet.core.people.evidence import Carried
from carnet.core.people.identity import Secret
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions import InboundClaims, read_inbound, without_secrets
from carnet.wire.dialects.a2a.extensions.questions.policy import speaks
from carnet.wire.dialects.a2a.extensions.questions.policy_part import POLICY_URI
from carnet.wire.dialects.a2a.form import Form
from carnet.wire.dialects.a2a.members import (
    member,
    need_id,
    read_count,
    read_flag,
    read_id,
    read_object,
    read_optional,
    read_text,
    read_url,
)
from carnet.wire.dialects.a2a.message import A2AMessage, read_message
from carnet.wire.dialects.a2a.states import UNSPECIFIED, WANTED
from carnet.wire.dialects.dialect import Arrival, Question, TaskQuestion
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.mentionable import (
    IDENTITY_EVIDENCE,
    NAMESPACE,
    VERIFIABLE_CREDENTIALS,
    read_member,
)
from carnet.wire.grammar.times import micros_of
from carnet.wire.stamps.mentionable import read_capabilities

NAME: Final = "a2a"
OVER_HTTP: Final = "a2a_http"  # the other binding, and what is sent to those who want to be told

SEND: Final = "SendMessage"
STREAM: Final = "SendStreamingMessage"
GET: Final = "GetTask"
LIST: Final = "ListTasks"
CANCEL: Final = "CancelTask"
SUBSCRIBE: Final = "SubscribeToTask"
CREATE_PUSH: Final = "CreateTaskPushNotificationConfig"
GET_PUSH: Final = "GetTaskPushNotificationConfig"
LIST_PUSH: Final = "ListTaskPushNotificationConfigs"
DELETE_PUSH: Final = "DeleteTaskPushNotificationConfig"
EXTENDED_CARD: Final = "GetExtendedAgentCard"

OPERATIONS: Final = (
    *(SEND, STREAM, GET, LIST, CANCEL, SUBSCRIBE, CREATE_PUSH, GET_PUSH, LIST_PUSH, DELETE_PUSH),
    EXTENDED_CARD,
)

_SENDING: Final = frozenset({SEND, STREAM})

MOST_HISTORY: Final = 1000
MOST_PAGE: Final = 100
USUAL_PAGE: Final = 50
MOST_TOKEN: Final = 64
CLAIMED: Final = "claimed"  # in what is recorded of a request: what its extensions say, shortened
_CONTEXT_BYTES: Final = 16


def read_operation(
    operation: str, given: dict[str, Any], arrival: Arrival, form: Form
) -> Claim | Question:
    """What is asked by an operation."""
    if operation in _SENDING:
        return read_send(given, arrival, form, stream=operation == STREAM)
    if operation == LIST:
        return _read_list(given, arrival, form)
    agent = _agent(arrival)
    if operation == EXTENDED_CARD:
        return TaskQuestion(about="extended_card", agent=agent, form=form.kept())
    if operation in {GET, CANCEL, SUBSCRIBE}:
        abouts: Any = {GET: "task", CANCEL: "cancel", SUBSCRIBE: "subscribe"}
        seen = arrival.headers.get("last-event-id") if operation == SUBSCRIBE else None
        wants = replace(form, history=_history(given, ""), seen=None if seen is None else seen[:64])
        return TaskQuestion(
            about=abouts[operation], task=need_id(given, "id", ""), agent=agent, form=wants.kept()
        )
    return _read_push(operation, given, agent, form)


def read_send(params: dict[str, Any], arrival: Arrival, form: Form, *, stream: bool) -> Claim:
    """A message to an agent; it may go on with a task of the same caller."""
    sent = read_message(params["message"] if "message" in params else None)  # noqa: SIM401  a call less
    callback, later, history = None, False, None
    if "configuration" in params:
        wishes = read_optional(params, "configuration", "")
        push = member(wishes, "taskPushNotificationConfig")
        if push is not None:
            callback = read_callback(push, "configuration.taskPushNotificationConfig")
        later = read_flag(wishes, "returnImmediately", "configuration")
        history = _history(wishes, "configuration")
    metadata = read_optional(params, "metadata", "") if "metadata" in params else {}
    has_metadata = sent.metadata or metadata
    if has_metadata and POLICY_URI not in form.extensions and _speaks(sent, metadata):
        form = replace(form, extensions=(*form.extensions, POLICY_URI))
    # Who wants to be told of the end does not have to wait for it; it may all the same.
    is_task = not stream and later
    kept = form.kept_with(sent.public, history)
    claim = message_claim(sent, metadata, arrival, form, kept, stream=stream, is_task=is_task)
    if callback is None:
        return claim
    return replace(claim, callback=callback.url, wish=callback)


def message_claim(
    sent: A2AMessage,
    metadata: dict[str, Any],
    arrival: Arrival,
    form: Form,
    kept: dict[str, Any],
    *,
    stream: bool = False,
    is_task: bool = False,
) -> Claim:
    """The claim that a message makes, sent now or before; `kept` is its form, for the call."""
    headers, stamped, last = arrival.headers, arrival.stamped(), arrival.stamps.limits.default
    claims = read_inbound(sent.metadata, metadata, headers=headers, last_depth=last)
    carried, capabilities, marks = None, None, (*stamped.marks, *claims.marks)
    if sent.metadata or metadata:
        carried = read_carried(sent, metadata)
        marks = (*marks, *arrival.stamps.read_metadata(sent.metadata, metadata).marks)
        capabilities = read_capabilities(sent.metadata, metadata)
    resumes = None if claims.resolution is None else _resumed(claims)
    request, digest = _recorded(sent, metadata, claims, goes_on=resumes is not None)
    authorization = headers.get("authorization")
    return Claim(
        dialect=NAME if form.binding == "rpc" else OVER_HTTP,
        agent=arrival.by_host() if arrival.agent is None else arrival.agent,
        ask=Ask(
            messages=(sent.message,),
            stream=stream,
            skill=claims.skill,
            payload=claims.payload,
            context=sent.context or _own_context(digest),
            form=kept,
            capabilities=capabilities,
        ),
        digest=digest,
        request=request,
        key=f"a2a/{digest.hex()}",
        marks=marks,
        authorization=None if authorization is None else Secret(authorization),
        forwarded=stamped.forwarded,
        context=stamped.context,
        correlation=arrival.correlation,
        path=arrival.path,
        resumes=resumes,
        trace=claims.trace,
        budget=claims.budget,
        payment=claims.payment,
        is_task=is_task,
        continues=sent.task,
        carried=carried,
    )


def _recorded(
    sent: A2AMessage, metadata: dict[str, Any], claims: InboundClaims, *, goes_on: bool
) -> tuple[bytes, bytes]:
    """What is recorded of a message, and the digest by which a repeat of it is known."""
    meant = sent.written
    if sent.task is None and not goes_on:
        meant = sent.public
        metadata = without_secrets(metadata) if metadata else metadata
    if "taskId" in meant or "task_id" in meant:
        meant = {name: value for name, value in meant.items() if name not in _GOES_ON}
    asked = {"message": meant, "metadata": metadata}
    request = json.canonical(asked)
    digest = sha256(request).digest()
    if claims.claimed:
        request = json.canonical(asked | {CLAIMED: claims.claimed})
    return request, digest


def _speaks(sent: A2AMessage, metadata: dict[str, Any]) -> bool:
    """Whether a message says something in the words of Mentionable."""
    return speaks(sent.metadata) or speaks(metadata)


def _resumed(claims: InboundClaims) -> Secret | None:
    """The state of what a message goes on with, if that alone says so."""
    answer = claims.resolution
    if answer is None or not answer.is_resumption:
        return None
    return Secret(answer.state or "")


def _own_context(digest: bytes) -> str:
    """The context of a message that names none: the same whenever the same is sent."""
    return "ctx_" + sha256(b"context\0" + digest).hexdigest()[: 2 * _CONTEXT_BYTES]


def read_carried(sent: A2AMessage, metadata: dict[str, Any]) -> Carried | None:
    """What came with a message about identities; None where nothing did."""
    given = (sent.metadata, metadata)
    if not any(name.startswith(NAMESPACE) for each in given for name in each or ()):
        return None
    evidence = read_member(given, IDENTITY_EVIDENCE)
    credentials = read_member(given, VERIFIABLE_CREDENTIALS)
    if evidence is None and credentials is None:
        return None
    return Carried(evidence=evidence, credentials=credentials, message=sent.id)


_GOES_ON: Final = frozenset({"taskId", "task_id"})


def read_again(request: bytes, arrival: Arrival, form: Form) -> Claim:
    """The claim that a recorded request made."""
    found = json.read_object(request)
    sent = read_message(found.get("message"))
    metadata = read_optional(found, "metadata", "")
    return message_claim(sent, metadata, arrival, form, form.kept())


def read_asked(request: bytes) -> Ask:
    """What a recorded request asked, without what it said of its chain."""
    found = json.read_object(request)
    sent = read_message(found.get("message"))
    metadata = read_optional(found, "metadata", "")
    claims = read_inbound(sent.metadata, metadata, headers=Headers(()), last_depth=0)
    _, digest = _recorded(sent, metadata, claims, goes_on=False)
    return Ask(
        messages=(sent.message,),
        skill=claims.skill,
        payload=claims.payload,
        context=sent.context or _own_context(digest),
        capabilities=read_capabilities(sent.metadata, metadata),
    )


def _agent(arrival: Arrival) -> str:
    return arrival.agent if arrival.agent is not None else arrival.by_host()


def _history(value: dict[str, Any], place: str) -> int | None:
    found = member(value, "historyLength")
    if type(found) is int and found > MOST_HISTORY:
        return MOST_HISTORY
    return read_count(value, "historyLength", place, most=MOST_HISTORY)


def _read_list(params: dict[str, Any], arrival: Arrival, form: Form) -> TaskQuestion:
    status = member(params, "status")
    if status is not None and status != UNSPECIFIED and status not in WANTED:
        raise InvalidRequest("status", f"must be one of {', '.join(WANTED)}")
    after = read_text(params, "statusTimestampAfter", "")
    since = None if after is None else micros_of(after)
    if after is not None and since is None:
        raise InvalidRequest(
            "statusTimestampAfter", "must be a moment such as 2026-11-18T10:00:00Z"
        )
    wants = replace(
        form,
        history=_history(params, ""),
        artifacts=read_flag(params, "includeArtifacts", ""),
    )
    wanted = WANTED.get(str(status))
    return TaskQuestion(
        about="changed",
        agent=_agent(arrival),
        limit=_page_size(params),
        page=_read_page(read_text(params, "pageToken", "", MOST_TOKEN)),
        context=read_id(params, "contextId", ""),
        states=() if wanted is None else wanted.states,
        codes=None if wanted is None else wanted.codes,
        other_codes=() if wanted is None else wanted.other_codes,
        since=since,
        form=wants.kept(),
    )


def _page_size(params: dict[str, Any]) -> int:
    size = read_count(params, "pageSize", "", least=1, most=MOST_PAGE)
    return USUAL_PAGE if size is None else size


def _read_page(token: str | None) -> tuple[int, int] | None:
    """Where a list goes on: when the last task of the page before changed, and its number."""
    if token is None:
        return None
    updated, _, turn = token.partition("-")
    if not (updated.isascii() and updated.isdigit() and turn.isascii() and turn.isdigit()):
        raise InvalidRequest("pageToken", "is none that a list of this agent has told")
    return int(updated[:18]), int(turn[:18])


def write_page(updated: int, turn: int) -> str:
    """What asks for the tasks after this one."""
    return f"{updated}-{turn}"


def _read_push(operation: str, params: dict[str, Any], agent: str, form: Form) -> TaskQuestion:
    task = need_id(params, "taskId", "")
    if operation == CREATE_PUSH:
        wish = read_callback(params, "")
        return TaskQuestion(
            about="add_callback", task=task, agent=agent, wish=wish, form=form.kept()
        )
    if operation == LIST_PUSH:
        return TaskQuestion(
            about="callbacks",
            task=task,
            agent=agent,
            limit=_page_size(params),
            page=_read_page(read_text(params, "pageToken", "", MOST_TOKEN)),
            form=form.kept(),
        )
    name = need_id(params, "id", "")
    about: Any = "callback" if operation == GET_PUSH else "remove_callback"
    return TaskQuestion(about=about, task=task, agent=agent, name=name, form=form.kept())


def read_callback(value: object, place: str) -> CallbackWish:
    """Where the caller wants to be told what becomes of a task."""
    found = read_object(value, place) if place else dict(value)  # type: ignore[call-overload]
    known = read_optional(found, "authentication", place)
    scheme = read_text(known, "scheme", place, 64)
    credentials = read_text(known, "credentials", place, 8192)
    return CallbackWish(
        dialect=OVER_HTTP,
        name=read_id(found, "id", place),
        url=read_url(found, "url", place),
        token=read_text(found, "token", place, 1024),
        authorization=None
        if scheme is None
        else Secret(scheme if credentials is None else f"{scheme} {credentials}"),
    )
