"""A task that is read while it goes on, by whoever asked for it: here, or at another process.

Law 1. A reader is told the task, then everything that it has said from the first event on, then
       what it says, then its end; or from the event on after the last that it names.
Law 2. A task that has ended is not read so: it is asked for.
Law 3. A reader counts as an open stream of whoever asks, and is let go when what let it in ends.
"""

from collections.abc import Mapping

from carnet.core.call import Admitted, Ask, Call, call_of
from carnet.core.chain.carnet import Carnet
from carnet.core.people.identity import Actor, Caller, Payer
from carnet.errors import OperationUnsupported
from carnet.gateway.answer import Answering
from carnet.gateway.own_tasks.asker import Asker
from carnet.gateway.published import Published
from carnet.guards.limits import Concurrency
from carnet.http.exchange import Exchange
from carnet.ports.calls.tasks import StoredTask
from carnet.wire.dialects.dialect import Dialect, TaskQuestion

_OVER = frozenset({"done", "failed", "unknown"})


class Subscriptions:
    """Lets callers read their tasks."""

    def __init__(
        self, answerings: Mapping[str, Answering], published: Published, concurrency: Concurrency
    ) -> None:
        """`answerings` write the streams, by the name of the dialect."""
        self._answerings = answerings
        self._published = published
        self._concurrency = concurrency

    async def follow(
        self,
        exchange: Exchange,
        dialect: Dialect,
        task: StoredTask,
        question: TaskQuestion,
        asker: Asker,
    ) -> None:
        """Tell what a task says until its end."""
        if task.turn.state in _OVER:
            raise OperationUnsupported
        answering = self._answerings[dialect.name]
        began = answering.begin()
        call = self._call(task, question, asker, dialect.name)
        self._concurrency.enter(call.caller.actor.name, stream=True)
        await answering.answer(exchange, call, began)

    def _call(self, task: StoredTask, question: TaskQuestion, asker: Asker, dialect: str) -> Call:
        """The call that a task is, as far as its reader needs it."""
        turn = task.turn
        caller = asker.caller
        if caller is None:  # it has signed as the one who called
            caller = Caller(actor=Actor(name=turn.actor, how="signature"), scopes=frozenset())
        admitted = Admitted(
            agent=turn.agent,
            ask=Ask(messages=(), stream=True, context=task.context, form=question.form),
            carnet=Carnet(run=turn.run, turn=turn.turn, depth=turn.depth),
            caller=caller,
            payer=Payer(account=turn.payer, quota=""),
            dialect=dialect,
        )
        target = self._published.target(question.agent or "")
        return call_of(admitted, target, turn, known=True, task=task.id, at_once=True)
