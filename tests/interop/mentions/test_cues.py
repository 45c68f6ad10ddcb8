"""The cue of a chained call in the prompt of every kind of agent that has a model."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from carnet.testing.stage import Organisation, Stage
from tests.interop.a2a_extensions.conftest import send
from tests.interop.mentions.conftest import chain
from tests.support.model import Model, answered, streamed

AGENTS = """
import carnet


@carnet.agent("native")
async def native(visit):
    return await visit.model().ask(visit.text, system=visit.cue)
"""
SECTIONS = """
[agents.bare]
kind = "openai"
url = "{url}/v1"
model = "small"

[agents.instructed]
kind = "openai"
url = "{url}/v1"
model = "small"
system = "Be brief."

[agents.untold]
kind = "openai"
url = "{url}/v1"
model = "small"
system = "Be brief."
cues = false

[agents.loop]
kind = "engine"
system = "Be brief."

[agents.untold-loop]
kind = "engine"
system = "Be brief."
cues = false

[agents.native]
kind = "python"
target = "agents:native"

[models.small]
url = "{url}/v1"
retries = 0
"""
SECOND = "You are responding as hop 2 of a chain capped at 4 hops. [2 hops remaining.]"
THIRD = "You are responding as hop 3 of a chain capped at 4 hops. [1 hop remaining.]"
FINAL = (
    "You are responding as the FINAL hop (4 of 4). "
    "Synthesize a conclusion \N{EM DASH} do not invite another agent."
)


class Scene(NamedTuple):
    """A gateway, and the model of its agents."""

    acme: Organisation
    model: Model

    def prompt(self, agent: str, hop: int | None) -> str | None:
        """The system prompt that the model was given for a call at this hop."""
        self.model.asked.clear()
        metadata = None if hop is None else {"mentionable": {"agent_chain": chain(hop, 4)}}
        assert send(self.acme, agent, metadata, text="Go on.").text == "well"
        (asked,) = self.model.asked
        messages: list[dict[str, Any]] = asked.body["messages"]
        prompts = [each["content"] for each in messages if each["role"] == "system"]
        assert len(prompts) < 2
        return prompts[0] if prompts else None


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Model().serving() as model, Stage(tmp_path_factory.mktemp("cues")) as stage:
        model.reply = lambda asked: streamed("well") if asked.body.get("stream") else answered()
        config = SECTIONS.replace("{url}", model.url)
        acme = stage.organisation("acme.example", config=config, agents=AGENTS)
        acme.start()
        yield Scene(acme, model)


@pytest.mark.parametrize(("hop", "cue"), [(2, SECOND), (3, THIRD), (4, FINAL)])
def test_every_kind_of_agent_tells_its_model_the_cue_to_the_byte(
    hop: int, cue: str, scene: Scene
) -> None:
    assert scene.prompt("bare", hop) == cue
    assert scene.prompt("instructed", hop) == f"Be brief.\n\n{cue}"
    assert scene.prompt("loop", hop) == f"Be brief.\n\n{cue}"
    assert scene.prompt("native", hop) == cue


@pytest.mark.parametrize("agent", ["untold", "untold-loop"])
def test_cues_are_switched_off_for_an_agent(agent: str, scene: Scene) -> None:
    assert scene.prompt(agent, 4) == "Be brief."


def test_a_call_that_is_not_chained_has_no_cue(scene: Scene) -> None:
    assert scene.prompt("bare", None) is None
    assert scene.prompt("native", None) is None
    for agent in ("instructed", "loop"):
        assert scene.prompt(agent, None) == "Be brief."
