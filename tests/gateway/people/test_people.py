"""People over HTTP: who they are, how they come, and that all of theirs goes with them."""

import json
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.support.http import Reply, request
from tests.support.organisation import Organisation


def post(acme: Organisation, path: str, token: str, page: Any = None) -> Reply:
    fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    return request("POST", acme.url + path, fields, json.dumps(page).encode() if page else b"")


@pytest.fixture(scope="session")
def admin(acme: Organisation) -> str:
    return acme.new_token("people-admin", "--scope", "*")


def test_a_person_is_added_listed_shown_and_ended(acme: Organisation, admin: str) -> None:
    asked = {
        "name": "alice",
        "display": "Alice",
        "number": 41,
        "roles": ["viewer"],
        "permissions": ["metrics"],
        "addresses": ["mailto:a@acme.example"],
    }
    added = post(acme, "/people", admin, {**asked, "account": "sales"})
    assert added.status == 201
    assert added.json["handle"] == "@alice@acme.example"
    assert (added.json["may"], added.json["account"]) == (["metrics", "run:read"], "sales")
    shown = acme.get("/people/alice", token=admin)
    assert shown.json == {**added.json, "things": []}
    listed = acme.get("/people", token=admin).json
    assert added.json in listed["people"]
    assert {"owner", "alice"} <= {person["name"] for person in listed["people"]}
    first = acme.get("/people?limit=1", token=admin).json
    assert (first["people"][0]["name"], first["next"]) == ("alice", "alice")
    rest = acme.get("/people?after=alice", token=admin).json["people"]
    assert "alice" not in {person["name"] for person in rest}
    for taken in ({"name": "bert", "number": 41}, {"name": "alice"}):
        again = post(acme, "/people", admin, taken)
        assert (again.status, again.json["error"]["code"]) == (409, "person_exists")
    like = post(acme, "/people", admin, {"name": "a1ice"})
    assert (like.status, like.json["error"]["code"]) == (400, "invalid_request")
    ended = post(acme, "/people/alice/end", admin)
    assert ended.status == 200
    assert ended.json["things"] == [
        {"kind": "address", "name": "mailto:a@acme.example", "state": "ended"}
    ]
    for gone in (post(acme, "/people/alice/end", admin), acme.get("/people/alice", token=admin)):
        assert (gone.status, gone.json["error"]["code"]) == (404, "person_not_found")
    assert "alice" not in {p["name"] for p in acme.get("/people", token=admin).json["people"]}
    everybody = acme.get("/people?all=true", token=admin).json["people"]
    assert "ended" in {person["state"] for person in everybody if person["name"] == "alice"}


@pytest.mark.parametrize(
    ("page", "field"),
    [
        ({}, "name"),
        ({"name": 7}, "name"),
        ({"name": "Alice"}, "name"),
        ({"name": "peer:b.example"}, "name"),
        ({"name": "paid"}, "name"),  # an agent
        ({"name": "0wner"}, "name"),
        ({"name": "owner-"}, "name"),
        ({"name": "bob", "surname": "x"}, "surname"),
        ({"name": "bob", "roles": ["king"]}, "roles"),
        ({"name": "bob", "roles": "admin"}, "roles"),
        ({"name": "bob", "roles": [7]}, "roles"),
        ({"name": "bob", "permissions": ["nothing:rm"]}, "permissions"),
        ({"name": "bob", "permissions": ["x"] * 65}, "permissions"),
        ({"name": "bob", "number": "1"}, "number"),
        ({"name": "bob", "number": True}, "number"),
        ({"name": "bob", "number": 0}, "number"),
        ({"name": "bob", "addresses": ["@echo@acme.example"]}, "addresses"),
        ({"name": "bob", "account": "agent:echo"}, "account"),
        ({"name": "bob", "display": "\x1b[31m"}, "display"),
    ],
)
def test_what_is_no_person_is_refused_by_its_field(
    acme: Organisation, admin: str, page: dict[str, Any], field: str
) -> None:
    reply = post(acme, "/people", admin, page or {"display": "x"})
    assert reply.status == 400
    assert (reply.json["error"]["code"], reply.json["error"]["field"]) == ("invalid_request", field)


