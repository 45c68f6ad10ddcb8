"""One request never keeps others waiting: what the event loop does is done in small pieces."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.core.growth import SQUARE
from tests.security.support.hostile import Hostile
from tests.support.federation import introduce, organisation
from tests.support.http import request
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

WORDS = 500_000  # a second's work, if nobody else has a turn
LONG = """

async def chatter(visit: carnet.Visit) -> AsyncIterator[str]:
    note(visit)
    for _ in range(int(visit.text)):
        yield "a "


async def stubborn_loop(visit: carnet.Visit) -> str:
    import time

    note(visit)
    began = time.thread_time()
    while time.thread_time() - began < float(visit.text):
        pass
    return "done"
"""
CONFIG = """
[agents.chatter]
kind = "python"
target = "agents:chatter"

[agents.holds]
kind = "python"
target = "agents:stubborn_loop"

[agents.deltas]
kind = "openai"
url = "{url}/deltas/v1"
"""


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, hostile: Hostile
) -> Iterator[tuple[Organisation, Organisation]]:
    folder = tmp_path_factory.mktemp("loop")
    acme = organisation(folder / "acme", "acme.example")
    globex = organisation(folder / "globex", "globex.example")
    introduce(acme, globex)
    for gateway in (acme, globex):
        gateway.configure(CONFIG.format(url=hostile.url), agents=AGENTS + LONG)
        gateway.start()
    yield acme, globex
    assert (acme.stop(), globex.stop()) == (0, 0)


def text_of(gateway: Organisation, text: str, agent: str, **more: Any) -> str:
    reply = gateway.chat(text, agent, **more)
    assert reply.status == 200, reply.body[:200]
    return str(json.loads(reply.body)["choices"][0]["message"]["content"])


def test_a_long_whole_answer_of_small_words_holds_the_loop_for_nobody(
    pair: tuple[Organisation, Organisation],
) -> None:
    """A73: an agent that never waits, whose words run together in the record."""
    acme, _ = pair
    assert text_of(acme, str(WORDS), "chatter") == "a " * WORDS
    assert acme.held() == []


def test_nor_does_one_that_a_peer_gives(pair: tuple[Organisation, Organisation]) -> None:
    """A73: through two gateways."""
    acme, globex = pair
    assert text_of(acme, str(WORDS), "@chatter@globex.example") == "a " * WORDS
    assert acme.held() == globex.held() == []


def test_nor_does_a_stream_of_tiny_deltas(pair: tuple[Organisation, Organisation]) -> None:
    """A73: whether a stream was asked for or not."""
    acme, _ = pair
    assert text_of(acme, str(WORDS // 2), "deltas") == "a " * (WORDS // 2)
    reply = acme.chat(str(WORDS // 2), "deltas", stream=True)
    assert reply.body.endswith(b"data: [DONE]\n\n")
    assert acme.held() == []


def test_nor_does_a_body_of_many_parts(pair: tuple[Organisation, Organisation]) -> None:
    """A73: it is parsed beside the loop, whatever comes of it."""
    acme, _ = pair
    parts = b",".join([b'{"a\\u0041":[1.5,{}]}'] * 24_000)
    body = b'{"model":"echo","messages":[{"role":"user","content":"hi"}],"metadata":{"x":[%b]}}'
    fields = [("authorization", f"Bearer {acme.token}"), ("content-type", "application/json")]
    for _ in range(4):
        url = acme.url + "/v1/chat/completions"
        assert request("POST", url, fields, body % parts).status in {200, 400}
    assert acme.held() == []


def loop_seconds(gateway: Organisation) -> float:
    """How long the thread of the event loop has worked so far."""
    assert gateway.process is not None
    pid = gateway.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_eight_megabytes_take_as_much_of_the_loop_as_eight_times_one(
    pair: tuple[Organisation, Organisation],
) -> None:
    """A73: read, recorded and answered; the best of a few."""
    acme, _ = pair
    least = []
    for megabytes in (1, 8):
        took = []
        for _ in range(4):
            before = loop_seconds(acme)
            assert acme.chat("word " * (megabytes * 200_000), "echo").status == 200
            took.append(loop_seconds(acme) - before)
        least.append(min(took))
    assert least[1] / least[0] < SQUARE


def test_a_body_of_tiny_chunks_is_refused_early(pair: tuple[Organisation, Organisation]) -> None:
    """A73: each of them costs a call."""
    acme, _ = pair
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: acme\r\nauthorization: Bearer %b\r\n"
        b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    ) % acme.token.encode()
    with socket.create_connection(("127.0.0.1", acme.port), timeout=60) as line:
        line.sendall(head + b"1\r\nx\r\n" * 20_000)
        reply = line.recv(65536)
    assert reply.startswith(b"HTTP/1.1 400 ")


def test_what_was_said_at_length_is_read_again_in_pieces(
    pair: tuple[Organisation, Organisation],
) -> None:
    """A73, A74: no row of the journal is larger than a piece; the answer is what it was."""
    acme, _ = pair
    run = [("x-tangle-runid", "long-run"), ("x-tangle-turnid", "long-run.t0")]
    first = acme.chat("x" * 3_000_000, "echo", headers=run)
    again = acme.chat("x" * 3_000_000, "echo", headers=run)
    assert first.body == again.body
    events = acme.get("/runs/long-run/events").body
    frames = [line for line in events.splitlines() if line.startswith(b'data: {"turn"')]
    texts = [json.loads(line[6:]).get("text", "") for line in frames]
    assert "".join(texts) == "x" * 3_000_000
    assert max(map(len, texts)) <= 256 * 1024
    assert acme.held() == []


def test_who_holds_the_loop_is_named(tmp_path: Path) -> None:
    """A73: in the log, with the call that did it, and in a metric."""
    acme = organisation(tmp_path / "acme", "acme.example")
    acme.may_hold_loop = True
    acme.configure(CONFIG.format(url="http://127.0.0.1:9"), agents=AGENTS + LONG)
    acme.start()
    run = [("x-tangle-runid", "greedy"), ("x-tangle-turnid", "greedy.t0")]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(acme.chat, "0.8", "holds", headers=run).result().status == 200
    until(lambda: b"event loop was held" in acme.log.read_bytes())
    found = acme.held()
    assert "stubborn_loop" in str(found[0]["detail"])
    assert (found[0]["run"], found[0]["agent"]) == ("greedy", "holds")
    token = acme.new_token("watch", "--scope", "metrics")
    assert b"carnet_loop_held_seconds_count 1.0" in acme.get("/metrics", token=token).body
    acme.stop()
