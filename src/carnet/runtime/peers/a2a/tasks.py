"""A task at an A2A agent: begun by a message, followed to its end, answered where it waits.

Law 1. Its id is known as early as it can be: a stream begins with it, and who cannot stream is
       asked not to wait. Whoever leaves then asks for its end; nobody waits for that.
Law 2. Once it is known, nothing that goes wrong sends the message again. A stream that breaks is
       subscribed to, and where that cannot be, the task is asked for, with pauses that grow.
Law 3. What it says is read by `TaskProgress`, and is all about that one task.
Law 4. A task that was answered is looked at first: who still waits for the same has not had the
       answer; it is sent once, and what is refused is asked for again.
Law 5. What was asked for by a policy part, and by no task that waits, is answered by the same call
       again with what resolves it, under an id of its own. Its state is good once: whoever refuses
       it has had it, or does not know it, and is called as the first time then. What it asks for
       again, the person is asked again, and told that her answer was not taken.
Law 6. A refusal that comes with policy parts is what they ask for, and is not tried again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from carnet.core.messages.events import Done, Waiting
from carnet.core.messages.interrupt import Answered, Interrupt
from carnet.core.messages.output import Sink
from carnet.core.people.identity import Secret
from carnet.errors import (
    CarnetError,
    Declined,
    PeerBusy,
    PeerRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    TaskNotFound,
)
from carnet.ports.world.http_client import HttpAnswer, Outbound
from carnet.runtime.peers.a2a.client import A2aClient, Reached, refuse
from carnet.runtime.peers.a2a.progress import TaskProgress
from carnet.runtime.peers.answer_reader import INLINE_BYTES, finish, is_stream
from carnet.runtime.peers.policies import NOT_TAKEN, Ending, explained
from carnet.runtime.peers.samvad_tasks import (
    FIRST_SECONDS,
    GIVE_UP_SECONDS,
    MOST_FAILURES,
    Pauses,
    lost,
)
from carnet.wire.dialects.a2a import client as a2a
from carnet.wire.dialects.a2a.extensions.questions.policy import resolution_metadata
from carnet.wire.dialects.a2a.extensions.questions.policy_part import POLICY_URI
from carnet.wire.dialects.refusal import BY_CALLEE, BY_PEER
from carnet.wire.grammar.mentionable import NAMESPACE

_TRANSIENT: Final = (PeerBusy, ProviderTimeout, ProviderUnavailable)
_NO_STREAM: Final = frozenset({a2a.UNSUPPORTED, a2a.METHOD_NOT_FOUND, "unrecognised"})

Sleep = Callable[[float], Awaitable[object]]


class TaskRequest(Struct, frozen=True, kw_only=True):
    """What is asked, and with what it leaves."""

    message: dict[str, Any]
    headers: Mapping[str, str]
    secrets: Mapping[str, Secret] = {}
    sign: Callable[[Outbound], Outbound] = lambda outbound: outbound
    currency: str = ""
    as_result: bool = False  # a skill is asked for by name
    extensions: tuple[str, ...] = ()  # the URIs of those that are used
    # The message as it leaves, with what is good for it alone.
    bind: Callable[[dict[str, Any]], dict[str, Any]] = lambda message: message


class Abandoning:
    """Asks for the end of tasks that nobody waits for any more."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def leave(self, client: A2aClient, reached: Reached, task: str) -> None:
        """Ask for the end of one, beside whoever leaves."""
        leaving = asyncio.get_running_loop().create_task(give_up(client, reached, task))
        self._running.add(leaving)
        leaving.add_done_callback(self._running.discard)


async def give_up(client: A2aClient, reached: Reached, task: str) -> None:
    """Ask for the end of a task, and take no longer than that may."""
    try:
        async with asyncio.timeout(GIVE_UP_SECONDS):
            await client.ask(reached, "CancelTask", {"id": task})
    except (CarnetError, TimeoutError):
        pass  # it ends when it ends


