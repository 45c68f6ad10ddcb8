"""Approvals and questions of kagent: `https://kagent.dev/extensions/hitl/v1`.

    up     tool_approval_request {hint, tools: [{id, call_id, name, args}], nested}
           ask_user_request      {id, questions: [{question, choices, multiple}]}
    down   tool_approval_response {approvals: [{id, approved, rejection_reason}]}
           ask_user_response      {id, answers: [{answer: [text]}]}

Law 1. A message asks one thing, and one is answered at a time: what has to be approved first. The
       rest is asked when that is answered.
Law 2. A request for several tools is one interrupt here: its answer is the answer for all.
Law 3. A name of a tool, its arguments and who asks are what the asker says they are.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.messages.interrupt import MOST_DATA_BYTES, Interrupt, Outcome, Resolution
from carnet.core.money.amount import format_amount
from carnet.wire.dialects.a2a.extensions.interrupt import words_of
from carnet.wire.dialects.a2a.extensions.questions.state import read_state, write_state
from carnet.wire.dialects.a2a.extensions.row import (
    AnswerClaim,
    AnswerClaims,
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    PayloadBroken,
    items,
    members,
    needed,
    one,
    payload,
    printable,
    shown,
    word,
)
from carnet.wire.dialects.policy import MOST_WORDS
from carnet.wire.grammar import json

KAGENT_URI: Final = "https://kagent.dev/extensions/hitl/v1"

MOST_TOOLS: Final = 32
MOST_QUESTIONS: Final = 8
MOST_CHOICES: Final = 32
MOST_ID: Final = 256

_APPROVAL: Final = "kagent-approval"  # how the states of what was asked so begin
_QUESTION: Final = "kagent-question"
_INPUT: Final = "input"


# ------------------------------------------------------------------ served: asked and answered


def ask(interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    """What a turn waits for."""
    tools = [asked for asked in interrupts if asked.kind != _INPUT]
    return {KAGENT_URI: _approval(tools[0]) if tools else _question(interrupts[0])}


def _approval(asked: Interrupt) -> dict[str, Any]:
    request: dict[str, Any] = {
        "type": "tool_approval_request",
        "hint": words_of(asked)[:MOST_WORDS],
        "tools": [_tool(asked)],
    }
    return request | ({"nested": {"subagent_name": asked.origin}} if asked.origin else {})


def _tool(asked: Interrupt) -> dict[str, Any]:
    more = asked.more or {}
    arguments, name = more.get("arguments"), more.get("tool")
    price = None if asked.amount is None else format_amount(asked.amount)
    beside = {"amount": price, "currency": asked.currency, "url": asked.url}
    known = {name: value for name, value in beside.items() if value is not None}
    return {
        "id": asked.id,
        "call_id": asked.id,
        "name": name if isinstance(name, str) else asked.kind,
        "args": arguments if isinstance(arguments, dict) else known,
    }


def _question(asked: Interrupt) -> dict[str, Any]:
    question = {"question": asked.message, "choices": list(asked.options), "multiple": False}
    return {"type": "ask_user_request", "id": asked.id, "questions": [question]}


def read(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """The answer that a message brings."""
    del last_depth
    value = payload(found, KAGENT_URI)
    if value is None:
        return None
    given = members(value)
    if given.get("type") == "tool_approval_response":
        each = items(given.get("approvals"), 1)
        answer = _read_approval(members(each[0] if each else None))
    elif given.get("type") == "ask_user_response":
        answer = _read_response(given)
    else:
        raise PayloadBroken("is no answer")
    return ExtensionClaim(answer=answer, shown=shown(given))


def _read_approval(given: dict[str, Any]) -> AnswerClaim:
    approved = given.get("approved")
    if not isinstance(approved, bool):
        raise PayloadBroken("does not say whether a tool is approved")
    outcome: Outcome = "accepted" if approved else "rejected"
    reason = given.get("rejection_reason")
    value = reason[:MOST_WORDS] if isinstance(reason, str) and not approved else None
    return AnswerClaim(id=needed(given, "id", MOST_ID), outcome=outcome, value=value or None)


def _read_response(given: dict[str, Any]) -> AnswerClaim:
    each = [members(one) for one in items(given.get("answers"), MOST_QUESTIONS)]
    texts = [_texts(one.get("answer")) for one in each]
    if len(texts) == 1:
        (only,) = texts
        value: Any = only[0] if len(only) == 1 else only
    else:
        value = texts
    return AnswerClaim(id=needed(given, "id", MOST_ID), outcome="accepted", value=value)


def _texts(value: object) -> list[str]:
    texts = items(value, MOST_CHOICES)
    if not all(isinstance(text, str) and len(text) <= MOST_DATA_BYTES for text in texts):
        raise PayloadBroken("has an answer that is not made of texts")
    return texts


# ------------------------------------------------------------------ called: read and replied


def answer(metadata: Metadata, currency: str) -> AnswerClaims | None:
    """What whoever we called waits for."""
    del currency
    value = metadata.get(KAGENT_URI)
    if value is None:
        return None
    given = members(value)
    if given.get("type") == "tool_approval_request":
        asked = _read_tools(given)
    elif given.get("type") == "ask_user_request":
        asked = _read_questions(given)
    else:
        raise PayloadBroken("is no request")
    return AnswerClaims(interrupts=one(asked), claimed={"kagent": shown(given)})


def _read_tools(given: dict[str, Any]) -> Interrupt:
    tools = [members(each) for each in items(given.get("tools"), MOST_TOOLS)]
    ids = [needed(tool, "id", MOST_ID) for tool in tools]
    if not ids:
        raise PayloadBroken("asks for no tool")
    names = [word(tool, "name") or "tool" for tool in tools]
    hint = given.get("hint")
    words = printable(hint, MOST_WORDS).strip() if isinstance(hint, str) else ""
    nested = given.get("nested")
    more: dict[str, Any] = {"tool": ", ".join(names)}
    if len(tools) == 1 and isinstance(tools[0].get("args"), dict):
        more["arguments"] = tools[0]["args"]
    elif len(tools) > 1:
        more["arguments"] = {id_: tool.get("args") for id_, tool in zip(ids, tools, strict=True)}
    if len(json.write(more)) > MOST_DATA_BYTES:
        del more["arguments"]
    return Interrupt(
        kind="approval",
        id=ids[0],
        state=write_state(_APPROVAL, ids),
        message=words or f"Approval is asked for: {', '.join(names)}"[:MOST_WORDS],
        origin=word(nested, "subagent_name") if isinstance(nested, dict) else None,
        more=more,
    )


def _read_questions(given: dict[str, Any]) -> Interrupt:
    id_ = needed(given, "id", MOST_ID)
    questions = [members(each) for each in items(given.get("questions"), MOST_QUESTIONS)]
    texts = [each.get("question") for each in questions]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise PayloadBroken("has no question")
    words = [printable(str(text), MOST_WORDS).strip() for text in texts]
    choices = _choices(questions[0]) if len(questions) == 1 else ()
    return Interrupt(
        kind=_INPUT,
        id=id_,
        state=write_state(_QUESTION, [id_, len(questions)]),
        message=" ".join(words)[:MOST_WORDS] or "An answer is asked for.",
        options=choices,
    )


def _choices(question: dict[str, Any]) -> tuple[str, ...]:
    found = items(question.get("choices") or [], MOST_CHOICES)
    return tuple([each for each in found if isinstance(each, str) and each.isprintable()])


def reply(state: str, resolution: Resolution) -> dict[str, Any] | None:
    """The answer to what has this state; None where it was not asked so."""
    tools = read_state(_APPROVAL, state, str)
    if tools is not None:
        return {KAGENT_URI: _write_approvals(tools, resolution)}
    asked = read_state(_QUESTION, state, str, int)
    if asked is None or not 0 < asked[1] <= MOST_QUESTIONS:
        return None
    return {KAGENT_URI: _write_response(asked, resolution)}


def _write_approvals(tools: list[Any], resolution: Resolution) -> dict[str, Any]:
    reason = resolution.value
    stated = {"rejection_reason": reason} if isinstance(reason, str) else {}
    beside = {} if resolution.accepted else stated
    each = [{"id": tool, "approved": resolution.accepted} | beside for tool in tools]
    return {"type": "tool_approval_response", "approvals": each}


def _write_response(asked: list[Any], resolution: Resolution) -> dict[str, Any]:
    id_, questions = asked
    value = resolution.value if resolution.accepted else None
    if questions > 1 and isinstance(value, list) and len(value) == questions:
        texts = [_as_texts(each) for each in value]
    else:
        texts = [_as_texts(value)] + [[] for _ in range(questions - 1)]
    answers = [{"answer": each} for each in texts]
    return {"type": "ask_user_response", "id": id_, "answers": answers}


def _as_texts(value: object) -> list[str]:
    if value is None:
        return []
    each = value if isinstance(value, list) else [value]
    return [one if isinstance(one, str) else json.write_text(one) for one in each]


KAGENT: Final = ExtensionRow(
    name="kagent",
    uris=(KAGENT_URI,),
    keys=(KAGENT_URI,),
    is_declared=True,
    description="Approvals of tools and questions to people, in the words of kagent.",
    reads="answers to approvals and questions; what an agent that we called asks for",
    writes="approvals and questions of a task that waits; answers toward agents that asked so",
    believes="an answer as much as its sender may answer, and once; a question is passed on",
    read=read,
    ask=ask,
    answer=answer,
    reply=reply,
)
