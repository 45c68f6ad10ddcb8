"""What the page about tasks shows works as it stands, and its numbers are the program's."""

import asyncio
import json
from typing import Any

from msgspec.structs import replace

from carnet.config import Limits
from carnet.config.limits import RetentionSettings
from carnet.config.settings import GatewaySettings
from carnet.core.call import Ask
from carnet.core.messages.events import Done, Message, Text, Usage, joined_text
from carnet.core.people.delegation import Delegation
from carnet.core.people.proof import WINDOWS
from carnet.gateway.pages import task_page
from carnet.ports.calls.tasks import StoredTask
from carnet.runtime.agents.python import Native
from carnet.runtime.tasks.progress import REST_SECONDS
from carnet.runtime.tasks.worker import MOST_LOST
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.steps import MOST_BYTES
from carnet.runtime.visit.visit import MOST_NOTE
from carnet.wire.dialects.samvad import TaskRecord
from tests.docs.test_quickstart import ROOT, blocks_of
from tests.runtime.scene import collect, make_call

PAGE = ROOT / "docs" / "tasks.md"


def test_its_agent_does_what_is_told() -> None:
    scene: dict[str, Any] = {"__name__": "tasks_page"}
    for block in blocks_of(PAGE):
        if block.language == "python":
            exec(block.text, scene)  # noqa: S102  our own page
    agent = Native(scene["importer"], Dispatching(), last_depth=3)
    call = make_call(text="https://data.example/rows")
    assert call.ask == Ask(messages=(Message("user", ("https://data.example/rows",)),))
    events = asyncio.run(collect(agent, call))
    assert joined_text(events) == "2 rows"
    assert [event for event in events if isinstance(event, Usage)] == [Usage(120, 30)]


def test_it_names_the_fields_of_a_record_and_of_a_page() -> None:
    text = PAGE.read_text()
    assert [name for name in TaskRecord.__struct_fields__ if f"| `{name}` |" not in text] == []
    [shown] = [json.loads(block.text) for block in blocks_of(PAGE) if block.language == "json"]
    done = replace(make_call().record, state="done")
    task = StoredTask(id="task-1", turn=done, sender="token:alice")
    assert list(shown) == list(task_page(task, [Text("hello"), Done()], "credits"))


def test_the_page_about_delegation_names_what_an_agent_can_read_of_one() -> None:
    text = (ROOT / "docs" / "dialects" / "delegation.md").read_text()
    fields = set(Delegation.__struct_fields__) - {"signed", "signature"}
    assert [name for name in sorted(fields) if f"`{name}`" not in text] == []


def test_its_numbers_are_those_of_the_program() -> None:
    text = PAGE.read_text()
    limits = Limits()
    assert f"| `tasks` | {limits.tasks} |" in text
    assert f"| `tasks_per_agent` | {limits.tasks_per_agent} |" in text
    assert f"| `tasks_per_sender` | {limits.tasks_per_sender} |" in text
    assert f"`[retention] task_hours` ({RetentionSettings().task_hours}, at least 1)" in text
    assert GatewaySettings().task_polling == "open"
    assert (MOST_LOST, MOST_BYTES, REST_SECONDS) == (5, 1024 * 1024, 0.5)
    assert f"up to {MOST_NOTE} characters" in text
    ours, theirs = WINDOWS["carnet"], WINDOWS["samvad"]
    assert f"{theirs.past} s back and {theirs.future} s ahead" in text
    assert f"Carnets {ours.past} and {ours.future}." in text
