"""Hooks and schedules over HTTP: made, shown, paused, begun now and deleted, by their owner."""

from typing import Any

import pytest

from carnet.testing.wait import until
from tests.gateway.triggers.scene import Owner, send
from tests.support.http import Reply
from tests.support.organisation import Organisation


def code(reply: Reply) -> tuple[int, str]:
    return reply.status, str(reply.json["error"]["code"])


@pytest.fixture(scope="module")
def owner(acme: Organisation) -> Owner:
    return Owner(acme)


def test_a_schedule_is_made_shown_with_its_next_runs_begun_now_and_deleted(owner: Owner) -> None:
    made = owner.schedule(cron="30 7 * * mon-fri", zone="Europe/Berlin", missed="skip")
    assert (made["state"], made["agent"], made["missed"]) == ("active", "echo", "skip")
    shown = owner.get("/schedules/digest").json
    assert len(shown["coming"]) == 5
    assert all("T07:30:00" in tick for tick in shown["coming"])
    assert made in owner.get("/schedules").json["schedules"]
    assert owner.post("/schedules/digest/fire").status == 202
    (fired,) = owner.ended("/schedules/digest")
    assert fired["state"] == "fired"
    assert fired["conversation"]
    paused = owner.post("/schedules/digest/pause").json
    assert (paused["state"], paused["next"]) == ("paused", None)
    resumed = owner.post("/schedules/digest/resume").json
    assert (resumed["state"], resumed["next"]) == ("active", made["next"])
    assert owner.post("/schedules/digest/delete").json == {"name": "digest", "state": "deleted"}
    for gone in (owner.get("/schedules/digest"), owner.post("/schedules/digest/delete")):
        assert code(gone) == (404, "trigger_not_found")


def test_a_hook_is_made_shown_without_its_secret_begun_now_and_deleted(owner: Owner) -> None:
    made = owner.hook("shop", template="Sold: {{ body.what }}", secret="s" * 24)
    assert made["secret"] == "s" * 24
    shown = owner.get("/hooks/shop")
    assert b"ssss" not in shown.body
    assert shown.json["address"] == f"{owner.acme.url}/hooks/{owner.name}.shop"
    listed = owner.get("/hooks")
    assert b"ssss" not in listed.body
    assert "shop" in {hook["name"] for hook in listed.json["hooks"]}
    assert owner.post("/hooks/shop/fire", {"what": "tea"}).status == 202
    assert owner.ended("/hooks/shop")[0]["state"] == "fired"
    assert code(owner.post("/hooks", {"name": "shop", "agent": "echo"})) == (409, "trigger_exists")
    assert owner.post("/hooks/shop/delete").status == 200
    assert code(owner.get("/hooks/shop")) == (404, "trigger_not_found")


@pytest.mark.parametrize(
    ("path", "asked", "field"),
    [
        ("/schedules", {"cron": "0 0 30 2 *"}, "cron"),
        ("/schedules", {"cron": "* * *"}, "cron"),
        ("/schedules", {"zone": "Nowhere/Land"}, "zone"),
        ("/schedules", {"zone": 7}, "zone"),
        ("/schedules", {"missed": "some"}, "missed"),
        ("/schedules", {"message": ""}, "message"),
        ("/schedules", {"message": "x" * 8001}, "message"),
        ("/schedules", {"name": "No Name"}, "name"),
        ("/schedules", {"person": 1}, "person"),
        ("/hooks", {"scheme": "mine"}, "scheme"),
        ("/hooks", {"template": "{{ env.HOME }}"}, "template"),
        ("/hooks", {"template": 7}, "template"),
        ("/hooks", {"secret": "short"}, "secret"),
        ("/hooks", {"secret": 7}, "secret"),
        ("/hooks", {"name": "a.b"}, "name"),
    ],
)
def test_what_is_wrong_is_told_by_its_field(
    owner: Owner, path: str, asked: dict[str, Any], field: str
) -> None:
    whole = {"cron": "@daily", "message": "Hi"} if path == "/schedules" else {}
    refused = owner.post(path, {"name": "new", "agent": "echo", **whole, **asked})
    assert code(refused) == (400, "invalid_request")
    assert refused.json["error"]["field"] == field


