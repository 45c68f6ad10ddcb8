"""One message and its answer: sent, read as it comes, asked for again, stopped.

Law 1. A message goes under an id of its own: whatever happens to the connection, to ask again is
       the same message, and has the same answer (R47).
Law 2. A connection that is lost is tried again for some seconds. Then somebody is told how to come
       back; nothing is lost.
Law 3. The first Ctrl-C stops the answer, the second one leaves it.
"""

import asyncio
import itertools
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from carnet.cli.chat.answer import AnswerPiece, ShownAnswer
from carnet.cli.chat.connection import LOST, AnswerStream, ChatConnection, conversation_path
from carnet.cli.failures import GATEWAY_TROUBLE, GatewayError
from carnet.errors import BY_CODE, Cancelled, ConversationBusy, OutcomeUnknown, ProviderUnavailable
from carnet.ports.world.http_client import NotSent
from carnet.runtime.system import SystemIds
from carnet.wire.dialects.engine_chat.client_stream import APPROVAL_REQUEST, RELAY
from carnet.wire.dialects.engine_chat.refusals import APPROVAL_REQUIRED
from carnet.wire.dialects.engine_chat.writer import (
    DONE,
    ERROR,
    TEXT_DELTA,
    TOOL_CALL,
    TOOL_RESULT,
)

MESSAGE: Final = "/message"
RETRY: Final = "retry"
REGENERATE: Final = "regenerate"
PAUSES: Final = (0.25, 0.5, 1.0, 2.0)  # seconds before a connection is tried again
STOP_SECONDS: Final = 0.2  # between two attempts to stop what is about to begin
STOP_ATTEMPTS: Final = 10
SOME: Final = "?limit=20"  # messages: an answer, and what others have said to it
LOOK_SECONDS: Final = 0.5  # between two looks at an answer that is given elsewhere

Tell = Callable[[AnswerPiece], None]
Note = Callable[[str], None]


