"""The cue and the cap at a true model, offline: what it wishes at the final hop is refused.

Its words are its own: that the cue is among what it has read, and who is called, are asserted.
"""

import json
from collections.abc import Iterator

import pytest

from carnet.testing.stage import Organisation, Stage
from carnet.wire.dialects.a2a.extensions.own import USAGE_URI
from tests.engine.schema.test_tools_offline import LocalModel
from tests.interop.a2a_extensions.conftest import send
from tests.interop.mentions.conftest import World, chain

pytestmark = pytest.mark.timeout(600)  # it computes, on whatever machine this is

AGENTS = """
import carnet


@carnet.agent("follows")
async def follows(visit):
    model = visit.model()
    words = await model.ask("Whom should I ask?", system=visit.cue, max_tokens=8)
    yield await visit.peer("sdk").ask(f"say {visit.text}: {words}")
"""
SECTIONS = """
[agents.follows]
kind = "python"
target = "agents:follows"

[agents.sdk]
kind = "a2a"
url = "{sdk}/rpc"

[agents.told]
kind = "openai"
url = "{model}"
model = "smollm2"
timeout = 300
system = "Be brief."

[agents.untold]
kind = "openai"
url = "{model}"
model = "smollm2"
timeout = 300
system = "Be brief."
cues = false

[models.small]
url = "{model}"
"""


@pytest.fixture(scope="module")
def acme(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    model = LocalModel(tmp_path_factory.mktemp("model"))
    try:
        url = model.wait()["url"]
        with Stage(tmp_path_factory.mktemp("true")) as stage:
            config = SECTIONS.replace("{model}", url).replace("{sdk}", world.sdk.url)
            made = stage.organisation("true.example", config=config, agents=AGENTS)
            made.start()
            yield made
    finally:
        model.process.kill()


def at(hop: int) -> dict[str, object]:
    return {"mentionable": {"agent_chain": chain(hop, 4)}}


def test_a_true_model_reads_the_cue(acme: Organisation) -> None:
    """It counts what it reads: the same question is longer by the cue, and by more of it."""
    read = {
        (agent, hop): send(acme, agent, at(hop), text="Say yes.").metadata[USAGE_URI]["tokensIn"]
        for agent in ("told", "untold")
        for hop in (2, 4)
    }
    assert read["untold", 2] == read["untold", 4]
    assert read["told", 2] > read["untold", 2] + 10
    assert read["told", 4] > read["untold", 4] + 10


def test_what_it_wishes_is_called_below_the_cap_and_refused_at_the_final_hop(
    acme: Organisation, world: World
) -> None:
    answered = send(acme, "follows", at(3), text="below")
    assert answered.text.startswith("you said below: ")
    below = [each for each in world.sdk.asked() if each["text"].startswith("say below: ")]
    assert [each["message"]["metadata"]["mentionable"] for each in below] == [
        {"agent_chain": chain(4, 4, is_final=True)}
    ]
    refused = send(acme, "follows", at(4), text="final")
    assert "chain_final" in json.dumps(refused.body)
    assert [each for each in world.sdk.asked() if each["text"].startswith("say final: ")] == []
