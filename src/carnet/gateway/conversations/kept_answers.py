"""Answers that have ended, told again as they are kept."""

from typing import Final

from carnet.core.call import Thread
from carnet.core.messages.events import RELAYED, Done, Event, Extension, Failed, Usage
from carnet.errors import BY_CODE, CarnetError, OutcomeUnknown
from carnet.gateway.conversations.answers import Answers
from carnet.http.exchange import Exchange
from carnet.ports.calls.conversations import BegunAnswer, Conversations, KeptMessage
from carnet.wire.dialects.engine_chat.client_stream import ClientWriter, thread_fields

MOST_RELAYED: Final = 15  # messages that stand with an answer


class KeptAnswers:
    """Tells answers again."""

    def __init__(self, conversations: Conversations, answers: Answers, currency: str) -> None:
        """`answers` knows what was asked in them."""
        self._conversations = conversations
        self._answers = answers
        self._currency = currency

    async def tell(self, exchange: Exchange, begun: BegunAnswer) -> None:
        """Show an answer that has ended, as it is kept."""
        answer = begun.answer
        writer = ClientWriter(thread_in(begun), self._currency)
        usage = Usage(answer.tokens_in, answer.tokens_out, answer.cost)
        relayed = await self._relayed(begun)
        events = [*answer.events(), *relayed, usage, _end(answer)]
        shown = await self._answers.with_resolutions(begun.conversation.owner, answer, events)
        body = writer.write(shown)
        await exchange.reply(200, writer.headers(stream=True), body)

    async def _relayed(self, begun: BegunAnswer) -> list[Event]:
        """What others have said who were mentioned in an answer."""
        found: list[Event] = []
        for place in range(1, MOST_RELAYED + 1):
            id = f"{begun.answer.id}.{place}"
            message = await self._conversations.message(begun.conversation, id)
            if message is None:
                break
            found += _marked(message)
        return found


def _marked(message: KeptMessage) -> list[Event]:
    mark = Extension(RELAYED, {"author": message.author, "code": message.code})
    return [mark, *message.events()]


def thread_in(begun: BegunAnswer) -> Thread:
    """The names of what was begun."""
    return Thread(conversation=begun.conversation.id, answer=begun.answer.id)


def named(error: CarnetError, begun: BegunAnswer) -> CarnetError:
    """The error, with the names of the message that it is about."""
    error.fields = tuple(thread_fields(thread_in(begun)))
    return error


def _end(answer: KeptMessage) -> Event:
    if answer.state == "whole":
        return Done()
    kind = BY_CODE.get(answer.code or "", OutcomeUnknown)
    return Failed(kind.code)