class TaskRun:
    """One call, from its message to its end."""

    def __init__(
        self,
        client: A2aClient,
        reached: Reached,
        request: TaskRequest,
        sink: Sink,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Give the answer to `sink`; `sleep` is where a cancellation finds who waits."""
        self._client = client
        self._reached = reached
        self._task_request = request
        self._sleep = sleep
        self._streams = reached.card.streaming
        self._subscribes = reached.card.streaming
        self._sink = sink
        self.progress = self._begin()

    def _begin(self) -> TaskProgress:
        request = self._task_request
        return TaskProgress(
            self._sink,
            currency=request.currency,
            as_result=request.as_result,
            reading=self._client.reading(self._reached),
        )

    async def begin(self) -> Ending:
        """Send the message, and follow what comes of it."""
        await self._send(self._task_request.message)
        return await self._to_end()

    async def run_on(self, resolved: Iterable[Answered]) -> Ending:
        """Go on with the task that was answered; see Law 4."""
        answers = {
            (place.question, place.name): (place, answered)
            for answered in resolved
            if (place := a2a.place_of(answered.interrupt)) is not None
        }
        *_, (last, _) = answers.values()
        if not last.task:
            return await self._call_again(list(answers.values()))
        self.progress.task, self.progress.context = last.task, last.context
        await self._look_again()
        is_refused = False  # an answer, by whoever waits
        while True:
            await self._follow()
            status = self.progress.status
            if self.progress.message is not None or status is None or status.is_over:
                return await self._to_end()
            waiting = self.progress.waiting(status)
            found = [key for key in map(_key, waiting.interrupts) if key in answers]
            if not found:
                return explained(waiting, NOT_TAKEN) if is_refused else waiting
            try:
                await self._send(await self._answer(*answers.pop(found[0])))
            except PeerRefused:
                is_refused = True
                await self._look_again()

    async def _call_again(self, answers: list[tuple[a2a.TaskPlace, Answered]]) -> Ending:
        """Make the call again with what resolves a policy part, the newest first; see Law 5."""
        while answers:
            place, answered = answers.pop()
            self.progress = self._begin()
            try:
                await self._send(await self._answer(place, answered))
            except PeerRefused:
                continue
            end = await self._to_end()
            asked = {each.state for each in end.interrupts} if type(end) is Waiting else set()
            answers = [each for each in answers if each[1].interrupt.state in asked]
            if not answers:
                return end
        self.progress = self._begin()
        return explained(await self.begin(), NOT_TAKEN)

    async def _answer(self, place: a2a.TaskPlace, answered: Answered) -> dict[str, Any]:
        asked, answer = answered.interrupt, answered.resolution
        if place.is_policy:
            return await self._resolution(place, answered)
        metadata, uris = a2a.answer_metadata(asked, place, answer)
        sent = self._task_request.message
        if NAMESPACE in sent.get("metadata", {}):  # it is a call of the same chain
            metadata = {NAMESPACE: sent["metadata"][NAMESPACE]} | metadata
        first = sent["messageId"]
        return a2a.write_message(
            a2a.answer_parts(asked, answer),
            message_id=f"{first}/{asked.id}",
            task=place.task,
            context=place.context,
            metadata=metadata,
            extensions=uris,
        )

    async def _resolution(self, place: a2a.TaskPlace, answered: Answered) -> dict[str, Any]:
        """The first message again, with what resolves a policy part; a refusal sends none."""
        asked, first = answered.interrupt, self._task_request.message
        if not answered.resolution.accepted:
            if place.task:
                await give_up(self._client, self._reached, place.task)
            raise Declined(kind=asked.kind if asked.is_known else "input")
        name = f"{first['messageId']}/{asked.id}"
        given: dict[str, Any] = {"messageId": name, "contextId": place.context}
        given |= {"taskId": place.task or None}
        metadata = resolution_metadata(first.get("metadata") or {}, asked, answered.resolution)
        uris = dict.fromkeys((*first.get("extensions", ()), POLICY_URI))
        given |= {"metadata": metadata, "extensions": list(uris)}
        return {**first, **{name: value for name, value in given.items() if value}}

    # -------------------------------------------------------------- sending

    async def _send(self, message: dict[str, Any]) -> None:
        """Send a message and read what comes, as far as it comes."""
        if self._streams:
            try:
                return await self._exchange("SendStreamingMessage", message)
            except PeerRefused as error:
                if error.facts.get("peer_code") != a2a.UNSUPPORTED:
                    raise
                self._streams = self._subscribes = False
        return await self._exchange("SendMessage", message)

    async def _exchange(self, operation: str, message: dict[str, Any]) -> None:
        client, reached, request = self._client, self._reached, self._task_request
        given = a2a.sending(self._task_request.bind(message), wait=False)
        outbound = client.outbound(
            reached,
            operation,
            given,
            headers=request.headers,
            secrets=request.secrets,
            extensions=request.extensions,
        )
        self.progress.status = None
        try:
            async with client.send(request.sign(outbound)) as answer:
                if is_stream(answer, wanted=False):
                    await self._read_stream(answer)
                else:
                    result = await client.result(reached, operation, answer)
                    await self.progress.take(a2a.read_update(result))
        except CarnetError as error:
            if not self.progress.is_asked_by(error):
                raise

    async def _read_stream(self, answer: HttpAnswer) -> None:
        """Read updates until there is an end, something to answer, or no more of them.

        Whoever breaks off after the task is known is asked for it.
        """
        await refuse(answer)
        try:
            await self._read_updates(answer)
        except _TRANSIENT:
            if self.progress.task is None:
                raise
        except CarnetError as error:
            if self.progress.task is not None and error.facts.get("by") == BY_CALLEE:
                error.facts["by"] = BY_PEER  # it was taken on, and this is what came of it
            raise

    async def _read_updates(self, answer: HttpAnswer) -> None:
        reader = a2a.UpdateReader(self._reached.interface)
        while chunk := await answer.next():
            is_long = reader.held + len(chunk) > INLINE_BYTES
            updates: Iterable[a2a.Update] = reader.feed(chunk)
            if is_long:
                updates = _until_fault(*await asyncio.to_thread(_listed, updates))
            for update in updates:
                await self.progress.take(update)
                if self.progress.is_settled:
                    return await finish(answer)
        for update in reader.close():
            await self.progress.take(update)
        return None

    # -------------------------------------------------------------- following

    async def _to_end(self) -> Ending:
        await self._follow()
        if (refusal := self.progress.refusal()) is not None:
            return refusal
        if self.progress.message is not None:
            return self.progress.policies() or await self._say(self.progress.message)
        status = self.progress.status
        if status is None:
            raise ProviderError("the task ended without an end")
        if status.is_waiting:
            return self.progress.waiting(status)
        return await self._ended(status)

    async def _follow(self) -> None:
        """Wait until the task has ended or waits itself."""
        pauses, failures = Pauses(FIRST_SECONDS), 0
        while not self.progress.is_settled:
            before = self.progress.status
            try:
                await self._go_on(pauses)
                failures = 0
            except _TRANSIENT as error:
                failures += 1
                if failures > MOST_FAILURES:
                    raise lost(error) from None
                await self._sleep(max(pauses.next(), error.retry_after or 0))
            except TaskNotFound:
                raise ProviderError("the task that it took on is not there") from None
            if self.progress.status != before:
                pauses.begin_again()

    async def _go_on(self, pauses: Pauses) -> None:
        """Read on where it can be read, else look after a pause."""
        if self.progress.task is None:
            raise ProviderError("the answer names no task")
        if self._subscribes:
            await self._subscribe()
        if not self.progress.is_settled:
            await self._sleep(pauses.next())
            await self._look()

    async def _subscribe(self) -> None:
        """Read the stream of the task; who cannot be subscribed to is asked for it instead."""
        client, reached = self._client, self._reached
        outbound = client.outbound(reached, "SubscribeToTask", {"id": self.progress.task})
        try:
            async with client.send(client.known(reached, outbound)) as answer:
                await refuse(answer)
                if is_stream(answer, wanted=False):
                    await self._read_stream(answer)
                else:  # an error of JSON-RPC is an answer like any other
                    result = await client.result(reached, "SubscribeToTask", answer)
                    await self.progress.take(a2a.read_update(result))
        except PeerRefused as error:
            self._subscribes = False
            if error.facts.get("peer_code") not in _NO_STREAM:
                raise ProviderError(f"the task cannot be followed: {error.detail}") from None

    async def _look(self) -> None:
        given = {"id": self.progress.task, "historyLength": 0}
        result = await self._client.ask(self._reached, "GetTask", given)
        await self.progress.take(a2a.read_task(result))

    async def _look_again(self) -> None:
        """Look at a task that must be there still."""
        try:
            await self._look()
        except TaskNotFound:
            raise ProviderError("the task that waited is not there any more") from None

    # -------------------------------------------------------------- ends

    async def _say(self, spoken: a2a.RemoteMessage) -> Done:
        await self.progress.tell(spoken)
        return Done()

    async def _ended(self, status: a2a.RemoteStatus) -> Ending:
        if (asked := self.progress.policies()) is not None:
            return asked
        match status.state:
            case "failed":
                raise a2a.read_failure({} if status.message is None else status.message.metadata)
            case "rejected":
                raise PeerRefused(peer_status=200, peer_code="TASK_STATE_REJECTED")
            case "canceled":
                raise ProviderError("the task was cancelled there")
        if not self.progress.has_artifacts and status.message is None and self._streams:
            with suppress(*_TRANSIENT):  # then it was all
                await self._look_again()  # what came of it may stand in the task alone
            status = self.progress.status or status
        if not self.progress.has_artifacts and status.message is not None:
            return await self._say(status.message)
        return Done()


def _listed(updates: Iterable[a2a.Update]) -> tuple[list[a2a.Update], CarnetError | None]:
    """All updates up to one that is none, and why that is."""
    found: list[a2a.Update] = []
    try:
        for update in updates:
            found.append(update)  # noqa: PERF402  those before a fault count
    except CarnetError as error:
        return found, error
    return found, None


def _until_fault(updates: list[a2a.Update], fault: CarnetError | None) -> Iterator[a2a.Update]:
    yield from updates
    if fault is not None:
        raise fault


def _key(asked: Interrupt) -> tuple[str, str] | None:
    place = a2a.place_of(asked)
    return None if place is None else (place.question, place.name)
