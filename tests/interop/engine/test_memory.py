"""What an agent keeps for a person: read, written and approved by the loop of a real gateway.

On both stores, in the process of the gateway and in one of its own.
"""

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import pytest

from carnet.ports.memory.memory import STARTER
from tests.engine.process import EngineProcess, tool_call
from tests.faults.stores import move_to
from tests.interop.engine.test_agents import Scene
from tests.stores.support import servers
from tests.support.http import Reply, request
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation, shared_with_others

WHERE = (("sqlite", "inprocess"), ("postgres", "http"))
CONFIG = """
[agents.assistant]
kind = "engine"
system = "Read /AGENT.md for your instructions."

[models.small]
url = "{url}/v1"
retries = 0

[limits]
memory_files = 6

[engine]
tools = ["memory", "search_conversations"]
"""
SCOPES = ("call:*", "pay", "run:read", "memory:read", "memory:write")
numbers = itertools.count()


class Owner(Scene):
    """A person who has a token, and calls her agent."""

    def __init__(self, home: Organisation, model: Model, *scopes: str) -> None:
        super().__init__(home, model)
        self.name = f"person-{next(numbers)}"
        home.carnet("people", "add", self.name)
        self.token = self.new_token(*scopes or SCOPES)

    def new_token(self, *scopes: str) -> str:
        words = [word for scope in scopes for word in ("--scope", scope)]
        return self.home.new_token(f"t{next(numbers)}", "--person", self.name, *words)

    def send(
        self, method: str, path: str, body: object | None = None, token: str | None = None
    ) -> Reply:
        fields = [("authorization", f"Bearer {token or self.token}")]
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            fields.append(("content-type", "application/json"))
        return request(method, self.home.url + path, fields, data)

    def put(self, path: str, content: str, **more: Any) -> Reply:
        return self.send("PUT", self.place(path), {"content": content, **more})

    def read(self, path: str) -> str:
        return str(self.send("GET", self.place(path)).json["content"])

    @staticmethod
    def place(path: str) -> str:
        return f"/memory/assistant/{quote(path, safe='')}"

    def shown(self) -> str:
        """What the model was told that a tool gave."""
        (message,) = [
            each for each in self.model.asked[-1].body["messages"] if each["role"] == "tool"
        ]
        return str(message["content"])


@pytest.fixture(scope="module", params=WHERE, ids="-".join)
def home(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Organisation, Model]]:
    store, where = request.param
    with Model().serving() as model, shared_with_others(), ExitStack() as until_ended:
        gateway = Organisation(tmp_path_factory.mktemp("memory"), "acme.example")
        if store == "postgres":
            server: servers.Server = request.getfixturevalue("server")
            move_to(gateway, server.create())
        gateway.configure(CONFIG.format(url=model.url))
        if where == "http":
            engine = EngineProcess(gateway)
            gateway.configure(f'listen = "{engine.url}"')
            engine.start()
            until_ended.callback(engine.close)
        gateway.start()
        yield gateway, model
        assert gateway.stop() == 0


@pytest.fixture
def owner(home: tuple[Organisation, Model]) -> Owner:
    return Owner(*home)


def uses(owner: Owner, name: str, **arguments: Any) -> None:
    """Have the model call a tool, and then end."""
    owner.replies(tool_call(name, json.dumps(arguments), "tc_1"), streamed("So."))


def test_an_agent_reads_the_file_that_it_was_told_to(owner: Owner) -> None:
    uses(owner, "read_file", path="/AGENT.md")
    assert owner.ask().text == "So."
    assert owner.model.asked[0].body["messages"][0]["content"] == (
        "Read /AGENT.md for your instructions."
    )
    names = [tool["function"]["name"] for tool in owner.model.asked[0].body["tools"]]
    assert names == ["read_file", "list_files", "search_files", "write_file"]
    assert owner.shown().endswith(STARTER)
    owner.put("/finances/AGENT.md", "# Finances\nBudget goal: 100")
    uses(owner, "search_files", query="GOAL")
    owner.run += "b"
    owner.ask()
    assert owner.shown().endswith("\n/finances/AGENT.md:2: Budget goal: 100")
    uses(owner, "list_files", path="/finances")
    owner.run += "c"
    owner.ask()
    assert owner.shown().endswith("\n/finances/AGENT.md (27 bytes)")


def test_a_write_waits_for_its_person_who_sees_what_changes_and_may_change_it(
    owner: Owner,
) -> None:
    owner.put("notes.md", "one\ntwo\n")
    uses(owner, "write_file", path="/notes.md", content="one\nthree\n")
    assert owner.ask().status == 403
    (question,) = owner.questions()
    assert question["message"] == "Write /notes.md"
    assert question["arguments"] == {"path": "/notes.md", "content": "one\nthree\n"}
    assert question["preview"] == "from line 2: 8 bytes become 10\n-two\n+three"
    assert owner.read("notes.md") == "one\ntwo\n"
    edited = {"path": "notes.md", "content": "one\nfour\n"}
    assert owner.answer(question["id"], outcome="accepted", value=edited).status == 200
    assert owner.ask().text == "So."
    assert owner.read("notes.md") == "one\nfour\n"
    page = owner.send("GET", f"{owner.place('notes.md')}/versions").json
    newest, first = page["versions"]
    assert (newest["version"], newest["by"], newest["run"]) == (2, "agent", owner.run)
    assert (first["by"], first["run"], first["turn"]) == ("person", None, None)
    assert newest["turn"]


