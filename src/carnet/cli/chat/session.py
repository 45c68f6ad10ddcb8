"""A chat: a person types, an agent answers, until she leaves.

Law 1. Nothing runs while she types but what she types: each request is made, and is over.
Law 2. Ctrl-C stops an answer and keeps the chat; twice, or at an empty prompt, it leaves.
Law 3. A failure is told and the chat goes on: what was said is kept at the gateway, or can be sent
       again as the same message.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from carnet.cli.chat import history
from carnet.cli.chat.answer import ShownAnswer
from carnet.cli.chat.connection import LOST, ChatConnection, question_path
from carnet.cli.chat.decision import QuestionForm
from carnet.cli.chat.exchange import (
    AnswerLeft,
    AnswerReading,
    Sending,
    events_of,
    last_answer,
    new_message,
)
from carnet.cli.chat.prompt import Prompt
from carnet.cli.chat.screen import Screen
from carnet.cli.failures import INTERRUPTED, OK, GatewayError, error_object
from carnet.errors import Cancelled, CarnetError

T = TypeVar("T")


class Leave(Exception):
    """She leaves."""

    def __init__(self, code: int = OK) -> None:
        super().__init__()
        self.code = code


class ChatSession:
    """One chat, in one conversation at a time."""

    def __init__(
        self,
        runner: asyncio.Runner,
        connection: ChatConnection,
        screen: Screen,
        prompt: Prompt,
        agent: str | None,
    ) -> None:
        """`agent` is asked first; by default whom the gateway asks."""
        self._runner = runner
        self.connection = connection
        self.screen = screen
        self.prompt = prompt
        self.agent = agent
        self.conversation: str | None = None
        self.listed: list[str] = []  # ids of the list that was shown last
        self._sending: Sending | None = None  # that an answer was asked for by last
        self._answer = ShownAnswer()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something at the gateway."""
        return self._runner.run(work)

    # ------------------------------------------------------------------ what is typed

    def read(self) -> str | None:
        """What she says; None if she leaves."""
        while True:
            try:
                return self.prompt.text(history.YOU)
            except KeyboardInterrupt:
                self.screen.print("")
                if not self.prompt.typed.strip():
                    return None

    def attempt(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The same, where a failure is told and the chat goes on."""
        try:
            return self.run(work)
        except GatewayError as error:
            self.screen.failure(error.facts)
        except CarnetError as error:
            self.screen.failure(error_object(error))
            if isinstance(error, LOST):
                self._tell_way_back()
        except KeyboardInterrupt:
            self.screen.note("(left)")
        return None

    # ------------------------------------------------------------------ answers

    def say(self, text: str, edits: str | None = None) -> None:
        """Say something, in the place of `edits` if it is given; and show what is answered."""
        # Whom the gateway asks from then on is who was asked last.
        agent, self.agent = self.agent, None
        self.hear(new_message(text, self.conversation, agent, edits))
        if self.conversation is None:
            self.agent = agent

    def hear(self, sending: Sending) -> None:
        """Show an answer, and ask her what it asks."""
        self._sending, self._answer = sending, ShownAnswer()
        self._follow(lambda reading: reading.read(sending, self._answer))

    def hear_again(self) -> bool:
        """Ask for what was sent last once more, if it was not read to its end."""
        if self._sending is None or self._answer.has_ended or not self._sending.is_repeatable:
            return False
        sending = self._sending
        self._follow(lambda reading: reading.read(sending, self._answer))
        return True

    def watch(self) -> None:
        """Show an answer that is given elsewhere."""
        self._answer.conversation = self.conversation
        self._follow(lambda reading: reading.follow(self._answer))

    def _follow(self, work: Any) -> None:
        while True:
            if not self._read_answer(work):
                return
            if not self._answer.waits or not self.decide():
                return
            work = self._goes_on

    def _goes_on(self, reading: AnswerReading) -> Coroutine[Any, Any, None]:
        """Read on after an answer to a question."""
        if self._sending is not None and self._sending.is_repeatable:
            return reading.read(self._sending, self._answer)
        return reading.follow(self._answer)

    def _read_answer(self, work: Any) -> bool:
        """Whether an answer was read to its end."""
        reading = AnswerReading(self.connection, self.screen.show, self.screen.note)
        try:
            self.attempt(work(reading))
        except AnswerLeft:
            raise Leave(INTERRUPTED) from None
        finally:
            self.screen.end_line()
            self.conversation = self._answer.conversation or self.conversation
        error = self._answer.error
        if reading.was_stopped and (error is None or error.get("code") == Cancelled.code):
            self.screen.note("(stopped)")
        elif error is not None:
            self.screen.failure(error)
            self.screen.note("/retry has it tried again." if error.get("retryable") else "")
        return self._answer.has_ended

    def _tell_way_back(self) -> None:
        id = self._answer.conversation or self.conversation
        self.screen.note("Nothing is lost: /retry asks for it again.")
        if id is not None:
            self.screen.note(f"Or come back to it: carnet chat --resume {id}")

    # ------------------------------------------------------------------ questions

    def decide(self) -> bool:
        """Ask her what an answer waits for; whether all of it was answered."""
        form, is_all = QuestionForm(self.prompt, self.screen), True
        for asked in list(self._answer.questions):
            is_all &= self._decide(form, str(asked["request_id"]))
        if not is_all:
            self.screen.note("It waits. /answer asks you again; so does: carnet inbox")
        return is_all

    def _decide(self, form: QuestionForm, id: str) -> bool:
        path = question_path(id)
        while True:
            question = self.attempt(self.connection.ask("GET", path))
            if question is None:
                return False
            if question["status"] != "open":
                return True
            decision = form.ask(question)
            if decision is None:
                return False
            if self.attempt(self.connection.ask("POST", path, decision)) is not None:
                return True

    # ------------------------------------------------------------------ conversations

    def begin(self, agent: str | None) -> None:
        """Begin a new conversation with what is said next."""
        self.conversation, self._sending, self._answer = None, None, ShownAnswer()
        self.agent = agent

    def open(self, page: dict[str, Any]) -> None:
        """Go on with a conversation: show it, and what it waits for."""
        self.begin(self.agent)
        self.conversation = page["id"]
        history.show(self.screen, page)
        last = last_answer(page)
        if page["answering"]:
            self.screen.note("(An answer is being given.)")
            self.watch()
        elif last and last[0]["waits"]:
            self.answer_open(last[0])
        elif last and last[0]["state"] != "whole":
            self.screen.note("/retry has it tried again.")

    def answer_open(self, message: dict[str, Any]) -> None:
        """Ask what a message of this conversation waits for, and show how it goes on."""
        reading = AnswerReading(self.connection, self.screen.show, self.screen.note)
        found = self.attempt(reading.questions_of(message))
        self._answer.questions = [{"request_id": each["id"]} for each in found or ()]
        if found is not None and self.decide():
            self._mark_shown(message)
            self.watch()

    def _mark_shown(self, message: dict[str, Any]) -> None:
        """What was shown of it is not shown again."""
        for event, data in events_of([message], [], self.conversation or ""):
            list(self._answer.take(event, data))
