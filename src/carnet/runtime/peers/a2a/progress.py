"""How a task at an A2A agent goes, by what its agent has said so far.

Law 1. All of it is about one task in one context, or the other side does not tell the truth.
Law 2. What is new of the answer is told as it comes, each piece once (`AnswerEvents`).
Law 3. A policy part is no result, wherever it stands: whoever sends one has not succeeded.
Law 4. A long piece is compared beside the loop (A73).
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from carnet.core.messages.events import DataPart, Event, File, Part, Usage, Waiting
from carnet.core.messages.interrupt import Interrupt
from carnet.core.messages.output import Sink
from carnet.errors import CarnetError, ProviderError
from carnet.runtime.peers.answer_reader import INLINE_BYTES
from carnet.wire.dialects import policy
from carnet.wire.dialects.a2a import client as a2a
from carnet.wire.dialects.a2a.extensions import read_answer


class TaskProgress:
    """What is known of one call."""

    def __init__(
        self,
        sink: Sink,
        *,
        currency: str,
        as_result: bool,
        reading: a2a.PolicyReading = a2a.NOBODY,
    ) -> None:
        """Give the answer to `sink`; with `as_result` that of a skill that was asked for.

        `reading` says what is known of the agent when its policy parts are read.
        """
        self._sink = sink
        self._reading = reading
        self._policies: list[Any] = []  # parts that stood among what came of the task
        self._refusal: tuple[Interrupt, ...] = ()  # what an error asks for that came in its place
        self._currency = currency
        self._answer = a2a.AnswerEvents(as_result=as_result)
        self._metadata: dict[str, Any] = {}  # that stands beside what was said last
        self.task: str | None = None
        self.context: str | None = None
        self.status: a2a.RemoteStatus | None = None
        self.message: a2a.RemoteMessage | None = None  # an answer without a task
        self.usage: Usage | None = None

    @property
    def is_running(self) -> bool:
        """Whether the other side runs something for us, as far as we know."""
        return self.task is not None and self.status is not None and not self.status.is_over

    @property
    def is_settled(self) -> bool:
        """Whether nothing more comes by itself: it has ended, or waits."""
        status = self.status
        is_settled = status is not None and (status.is_over or status.is_waiting)
        return self.message is not None or is_settled or bool(self._refusal)

    @property
    def has_artifacts(self) -> bool:
        """Whether anything came of the task."""
        return self._answer.has_artifacts

    async def take(self, update: a2a.Update) -> None:
        """Take note of an update, and tell what is new."""
        match update:
            case a2a.RemoteMessage():
                if update.task is not None:
                    self._check(update.task, update.context)
                self.message = update
                self._note(update.metadata)
            case a2a.RemoteTask():
                self._check(update.id, update.context)
                await self._begin_status(update.status, update.metadata)
                kept = tuple([self._without_policies(each) for each in update.artifacts])
                whole = replace(update, artifacts=kept)
                parts = [part for each in kept for part in each.parts]
                await self._tell(lambda: self._answer.task(whole), parts)
            case a2a.StatusUpdate():
                self._check(update.task, update.context)
                await self._begin_status(update.status, update.metadata)
            case a2a.ArtifactUpdate():
                self._check(update.task, None)
                artifact = self._without_policies(update.artifact)
                piece = replace(update, artifact=artifact)
                await self._tell(lambda: self._answer.update(piece), artifact.parts)

    async def _begin_status(self, status: a2a.RemoteStatus, metadata: dict[str, Any]) -> None:
        """Take note of how the task goes, and tell of the tools that are told of beside it."""
        self.status = status
        self._note(metadata)
        spoken = () if status.message is None else status.message.parts
        if any(isinstance(part, DataPart) for part in spoken):
            await self._tell(lambda: self._answer.tools(spoken), spoken)

    def _without_policies(self, artifact: a2a.RemoteArtifact) -> a2a.RemoteArtifact:
        """An artifact without what is no result: the policy parts, which are kept apart."""
        if not any(isinstance(part, DataPart) for part in artifact.parts):
            return artifact
        kept: list[Part] = []
        for part in artifact.parts:
            found = a2a.policy_parts((part,), self._reading, has_succeeded=True)
            if not found:
                kept.append(part)
            elif found[0] not in self._policies and len(self._policies) < policy.MOST_INTERRUPTS:
                self._policies.append(found[0])
        return (
            artifact if len(kept) == len(artifact.parts) else replace(artifact, parts=tuple(kept))
        )

    async def tell(self, message: a2a.RemoteMessage) -> None:
        """Tell a message that is the answer itself."""
        await self._tell(lambda: self._answer.message(message.parts), message.parts)

    def waiting(self, status: a2a.RemoteStatus) -> Waiting:
        """What the task waits for; raises what nobody can answer (R43)."""
        asked = a2a.read_questions(
            status,
            self.task or "",
            self.context,
            currency=self._currency,
            metadata=self._metadata,
            reading=self._reading,
        )
        return _waiting(asked)

    def is_asked_by(self, error: CarnetError) -> bool:
        """Take note of what an error asks for by policy parts; whether it does."""
        parts = [DataPart(each) for each in error.policies]
        found = a2a.policy_parts(parts, self._reading)
        self._refusal = a2a.read_policies(
            found, {}, context=self.context, currency=self._currency, reading=self._reading
        )
        return bool(self._refusal)

    def refusal(self) -> Waiting | None:
        """What an error has asked for that came in place of an answer."""
        return _waiting(self._refusal) if self._refusal else None

    def policies(self) -> Waiting | None:
        """What an answer that has ended asks for by policy parts, and is no success for that.

        A Carnet has said beside what the task has failed with: of it counts what nobody can answer.
        """
        status = self.status
        spoken = self.message or (None if status is None else status.message)
        metadata = self._metadata if spoken is None else {**self._metadata, **spoken.metadata}
        has_succeeded = self.message is not None or (
            status is not None and status.state == "completed"
        )
        parts = list(self._policies)
        if spoken is not None:
            parts += a2a.policy_parts(spoken.parts, self._reading, has_succeeded=has_succeeded)
        asked = a2a.read_policies(
            parts, metadata, context=self.context, currency=self._currency, reading=self._reading
        )
        if asked and a2a.ERROR in metadata and policy.over_of(asked) is None:
            return None
        return _waiting(asked) if asked else None

    def _note(self, metadata: dict[str, Any]) -> None:
        """Keep what stands beside an answer: what it says to have used, and what it asks for."""
        self._metadata = metadata
        if metadata:
            self.usage = read_answer(metadata, currency=self._currency).usage or self.usage

    def _check(self, task: str, context: str | None) -> None:
        """Refuse what is about another task than ours."""
        if self.task is None:
            self.task = task
        elif task != self.task:
            raise ProviderError("the answer is about another task")
        if context is not None and self.context not in {None, context}:
            raise ProviderError("the task has moved to another context")
        self.context = self.context or context

    async def _tell(self, events: Callable[[], Iterable[Event]], parts: Sequence[Part]) -> None:
        found = await asyncio.to_thread(lambda: list(events())) if _is_long(parts) else events()
        for event in found:
            await self._sink.write(event)


def _waiting(asked: tuple[Interrupt, ...]) -> Waiting:
    """The end that asks for these; raises what nobody can answer (R43)."""
    if (over := policy.over_of(asked)) is not None:
        raise over
    return Waiting(asked)


def _is_long(parts: Sequence[Part]) -> bool:
    """Whether looking at all of it takes time; of data nobody knows."""
    size = 0
    for part in parts:
        if isinstance(part, DataPart):
            return True
        size += len(
            part if isinstance(part, str) else part.content if isinstance(part, File) else ""
        )
    return size > INLINE_BYTES