class Sending(Struct, frozen=True, kw_only=True):
    """What is asked for, so that it can be asked for again in the same words."""

    path: str = MESSAGE
    content: dict[str, Any] | None = None
    conversation: str | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether to send it again is the same message."""
        return self.path == MESSAGE


class AnswerLeft(Exception):
    """Somebody left an answer before its end."""


def new_message(
    text: str, conversation: str | None, agent: str | None, edits: str | None = None
) -> Sending:
    """Something to be said; `edits` is the id of what it stands in the place of."""
    content = {"content": text, "client_message_id": f"chat-{SystemIds().uuid()}"}
    more = {name: value for name, value in (("agent", agent), ("edits", edits)) if value}
    return Sending(content=content | more, conversation=conversation)


def again(conversation: str, how: str) -> Sending:
    """An answer that is to be tried again (`retry`) or given anew (`regenerate`)."""
    return Sending(path=conversation_path(conversation, f"/{how}"), conversation=conversation)


class AnswerReading:
    """Reads one answer for somebody, who may stop it."""

    def __init__(self, connection: ChatConnection, tell: Tell, note: Note) -> None:
        """`tell` is given what is new, `note` what is said about it."""
        self._connection = connection
        self._tell = tell
        self._note = note
        self._goes_on = False  # without whoever reads
        self.was_stopped = False

    async def read(self, sending: Sending, answer: ShownAnswer, *, is_patient: bool = True) -> None:
        """Read an answer to its end; a failure that is no lost connection is raised.

        Who is not `is_patient` is told at once that nobody is there.
        """
        answer.conversation = answer.conversation or sending.conversation
        with self._stoppable(answer):
            for attempt, pause in enumerate((*PAUSES, None)):
                failure = await self._once(sending, answer)
                if failure is None and not self._was_cut_off(answer):
                    return
                if failure is None:  # what has left with the connection is run again, as it was
                    sending = again(answer.conversation or "", RETRY)
                    continue
                if pause is None or not (attempt or is_patient or not _never_left(failure)):
                    raise failure
                if not attempt:
                    self._note("The connection was lost. It is tried again ...")
                answer.was_lost = True
                await asyncio.sleep(pause)
                if not sending.is_repeatable:
                    await self._follow(answer)
                    return

    def _was_cut_off(self, answer: ShownAnswer) -> bool:
        """Whether it was cancelled because its connection was lost."""
        code = (answer.error or {}).get("code")
        return code == Cancelled.code and answer.was_lost and not self.was_stopped

    async def _once(self, sending: Sending, answer: ShownAnswer) -> Exception | None:
        """Read as far as it comes; what has ended it early, if that may pass."""
        answer.read_again()
        place = sending.conversation or answer.conversation
        try:
            async with self._connection.stream(sending.path, sending.content, place) as stream:
                await self._show(stream, answer)
        except LOST as error:
            return None if answer.has_ended else error
        except GatewayError as error:
            # What was refused is kept all the same, and can be tried again there.
            answer.conversation = error.facts.get("conversation_id") or answer.conversation
            is_begun = answer.message is not None
            is_busy = error.facts.get("code") == ConversationBusy.code and is_begun
            if is_busy or (error.status in GATEWAY_TROUBLE and is_begun):
                return error
            raise
        if answer.has_ended:
            return None
        return ProviderUnavailable("an answer ended without its last event")

    async def _show(self, stream: AnswerStream, answer: ShownAnswer) -> None:
        answer.conversation, answer.message = stream.conversation, stream.message
        async for event, data in stream.frames():
            for piece in answer.take(event, data):
                self._tell(piece)

    async def follow(self, answer: ShownAnswer) -> None:
        """Read an answer as it comes that was asked for before, or elsewhere."""
        with self._stoppable(answer):
            await self._follow(answer)

    async def _follow(self, answer: ShownAnswer) -> None:
        answer.read_again()
        try:
            async with self._connection.follow(answer.conversation or "") as stream:
                await self._show(stream, answer)
        except (GatewayError, *LOST):  # it was asked for with another token, or is about to begin
            pass
        if not answer.has_ended:
            await self._watch(answer)

    async def _watch(self, answer: ShownAnswer) -> None:
        """Wait until an answer that is given elsewhere is written down; it is read then."""
        path = conversation_path(answer.conversation or "", SOME)
        while True:
            page = await self._connection.ask("GET", path)
            if await self._is_settled(page, answer):
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _is_settled(self, page: dict[str, Any], answer: ShownAnswer) -> bool:
        """Whether the last answer has ended, or waits for somebody; what is new of it is told."""
        last = last_answer(page)
        questions = await self.questions_of(last[0]) if last and last[0]["waits"] else []
        if page["answering"] or not last or (last[0]["waits"] and not questions):
            return False
        answer.read_again()
        answer.message = last[0]["id"]
        for event, data in events_of(last, questions, page["id"]):
            for piece in answer.take(event, data):
                self._tell(piece)
        return True

    async def questions_of(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """What an answer waits for."""
        page = await self._connection.ask("GET", "/approvals?limit=200")
        return [each for each in page["approvals"] if each["run"] == message.get("run")]

    @contextmanager
    def _stoppable(self, answer: ShownAnswer) -> Iterator[None]:
        loop, reading = asyncio.get_running_loop(), asyncio.current_task()
        assert reading is not None  # noqa: S101  it runs in one
        stopping: list[asyncio.Task[None]] = []

        def interrupt() -> None:
            self.was_stopped = True
            if stopping or answer.conversation is None:
                reading.cancel()
            else:
                self._note("Stopping it ... (Ctrl-C again leaves.)")
                stopping.append(asyncio.create_task(self._stop(answer, reading)))

        with suppress(NotImplementedError):  # where there are no signals, Ctrl-C cancels
            loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            yield
        except asyncio.CancelledError:
            if not self._goes_on:
                raise AnswerLeft from None
            reading.uncancel()
        finally:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)
            for task in stopping:
                task.cancel()

    async def _stop(self, answer: ShownAnswer, reading: "asyncio.Task[Any]") -> None:
        """Have an answer stopped; one that cannot be is not waited for any longer."""
        for _ in range(STOP_ATTEMPTS):
            with suppress(GatewayError, *LOST):
                if await self._is_stopped(answer.conversation or ""):
                    return
            await asyncio.sleep(STOP_SECONDS)  # it may be about to begin
        self._goes_on = True
        self._note("It could not be stopped, and goes on without you.")
        reading.cancel()

    async def _is_stopped(self, conversation: str) -> bool:
        ask = self._connection.ask
        if (await ask("POST", conversation_path(conversation, "/stop")))["stopped"]:
            return True
        last = last_answer(await ask("GET", conversation_path(conversation, SOME)))
        if not last or not last[0]["waits"]:
            return False
        # It has waited for somebody, and goes on: it is ended by its run.
        await ask("POST", f"/runs/{quote(last[0]['run'], safe='')}/cancel")
        return True


def last_answer(page: dict[str, Any]) -> list[dict[str, Any]]:
    """The last answer on a page, and what others have said whom it mentions."""
    newest = list(itertools.takewhile(lambda each: each["role"] != "user", page["messages"]))
    return newest[::-1]


def events_of(
    messages: list[dict[str, Any]], questions: list[dict[str, Any]], conversation: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """An answer that is kept, as the events that it came by."""
    first, *relayed = messages
    for tool in first["tools"]:
        yield TOOL_CALL, tool
        if tool["status"] is not None:
            yield TOOL_RESULT, tool
    yield TEXT_DELTA, {"delta": first["content"]}
    for each in relayed:
        yield RELAY, {"author": each["author"]}
        yield TEXT_DELTA, {"delta": each["content"]}
    for question in questions:
        yield APPROVAL_REQUEST, {"request_id": question["id"], "kind": question["kind"]}
    named = {"conversation_id": conversation, "message_id": first["id"]}
    if questions:
        yield DONE, named | {"finish_reason": APPROVAL_REQUIRED}
    elif first["state"] == "whole":
        yield DONE, named | {"finish_reason": "stop"}
    else:
        yield ERROR, named | _failure(first)


def _failure(message: dict[str, Any]) -> dict[str, Any]:
    code = str(message["code"] or OutcomeUnknown.code)
    kind = BY_CODE.get(code, OutcomeUnknown)
    words = f"This answer is {message['state']} ({code})."
    return {"code": code, "message": words, "hint": "", "retryable": kind.retryable}


def _never_left(failure: Exception) -> bool:
    """Whether nothing was sent: nobody listens there."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, NotSent):
            return True
        cause = cause.__cause__
    return False