def test_the_token_of_a_person_ends_at_once_where_she_is_ended(
    acme: Organisation, admin: str
) -> None:
    assert post(acme, "/people", admin, {"name": "carol"}).status == 201
    token = acme.new_token("carols", "--person", "carol")
    assert acme.chat("hi", "paid", token=token).status == 200
    ended = post(acme, "/people/carol/end", admin)
    assert [(t["kind"], t["name"]) for t in ended.json["things"]] == [("token", "carols")]
    assert acme.chat("hi", "paid", token=token).status == 401
    assert acme.get("/runs", token=token).status == 401


def test_what_runs_for_a_person_is_cancelled_when_she_ends(acme: Organisation, admin: str) -> None:
    assert post(acme, "/people", admin, {"name": "dora"}).status == 201
    token = acme.new_token("doras", "--person", "dora")
    task = acme.json("call", "slow", "60", "--task", "--no-wait", "--as", token)["taskId"]
    until(
        lambda: acme.get(f"/tasks/{task}", token=admin).json["status"],
        lambda state: state == "running",
    )
    things = post(acme, "/people/dora/end", admin).json["things"]
    assert [thing["kind"] for thing in things] == ["token", "turn"]
    page = until(
        lambda: acme.get(f"/tasks/{task}", token=admin).json,
        lambda found: found["status"] not in {"queued", "running"},
    )
    assert page["error"]["code"] == "cancelled"


def test_nobody_grants_what_it_has_not(acme: Organisation) -> None:
    narrow = acme.new_token("narrow-admin", "--scope", "admin:people", "--scope", "run:read")
    reply = post(acme, "/people", narrow, {"name": "erin", "roles": ["operator"]})
    assert (reply.status, reply.json["error"]["code"]) == (403, "permission_missing")
    assert post(acme, "/people", narrow, {"name": "erin", "roles": ["viewer"]}).status == 201


def test_the_routes_of_people_are_described_with_what_they_take(acme: Organisation) -> None:
    api = acme.get("/openapi.json").json
    assert set(api["paths"]["/people"]) == {"get", "post"}
    assert set(api["paths"]["/people/{person}"]) == {"get", "parameters"}
    assert set(api["paths"]["/people/{person}/end"]) == {"post", "parameters"}
    assert api["components"]["schemas"]["NewPerson"]["required"] == ["name"]


def test_what_a_person_may_do_is_changed_and_her_tokens_with_her(
    acme: Organisation, admin: str
) -> None:
    asked = {"name": "rosa", "roles": ["operator"], "permissions": ["approve"]}
    assert post(acme, "/people", admin, asked).status == 201
    hers = acme.new_token("rosas", "--person", "rosa", "--scope", "run:read", "--scope", "metrics")
    until(lambda: acme.get("/metrics", token=hers).status == 200)
    viewer = post(acme, "/people/rosa/roles", admin, {"roles": ["viewer"]})
    assert (viewer.status, viewer.json["roles"]) == (200, ["viewer"])
    assert viewer.json["may"] == ["approve", "run:read"]
    refused = acme.get("/metrics", token=hers)
    assert (refused.status, refused.json["error"]["code"]) == (403, "permission_missing")
    bare = post(acme, "/people/rosa/roles", admin, {"roles": ["operator"], "permissions": []})
    assert (bare.json["permissions"], "metrics" in bare.json["may"]) == ([], True)
    until(lambda: acme.get("/metrics", token=hers).status == 200)
    pages: list[dict[str, Any]] = [{"permissions": []}, {"roles": []}, {"roles": ["king"]}]
    for wrong in (*pages, {"roles": ["viewer"], "name": "x"}):
        reply = post(acme, "/people/rosa/roles", admin, wrong)
        assert (reply.status, reply.json["error"]["code"]) == (400, "invalid_request"), wrong
    nobody = post(acme, "/people/nobody-such/roles", admin, {"roles": ["viewer"]})
    assert (nobody.status, nobody.json["error"]["code"]) == (404, "person_not_found")


def test_nobody_gives_by_a_role_what_it_has_not(acme: Organisation) -> None:
    acme.carnet("people", "add", "rolf", "--role", "viewer")
    narrow = acme.new_token("of-roles", "--scope", "admin:people", "--scope", "run:read")
    refused = post(acme, "/people/rolf/roles", narrow, {"roles": ["admin"]})
    assert (refused.status, refused.json["error"]["code"]) == (403, "permission_missing")
    shown = acme.get("/people/rolf", token=narrow).json
    assert shown["roles"] == ["viewer"]
    assert post(acme, "/people/rolf/roles", narrow, {"roles": ["viewer"]}).status == 200
