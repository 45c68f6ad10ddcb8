"""What has been told of the artifacts of a task, and what of them is new, as events of core.

    text → Text      data → Data, or the result of a skill      files and links → Extension(FILE)
    tool events → ToolCall and ToolResult, each once, wherever they stand

Law 1. However it comes, in updates or as a whole task after a stream broke, each piece is told
       once, in order.
Law 2. What was told is not taken back. Where an artifact is replaced by another content, that
       follows on a line of its own.
Law 3. Of what was told only a digest and a length are kept.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

from carnet.core.messages.events import (
    FILE,
    RESULT,
    Data,
    DataPart,
    Event,
    Extension,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from carnet.errors import ProviderError
from carnet.wire.dialects.a2a.client.task import MOST_ARTIFACTS, ArtifactUpdate, RemoteTask
from carnet.wire.dialects.a2a.extensions.tool_events import read_event
from carnet.wire.dialects.a2a.parts import write_part
from carnet.wire.grammar import json

MOST_BYTES: Final = 64 * 1024 * 1024  # of all artifacts together
MOST_TOOLS: Final = 10_000  # calls and results; what comes after is left out


class _Artifact:
    """What was told of one artifact: how much, and a digest of it."""

    __slots__ = ("digest", "length")

    def __init__(self) -> None:
        self.length = 0
        self.digest = blake2b(digest_size=16)

    def add(self, piece: bytes) -> None:
        self.length += len(piece)
        self.digest.update(piece)


class AnswerEvents:
    """The answer of one call, as it grows."""

    def __init__(self, *, as_result: bool = False) -> None:
        """With `as_result` an object among the data is the result of a skill."""
        self._as_result = as_result
        self._artifacts: dict[str, _Artifact] = {}
        self._speaking: str | None = None  # the artifact whose text was told last
        self._has_text = False
        self._bytes = 0
        self._tools: set[tuple[type, str]] = set()  # that were told of

    @property
    def has_artifacts(self) -> bool:
        """Whether anything came of the task."""
        return bool(self._artifacts)

    def tools(self, parts: Sequence[Part]) -> Iterator[Event]:
        """What is new of the tools that the words beside a status tell of."""
        for part in parts:
            if isinstance(part, DataPart) and (event := read_event(part.value)) is not None:
                yield from self._tool(event, len(_canonical(part)))

    def _tool(self, event: ToolCall | ToolResult, size: int) -> Iterator[Event]:
        name = (type(event), event.id)
        if name in self._tools or len(self._tools) >= MOST_TOOLS:
            return
        self._tools.add(name)
        self._count(size)
        yield event

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > MOST_BYTES:
            raise ProviderError("what comes of the task is too much")

    def task(self, task: RemoteTask) -> Iterator[Event]:
        """What is new in a whole task."""
        for artifact in task.artifacts:
            yield from self._whole(artifact.id, artifact.parts)

    def update(self, update: ArtifactUpdate) -> Iterator[Event]:
        """What is new in an update."""
        artifact = update.artifact
        if update.append:
            yield from self._add(artifact.id, self._of(artifact.id), artifact.parts)
        else:
            yield from self._whole(artifact.id, artifact.parts)

    def message(self, parts: Sequence[Part]) -> Iterator[Event]:
        """A message that is the answer itself: its texts are a line each."""
        for place, part in enumerate(parts):
            yield from self._add(f"\n{place}", _Artifact(), (part,))

    def _whole(self, name: str, parts: Sequence[Part]) -> Iterator[Event]:
        seen = self._of(name)
        if not seen.length:
            yield from self._add(name, seen, parts)
            return
        rest = _after(seen, parts)
        if rest is None:  # it is another one now
            seen = self._artifacts[name] = _Artifact()
            self._speaking = None
        yield from self._add(name, seen, parts if rest is None else rest)

    def _of(self, name: str) -> _Artifact:
        seen = self._artifacts.get(name)
        if seen is None:
            if len(self._artifacts) >= MOST_ARTIFACTS:
                raise ProviderError(f"the task has more than {MOST_ARTIFACTS} artifacts")
            seen = self._artifacts[name] = _Artifact()
        return seen

    def _add(self, name: str, seen: _Artifact, parts: Sequence[Part]) -> Iterator[Event]:
        for part in parts:
            piece = _canonical(part)
            seen.add(piece)
            self._count(len(piece))
            yield from self._event(name, part)

    def _event(self, name: str, part: Part) -> Iterator[Event]:
        if isinstance(part, str):
            if not part:
                return
            parted = self._has_text and self._speaking != name
            self._has_text, self._speaking = True, name
            yield Text(f"\n{part}" if parted else part)
        elif isinstance(part, DataPart) and (event := read_event(part.value)) is not None:
            yield from self._tool(event, 0)
        elif isinstance(part, DataPart):
            is_result = self._as_result and isinstance(part.value, dict)
            yield Extension(RESULT, part.value) if is_result else Data(part.value)
        else:
            yield Extension(FILE, write_part(part))


def _canonical(part: Part) -> bytes:
    """A part as it is digested: texts run on, everything else stands for itself."""
    if isinstance(part, str):
        return part.encode()
    return b"\x00" + json.canonical(part) + b"\x00"


def _after(seen: _Artifact, parts: Sequence[Part]) -> list[Part] | None:
    """What follows what was told; None where the parts do not begin with it."""
    digest, left = blake2b(digest_size=16), seen.length
    for place, part in enumerate(parts):
        piece = _canonical(part)
        if len(piece) < left or (len(piece) == left and not isinstance(part, str)):
            digest.update(piece)
            left -= len(piece)
            if left:
                continue
            rest: list[Part] = list(parts[place + 1 :])
        elif isinstance(part, str):
            digest.update(piece[:left])
            # A character may be cut in two only where the text is another one.
            rest = [piece[left:].decode(errors="replace"), *parts[place + 1 :]]
        else:
            return None
        return rest if digest.digest() == seen.digest.digest() else None
    return None
