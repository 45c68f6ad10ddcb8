"""Tenants: the ids of another are worth nothing, to read, to stop, to reuse or to claim first."""

from urllib.parse import quote

import pytest

from carnet.testing.wait import until
from tests.security.support.scene import (
    DEPTH,
    PARENT,
    RUN,
    TURN,
    Running,
    Scene,
    bills,
    forwarding,
    fresh,
    ids,
    pages_of,
    post,
    query,
    runs_of,
    seen,
    undated,
)
from tests.support.http import Reply, chat_body, request, stream
from tests.support.organisation import Organisation

OTHERS = ["mallory", "bridge", "peer"]


def attempts(gateway: Organisation, run: str, token: str) -> list[Reply]:
    """Everything one can try with the id of a run."""
    path = f"/runs/{quote(run, safe='')}"
    fields = [("authorization", f"Bearer {token}")]
    return [
        gateway.get(path, token=token),
        gateway.get(f"{path}/events", token=token),
        gateway.get(f"{path}/events", token=token, headers=[("last-event-id", "1.0")]),
        post(gateway, f"{path}/cancel", token),
        request("HEAD", gateway.url + path, fields),
        request("HEAD", f"{gateway.url}{path}/events", fields),
    ]


# ---------------------------------------------------------------------- reading and stopping


@pytest.mark.parametrize("who", OTHERS)
def test_a_run_of_another_looks_like_one_that_is_not_there(scene: Scene, who: str) -> None:
    """A41, A67: to read, to follow, to cancel; byte for byte the answer for an unknown id."""
    run, token = fresh("alices"), getattr(scene, who)
    assert scene.acme.chat("of alice", "paid", token=scene.alice, headers=ids(run)).status == 200
    theirs = undated(attempts(scene.acme, run, token))
    assert theirs == undated(attempts(scene.acme, fresh("nobodys"), token))
    assert {status for status, _, _ in theirs} == {404}
    assert run not in scene.acme.get("/runs", token=token).body.decode()


@pytest.mark.parametrize("who", OTHERS)
def test_a_running_turn_of_another_is_not_there_either(scene: Scene, who: str) -> None:
    """A41: and it runs on."""
    run, token = fresh("running"), getattr(scene, who)
    alices = Running(scene.acme, scene.alice, run)
    assert {reply.status for reply in attempts(scene.acme, run, token)} == {404}
    assert alices.reply().text == "half whole "


@pytest.mark.parametrize("who", OTHERS)
def test_whoever_uses_the_ids_of_another_gets_a_turn_of_its_own(scene: Scene, who: str) -> None:
    """A41: another execution, another bill, nothing of the first in any page."""
    run, token = fresh("shared"), getattr(scene, who)
    scene.acme.chat("secret of alice", "paid", token=scene.alice, headers=ids(run))
    mine = scene.acme.chat("secret of alice", "paid", token=token, headers=ids(run))
    assert mine.status == 200
    assert runs_of(scene.acme, "paid", run) == 2
    first, second = bills(scene.acme, run)
    assert first == ("alice@acme.example", "agent:paid", 200)
    assert second[0] != first[0]
    page, events, listed = pages_of(scene.acme, run, token)
    assert len(page.json["turns"]) == 1
    assert page.json["cost"] == "0.0002"
    assert events.body.count(b"secret of alice") == 1
    (line,) = [entry for entry in listed.json["runs"] if entry["run"] == run]
    assert (line["turns"], line["payer"]) == (1, second[0])
    assert b"alice@" not in page.body + events.body
    (alices,) = scene.acme.get(f"/runs/{run}", token=scene.alice).json["turns"]
    assert alices["actor"] == "token:alice"


def test_a_run_below_that_of_another_shows_nothing_of_it(scene: Scene) -> None:
    """A41: neither by naming its turn as one's own, nor as one's parent."""
    run = fresh("tree")
    scene.acme.chat("words the secret tree", "relay", token=scene.alice, headers=ids(run))
    (turn,) = scene.acme.get(f"/runs/{run}", token=scene.alice).json["turns"]
    child = turn["children"][0]["turn"]
    root = turn["turn"]
    for name, parent, depth in ((child, root, 0), (f"{run}.x", child, 1), (f"{run}.y", root, 0)):
        headers = [(RUN, run), (TURN, name), (PARENT, parent), (DEPTH, str(depth))]
        reply = scene.acme.chat("hi", token=scene.mallory, headers=headers)
        assert reply.status == 200
    for page in pages_of(scene.acme, run, scene.mallory):
        assert b"secret" not in page.body
        assert b"alice" not in page.body
        assert b'"words"' not in page.body


