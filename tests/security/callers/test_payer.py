"""Who is billed: nobody but the one a listed caller names, and nobody where a call is refused."""

import pytest

from tests.security.support.hostile import FORWARDED
from tests.security.support.scene import (
    RUN,
    Scene,
    bills,
    canary,
    forwarding,
    fresh,
    leaks,
    nothing_done,
    notice,
    seen,
    send_raw,
    undated,
)
from tests.support.http import chat_body

TARGETS = ["echo", "paid", "relay", "answer", "plain-model", "@paid@globex.example"]


# ---------------------------------------------------------------------- callers not listed


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("agent", TARGETS)
def test_a_caller_not_listed_forwards_to_no_kind_of_agent(
    scene: Scene,
    agent: str,
    stream: bool,  # noqa: FBT001  given by name
) -> None:
    """A33."""
    secret = canary()
    with nothing_done(scene):
        reply = scene.acme.chat(
            "hi", agent, token=scene.mallory, headers=[forwarding(secret)], stream=stream
        )
    assert (reply.status, reply.code) == (403, "forwarding_not_allowed")
    assert secret.encode() not in seen(reply)


def test_a_caller_not_listed_learns_nothing_about_a_credential(scene: Scene) -> None:
    """A33: a live token of another tenant, its own and one of nobody look alike."""
    with nothing_done(scene):
        replies = [
            scene.acme.chat("hi", "paid", token=scene.mallory, headers=[forwarding(credential)])
            for credential in (scene.alice, scene.peer, scene.mallory, "ck_nobody", canary())
        ]
    assert replies[0].code == "forwarding_not_allowed"
    assert undated(replies) == undated(replies[:1]) * len(replies)


def test_a_refused_credential_is_written_nowhere(scene: Scene) -> None:
    """A33."""
    secret = canary()
    reply = scene.acme.chat("hi", "paid", token=scene.mallory, headers=[forwarding(secret)])
    assert reply.status == 403
    assert leaks(scene, secret, reply) == []


# ---------------------------------------------------------------------- listed callers


def test_a_listed_peer_bills_the_tenant_whose_token_it_forwards(scene: Scene) -> None:
    """A33: the tenant is debited once, and the peer that forwarded owes nothing."""
    run = fresh("by-peer")
    headers = [forwarding(scene.alice), (RUN, run)]
    reply = scene.acme.chat("hi", "paid", token=scene.peer, headers=headers)
    assert reply.json["usage"]["cost"] == "0"
    assert bills(scene.acme, run) == [("alice@acme.example", "agent:paid", 200)]
    assert scene.acme.get(f"/runs/{run}", token=scene.alice).code == "run_not_found"
    assert leaks(scene, scene.alice, reply) == []


def test_a_peer_that_forwards_its_own_token_pays_itself_and_once(scene: Scene) -> None:
    """A33."""
    run = fresh("own-token")
    headers = [forwarding(scene.peer), (RUN, run)]
    reply = scene.acme.chat("hi", "paid", token=scene.peer, headers=headers)
    assert reply.json["usage"]["cost"] == "0.0002"
    assert bills(scene.acme, run) == [("globex.example@globex.example", "agent:paid", 200)]


def test_a_bridge_that_forwards_a_peers_token_bills_the_peer_within_its_credit(
    scene: Scene,
) -> None:
    """A33."""
    run = fresh("peer-token")
    headers = [forwarding(scene.peer), (RUN, run)]
    assert scene.acme.chat("hi", "paid", token=scene.bridge, headers=headers).status == 200
    assert bills(scene.acme, run) == [("globex.example@globex.example", "agent:paid", 200)]


def test_a_forwarded_token_that_may_not_pay_is_never_replaced(scene: Scene) -> None:
    """A33: without the right to pay, and with nothing left to spend."""
    poor = scene.acme.new_token("poor", "--limit", "0.0001")
    notice(scene.acme)
    with nothing_done(scene):
        no_right = scene.acme.chat(
            "hi", "paid", token=scene.bridge, headers=[forwarding(scene.lowly)]
        )
        no_money = scene.acme.chat("hi", "paid", token=scene.bridge, headers=[forwarding(poor)])
    assert (no_right.status, no_right.code) == (402, "payer_refused")
    assert (no_money.status, no_money.code) == (402, "spending_limit_reached")


def test_a_token_made_a_moment_ago_pays_when_it_is_forwarded(scene: Scene) -> None:
    """A33: the listed caller is not billed in its place."""
    run = fresh("young")
    young = scene.acme.new_token("young")
    reply = scene.acme.chat(
        "hi", "paid", token=scene.bridge, headers=[forwarding(young), (RUN, run)]
    )
    assert reply.status == 200
    assert bills(scene.acme, run) == [("young@acme.example", "agent:paid", 200)]