def test_a_write_that_is_denied_is_not_made(owner: Owner) -> None:
    uses(owner, "write_file", path="/AGENT.md", content="mine")
    owner.ask()
    (question,) = owner.questions()
    assert question["preview"].startswith("from line 1: ")
    owner.answer(question["id"], outcome="rejected")
    assert owner.ask().text == "So."
    assert owner.read("AGENT.md") == STARTER


def test_what_is_no_path_or_no_room_is_told_to_the_model(owner: Owner) -> None:
    for path in ("../x.md", "/etc\\passwd", "a\0", "АGENT.md"):
        uses(owner, "read_file", path=path)
        owner.run += "x"
        assert owner.ask().text == "So."
        assert "is no path" in owner.shown()


def test_a_machine_and_who_may_not_have_no_memory(home: tuple[Organisation, Model]) -> None:
    machine = Scene(*home)
    words = [word for scope in SCOPES for word in ("--scope", scope)]
    machine.token = machine.home.new_token(f"m{next(numbers)}", *words)
    machine.replies(tool_call("read_file", '{"path":"/AGENT.md"}'), streamed("So."))
    assert machine.ask().text == "So."
    assert "tools" not in machine.model.asked[0].body
    reply = machine.home.get("/memory", token=machine.token)
    assert (reply.status, reply.code) == (403, "person_required")
    reader = Owner(*home, "call:*", "memory:read")
    reader.replies(streamed("So."))
    reader.ask()
    names = [tool["function"]["name"] for tool in reader.model.asked[0].body["tools"]]
    assert names == ["read_file", "list_files", "search_files"]
    assert reader.put("a.md", "x").code == "permission_missing"


def test_a_person_reads_changes_undoes_exports_and_deletes(owner: Owner) -> None:
    assert owner.put("a.md", "one").json["version"] == 1
    assert owner.put("/a.md", "two", version=1).json["version"] == 2
    stale = owner.put("a.md", "three", version=1)
    assert (stale.status, stale.code) == (409, "memory_changed")
    assert owner.put("A.md", "x").code == "invalid_request"
    assert owner.send("GET", f"{owner.place('a.md')}?version=1").json["content"] == "one"
    assert owner.send("POST", f"{owner.place('a.md')}/undo").json["version"] == 3
    assert owner.read("a.md") == "one"
    owner.put("notes/b.md", "b needle")
    listed = owner.send("GET", "/memory/assistant").json["files"]
    assert [file["path"] for file in listed] == ["AGENT.md", "a.md", "notes/b.md"]
    whole = owner.send("GET", "/memory/assistant?full=true").json["files"]
    assert [file["content"] for file in whole[1:]] == ["one", "b needle"]
    found = owner.send("GET", "/memory/assistant?search=needle").json["hits"]
    assert found == [{"path": "notes/b.md", "line": 1, "text": "b needle"}]
    assert owner.send("GET", "/memory").json == {
        "memory": [{"agent": "assistant", "files": 2, "bytes": 11}]
    }
    assert owner.send("DELETE", owner.place("a.md")).json["deleted"] == 3
    assert owner.send("GET", owner.place("a.md")).code == "memory_file_not_found"
    assert owner.send("DELETE", "/memory/assistant").json["deleted"] == 1
    assert owner.send("GET", "/memory").json == {"memory": []}


def test_what_the_bounds_do_not_allow_is_refused(owner: Owner) -> None:
    for number in range(6):
        assert owner.put(f"{number}.md", "x").status == 200
    full = owner.put("6.md", "x")
    assert (full.status, full.code, full.json["error"]["limit"]) == (409, "memory_full", 6)
    long = owner.put("0.md", "x" * (128 * 1024 + 1))
    assert (long.status, long.code) == (409, "memory_full")
    assert owner.put("0.md", "é" * 60_000).json["bytes"] == 120_000
    nobody = owner.send("PUT", "/memory/nobody/a.md", {"content": "x"})
    assert (nobody.status, nobody.code) == (404, "agent_not_found")
    assert owner.send("GET", "/memory/nobody").code == "agent_not_found"


def test_what_was_said_before_is_searched_if_its_person_allows_it(owner: Owner) -> None:
    may = "tool:search_conversations"
    name = f"{owner.name}-said"
    owner.home.carnet("people", "add", name, "--permission", may)
    words = [word for scope in (*SCOPES, may) for word in ("--scope", scope)]
    token = owner.home.new_token(f"t-{name}", "--person", name, *words)
    owner.replies(streamed("Noted."))
    assert owner.send("POST", "/message", {"content": "a budget for apples"}, token).status == 200
    uses(owner, "search_conversations", query="apples")
    assert owner.send("POST", "/message", {"content": "how much?"}, token).status == 200
    assert "a budget for apples" in owner.shown()
    uses(owner, "search_conversations", query="apples")
    assert owner.send("POST", "/message", {"content": "how much?"}).status == 200  # she has not
    assert "apples" not in owner.shown()
