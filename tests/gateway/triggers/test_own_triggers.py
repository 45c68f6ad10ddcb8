"""Triggers that begin nothing: their token has ended, or too much of their owner's is to begin."""
# ruff: noqa: S608  the texts are put together from our own words

import json
import re

import pytest

from carnet.testing.wait import until
from tests.faults.stores import rows
from tests.gateway.triggers.scene import Owner, send
from tests.gateway.triggers.test_pages import code
from tests.support.organisation import Organisation

DUE_NOW = "UPDATE schedule SET next = 1 WHERE name = '{}' AND person = ({})"
DROPPED = ("dropped", "too_many_firings")
PERSON = "SELECT n FROM person WHERE name = '{}'"


def notices(acme: Organisation, type: str, owner: Owner) -> int:
    bodies = [json.loads(bytes(row[0])) for row in rows(acme, "SELECT body FROM outbox")]
    return sum((each["type"], each["data"]["owner"]) == (type, owner.name) for each in bodies)


def informed(acme: Organisation) -> Owner:
    """Somebody with an address at which she is told."""
    owner = Owner(acme)
    address = f"https://{owner.name}.example/notices"
    acme.carnet("people", "link", owner.name, "--address", address, "--verified")
    # A token that nobody knows yet has the gateway read anew who there is.
    owner.token = acme.new_token(f"{owner.name}-then", "--person", owner.name)
    return owner


def conversations(owner: Owner) -> list[object]:
    return list(owner.get("/conversations").json["conversations"])


@pytest.mark.parametrize("how", ["token_revoked", "token_expired"])
def test_what_runs_with_a_token_that_has_ended_rests_and_its_owner_is_told_once(
    acme: Organisation, how: str
) -> None:
    owner = informed(acme)
    stays, name = owner.token, f"{owner.name}-b"
    owner.token = acme.new_token(name, "--person", owner.name)
    hook = owner.hook()
    for each in ("digest", "report"):
        owner.schedule(each)
    owner.token = stays
    if how == "token_revoked":
        acme.carnet("tokens", "revoke", name)
    else:
        rows(acme, f"UPDATE token SET expires = 1 WHERE name = '{name}'")
    until(lambda: owner.get("/schedules/digest").json["state"] == "paused")
    for shown in (owner.get("/schedules/digest").json, owner.get("/hooks").json["hooks"][0]):
        assert (shown["state"], shown["reason"]) == ("paused", how)
    assert owner.get("/schedules/digest").json["next"] is None
    assert code(owner.post("/schedules/digest/fire")) == (409, "trigger_paused")
    for event in (b"[1]", b"[2]"):
        assert code(send(hook, event)) == (409, "trigger_paused")
    rows(acme, DUE_NOW.format("digest", PERSON.format(owner.name)))
    until(lambda: notices(acme, "trigger.paused", owner) == 2)  # of the hook, and of the schedule
    assert conversations(owner) == []
    assert owner.get("/schedules/digest").json["recent"] == []
    assert owner.get("/schedules/report").json["reason"] == how  # which was not due yet


def test_one_that_rests_goes_on_with_the_token_that_lets_it(acme: Organisation) -> None:
    owner = Owner(acme)
    stays, name = owner.token, f"{owner.name}-b"
    owner.token = acme.new_token(name, "--person", owner.name)
    owner.schedule()
    acme.carnet("tokens", "revoke", name)
    narrow = ("--scope", "triggers", "--scope", "call:paid")
    owner.token = acme.new_token(f"{owner.name}-c", "--person", owner.name, *narrow)
    until(lambda: owner.get("/schedules/digest").json["state"] == "paused")
    assert code(owner.post("/schedules/digest/resume")) == (403, "permission_missing")
    owner.token = stays
    resumed = owner.post("/schedules/digest/resume").json
    assert (resumed["state"], resumed["reason"]) == ("active", None)
    assert owner.post("/schedules/digest/fire").status == 202
    assert owner.ended("/schedules/digest")[0]["state"] == "fired"


def test_a_tick_beyond_what_may_be_to_begin_is_shown_told_and_counted(acme: Organisation) -> None:
    owner = informed(acme)
    owner.schedule()
    person = PERSON.format(owner.name)
    numbered = " UNION ALL ".join(["SELECT 1 AS i", *[f"SELECT {n}" for n in range(2, 101)]])
    rows(
        acme,
        "INSERT INTO firing (key, kind, source, name, person, token, agent, content, tick, state,"
        f" due) SELECT '{owner.name}.' || i, 'webhook', 0, 'x', person, token, 'echo', '', 0,"
        f" 'due', 4000000000000000 FROM schedule, ({numbered}) numbers WHERE person = ({person})",
    )
    for count in (1, 2):
        rows(acme, DUE_NOW.format("digest", person))
        recent = owner.ended("/schedules/digest", count)
        assert [(each["state"], each["code"]) for each in recent] == [DROPPED] * count
        rows(acme, "UPDATE firing SET key = key || '.' || n WHERE state = 'dropped'")  # as another
    assert notices(acme, "trigger.dropped", owner) == 1  # of the first of several
    assert conversations(owner) == []
    token = acme.new_token(f"{owner.name}-metrics", "--scope", "metrics")
    counted = acme.get("/metrics", token=token).body.decode()
    found = re.search(r"^carnet_ticks_dropped_total (\d+)", counted, re.MULTILINE)
    assert found is not None
    assert int(found[1]) >= 2
