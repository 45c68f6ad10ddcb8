"""The models that loops ask, which of them an agent's loop does, and system messages in files."""

from pathlib import Path

import pytest

from carnet.config import Settings, load
from carnet.config.engine import MOST_SYSTEM_BYTES, chosen_model, read_system
from carnet.errors import ConfigInvalid

SMALL = '[models.small]\nurl = "http://127.0.0.1:1/v1"\n'
LARGE = '[models.large]\nurl = "https://api.example/v1"\nkind = "anthropic"\nmodel = "claude-x"\n'
AGENT = '[agents.a]\nkind = "engine"\n'


def loaded(folder: Path, text: str) -> Settings:
    (folder / "carnet.toml").write_text(text)
    return load(folder / "carnet.toml", {})


def test_a_model_has_the_name_of_its_section_and_the_documented_defaults(tmp_path: Path) -> None:
    models = loaded(tmp_path, SMALL + LARGE).models
    small = models["small"]
    assert [*models] == ["small", "large"]
    assert (small.kind, small.model, small.api_key) == ("openai", None, None)
    assert (small.timeout, small.retries, small.fallbacks) == (600, 2, ())
    assert (small.window, small.max_output, small.tool_calls) == (None, None, "native")
    assert (models["large"].kind, models["large"].model) == ("anthropic", "claude-x")


def test_a_loop_asks_the_model_of_its_agent_else_that_of_the_section_else_the_only_one(
    tmp_path: Path,
) -> None:
    one = loaded(tmp_path, SMALL + AGENT)
    assert chosen_model(None, one.engine, one.models) == "small"
    two = loaded(
        tmp_path, SMALL + LARGE + '[engine]\nmodel = "large"\n' + AGENT + 'model = "small"\n'
    )
    assert chosen_model(None, two.engine, two.models) == "large"
    assert chosen_model(two.agents["a"].model, two.engine, two.models) == "small"


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        (AGENT, "agents.a.kind", "[models.NAME]"),
        (AGENT + SMALL + LARGE, "agents.a.kind", "small, large"),
        (AGENT + 'model = "smal"\n' + SMALL, "agents.a.model", "Did you mean 'small'?"),
        ('[engine]\nmodel = "x"\n', "engine.model", "[models.NAME]"),
        (SMALL + 'fallbacks = ["large"]\n', "models.small.fallbacks", "'large'"),
        (SMALL + 'fallbacks = ["small"]\n' + LARGE, "models.small.fallbacks", "'small'"),
        (LARGE + SMALL + 'fallbacks = ["large", "large"]\n', "models.small.fallbacks", "twice"),
        ('[models."a b"]\nurl = "http://127.0.0.1:1"\n', 'models."a b"', "no name"),
        ("[models.small]\n", "models.small.url", "needed"),
        (SMALL + 'tool_calls = "words"\n', "models.small.tool_calls", "one of native, schema"),
        (SMALL + "retries = 3\n[limits]\nretries = 1\n", "models.small.retries", "is above"),
        (
            SMALL + AGENT + 'system = "a"\nsystem_file = "b"\n',
            "agents.a.system_file",
            "keep one",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_by_its_key(
    tmp_path: Path, text: str, key: str, says: str
) -> None:
    with pytest.raises(ConfigInvalid) as found:
        loaded(tmp_path, text)
    assert found.value.facts["key"] == key
    assert says in found.value.safe_text


def test_a_loop_elsewhere_needs_no_model_here(tmp_path: Path) -> None:
    elsewhere = '[engine]\nlisten = "http://127.0.0.1:8701"\n'
    assert loaded(tmp_path, AGENT + elsewhere).models == {}


def test_a_system_message_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("Be brief.\n\nAlways.\n")
    assert read_system(None, "prompt.md", tmp_path, key="k") == "Be brief.\n\nAlways."
    assert read_system("Be long.", None, tmp_path, key="k") == "Be long."
    assert read_system(None, None, tmp_path, key="k") is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: no such file"),
        (b" \n", "says nothing"),
        (b"\xff", "not UTF-8"),
        (b"a\0b", "not as text"),
        (b"a" * (MOST_SYSTEM_BYTES + 1), "more than 262144 bytes"),
    ],
)
def test_a_file_that_is_no_system_message_is_refused_by_its_key(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    if content is not None:
        (tmp_path / "prompt.md").write_bytes(content)
    with pytest.raises(ConfigInvalid, match=says) as found:
        read_system(None, "prompt.md", tmp_path, key="agents.a.system_file")
    assert found.value.facts["key"] == "agents.a.system_file"
