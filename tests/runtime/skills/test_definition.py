"""Agents and skills as people declare them."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import carnet
from carnet.assembly.agents.functions import load_agent, load_classifier
from carnet.core.people.identity import CHAT
from carnet.errors import ConfigInvalid
from carnet.runtime.skills.definition import Definition, define, skills_of
from carnet.runtime.visit.visit import Visit


@dataclasses.dataclass
class Text:
    """What goes in."""

    text: str
    most: int = 100


class Summary(msgspec.Struct):
    """What comes out."""

    words: int


async def chat(visit: Visit) -> str:
    return visit.text


def test_a_function_becomes_an_agent_that_chats() -> None:
    echo = carnet.agent("echo")(chat)
    assert isinstance(echo, Definition)
    assert (echo.name, echo.chat, echo.skills) == ("echo", chat, (CHAT,))
    assert skills_of(echo) == skills_of(chat) == (CHAT,)


def test_a_skill_is_described_by_its_annotations_and_its_docstring() -> None:
    writer = carnet.agent("writer")

    @writer.skill("summarise")
    async def summarise(given: Text) -> Summary:
        """Say it in fewer words.

        Nobody reads this on a card.
        """
        return Summary(len(given.text.split()))

    [skill] = writer.skills
    assert (skill.id, skill.name) == ("summarise", "summarise")
    assert skill.description == "Say it in fewer words."
    assert skill.modes == ("sync", "async", "stream")
    assert (skill.trust, skill.allowed_peers) == (None, None)
    assert skill.input_schema["required"] == ["text"]
    assert skill.output_schema["properties"] == {"words": {"type": "integer"}}
    assert summarise.__name__ == "summarise"  # still the function that was written


def test_what_is_given_counts_more_than_what_is_annotated() -> None:
    writer = carnet.agent("writer")
    schema = {"type": "object", "maxProperties": 3}

    @writer.skill(
        "guarded",
        input=schema,
        output=Summary,
        modes=["sync", "sync"],
        trust="trusted-peers",
        allowed_peers=["agent://Globex.example", "initech.example"],
        name="Guarded",
        description="For friends.",
    )
    def guarded(given: Text) -> str:
        raise NotImplementedError

    [skill] = writer.skills
    assert skill.input_schema is schema
    assert skill.output_schema["title"] == "Summary"
    assert (skill.name, skill.description, skill.modes) == ("Guarded", "For friends.", ("sync",))
    assert skill.trust == "trusted-peers"
    assert skill.allowed_peers == ("agent://globex.example", "agent://initech.example")


def test_an_agent_with_both_shows_both_unless_it_declares_chat_itself() -> None:
    both = carnet.agent("both")(chat)
    both.skill("count")(nothing)
    assert [skill.id for skill in both.skills] == ["chat", "count"]
    assert both.skills[0] is CHAT
    both.skill("chat")(nothing)
    assert [skill.id for skill in both.skills] == ["count", "chat"]
    assert both.skills[1] is not CHAT


def test_one_skill_alone_is_an_agent() -> None:
    @carnet.skill("count", trust="public")
    def count(text: str) -> int:
        raise NotImplementedError

    assert isinstance(count, Definition)
    [skill] = count.skills
    assert (skill.id, skill.trust, skill.description) == ("count", "public", "count")
    assert skill.input_schema["properties"] == {"text": {"type": "string"}}
    assert skill.output_schema["properties"] == {"result": {"type": "integer"}}


async def test_a_decorated_function_can_still_be_called_with_a_visit() -> None:
    class Visiting(Visit):
        def __init__(self) -> None:
            pass

        @property
        def text(self) -> str:
            return "hi"

    assert await carnet.agent("echo")(chat)(Visiting()) == "hi"
    with pytest.raises(TypeError, match="agent 'mute' has no chat function"):
        carnet.agent("mute")(Visiting())


def nothing() -> None: ...


def with_rest(*args: str) -> None: ...
def with_place(text: str, /) -> None: ...
def with_more(**more: str) -> None: ...
def unresolved(given: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def two(a: int, b: int) -> None: ...
def plain(given: dict[str, Any]) -> None: ...


@pytest.mark.parametrize(
    ("function", "more", "message"),
    [
        (with_rest, {}, "'with_rest' must name its parameters"),
        (with_place, {}, "'with_place' must name its parameters"),
        (with_more, {}, "'with_more' must name its parameters"),
        (unresolved, {}, "the annotations of 'unresolved' cannot be read"),
        (two, {"input": Text}, "'two' takes several inputs"),
        (plain, {"input": int}, "the input of 'plain' is no object"),
        (plain, {"modes": []}, "modes are some of sync, async, stream"),
        (plain, {"modes": "sync"}, "modes are some of sync, async, stream"),
        (plain, {"modes": ["fast"]}, "modes are some of sync, async, stream"),
        (plain, {"trust": "all"}, "skill 's': trust is one of public, authenticated, trusted-"),
        (plain, {"allowed_peers": "globex.example"}, r"allowed_peers is a list, such as \['globex"),
        (plain, {"trust": "public", "allowed_peers": []}, "skill 's': allowed_peers makes it 'tru"),
        (plain, {"name": "x" * 101}, "at most 100 characters"),
        (plain, {"description": "x" * 501}, "at most 500 characters"),
    ],
)
def test_what_is_wrong_with_a_skill_is_told_where_it_is_written(
    function: Any, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        carnet.agent("writer").skill("s", **more)(function)


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b", "-a", "a" * 65, "a\n", "ä"])
def test_a_name_that_no_card_could_show_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="1 to 64 letters"):
        carnet.agent("writer").skill(name)(plain)


@pytest.mark.parametrize("decorator", [carnet.agent, carnet.skill])
def test_a_decorator_without_a_name_says_so(decorator: Any) -> None:
    with pytest.raises(TypeError, match="give it a name"):
        decorator(chat)


def test_a_skill_without_a_name_says_so_too() -> None:
    with pytest.raises(TypeError, match=r"give the skill a name: @writer\.skill\('name'\)"):
        carnet.agent("writer").skill(plain)  # type: ignore[arg-type]


def test_a_skill_is_found_by_its_tags_and_examples() -> None:
    clerk = carnet.agent("clerk")
    clerk.skill("book", tags=["tables"], examples=["A table for two"])(lambda text: text)
    assert clerk.declared("book").tags == ("tables",)
    assert clerk.declared("book").examples == ("A table for two",)
    wrongs: list[dict[str, Any]] = [{"tags": "x"}, {"tags": [""]}, {"examples": ["x" * 501]}]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="skill 'other'"):
            clerk.skill("other", **wrong)(lambda text: text)


def test_naming_peers_closes_a_skill_to_all_others() -> None:
    writer = carnet.agent("writer")
    writer.skill("s", allowed_peers=["globex.example"])(plain)
    [skill] = writer.skills
    assert (skill.trust, skill.allowed_peers) == ("trusted-peers", ("agent://globex.example",))


def test_annotations_need_not_be_resolved_where_the_shapes_are_given() -> None:
    async def later(v: "carnet.Visit", given: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    writer = carnet.agent("writer")
    writer.skill("s", input=Text, output=Summary)(later)
    writer.skill("t", input={"title": "Whole"}, output=Summary)(later)
    assert [skill.input_schema["title"] for skill in writer.skills] == ["Text", "Whole"]


def test_two_of_a_kind_are_refused() -> None:
    writer = carnet.agent("writer")(chat)
    with pytest.raises(TypeError, match="a chat function already"):
        writer(chat)
    writer.skill("s")(plain)
    with pytest.raises(TypeError, match="a skill 's' already"):
        writer.skill("s")
    with pytest.raises(TypeError, match="agent 'plain' takes no parameter: write it as 'async def"):
        carnet.agent("plain")(nothing)  # type: ignore[arg-type]  # which is what it is told


def test_a_function_that_streams_is_described_by_what_is_given_alone() -> None:
    @carnet.skill("tell")
    async def tell() -> AsyncIterator[str]:
        """Tell a story."""
        yield "once"

    assert tell.skills[0].output_schema == tell.skills[0].input_schema == {"type": "object"}


def test_what_a_target_may_be() -> None:
    writer = carnet.agent("writer")
    function = writer.skill("s")(plain)
    assert define(writer, "m:writer") is writer
    assert define(chat, "m:chat").chat is chat
    assert define(plain_function, "m:plain").chat is plain_function
    for found, message in [
        (carnet.agent("empty"), "'m:x' has neither a chat function nor a skill"),
        (function, "'m:x' is a skill of agent 'writer': name the agent, not the skill"),
        (lambda: None, "'m:x' takes no parameter: write it as 'async def name"),
        (lambda a, b: a + b, "'m:x' takes more than one parameter: write it as 'async def name"),
        (Text, "'m:x' is not an agent: write it as 'async def name"),
        (3, "'m:x' is not an agent"),
    ]:
        with pytest.raises(ConfigInvalid, match=message):
            define(found, "m:x")


def plain_function(visit: Visit) -> str:
    return visit.text


MODULE = """
import carnet
lone = carnet.skill("lone")(lambda text: {})
async def chat(visit): ...
def suspicious(payload): return True
number = 3
"""


def test_agents_and_classifiers_are_found_beside_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "skills_found_here.py").write_text(MODULE)
    (tmp_path / "skills_broken_here.py").write_text(
        "import carnet\ncarnet.skill('a b')(lambda: {})"
    )
    loaded = load_agent("skills_found_here:lone", tmp_path, key="agents.lone.target")
    assert [skill.id for skill in loaded.skills] == ["lone"]
    assert load_agent("skills_found_here:chat", tmp_path, key="k").skills == (CHAT,)
    classifier = load_classifier("skills_found_here:suspicious", tmp_path, key="k")
    assert classifier({}) is True
    with pytest.raises(ConfigInvalid, match="is not a function"):
        load_classifier("skills_found_here:number", tmp_path, key="k")
    with pytest.raises(ConfigInvalid, match="has no 'nobody'"):
        load_agent("skills_found_here:nobody", tmp_path, key="k")
    with pytest.raises(ConfigInvalid, match="TypeError: skill 'a b': a skill's id is 1 to 64"):
        load_agent("skills_broken_here:x", tmp_path, key="k")
    with pytest.raises(ConfigInvalid, match=r"failed in line 2 of skills_broken_here\.py: "):
        load_agent("skills_broken_here:x", tmp_path, key="k")
