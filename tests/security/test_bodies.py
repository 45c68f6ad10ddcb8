"""Bodies made to cost more than they weigh: refused, and cheaply."""

import gzip
import socket
import time
from collections.abc import Callable

import pytest

from carnet.errors import BodyTooLarge, InvalidJson
from carnet.wire.grammar import json
from tests.security.support.scene import Scene, nothing_done
from tests.security.support.signing import SignedEdge
from tests.support.http import HeaderList, Reply, chat_body, request
from tests.support.signing.signed import (
    MESSAGE,
    Sender,
    fresh_nonce,
    now,
    rfc3339,
    sign,
    travelling,
    unsigned,
)

MILLION = 1_000_000
CPU_SECONDS = 0.5  # ten times what it may take on a machine that is busy with nothing else


def send(scene: Scene, body: bytes, *headers: tuple[str, str]) -> Reply:
    fields: HeaderList = [("authorization", f"Bearer {scene.alice}"), *headers]
    return request("POST", scene.acme.url + "/v1/chat/completions", fields, body)


def as_json(scene: Scene, body: bytes) -> Reply:
    return send(scene, body, ("content-type", "application/json"))


def test_a_packed_body_is_refused_and_not_unpacked(scene: Scene) -> None:
    """A52: a thousand to one."""
    bomb = gzip.compress(b" " * 10 * MILLION + chat_body())
    assert len(bomb) < 20_000
    with nothing_done(scene):
        for encoding in ("gzip", "deflate", "br", "gzip, identity", "x-unheard-of"):
            fields = [("content-type", "application/json"), ("content-encoding", encoding)]
            reply = send(scene, bomb, *fields)
            assert (reply.status, reply.code) == (415, "encoding_unsupported")


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/json, text/plain",
        "application/jsonp",
    ],
)
def test_what_does_not_say_that_it_is_json_is_refused(scene: Scene, kind: str) -> None:
    """A55."""
    with nothing_done(scene):
        reply = send(scene, chat_body(), *([("content-type", kind)] if kind else []))
        assert (reply.status, reply.code) == (415, "media_type_unsupported")


COSTLY: dict[str, Callable[[], bytes]] = {
    "a million keys": lambda: b"{" + b",".join(b'"%x":1' % n for n in range(MILLION)) + b"}",
    "a million elements": lambda: b'{"messages":[' + b"1," * MILLION + b"1]}",
    "a hundred thousand levels": lambda: b"[" * 100_000,
    "five million brackets": lambda: b"[" * 5 * MILLION,
    "five thousand digits": lambda: b'{"n":' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("case", COSTLY)
def test_a_body_of_many_parts_is_refused_before_it_is_built(scene: Scene, case: str) -> None:
    """A53, A54: nothing is run, and the gateway answers others."""
    body = COSTLY[case]()
    with nothing_done(scene):
        reply = as_json(scene, body)
        assert (reply.status, reply.code) == (400, "invalid_json")
    assert scene.acme.get("/healthz").status == 200


@pytest.mark.parametrize("case", COSTLY)
def test_refusing_it_takes_a_moment_of_the_processor(case: str) -> None:
    """A54: measured as time of this thread, whatever else the machine does."""
    body = COSTLY[case]()
    began = time.thread_time()
    with pytest.raises(InvalidJson):
        json.read(body)
    assert time.thread_time() - began < CPU_SECONDS


def test_keys_that_were_chosen_to_collide_do_not() -> None:
    """A54: the hash of a text is keyed by the process."""
    body = b"{" + b",".join(b'"%s":0' % (b"\\u0041" * 3 + b"%d" % n) for n in range(50_000)) + b"}"
    began = time.thread_time()
    assert len(json.read_object(body)) == 50_000
    assert time.thread_time() - began < CPU_SECONDS


def test_a_string_as_long_as_a_body_is_told_as_too_large(scene: Scene) -> None:
    """A54: a little more than the bound, and a little less."""
    with nothing_done(scene):
        reply = as_json(scene, chat_body("x" * 10 * 1024 * 1024))
        assert (reply.status, reply.code) == (413, "body_too_large")
        assert reply.status == BodyTooLarge.status
    assert scene.acme.chat("x" * MILLION, "answer", token=scene.alice).status == 200


def raw(scene: Scene, head: bytes, body: bytes = b"") -> bytes:
    """What is answered to bytes; all of the body is sent before a word is read."""
    with socket.create_connection(("127.0.0.1", scene.acme.port), timeout=60) as line:
        line.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: acme\r\n" + head + b"\r\n")
        line.sendall(body)
        found = bytearray()
        while not found.endswith(b"}"):
            found += line.recv(65536)
        return bytes(found)


HUGE = b"[" * 9_000_000  # which is no JSON, and nobody finds out
STRANGERS = {
    "nobody": (b"", b"token_missing"),
    "with a wrong token": (b"authorization: Bearer ck_wrong\r\n", b"token_invalid"),
}


@pytest.mark.parametrize("who", STRANGERS)
def test_a_strangers_body_is_neither_kept_nor_parsed_and_it_sees_the_refusal(
    scene: Scene, who: str
) -> None:
    """A75: the connection is not reset while it still sends."""
    field, code = STRANGERS[who]
    head = b"content-type: application/json\r\n%bcontent-length: %d\r\n" % (field, len(HUGE))
    with nothing_done(scene):
        reply = raw(scene, head, HUGE)
    assert reply.startswith(b"HTTP/1.1 401 ")
    assert code in reply


def test_a_stranger_that_asks_first_is_refused_at_once(scene: Scene) -> None:
    """A75: Expect: 100-continue; nothing of the body is asked for."""
    head = b"content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 900000\r\n"
    reply = raw(scene, head)
    assert reply.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in reply.lower()


def test_a_short_body_of_a_stranger_is_not_judged_to_it(scene: Scene) -> None:
    """A75."""
    fields: HeaderList = [("content-type", "application/json")]
    url = scene.acme.url + "/v1/chat/completions"
    reply = request("POST", url, fields, b'{"model":')
    assert (reply.status, reply.code) == (401, "token_missing")
    assert as_json(scene, b'{"model":').code == "invalid_json"


def test_a_large_signed_body_is_parsed_once_its_signature_holds(
    scene: Scene, edge: SignedEdge, alice: Sender, neighbour: Sender
) -> None:
    """A75: of an envelope, and of a chat with its travel document."""
    body = b'{"from":"%b","to":"agent://acme.example",' % alice.identity.encode()
    body += b'"nonce":"%b","timestamp":"%b","payload":{"x":"%b"},"payload":1}' % (
        fresh_nonce().encode(),
        rfc3339(now()).encode(),
        b"x" * 200_000,
    )
    genuine = sign(alice, unsigned(body), path=MESSAGE)
    other = sign(neighbour, unsigned(body), path=MESSAGE)
    forged = genuine.but(signature=other.field("signature"))
    chat = travelling(neighbour, "acme.example", HUGE[:200_000])
    stolen = travelling(alice, "acme.example", HUGE[:200_000], carnet=chat.field("carnet"))
    with nothing_done(scene):
        assert edge.send_alone(forged).headers["carnet-code"] == "signature_invalid"
        assert edge.send_alone(genuine).headers["carnet-code"] == "invalid_json"
        assert edge.send_alone(stolen).status == 401
        assert edge.send_alone(chat).code == "invalid_json"
