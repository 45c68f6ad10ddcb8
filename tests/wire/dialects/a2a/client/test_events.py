"""What of the artifacts of a task is new, as events."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import (
    FILE,
    RESULT,
    Data,
    DataPart,
    Event,
    Extension,
    File,
    Link,
    Part,
    Text,
    ToolCall,
    ToolResult,
    joined_text,
)
from carnet.errors import ProviderError
from carnet.wire.dialects.a2a.client import (
    AnswerEvents,
    ArtifactUpdate,
    RemoteArtifact,
    RemoteStatus,
    RemoteTask,
)
from carnet.wire.dialects.a2a.client import events as module
from carnet.wire.dialects.a2a.client.task import MOST_ARTIFACTS

PARTS: st.SearchStrategy[Part] = st.one_of(
    st.text(max_size=6), st.builds(DataPart, st.integers(0, 3)), st.just(Link("u:1"))
)


def task(**artifacts: tuple[Part, ...]) -> RemoteTask:
    pieces = tuple(RemoteArtifact(id=name, parts=parts) for name, parts in artifacts.items())
    status = RemoteStatus(state="working")
    return RemoteTask(id="t", context=None, status=status, artifacts=pieces)


def update(*parts: Part, name: str = "a", append: bool = False) -> ArtifactUpdate:
    artifact = RemoteArtifact(id=name, parts=parts)
    return ArtifactUpdate(task="t", artifact=artifact, append=append)


def merged(parts: list[Part]) -> list[Part]:
    """The same with texts that follow one another in one part."""
    found: list[Part] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return found


def spoken(events: list[Event]) -> list[Any]:
    """Events with texts that follow one another in one."""
    found: list[Any] = []
    for event in events:
        if isinstance(event, Text) and found and isinstance(found[-1], str):
            found[-1] += event.text
        else:
            found.append(event.text if isinstance(event, Text) else event)
    return found


@given(parts=st.lists(PARTS, max_size=8), cut=st.integers(0, 8), merge=st.booleans())
def test_after_a_break_each_piece_is_told_once_however_it_is_cut(
    parts: list[Part], cut: int, *, merge: bool
) -> None:
    """A snapshot may have put together what came in pieces."""
    once = AnswerEvents()
    expected = spoken(list(once.task(task(a=tuple(parts)))))
    broken = AnswerEvents()
    events: list[Event] = []
    for part in parts[:cut]:
        events += broken.update(update(part, append=True))
    whole = merged(parts) if merge else parts
    events += broken.task(task(a=tuple(whole)))
    assert spoken(events) == expected
    assert list(broken.task(task(a=tuple(parts)))) == []


def test_every_kind_of_part_has_its_event() -> None:
    parts = ("a", "", DataPart({"n": 1}), File("AA==", "f", "x/y"), Link("u:1"))
    events = AnswerEvents()
    assert not events.has_artifacts
    assert list(events.task(task(a=parts))) == [
        Text("a"),
        Data({"n": 1}),
        Extension(FILE, {"raw": "AA==", "filename": "f", "mediaType": "x/y"}),
        Extension(FILE, {"url": "u:1"}),
    ]
    assert events.has_artifacts


def test_the_result_of_a_skill_is_an_object() -> None:
    found = list(AnswerEvents(as_result=True).task(task(a=(DataPart({"n": 1}), DataPart(2)))))
    assert found == [Extension(RESULT, {"n": 1}), Data(2)]


def test_texts_of_two_artifacts_and_of_a_message_are_a_line_each() -> None:
    two = AnswerEvents().task(task(a=("x", "y"), b=("z",)))
    assert joined_text(list(two)) == "xy\nz"
    assert joined_text(list(AnswerEvents().message(("x", "y")))) == "x\ny"


@pytest.mark.parametrize(
    "other",
    [("World",), ("Hel",), (DataPart(1), "Hello"), ("Help",), (DataPart("a long one"),)],
)
def test_an_artifact_that_is_replaced_follows_what_was_told(other: tuple[Part, ...]) -> None:
    events = AnswerEvents()
    assert joined_text(list(events.update(update("Hello")))) == "Hello"
    again = list(events.update(update(*other)))
    texts = [part for part in other if isinstance(part, str)]
    assert joined_text(again) == "".join(f"\n{text}" for text in texts)
    assert list(events.task(task(a=other))) == []


def test_half_of_a_character_is_never_told() -> None:
    events = AnswerEvents()
    list(events.update(update("a")))
    assert joined_text(list(events.task(task(a=("ä",))))) == "\nä"


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    events = AnswerEvents()
    for number in range(MOST_ARTIFACTS):
        list(events.update(update("x", name=f"{number}")))
    with pytest.raises(ProviderError):
        list(events.update(update("x", name="one more")))
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    endless = AnswerEvents()
    list(endless.update(update("x" * 10, append=True)))
    with pytest.raises(ProviderError):
        list(endless.update(update("x", append=True)))


CALLED = {"type": "tool-call", "toolCallId": "c1", "toolName": "search", "input": {"q": 1}}
GAVE = {"type": "tool-result", "toolCallId": "c1", "output": 3}


def test_tools_are_told_once_wherever_they_stand() -> None:
    events = AnswerEvents()
    call = ToolCall("c1", "search", '{"q":1}', is_own=True)
    assert list(events.tools(("words", DataPart(CALLED), DataPart({"n": 1})))) == [call]
    assert list(events.task(task(a=(DataPart(CALLED), DataPart(GAVE), "x")))) == [
        ToolResult("c1", "ok", 3),
        Text("x"),
    ]
    assert list(events.message((DataPart(GAVE),))) == []


def test_tools_are_bounded_in_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TOOLS", 1)
    events = AnswerEvents()
    assert len(list(events.tools((DataPart(CALLED), DataPart(GAVE))))) == 1
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    with pytest.raises(ProviderError):
        list(AnswerEvents().tools((DataPart(CALLED),)))
