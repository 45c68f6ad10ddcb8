"""One message and its answer, for pipes: standard output has the answer alone.

Law. The exit code says whether it succeeded: an answer that failed, or that waits for somebody, did
not.
"""

import sys
from typing import Any

import click

from carnet.cli.call.answers import approvals, denial
from carnet.cli.chat.answer import AnswerPiece, ShownAnswer, handle
from carnet.cli.chat.connection import LOST, ChatConnection, question_path
from carnet.cli.chat.exchange import AnswerLeft, AnswerReading, Sending
from carnet.cli.chat.screen import Screen
from carnet.cli.failures import INTERRUPTED, OK, GatewayError
from carnet.cli.invocation import Invocation, to_json
from carnet.core.messages.events import Waiting
from carnet.core.messages.interrupt import Interrupt
from carnet.errors import BY_CODE, Cancelled, Internal, UsageInvalid

CUT_SHORT = "length", "content_filter"  # ends that the text alone does not show


def read_input() -> str:
    """What is to be said, from standard input."""
    text = sys.stdin.read().strip("\n")
    if not text.strip():
        raise UsageInvalid(
            reason="There is nothing to be said.", fix="Write it to standard input: echo hello |"
        )
    return text


async def say_once(
    invocation: Invocation, connection: ChatConnection, sending: Sending, token: str | None
) -> int:
    """Print the answer to one message."""
    screen, answer = Screen(invocation), ShownAnswer()

    def tell(piece: AnswerPiece) -> None:
        if invocation.format == "jsonl":
            invocation.line({"kind": piece.kind, "text": piece.text, **piece.data}, "")
        elif invocation.format == "text" and piece.kind in {"text", "relay"}:
            screen.say(piece.text if piece.kind == "text" else f"\n\n{handle(piece.text)}: ")

    reading = AnswerReading(connection, tell, screen.note)
    try:
        await reading.read(sending, answer, is_patient=False)
    except AnswerLeft:
        return INTERRUPTED
    except LOST as error:
        screen.end_line()
        raise _lost(error, answer) from error
    finally:
        screen.end_line()
    if reading.was_stopped:
        return INTERRUPTED
    _print(invocation, answer)
    return await _end(invocation, connection, answer, token)


def _print(invocation: Invocation, answer: ShownAnswer) -> None:
    page = {
        "conversation_id": answer.conversation,
        "message_id": answer.message,
        "content": answer.text,
        "tools": list(answer.tools.values()),
        "questions": answer.questions,
        "error": answer.error,
        **{name: (answer.end or {}).get(name) for name in ("finish_reason", "usage")},
    }
    if invocation.format == "json":
        click.echo(to_json(page, indent=2))
    elif invocation.format == "jsonl":
        click.echo(to_json({"kind": "end", **page}))


async def _end(
    invocation: Invocation, connection: ChatConnection, answer: ShownAnswer, token: str | None
) -> int:
    if answer.error is not None:
        kind = BY_CODE.get(str(answer.error.get("code")), Internal)
        raise GatewayError(answer.error, kind.status)
    if answer.waits:
        raise await _waits(connection, answer, token)
    reason = (answer.end or {}).get("finish_reason")
    if reason in CUT_SHORT:
        invocation.note(f"cut short ({reason})")
    return OK


async def _waits(
    connection: ChatConnection, answer: ShownAnswer, token: str | None
) -> GatewayError:
    """What it waits for, with the commands that answer it."""
    lines: list[str] = []
    code = ""
    for asked in answer.questions:
        question = await connection.ask("GET", question_path(asked["request_id"]))
        lines += [question["message"], *approvals(question, token), denial(question, token)]
        kind = Interrupt(id=question["id"], kind=question["kind"], message=question["message"])
        code = code or Waiting((kind,)).error().code
    lines.append(f"Then: {resume(answer)}")
    facts = {
        "code": code,
        "message": "The answer waits for somebody.",
        "hint": "\n".join(lines),
        "conversation_id": answer.conversation,
    }
    return GatewayError(facts, BY_CODE.get(code, Cancelled).status)


def _lost(error: Any, answer: ShownAnswer) -> GatewayError:
    hint = error.next_step
    if answer.conversation is not None:
        hint = f"What was said is kept. Go on with: {resume(answer)}"
    facts = {"code": error.code, "message": error.safe_text, "hint": hint}
    return GatewayError(facts | {"conversation_id": answer.conversation}, error.status)


def resume(answer: ShownAnswer) -> str:
    """The command that comes back to a conversation."""
    return f"carnet chat --resume {answer.conversation}"
