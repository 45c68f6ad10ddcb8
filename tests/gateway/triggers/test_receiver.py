"""Events that are sent to hooks: who is believed, what is kept, and that it begins once."""

import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from carnet.runtime.system import SystemClock
from tests.faults.stores import holds, rows
from tests.gateway.triggers.scene import BODY, Owner, send, signed
from tests.support.http import Reply, request
from tests.support.organisation import Organisation


def code(reply: Reply) -> tuple[int, str]:
    return reply.status, str(reply.json["error"]["code"])


def standard(secret: str, body: bytes, at: int, name: str = "msg_1") -> list[tuple[str, str]]:
    signature = Webhook(secret).sign(name, datetime.fromtimestamp(at, UTC), body.decode())
    return [
        ("webhook-id", name),
        ("webhook-timestamp", str(at)),
        ("webhook-signature", signature),
    ]


def test_an_event_that_is_sent_a_hundred_times_begins_one_conversation(
    acme: Organisation,
) -> None:
    owner = Owner(acme)
    hook = owner.hook(template="Order {{ body.order.id }} came.")
    replies = [send(hook) for _ in range(100)]
    assert {(reply.status, reply.body) for reply in replies} == {(202, replies[0].body)}
    (fired,) = owner.ended("/hooks/orders")
    assert (fired["state"], fired["code"]) == ("fired", None)
    other = json.dumps({"order": {"id": "o_2"}}).encode()
    assert send(hook, other).status == 202
    assert len(owner.ended("/hooks/orders", 2)) == 2


def kept_of(acme: Organisation, owner: Owner) -> list[tuple[object, ...]]:
    """What is remembered of events, and what they are to begin."""
    hers = f"(SELECT n FROM person WHERE name = '{owner.name}')"  # noqa: S608
    seen = f"SELECT event FROM hook_seen WHERE hook IN (SELECT n FROM hook WHERE person = {hers})"  # noqa: S608
    begun = f"SELECT state FROM firing WHERE person = {hers}"  # noqa: S608
    opened = f"SELECT id FROM conversation WHERE owner = 'person:' || {hers}"  # noqa: S608
    return [row for query in (seen, begun, opened) for row in rows(acme, query)]


def test_what_is_forged_stale_or_oversized_is_refused_and_nothing_is_kept(
    acme: Organisation,
) -> None:
    owner = Owner(acme)
    hook, timed = owner.hook(), owner.hook("timed", scheme="standard")
    word = f"canary{owner.name}"
    body = json.dumps({"id": word}).encode()
    forged = [
        send(hook, body, headers=[]),
        send(hook, body, headers=signed("another secret of some length", body)),
        send(hook, body + b" ", signed(hook["secret"], body)),
        send({**hook, "address": f"{acme.url}/hooks/{owner.name}.unknown"}, body),
        send({**hook, "address": f"{acme.url}/hooks/nobody.orders"}, body),
        send({**hook, "address": f"{acme.url}/hooks/orders"}, body),
        send({**hook, "address": f"{hook['address']}/{'a' * 40}"}, body),
    ]
    assert {code(reply) for reply in forged} == {(401, "hook_refused")}
    assert len({reply.body.replace(b" ", b"") for reply in forged}) == 1  # they look alike
    now = SystemClock().wall_us() // 1_000_000
    for at in (now - 900, now + 900):
        stale = send(timed, body, standard(timed["secret"], body, at, word))
        assert code(stale) == (401, "timestamp_out_of_window")
    large = json.dumps({"id": word, "a": "x" * 300_000}).encode()
    assert code(send(hook, large)) == (413, "body_too_large")
    bad = f"no JSON {word}".encode()
    assert code(send(hook, bad)) == (400, "invalid_json")
    plain = request("POST", hook["address"], signed(hook["secret"], body), body)
    assert code(plain) == (415, "media_type_unsupported")
    for name in ("orders", "timed"):
        assert owner.get(f"/hooks/{name}").json["recent"] == []
    assert kept_of(acme, owner) == []
    assert not holds(acme, word)
    assert word not in acme.log.read_text()
    fresh = send(timed, body, standard(timed["secret"], body, now))
    assert fresh.json == {"status": "accepted", "event": "msg_1"}
    assert len(owner.ended("/hooks/timed")) == 1
    assert len(kept_of(acme, owner)) == 3
    assert holds(acme, word)  # what was looked for would be found


