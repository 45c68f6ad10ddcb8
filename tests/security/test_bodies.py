"""Bodies made to cost more than they weigh: refused, and cheaply."""

import gzip
import time
from collections.abc import Callable

import pytest

from carnet.errors import BodyTooLarge, InvalidJson
from carnet.wire.grammar import json
from tests.security.support.scene import Scene, nothing_done
from tests.support.http import HeaderList, Reply, chat_body, request

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