def test_a_secret_is_changed_for_at_most_a_week(owner: Owner) -> None:
    owner.hook("weekly")
    for hours in (-1, 169, "1", True):
        refused = owner.post("/hooks/weekly/rotate", {"hours": hours})
        assert refused.json["error"]["field"] == "hours"


def test_nobody_has_something_called_that_it_may_not_call_itself(acme: Organisation) -> None:
    narrow = Owner(acme, "triggers", "call:paid")
    asked = {"name": "x", "agent": "echo", "cron": "@daily", "message": "Hi"}
    assert code(narrow.post("/schedules", asked)) == (403, "permission_missing")
    assert code(narrow.post("/hooks", {"name": "x", "agent": "echo"})) == (
        403,
        "permission_missing",
    )
    nobody = narrow.post("/hooks", {"name": "x", "agent": "nobody"})
    assert code(nobody) == (404, "agent_not_found")
    plain = Owner(acme, "call:*")
    assert code(plain.get("/schedules")) == (403, "permission_missing")


def test_what_a_token_may_not_pay_nothing_that_it_made_pays(acme: Organisation) -> None:
    poor = Owner(acme, "triggers", "call:*", "run:read")  # without `pay`
    poor.schedule(agent="paid")
    poor.post("/schedules/digest/fire")
    (fired,) = poor.ended("/schedules/digest")
    assert (fired["state"], fired["code"]) == ("failed", "permission_missing")


def test_a_machine_has_none(acme: Organisation) -> None:
    machine = acme.new_token("a-machine", "--scope", "triggers")
    assert code(acme.get("/schedules", token=machine)) == (403, "person_required")
    assert code(acme.get("/hooks", token=machine)) == (403, "person_required")


def test_one_person_has_as_many_as_may_be(acme: Organisation) -> None:
    owner = Owner(acme)
    for n in range(50):
        owner.schedule(f"s{n}")
    asked = {"name": "more", "agent": "echo", "cron": "@daily", "message": "Hi"}
    refused = owner.post("/schedules", asked)
    assert code(refused) == (429, "too_many_triggers")
    assert refused.json["error"]["limit"] == 50


def test_who_ends_has_none_left_that_begins_anything(acme: Organisation) -> None:
    owner = Owner(acme)
    owner.schedule()
    hook = owner.hook()
    ended = acme.carnet("people", "end", owner.name).stdout
    assert "digest" in ended
    assert "orders" in ended
    assert send(hook).status in {401, 409}  # at once: it is paused
    until(lambda: code(send(hook)) == (401, "hook_refused"))  # and when it is known that she ended


def test_one_token_of_hers_lends_its_rights_to_no_other(acme: Organisation) -> None:
    """What is begun by hand runs with the token that says so, and so does a hook of its secret."""
    owner = Owner(acme)
    wide, words = owner.token, ("--scope", "triggers", "--scope", "run:read")
    owner.schedule(agent="paid")
    owner.hook(agent="paid")
    owner.token = acme.new_token(f"{owner.name}-a", "--person", owner.name, *words)
    for path in ("/schedules/digest/fire", "/hooks/orders/fire", "/hooks/orders/rotate"):
        assert code(owner.post(path, {})) == (403, "permission_missing"), path
    poor = (*words, "--scope", "call:*")  # it may call, and not pay
    owner.token = acme.new_token(f"{owner.name}-b", "--person", owner.name, *poor)
    assert owner.post("/schedules/digest/fire").status == 202
    (fired,) = owner.ended("/schedules/digest")
    assert (fired["state"], fired["code"]) == ("failed", "permission_missing")
    hook = owner.post("/hooks/orders/rotate", {}).json
    assert send(hook).status == 202
    (fired,) = owner.ended("/hooks/orders")
    assert (fired["state"], fired["code"]) == ("failed", "permission_missing")
    owner.token = wide
    owner.post("/schedules/digest/fire")
    assert owner.ended("/schedules/digest", 2)[0]["state"] == "fired"