def test_what_is_refused_for_its_form_tells_nobody_which_hooks_there_are(
    acme: Organisation,
) -> None:
    owner = Owner(acme)
    addresses = [owner.hook()["address"], f"{acme.url}/hooks/{owner.name}.unknown"]
    json_type = [("content-type", "application/json")]
    for headers, body, refusal in (
        ([], BODY, (415, "media_type_unsupported")),
        (json_type, b" " * 300_000, (413, "body_too_large")),
        (json_type, BODY, (401, "hook_refused")),
    ):
        replies = [request("POST", address, headers, body) for address in addresses]
        assert [code(reply) for reply in replies] == [refusal, refusal]
        assert len({reply.body for reply in replies}) == 1


def test_a_text_with_a_nul_is_refused_or_told_on_every_store(acme: Organisation) -> None:
    owner = Owner(acme)
    hook = owner.hook(template="{{ body.words }}")
    assert send(hook, b'{"words": "one\\u0000two"}').status == 202
    (fired,) = owner.ended("/hooks/orders")
    answer = owner.get(f"/conversations/{fired['conversation']}").json["messages"][0]
    assert answer["content"] == "You said: one\ufffdtwo"
    schedule = {"name": "digest", "agent": "echo", "cron": "@daily", "message": "one\0two"}
    made = {"name": "other", "agent": "echo", "template": "one\0two"}
    for path, asked in (("/schedules", schedule), ("/hooks", made)):
        assert code(owner.post(path, asked)) == (400, "invalid_request")
    again = owner.post(f"/conversations/{fired['conversation']}/retry", {"message": "\0"})
    assert code(again) == (404, "message_not_found")


def test_a_large_event_is_read_and_its_message_made(acme: Organisation) -> None:
    owner = Owner(acme)
    hook = owner.hook(template="{{ body.words }}" * 20)
    body = json.dumps({"words": [0.5] * 30_000}).encode()
    assert send(hook, body).status == 202
    (fired,) = owner.ended("/hooks/orders")
    assert fired["state"] == "fired"


def test_a_secret_address_is_enough_and_its_owner_alone_was_shown_it(acme: Organisation) -> None:
    owner = Owner(acme)
    hook = owner.hook(scheme="url")
    assert hook["address"].endswith(f"/hooks/{owner.name}.orders/{hook['secret']}")
    assert owner.get("/hooks/orders").json["address"].endswith("/SECRET")
    for name in ("a", "a", "b"):
        assert send(hook, headers=[("idempotency-key", name)]).status == 202
    assert len(owner.ended("/hooks/orders", 2)) == 2
    log = acme.log.read_text()
    assert hook["secret"] not in log


def test_a_sender_that_looks_whether_somebody_is_there_is_answered(acme: Organisation) -> None:
    owner = Owner(acme)
    hook = owner.hook()
    ping = send(hook, headers=[*signed(hook["secret"], BODY), ("x-github-event", "ping")])
    assert ping.status == 202
    assert owner.get("/hooks/orders").json["recent"] == []


def test_a_former_secret_is_taken_for_a_while_and_a_paused_hook_takes_nothing(
    acme: Organisation,
) -> None:
    owner = Owner(acme)
    hook = owner.hook()
    rotated = owner.post("/hooks/orders/rotate", {"hours": 1}).json
    assert rotated["secret"] != hook["secret"]
    assert send(hook, b"[1]").status == send({**rotated}, b"[2]").status == 202
    owner.post("/hooks/orders/rotate", {"hours": 0})
    assert code(send(rotated, b"[3]")) == (401, "hook_refused")
    latest = owner.post("/hooks/orders/rotate", {}).json
    assert owner.post("/hooks/orders/pause").json["state"] == "paused"
    assert code(send(latest, b"[4]")) == (409, "trigger_paused")
    assert owner.post("/hooks/orders/resume").json["state"] == "active"
    assert send(latest, b"[4]").status == 202


def test_no_more_is_kept_than_may_be_to_begin(acme: Organisation) -> None:
    owner = Owner(acme)
    hook = owner.hook()
    statement = (
        "INSERT INTO firing (key, kind, source, name, person, token, agent, content, tick, state,"
        " due) SELECT '{0}.' || i, 'webhook', 0, 'x', person, token, 'echo', '', 0,"
        " 'due', 4000000000000000 FROM hook, ({1}) numbers WHERE name = 'orders' AND person ="
        " (SELECT n FROM person WHERE name = '{0}')"
    )
    numbered = " UNION ALL ".join(["SELECT 1 AS i", *[f"SELECT {n}" for n in range(2, 101)]])
    rows(acme, statement.format(owner.name, numbered))
    refused = send(hook)
    assert code(refused) == (429, "too_many_firings")
    assert refused.headers["retry-after"] == "60"


@pytest.mark.parametrize("path", ["/hooks/x/y/z", "/hooks/"])
def test_nothing_else_is_served_below_hooks(acme: Organisation, path: str) -> None:
    assert acme.get(path).status == 404
