"""One owner against another: what an agent keeps for somebody is hers, by every door (R46)."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.security.support.scene import Scene, fresh, notice, query
from tests.support.http import Reply, request

CANARY = "canary-of-victoria"
KEPT = "SELECT m.path, v.version, v.data FROM memory m JOIN memory_version v ON v.memory = m.n"
DOORS: tuple[tuple[str, str, object | None], ...] = (
    ("GET", "/memory", None),
    ("GET", "/memory/echo", None),
    ("GET", "/memory/echo?full=true", None),
    ("GET", "/memory/echo?search=canary", None),
    ("GET", "/memory/echo/secret.md", None),
    ("GET", "/memory/echo/secret.md?version=1", None),
    ("GET", "/memory/echo/secret.md/versions", None),
    ("POST", "/memory/echo/secret.md/undo", None),
    ("POST", "/memory/echo/secret.md/undo?version=1", None),
    ("DELETE", "/memory/echo/secret.md?version=1", None),
    ("DELETE", "/memory/echo/secret.md", None),
    ("DELETE", "/memory/echo", None),
    ("PUT", "/memory/echo/secret.md", {"content": "mine"}),
)
ESCAPES = (
    *(
        "../secret.md",
        "..",
        "%2e%2e/secret.md",
        "/..//secret.md",
        "a/../../secret.md",
        "\\secret.md",
    ),
    *("secret.md%00", "secret.md ", "secret.md/", "%2525"),
    *("a" * 300, "/".join(["a"] * 20), "secret.md'--", "C:secret.md", "~/secret.md", "."),
)


class Owners:
    """Two people who call the same agent."""

    def __init__(self, scene: Scene) -> None:
        self.acme = scene.acme
        self.victoria, self.mallory = self.admit("victoria"), self.admit("mallory")
        notice(scene.acme)

    def admit(self, word: str) -> str:
        name = fresh(word)
        self.acme.carnet("people", "add", name)
        return self.acme.new_token(f"{name}s", "--person", name)

    def ask(self, method: str, path: str, token: str, page: object | None = None) -> Reply:
        fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
        body = None if page is None else json.dumps(page).encode()
        return request(method, self.acme.url + path, fields, body)

    def kept(self) -> list[Any]:
        return [row for row in query(self.acme, KEPT) if CANARY.encode() in row[2]]


@pytest.fixture(scope="module")
def owners(scene: Scene) -> Owners:
    made = Owners(scene)
    for text in (CANARY, f"{CANARY} again"):
        made.ask("PUT", "/memory/echo/secret.md", made.victoria, {"content": text})
    return made


def test_nobody_reads_searches_writes_undoes_exports_or_deletes_anothers(owners: Owners) -> None:
    kept = owners.kept()
    assert len(kept) == 2
    for method, path, page in DOORS:
        reply = owners.ask(method, path, owners.mallory, page)
        assert CANARY.encode() not in reply.body, path
        assert reply.status in {200, 404}, (path, reply)
    assert owners.kept() == kept
    page = owners.ask("GET", "/memory/echo/secret.md", owners.victoria).json
    assert (page["content"], page["version"]) == (f"{CANARY} again", 2)


def test_a_machine_a_stranger_and_an_operator_find_nobodys(owners: Owners) -> None:
    kept = owners.kept()
    machine = owners.acme.new_token(fresh("machine"), "--scope", "*")
    notice(owners.acme)
    for token, expected in ((machine, (403, "person_required")), ("ck_x", (401, "token_invalid"))):
        for method, path, page in DOORS:
            reply = owners.ask(method, path, token, page)
            assert (reply.status, reply.code) == expected, path
    assert owners.kept() == kept


@pytest.mark.parametrize("path", ESCAPES)
def test_no_spelling_of_a_path_leads_elsewhere(owners: Owners, path: str) -> None:
    kept = owners.kept()
    place = f"/memory/echo/{quote(path, safe='%')}"
    for method, page in (("GET", None), ("PUT", {"content": "x"}), ("DELETE", None)):
        for token in (owners.mallory, owners.victoria):
            reply = owners.ask(method, place, token, page)
            assert reply.status in {400, 404, 405, 414}, (method, reply)
            assert CANARY.encode() not in reply.body
    assert owners.kept() == kept


def test_with_a_person_her_memory_ends(scene: Scene) -> None:
    name = fresh("leaver")
    scene.acme.carnet("people", "add", name)
    token = scene.acme.new_token(f"{name}s", "--person", name)
    notice(scene.acme)
    owners = Owners(scene)
    assert (
        owners.ask("PUT", "/memory/echo/last.md", token, {"content": "left-behind"}).status == 200
    )
    ended = scene.acme.json("people", "end", name)
    assert {"kind": "memory", "name": "echo/last.md", "state": "ended"} in ended["things"]
    notice(scene.acme)
    assert owners.ask("GET", "/memory/echo/last.md", token).status == 401
    assert [row for row in query(scene.acme, KEPT) if row[2] == b"left-behind"] == []