def test_whoever_shares_the_id_of_a_run_cancels_only_its_own_turns(scene: Scene) -> None:
    """A41, A10."""
    run = fresh("cancelled")
    alices = Running(scene.acme, scene.alice, run)
    scene.acme.chat("hi", token=scene.mallory, headers=[(RUN, run)])
    reply = post(scene.acme, f"/runs/{run}/cancel", scene.mallory)
    answer = alices.reply()
    assert reply.json["cancelled"] == 0
    assert [(hop["agent"], hop["outcome"]) for hop in reply.json["hops"]] == [("echo", "done")]
    assert (answer.status, answer.text) == (200, "half whole ")


def test_a_reader_of_the_same_ids_that_leaves_takes_nobody_along(scene: Scene) -> None:
    """A41, A44: two tenants, two executions; one hangs up and the other is answered."""
    run = fresh("leaving")
    alices = Running(scene.acme, scene.alice, run)
    fields = [
        ("authorization", f"Bearer {scene.mallory}"),
        ("content-type", "application/json"),
        *ids(run),
    ]
    body = chat_body(run, "held", stream=True)
    lines = stream("POST", scene.acme.url + "/v1/chat/completions", fields, body)
    next(lines)
    lines.close()
    assert runs_of(scene.acme, "held", run) == 2
    states = "SELECT state FROM turn WHERE turn = ? ORDER BY state"
    left = [("failed",), ("running",)]
    until(lambda: query(scene.acme, states, f"{run}.t0.echo") == left)
    assert alices.reply().text == "half whole "


def test_who_forwards_a_credential_is_not_told_what_its_owner_spent(scene: Scene) -> None:
    """A41: the list of runs tells the cost of what the reader may see."""
    run = fresh("spent")
    scene.acme.chat("hi", "paid", token=scene.alice, headers=[(RUN, run)])
    headers = [(RUN, run), forwarding(scene.alice)]
    scene.acme.chat("hi", "echo", token=scene.bridge, headers=headers)
    listed = scene.acme.get("/runs", token=scene.bridge).json["runs"]
    assert [entry["cost"] for entry in listed if entry["run"] == run] == ["0"]


# ---------------------------------------------------------------------- reusing and claiming


def test_the_ids_of_a_tenant_mean_nothing_from_a_peer_that_forwards_another(
    scene: Scene,
) -> None:
    """A41, A42: the key holds the caller and the payer, also where only one of them differs."""
    run = fresh("both")
    callers = [
        (scene.alice, []),
        (scene.peer, []),
        (scene.peer, [forwarding(scene.alice)]),
        (scene.peer, [forwarding("somebody-1")]),
        (scene.peer, [forwarding("somebody-2")]),
        (scene.bridge, [forwarding(scene.alice)]),
        (scene.bridge, [forwarding("somebody-1")]),
    ]
    replies = [
        scene.acme.chat(str(n), "paid", token=token, headers=[*ids(run), *more])
        for n, (token, more) in enumerate(callers)
    ]
    assert [reply.text for reply in replies] == [str(n) for n in range(len(callers))]
    assert runs_of(scene.acme, "paid", run) == len(callers)
    assert len(bills(scene.acme, run)) == len(callers)


def test_an_agent_that_pays_itself_answers_each_tenant_anew(scene: Scene) -> None:
    """A41: the key of a call that an agent makes and pays holds for whom it is made."""
    run = fresh("pocket")
    for token in (scene.alice, scene.mallory):
        reply = scene.acme.chat("paid", "own_pocket", token=token, headers=ids(run))
        assert reply.text == "mine"
    assert runs_of(scene.acme, "paid", run) == 2


def test_two_who_forward_the_same_payer_do_not_share_what_agents_call(scene: Scene) -> None:
    """A41, A42: neither reads the other's, nor has claimed it first."""
    run = fresh("same-payer")
    headers = [*ids(run), forwarding(scene.alice)]
    first = scene.acme.chat("words one", "relay", token=scene.bridge, headers=headers)
    same = scene.acme.chat("words one", "relay", token=scene.peer, headers=headers)
    assert (first.text, same.text) == ("one ", "one ")
    assert runs_of(scene.acme, "words", run) == 2


def test_two_tenants_are_not_one_to_the_peer_they_call(scene: Scene) -> None:
    """A41: the callee sees one caller, so the turn ids must tell its tenants apart."""
    run = fresh("abroad")
    for token in (scene.alice, scene.mallory):
        reply = scene.acme.chat("hi", "@echo@globex.example", token=token, headers=ids(run))
        assert reply.text == "hi"
    assert runs_of(scene.globex, "echo", run) == 2