def test_a_forwarded_token_pays_for_nothing_its_holder_may_not_call(scene: Scene) -> None:
    """A33, A35: rights are an intersection of the caller's and the principal's."""
    narrow = scene.acme.new_token("narrow", "--scope", "call:echo", "--scope", "pay")
    notice(scene.acme)
    with nothing_done(scene):
        reply = scene.acme.chat("hi", "paid", token=scene.bridge, headers=[forwarding(narrow)])
    assert reply.status in {402, 403}


def test_a_peer_that_is_ended_forwards_and_calls_no_more(scene: Scene) -> None:
    """A33: taken off the list, then its token revoked."""
    acme = scene.acme
    listed = ("peers", "add", "initech.example", "--url", "http://127.0.0.1:9", "--credit", "1")
    acme.carnet(*listed, "--may-forward-authorization")
    token = acme.new_token("from-initech", "--peer", "initech.example")
    notice(acme)
    headers = [forwarding(canary())]
    assert acme.chat("hi", "paid", token=token, headers=headers).status == 200
    acme.carnet("peers", "add", "initech.example", "--no-forward-authorization")
    notice(acme)
    with nothing_done(scene):
        reply = acme.chat("hi", "paid", token=token, headers=headers)
        assert (reply.status, reply.code) == (403, "forwarding_not_allowed")
    acme.carnet("tokens", "revoke", "from-initech")
    notice(acme)
    with nothing_done(scene):
        for more in (headers, [forwarding(scene.alice)], []):
            reply = acme.chat("hi", "echo", token=token, headers=more)
            assert (reply.status, reply.code) == (401, "token_invalid")
        reply = acme.chat("hi", "paid", token=scene.bridge, headers=[forwarding(token)])
        assert (reply.status, reply.code) == (402, "payer_refused")


def test_a_peer_that_is_forgotten_calls_no_more(scene: Scene) -> None:
    """A33."""
    acme = scene.acme
    acme.carnet("peers", "add", "hooli.example", "--url", "http://127.0.0.1:9")
    token = acme.new_token("from-hooli", "--peer", "hooli.example", "--may-forward-authorization")
    acme.carnet("peers", "remove", "hooli.example")
    notice(acme)
    with nothing_done(scene):
        reply = acme.chat("hi", "paid", token=token, headers=[forwarding(scene.alice)])
    assert (reply.status, reply.code) == (401, "token_invalid")


# ---------------------------------------------------------------------- malformed credentials


@pytest.mark.parametrize(
    "value",
    [
        "Bearer\t{}",
        "Bearer  {}",
        "Bearer {},",
        "Bearer {}, Bearer {}",
        "Bearer {} {}",
        "Bearer\xa0{}",
        "Bearer {}\xe9",
        "BearerX {}",
        "{}",
        "Token {}",
        '"Bearer {}"',
        "Bearer {}" + "x" * 8192,
    ],
)
def test_what_is_not_one_bearer_is_refused_also_from_a_listed_caller(
    scene: Scene, value: str
) -> None:
    """A34."""
    secret = canary()
    with nothing_done(scene):
        headers = [(FORWARDED, value.replace("{}", secret))]
        reply = scene.acme.chat("hi", "paid", token=scene.bridge, headers=headers)
    assert (reply.status, reply.code) == (400, "malformed_caller_context")
    assert reply.json["error"]["header"] == FORWARDED
    assert leaks(scene, secret, reply) == []


@pytest.mark.parametrize(
    "value",
    [b"Bearer %b\rx", b"Bearer %b\nx: y", b"Bearer\r\n %b", b"Bearer %b\0", b"Bearer %b\x7f"],
)
def test_bytes_that_end_or_fold_a_line_are_refused_by_the_server(
    scene: Scene, value: bytes
) -> None:
    """A34: CR, LF, a folded line, NUL and DEL."""
    secret = canary()
    line = FORWARDED.encode() + b": " + value % secret.encode()
    with nothing_done(scene):
        answer = send_raw(scene.acme, scene.bridge, line, chat_body("hi", "paid"))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert secret.encode() not in answer
    assert leaks(scene, secret) == []


def test_one_that_is_given_twice_is_refused_even_if_both_are_the_same(scene: Scene) -> None:
    """A34."""
    with nothing_done(scene):
        for first, second in ((scene.alice, scene.peer), (scene.alice, scene.alice)):
            headers = [forwarding(first), forwarding(second)]
            reply = scene.acme.chat("hi", "paid", token=scene.bridge, headers=headers)
            assert (reply.status, reply.code) == (400, "malformed_caller_context")


def test_the_longest_credential_is_an_account_of_its_own(scene: Scene) -> None:
    """A34: the bound is where it is said to be."""
    run = fresh("longest")
    secret = canary().ljust(8192, "x")
    headers = [forwarding(secret), (RUN, run)]
    reply = scene.acme.chat("hi", "paid", token=scene.bridge, headers=headers)
    assert reply.status == 200
    ((payer, _, amount),) = bills(scene.acme, run)
    assert payer.endswith("@token:bridge")
    assert amount == 200
    assert leaks(scene, secret[:24], reply) == []
