"""What the page about skills shows works as it stands."""

from pathlib import Path
from typing import Any

from carnet.core.people.identity import CHAT
from carnet.guards.target import injection
from carnet.runtime.skills import schemas
from carnet.runtime.skills.definition import Definition
from carnet.runtime.threads import MOST_AT_ONCE
from tests.docs.test_quickstart import ROOT, blocks_of
from tests.support.organisation import Organisation

PAGE = ROOT / "docs" / "skills.md"


def test_its_snippets_make_an_agent_with_these_skills() -> None:
    scene: dict[str, Any] = {"__name__": "skills_page"}
    for block in blocks_of(PAGE):
        if block.language == "python":
            exec(block.text, scene)  # noqa: S102  our own page
    clerk = scene["clerk"]
    assert isinstance(clerk, Definition)
    names = [skill.id for skill in clerk.skills]
    shown = ["book", "sum", "add", "recite", "whoami", "translate", "relay"]
    shown.append("summarize")
    assert names == shown
    schemas.CompiledSchemas().compile("clerk", clerk.skills)
    assert clerk.declared("book").description == "Book a table."
    assert clerk.declared("add").input_schema["required"] == ["a", "b"]
    assert clerk.declared("whoami").modes == ("sync",)
    assert CHAT not in clerk.skills
    assert "what the other agent said" in scene["prompt"]


def test_the_whole_module_with_a_pydantic_model_works_by_itself(tmp_path: Path) -> None:
    (block,) = [block for block in blocks_of(PAGE) if "from pydantic import" in block.text]
    gateway = Organisation(tmp_path, "desk.example")
    gateway.configure('\n[agents.desk]\nkind = "python"\ntarget = "desk:desk"\n')
    (tmp_path / "desk.py").write_text(block.text)
    gateway.start()
    asked = {"skill": "answer", "payload": {"text": "how much?"}}
    reply = gateway.chat("", "desk", carnet=asked)
    assert reply.json["carnet"]["result"] == {"text": "HOW MUCH?"}
    asked["payload"] = {"text": 3}
    assert gateway.chat("", "desk", carnet=asked).code == "schema_invalid"
    assert gateway.stop() == 0


def test_its_numbers_are_those_of_the_program() -> None:
    text = PAGE.read_text()
    assert f"{injection.MAX_SCANNED:,} characters" in text
    assert f"{injection.INLINE:,} are read beside" in text
    assert f"{injection.INLINE_VALUES:,} values" in text
    assert f"more than {schemas.MAX_PATTERN} characters" in text
    assert f"{MOST_AT_ONCE} of them at once" in text
    assert injection.CLASSIFIER_SECONDS == 10
