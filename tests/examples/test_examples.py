"""Every example answers through a real gateway."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.organisation import Organisation

EXAMPLES = Path(__file__).parents[2] / "examples"

AGENTS = {
    "countdown": "streaming:countdown",
    "researcher": "delegating:researcher",
    "critic": "delegating:critic",
    "recursive": "careful:recursive",
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    served = Organisation(tmp_path_factory.mktemp("examples"), "examples.example")
    for path in EXAMPLES.glob("*.py"):
        shutil.copy(path, served.folder)
    served.configure(
        "\n".join(
            f'[agents.{name}]\nkind = "python"\ntarget = "{target}"\n'
            for name, target in AGENTS.items()
        )
    )
    served.start()
    yield served
    assert served.stop() == 0


def test_what_a_generator_yields_is_streamed(gateway: Organisation) -> None:
    assert gateway.chat("3", "countdown").text == "3 2 1 go"
    streamed = gateway.chat("3", "countdown", stream=True).body
    assert streamed.count(b'"content"') >= 4


def test_an_agent_passes_on_what_another_says(gateway: Organisation) -> None:
    text = gateway.chat("the moon is cheese", "researcher").text
    assert text.endswith("Critic: I doubt it (Is this true? the moon is cheese)")


def test_a_recursive_agent_ends_where_the_chain_does(gateway: Organisation) -> None:
    text = gateway.chat("go", "recursive").text
    assert text.startswith("depth 0, below: depth 1")
    assert "the limit here is 4" in text


def test_every_example_is_listed_and_run() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    run = {target.partition(":")[0] for target in AGENTS.values()}
    for path in EXAMPLES.glob("*.py"):
        assert path.name in listed
        assert path.stem in run
