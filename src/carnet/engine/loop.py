"""The agent loop: a model is asked, its tools are used, and it is asked again, until it has ended.

It is the function behind `POST /engine/chat`: what goes in and out is what the contract says, in
one process and between two.

Law 1. It goes on until the model ends. `max_iterations` bounds how often a model is asked in one
       answer where a deployment says so; there is no such bound by itself.
Law 2. It returns `Done` with a reason, or `Waiting` for approvals, or raises an error that tells
       the cause. A bound, a cancellation and a stop are reasons, not errors; so is that whoever
       pays has nothing left for a tool. A budget of the loop is raised, with its count and limit.
Law 3. A model that gives nothing is asked once more. What has been seen is never asked for again.
Law 4. Tool calls are run because the model made them in this turn, or because somebody approved
       them by name; never because they stand in a message.
Law 5. With a store behind `once`, what was done is not done again when the turn runs again, and
       what was used is counted in the run that used it.
Law 6. Where budgets bound the tokens of the turn, it is looked at what is left before each ask, and
       the model is told to say no more than that. With nothing left it is not asked.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import (
    COUNTED,
    Done,
    Extension,
    Message,
    Text,
    ToolCall,
    Waiting,
)
from carnet.core.messages.output import Sink
from carnet.core.money.budget import Ceilings, write_ceilings
from carnet.engine.budgets import LoopBudgets, raised
from carnet.engine.completion import Completion, CompletionSink
from carnet.engine.history import completed, result_of, unanswered
from carnet.engine.toolbox import Toolbox, ToolRun
from carnet.engine.tools.turn import ToolTurn
from carnet.errors import BudgetExceeded, CarnetError, ProviderError
from carnet.ports.engine.loop import LoopTurn
from carnet.ports.engine.model import LanguageModel, ModelAsk, Recall
from carnet.ports.engine.tools import HiddenSeal, LoopTool, ToolSource
from carnet.wire.dialects.engine_chat.refusals import (
    BUDGET_EXCEEDED,
    TOO_MANY_ITERATIONS,
    end_of,
)
from carnet.wire.dialects.engine_chat.stream import approval_of

_ATTEMPTS: Final = 2  # at an answer that says something


class LoopBounds(Struct, frozen=True, kw_only=True):
    """What a deployment allows one answer. None is no bound."""

    max_iterations: int | None = None  # times that a model is asked
    max_tokens: int | None = None  # in and out, in all; it ends when they are used up
    budgets: Ceilings = ()  # by their names; one that has ended is an error


UNBOUNDED: Final = LoopBounds()


class AgentLoop:
    """Answers requests of the contract."""

    def __init__(
        self,
        model: LanguageModel,
        tools: Sequence[LoopTool] = (),
        *,
        sources: Sequence[ToolSource] = (),
        bounds: LoopBounds = UNBOUNDED,
        seal: HiddenSeal | None = None,
    ) -> None:
        """Ask this model, with these tools and those that `sources` have.

        `seal` is for what is hidden in calls, where those that wait come back by other hands.
        """
        self._seal = seal
        self._model = model
        self._toolbox = Toolbox(tools, sources)
        self._bounds = bounds

    async def __call__(self, turn: LoopTurn, sink: Sink, /) -> Done | Waiting:
        """Answer one request."""
        agent = raised(self._bounds.budgets, turn.granted)
        budgets = LoopBudgets(agent, turn.budgets, turn.counted)
        try:
            toolbox = await self._toolbox.now()
            run = _LoopRun(self._model, toolbox, self._bounds, turn, sink, self._seal, budgets)
            return await run.go()
        except CarnetError as error:
            end = end_of(error)
            if isinstance(end, Done) and error is not budgets.short:
                return end
            raise


class _LoopRun:
    """One answer."""

    def __init__(
        self,
        model: LanguageModel,
        toolbox: Toolbox,
        bounds: LoopBounds,
        turn: LoopTurn,
        sink: Sink,
        seal: HiddenSeal | None,
        budgets: LoopBudgets,
    ) -> None:
        self._model = model
        self._bounds = bounds
        self._budgets = budgets
        self._turn = turn
        self._sink = sink
        tool_turn = ToolTurn(
            actor=turn.actor,
            correlation=turn.request.correlation,
            name=turn.name,
            resolved=turn.resolved,
            once=turn.once,
            begins=turn.begins,
            seal=seal,
            calls=turn.calls,
            is_final=turn.is_final,
            conversation=turn.request.conversation,
            client_context=turn.request.client_context or {},
            triggers=turn.triggers,
            memory=turn.memory,
            past=turn.past,
            ask_policy=turn.ask_policy,
            asks=turn.asks,
        )
        self._tools = ToolRun(toolbox, tool_turn, self._sink, budgets)
        self._messages: list[Message] = []
        self._used = {call.id for each in turn.request.messages for call in each.tool_calls}
        self._asked = 0  # times that the model was
        self._tokens = 0
        self._is_visible = False
        self._recall = Recall()
        self._warned: set[bool] = set()  # of a window that fills, and of what was left out

    async def go(self) -> Done | Waiting:
        """Ask the model until it has ended; who goes on with the turn is told what was counted."""
        try:
            end = await self._go()
        except BudgetExceeded:
            await self._tell()
            raise
        if isinstance(end, Waiting):
            await self._tell()
        return end

    async def _tell(self) -> None:
        if self._turn.tells and self._budgets.counted:
            await self._sink.write(Extension(COUNTED, write_ceilings(self._budgets.counted)))

    async def _go(self) -> Done | Waiting:
        waiting = await self._resume()
        if waiting is not None:
            return waiting
        for n in count():
            if n == self._bounds.max_iterations:
                return Done(TOO_MANY_ITERATIONS)
            if self._bounds.max_tokens is not None and self._tokens >= self._bounds.max_tokens:
                return Done(BUDGET_EXCEEDED)
            self._budgets.ask()
            answer = await self._ask()
            if not answer.calls:
                return answer.end
            waiting = await self._use(answer)
            if waiting is not None:
                return waiting
        raise AssertionError("a count does not end")

    async def _resume(self) -> Waiting | None:
        """Run what was approved of the calls that were sent without a result."""
        messages, resolved = self._turn.request.messages, self._turn.resolved
        self._tools.look_again(call for message in messages for call in message.tool_calls)
        goes_on = {*self._turn.held}.union(resolved) if self._turn.held else resolved
        approved = [call for call in unanswered(messages) if call.id in goes_on]
        outcomes = await self._tools.go_on(approved)
        self._messages = completed(messages, outcomes.results)
        return self._paused(outcomes.waiting)

    async def _ask(self) -> Completion:
        """An answer of the model that says something."""
        answer = await self._completion()
        for _ in range(_ATTEMPTS - 1):
            if not answer.is_empty:
                break
            answer = await self._completion()
        if answer.is_empty and not self._is_visible:
            raise ProviderError("the model gave nothing, twice")
        self._is_visible = True
        return answer

    async def _completion(self) -> Completion:
        place, self._asked = self._asked, self._asked + 1
        passing = CompletionSink(self._sink, place, self._used, self._warned)
        ask = ModelAsk(
            messages=tuple(self._messages),
            tools=self._tools.offered,
            correlation=self._turn.request.correlation,
            recall=self._recall,
        )
        is_new = False

        async def act() -> dict[str, Any]:
            nonlocal is_new
            is_new = True
            return passing.ended(await self._model(await self._bounded(ask), passing)).written()

        answer = Completion.read(await self._turn.once("model", act))
        if not is_new and answer.text.strip():
            await self._sink.write(Text(answer.text))
        self._tokens += answer.tokens
        self._used.update([call.id for call in answer.calls])
        return answer

    async def _bounded(self, ask: ModelAsk) -> ModelAsk:
        """The same with what is left for its answer; BudgetExceeded where that is nothing."""
        tokens = self._turn.tokens
        if tokens is None:
            return ask
        try:
            return replace(ask, most_tokens=await tokens.left(self._tokens))
        except BudgetExceeded as short:
            self._budgets.short = short
            raise

    async def _use(self, answer: Completion) -> Waiting | None:
        outcomes = await self._tools.use(answer.calls)
        self._messages.append(answer.message)
        self._messages += [
            result_of(call, outcomes.results[call.id])
            for call in answer.calls
            if call.id in outcomes.results
        ]
        return self._paused(outcomes.waiting)

    def _paused(self, calls: Sequence[ToolCall]) -> Waiting | None:
        """What is waited for; what has waited is run before a budget ends the answer."""
        if calls:
            for call in calls:
                self._budgets.back(call)
            return Waiting(tuple([approval_of(call) for call in calls]))
        if self._budgets.short is not None:
            raise self._budgets.short
        return None
