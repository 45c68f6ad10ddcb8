"""What somebody writes into a value stays inside the value, in the log too."""

import json

import pytest

from tests.security.support.scene import LOG, RUN, Scene, fresh, leaks, settle

FORGED = '\n{"level":"critical","message":"forged"}\r\n'
ESCAPES = "\x1b[2J\x1b[31mred\x07\x9b\x00"
FIRST = ["timestamp", "correlation_id", "component", "level", "message", "run", "turn"]
MOST_LINE = 8192


@pytest.mark.parametrize(
    "given",
    [FORGED, ESCAPES, "\u2028\u0085{}", "x" * 1_000_000, "\\n", "%s %d %(name)s", "\ufffe\ud7ff"],
    ids=["line", "escapes", "breaks", "long", "escaped", "format", "odd"],
)
def test_no_value_can_write_a_line_of_its_own(scene: Scene, given: str) -> None:
    """A60: one JSON object a line, control characters escaped, values cut."""
    log = scene.acme.folder / LOG
    settle(scene.acme)
    before = log.stat().st_size
    reply = scene.acme.chat("hi", f"agent-{given}", token=scene.alice)
    assert reply.status in {400, 404, 422}
    reply = scene.acme.chat(given, "echo", token=scene.alice, headers=[("user-agent", "x" * 900)])
    assert reply.status == 200
    scene.acme.get("/runs/%0A%7B%22level%22%3A%22critical%22%7D", token=scene.alice)
    scene.acme.chat("hi", headers=[(RUN, '{"level":"critical","message":"forged"}')])
    settle(scene.acme)
    data = log.read_bytes()[before:]
    assert not any((byte < 32 and byte != 10) or byte == 127 for byte in data)
    assert "\u2028" not in data.decode()
    for line in data.decode().removesuffix("\n").split("\n"):
        found = json.loads(line)
        assert list(found)[:7] == FIRST
        assert found["level"] in {"info", "warning"}
        assert found["message"] != "forged"
        assert len(line.encode()) <= MOST_LINE
        assert all(len(value) <= 1024 for value in found.values() if isinstance(value, str))


@pytest.mark.parametrize(
    "secret",
    [
        "sk-tan-canary-of-a-log-0001",
        "ck_canary-of-a-log-0002",
        "eyJhbGciOiJub25lIn0.eyJjYW5hcnkiOjF9.",
        "Bearer canary.of.a.log.0003",
    ],
)
def test_a_credential_in_the_wrong_place_is_not_logged(scene: Scene, secret: str) -> None:
    """A60, D10: where nobody expects one, the pattern finds it."""
    run = fresh("misplaced")
    replies = [
        scene.acme.chat("hi", secret, token=scene.alice, headers=[(RUN, run)]),
        scene.acme.chat("hi", f"@{secret}@nobody.example", token=scene.alice),
        scene.acme.get(f"/-/errors/{secret.replace(' ', '%20')}", token=scene.alice),
    ]
    assert all(reply.status in {400, 404, 422} for reply in replies)
    assert leaks(scene, secret.removeprefix("Bearer "), *replies) == []
