"""The wire credential: a JWT that is signed with a key which its sender publishes."""

import json
from collections.abc import Callable, Iterator

import pytest

from tests.faults.stores import move_to
from tests.interop.conftest import Databases
from tests.interop.identity.scene import (
    Elsewhere,
    Scene,
    build,
    caller_of,
    code_of,
    elsewhere,
    now,
)
from tests.support.a2a.pages import PageHost
from tests.support.a2a.wire import BINDINGS, message, result_of


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    peer, pages = elsewhere(), PageHost()
    folder = tmp_path_factory.mktemp("acme")
    gateway = build(folder, peer, pages)
    url = database()
    if url:
        move_to(gateway, url)
    with pages.serving():
        gateway.start()
        yield Scene(gateway, peer, pages)
        gateway.stop()


@pytest.mark.parametrize("binding", BINDINGS)
def test_an_agent_of_a_peer_is_known_by_a_credential_of_its_key(scene: Scene, binding: str) -> None:
    found = caller_of(scene.ask(scene.peer.jwt(), binding=binding))
    assert found["address"] == "@agent-a@globex.example"
    assert (found["how"], found["name"]) == ("a2a-jwt", "peer:globex.example")
    assert scene.pages.asked == []


FORGED: dict[str, tuple[Callable[[Elsewhere], str], str]] = {
    "nobody's signature": (lambda peer: peer.jwt()[:-8] + "AAAAAAAA", "signature_invalid"),
    "alg none": (lambda peer: peer.jwt(header={"alg": "none"}), "credential_invalid"),
    "alg HS256": (lambda peer: peer.jwt(header={"alg": "HS256"}), "credential_invalid"),
    "another type": (lambda peer: peer.jwt(header={"typ": "at+jwt"}), "credential_invalid"),
    "no type": (lambda peer: peer.jwt(drop=("typ",)), "credential_invalid"),
    "no key named": (lambda peer: peer.jwt(drop=("kid",)), "credential_invalid"),
    "a key that leads elsewhere": (
        lambda peer: peer.jwt(header={"jku": "http://127.0.0.1:1/k"}),
        "credential_invalid",
    ),
    "a key brought along": (lambda peer: peer.jwt(header={"jwk": {}}), "credential_invalid"),
    "crit": (lambda peer: peer.jwt(header={"crit": ["exp"]}), "credential_invalid"),
    "b64": (lambda peer: peer.jwt(header={"b64": False}), "credential_invalid"),
    "algorithm twice": (
        lambda peer: peer.signed('{"alg":"none","alg":"EdDSA","kid":"k","typ":"JWT"}', "{}"),
        "credential_invalid",
    ),
    "for somebody else": (lambda peer: peer.jwt("@who@initech.example"), "destination_mismatch"),
    "for another agent": (lambda peer: peer.jwt("@paid@acme.example"), "destination_mismatch"),
    "for nobody": (lambda peer: peer.jwt(drop=("aud",)), "credential_invalid"),
    "for a list without us": (
        lambda peer: peer.jwt(["a.example", "b.example"]),
        "destination_mismatch",
    ),
    "expired": (lambda peer: peer.jwt(iat=now() - 400, exp=now() - 61), "signature_expired"),
    "not begun": (
        lambda peer: peer.jwt(iat=now() + 90, exp=now() + 200),
        "timestamp_out_of_window",
    ),
    "not yet valid": (lambda peer: peer.jwt(nbf=now() + 90), "timestamp_out_of_window"),
    "too long": (lambda peer: peer.jwt(exp=now() + 660), "credential_invalid"),
    "over before it begins": (lambda peer: peer.jwt(iat=now(), exp=now()), "credential_invalid"),
    "no end": (lambda peer: peer.jwt(drop=("exp",)), "credential_invalid"),
    "no begin": (lambda peer: peer.jwt(drop=("iat",)), "credential_invalid"),
    "an end in words": (lambda peer: peer.jwt(exp="tomorrow"), "credential_invalid"),
    "an end in a float": (lambda peer: peer.jwt(exp=now() + 100.5), "credential_invalid"),
    "no number": (lambda peer: peer.jwt(drop=("jti",)), "credential_invalid"),
    "a number too short": (lambda peer: peer.jwt(jti="x"), "credential_invalid"),
    "a subject of somebody else": (
        lambda peer: peer.jwt(sub="@owner@acme.example"),
        "credential_invalid",
    ),
    "no subject": (lambda peer: peer.jwt(drop=("sub",)), "credential_invalid"),
    "an issuer that is none": (
        lambda peer: peer.jwt(iss="no domain", sub="x"),
        "credential_invalid",
    ),
    "too many parts": (lambda peer: peer.jwt() + ".e", "token_invalid"),
    "not canonical": (lambda peer: _padded(peer.jwt()), "token_invalid"),
    "too long a text": (lambda _: "ey" + "a" * 7000 + ".b.c", "credential_invalid"),
}


def _padded(token: str) -> str:
    return token + "="


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("case", FORGED)
def test_a_credential_that_is_not_right_in_every_part_is_refused(
    scene: Scene, case: str, binding: str
) -> None:
    """Nothing runs, nothing is fetched, and nothing that it said is caller_of again."""
    make, code = FORGED[case]
    bearer, sent = make(scene.peer), message("run-nothing")
    reply = scene.ask(bearer, binding=binding, **sent)
    assert (reply.status, code_of(reply)) == (401, code)
    assert scene.pages.asked == []
    assert bearer.encode() not in reply.body + scene.gateway.written()