def test_a_turn_claimed_in_advance_does_not_poison_a_call_to_a_peer(scene: Scene) -> None:
    """A42."""
    run = fresh("poison")
    for token, text in ((scene.mallory, "poison"), (scene.alice, "wanted")):
        reply = scene.acme.chat(text, "@echo@globex.example", token=token, headers=ids(run))
        assert (reply.status, reply.text) == (200, text)


@pytest.mark.parametrize("agent", ["relay", "own_pocket", "careful", "twice"])
def test_a_turn_claimed_in_advance_does_not_poison_what_is_below_it(
    scene: Scene, agent: str
) -> None:
    """A42: the ids of children can be told beforehand; claiming them from outside is no use."""
    run, text = fresh("below"), {"relay": "echo hi", "own_pocket": "echo"}.get(agent, "echo")
    scouted = scene.acme.chat(text, agent, token=scene.mallory, headers=ids(fresh("scout")))
    page = scene.acme.get(f"/runs/{scouted.headers[RUN]}", token=scene.mallory).json
    own = page["turns"][0]["turn"]
    for child in page["turns"][0]["children"]:
        turn = child["turn"].replace(page["run"], run)
        headers = [(RUN, run), (TURN, turn), ("x-tangle-parent-turnid", own)]
        for poisoner in (scene.mallory, scene.bridge):
            reply = scene.acme.chat("poison", child["agent"], token=poisoner, headers=headers)
            assert reply.status == 200
    reply = scene.acme.chat(text, agent, token=scene.alice, headers=ids(run))
    assert reply.text == scouted.text
    assert "poison" not in reply.text


# ---------------------------------------------------------------------- odd ids

ODD = [
    *("'; DROP TABLE turn; --", "x' OR '1'='1", '" OR ""="', "1; SELECT * FROM token", "%", "_"),
    *("*", "?", "NULL", "0", "-1", "../../etc/passwd", "..\\..\\x", "a/b", "x/events", "x/cancel"),
    *("%2e%2e%2f", "%00", "a%2Fb", ".", "..", "~", "${jndi:ldap://127.0.0.1/x}", "{{7*7}}"),
    *("<script>alert(1)</script>", "$(id)", "`id`", "a b", "a;b", "#", "r" * 128, "%" * 128),
]


@pytest.mark.parametrize("run", ODD)
def test_an_odd_id_is_a_run_like_any_other(scene: Scene, run: str) -> None:
    """A41: it is found by its holder alone, under that very name, and is read as nothing else."""
    headers = [(RUN, run), (TURN, run)]
    reply = scene.acme.chat("odd", "paid", token=scene.alice, headers=headers)
    assert (reply.text, reply.headers[RUN]) == ("odd", run)
    again = scene.acme.chat("odd", "paid", token=scene.alice, headers=headers)
    assert again.body == reply.body
    page, events, _ = pages_of(scene.acme, run, scene.alice)
    assert page.json["run"] == run
    assert [turn["turn"] for turn in page.json["turns"]] == [run]
    assert b'"odd"' in events.body
    assert {each.status for each in attempts(scene.acme, run, scene.mallory)} == {404}
    assert bills(scene.acme, run) == [("alice@acme.example", "agent:paid", 200)]


def test_after_odd_ids_the_database_is_whole(scene: Scene) -> None:
    """A41: what looks like SQL was never any."""
    scene.acme.chat("odd", token=scene.alice, headers=[(RUN, ODD[0])])
    assert query(scene.acme, "PRAGMA integrity_check") == [("ok",)]
    assert query(scene.acme, "SELECT COUNT(*) FROM turn WHERE turn = ?", "no such")[0] == (0,)
    tables = {name for (name,) in query(scene.acme, "SELECT name FROM sqlite_master")}
    assert {"turn", "run", "token", "ledger", "journal"} <= tables


@pytest.mark.parametrize("page", ["?limit=1", "?limit=200", "?before=1", "?limit=999999999999"])
def test_a_page_of_runs_is_bounded_and_ones_own(scene: Scene, page: str) -> None:
    """A41."""
    reply = scene.acme.get(f"/runs{page}", token=scene.mallory)
    assert reply.status == 200
    assert b"alice@" not in reply.body


@pytest.mark.parametrize(
    "page",
    ["?limit=0", "?limit=-1", "?limit=1&limit=2", "?before=x", "?limit=%31%00", "?limit=1e9"],
)
def test_a_page_that_cannot_be_is_no_fault_of_ours(scene: Scene, page: str) -> None:
    """A41: no 5xx, and nothing of anybody's."""
    reply = scene.acme.get(f"/runs{page}", token=scene.mallory)
    assert reply.status in {200, 400}
    assert b"alice@" not in seen(reply)
