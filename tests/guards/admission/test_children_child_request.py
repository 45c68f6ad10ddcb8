"""What an agent asks of another in process, and what it may ask for."""

from typing import Any

import pytest

from carnet.core.call import Ask
from carnet.core.messages.events import Link, Message
from carnet.core.people.identity import CHAT, Skill
from carnet.errors import SkillNotFound
from carnet.guards.admission.child_request import child_digest, child_request
from carnet.guards.target.target import find_skill
from tests.guards.scene import target

MESSAGES = (Message("user", ("hi",)),)


def test_a_repeat_is_known_by_what_was_said_and_by_what_was_asked_for() -> None:
    asks = [
        Ask(messages=MESSAGES),
        Ask(messages=()),
        Ask(messages=MESSAGES, skill="count"),
        Ask(messages=MESSAGES, skill="count", payload={"n": 1}),
        Ask(messages=MESSAGES, skill="counts", payload={"n": 1}),
        Ask(messages=MESSAGES, body={"model": "x"}),
    ]
    digests = {child_digest("echo", child_request(ask)) for ask in asks}
    assert len(digests) == len(asks)
    assert child_request(asks[3]) == child_request(
        Ask(messages=MESSAGES, skill="count", payload={"n": 1}, stream=True)
    )


def skill(name: str) -> Skill:
    shape: dict[str, Any] = {"type": "object"}
    return Skill(id=name, name=name, description=name, input_schema=shape, output_schema=shape)


def test_an_agent_that_has_skills_alone_cannot_be_talked_to() -> None:
    count, sort = skill("count"), skill("sort")
    writer = target("writer", skills=(count, sort))
    assert find_skill(writer, Ask(messages=(), skill="sort")) is sort
    for wanted, suggestion in ((None, "count"), ("sorts", "sort"), ("xyz", None)):
        with pytest.raises(SkillNotFound) as refused:
            find_skill(writer, Ask(messages=MESSAGES, skill=wanted))
        assert refused.value.facts["suggestion"] == suggestion
    assert find_skill(target("both", skills=(count, CHAT)), Ask(messages=MESSAGES)) is CHAT


def test_an_agent_whose_skills_are_not_known_judges_for_itself() -> None:
    elsewhere = target("elsewhere", skills=())
    assert find_skill(elsewhere, Ask(messages=MESSAGES)) is None
    assert find_skill(elsewhere, Ask(messages=(), skill="any")) is None


def test_every_part_of_a_message_counts() -> None:
    plain = child_request(Ask(messages=(Message("user", ("see", "this")),)))
    assert plain == child_request(Ask(messages=(Message("user", ("see\nthis",)),)))
    linked = [
        child_request(Ask(messages=(Message("user", ("see", Link(url))),))) for url in ("a", "b")
    ]
    assert len({plain, *linked}) == 3