def test_a_credential_of_a_key_that_nobody_knows_is_refused_unfetched(scene: Scene) -> None:
    other = elsewhere()
    assert code_of(scene.ask(other.jwt())) == "signature_invalid"  # the peer's key is written down
    stranger = elsewhere("stranger.example")
    reply = scene.ask(stranger.jwt())
    assert (reply.status, code_of(reply)) == (401, "key_unknown")
    assert scene.pages.asked == []


def test_one_label_and_addresses_are_fetched_from_by_nobody(scene: Scene) -> None:
    for name in ("agent://localhost", "agent://127.0.0.1", "agent://metadata"):
        reply = scene.ask(scene.peer.jwt(iss=name, sub=name), agent="open")
        assert code_of(reply) in {"key_unknown", "address_invalid"}


def test_a_credential_is_good_once_and_not_burnt_by_a_forgery(scene: Scene) -> None:
    token = scene.peer.jwt()
    forged = token[:-8] + "AAAAAAAA"
    assert code_of(scene.ask(forged)) == "signature_invalid"
    assert caller_of(scene.ask(token))["how"] == "a2a-jwt"
    again = scene.ask(token)
    assert (again.status, code_of(again)) == (401, "nonce_replayed")
    other = scene.ask(token, binding="HTTP+JSON")
    assert code_of(other) == "nonce_replayed"


def test_a_call_that_is_refused_for_its_agent_burns_nothing(scene: Scene) -> None:
    token = scene.peer.jwt("acme.example")
    assert code_of(scene.ask(token, agent="nowhere")) == "agent_not_found"
    assert caller_of(scene.ask(token))["how"] == "a2a-jwt"


def test_all_names_of_the_recipient_are_its_own(scene: Scene) -> None:
    names = ("@who@acme.example", "agent://who.acme.example", "acme.example", scene.gateway.url)
    for name in (*names, ["x.example", "@who@acme.example"]):
        assert caller_of(scene.ask(scene.peer.jwt(name)))["how"] == "a2a-jwt"


def test_tasks_are_those_of_who_speaks_and_a_question_uses_its_credential_up(scene: Scene) -> None:
    """M50, caller_of as a task that is not there."""
    for binding in BINDINGS:
        made = scene.ask(scene.peer.jwt(), binding=binding)
        task = result_of(made)["task"]["id"]
        token = scene.peer.jwt()
        mine = scene.ask(token, "GetTask", binding=binding, id=task)
        assert result_of(mine)["id"] == task
        again = scene.ask(token, "GetTask", binding=binding, id=task)
        assert (again.status, code_of(again)) == (401, "nonce_replayed")
        assert code_of(scene.ask(token)) == "nonce_replayed"  # nor is it good for a call
        other = scene.ask(
            scene.peer.jwt(sub="@agent-b@globex.example"), "GetTask", binding=binding, id=task
        )
        assert code_of(other) == "task_not_found"
        whole = scene.ask(scene.peer.jwt(sub="globex.example"), "GetTask", binding=binding, id=task)
        assert result_of(whole)["id"] == task
        listed = result_of(scene.ask(scene.peer.jwt(), "ListTasks", binding=binding))
        assert task in [each["id"] for each in listed["tasks"]]


def test_the_same_message_of_another_who_speaks_is_another_call(scene: Scene) -> None:
    sent = message("same")
    first = scene.ask(scene.peer.jwt(), **sent)
    again = scene.ask(scene.peer.jwt(), **sent)
    other = scene.ask(scene.peer.jwt(sub="@agent-b@globex.example"), **sent)
    assert result_of(first)["task"]["id"] == result_of(again)["task"]["id"]
    assert result_of(first)["task"]["id"] != result_of(other)["task"]["id"]


def test_what_a_task_asks_for_is_answered_with_another_credential(scene: Scene) -> None:
    first = result_of(scene.ask(scene.peer.jwt("acme.example"), agent="asks"))["task"]
    assert first["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    token = scene.peer.jwt("acme.example")
    reply = message("Bern", taskId=first["id"], contextId=first["contextId"])
    done = result_of(scene.ask(token, agent="asks", **reply))["task"]
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert code_of(scene.ask(token, agent="asks", **reply)) == "nonce_replayed"


def test_how_it_was_known_is_shown_to_the_operator(scene: Scene) -> None:
    task = result_of(scene.ask(scene.peer.jwt()))["task"]
    run = next(
        each["run"]
        for each in scene.gateway.json("runs")["runs"]
        if each["run"] in json.dumps(task)
    )
    page = scene.gateway.carnet("explain", run).stdout
    assert "a2a-jwt" in page
    assert "@agent-a@globex.example" in page


def test_tokens_of_ours_go_on_as_before(scene: Scene) -> None:
    assert caller_of(scene.ask(scene.gateway.token))["how"] == "token"
    assert code_of(scene.ask("ck_" + "x" * 40)) == "token_invalid"


def test_a_person_and_an_agent_pass_the_same_guards_in_the_same_order(scene: Scene) -> None:
    """The row mentionable:trust:one-path."""
    orders = []
    for subject in ("@alice@globex.example", "@agent-a@globex.example"):
        token = scene.peer.jwt(sub=subject)
        evidence = scene.peer.evidence(subject=subject)
        sent = message("one path", metadata={"mentionable": {"identity_evidence": [evidence]}})
        task = result_of(scene.ask(token, **sent))["task"]
        turns = scene.gateway.json("explain", _run_of(task))["turns"]
        orders.append([each["guard"] for each in turns[0]["grounds"]])
    assert orders[0] == orders[1]
    wire, vouched = orders[0].index("signed"), orders[0].index("evidenced")
    assert wire < vouched < orders[0].index("trusted") < orders[0].index("transaction")


def _run_of(task: dict[str, object]) -> str:
    metadata = task["metadata"]
    assert isinstance(metadata, dict)
    return str(next(each["run"] for each in metadata.values() if "run" in each))
