"""Both sides rotate their keys while calls go to and fro, and nobody is refused (D11, G13)."""

import json
import threading
from base64 import urlsafe_b64decode
from pathlib import Path

from carnet.testing.wait import until
from tests.support.federation import organisation
from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.travel.middlebox import Middlebox, middlebox
from tests.travel.scene import acquaint

LEAD = 6  # seconds; a peer looks at our page again when it is five seconds old
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.25  # two threads stay within the rate of a sender, however long it takes


class Stream:
    """Calls, one after another in two threads, until it is closed."""

    def __init__(self, caller: Organisation) -> None:
        self.replies: list[Reply] = []
        self._caller = caller
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._call) for _ in range(2)]

    def _call(self) -> None:
        while not self._ended.wait(PAUSE_SECONDS):
            self.replies.append(self._caller.chat("hi", "@paid@b.example"))

    def __enter__(self) -> "Stream":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


def asked_with(box: Middlebox) -> str:
    """The key of the latest request."""
    given: str = box.asked[-1].headers["signature-input"]
    return given.partition('keyid="')[2].partition('"')[0]


def answered_with(box: Middlebox) -> str:
    """The key of the latest receipt."""
    head = box.answered[-1].headers["carnet-receipt"].split(".")[0]
    return str(json.loads(urlsafe_b64decode(head + "==="))["kid"])


def shown(gateway: Organisation) -> list[tuple[str, bool, bool]]:
    """The keys of its page: whether others honour them, and whether they have an end."""
    page = request("GET", gateway.url + "/.well-known/carnet.json").json
    keys = sorted(page["keys"], key=lambda key: key["not_after"] is not None)
    return [(key["kid"], key["active"], key["not_after"] is not None) for key in keys]


def rotate(gateway: Organisation) -> tuple[str, str]:
    """The names of the new key and the old one."""
    page = gateway.json("keys", "rotate", "--lead", f"{LEAD}s", "--overlap", "1h")
    assert (page["state"], page["replaces"]["state"]) == ("next", "active")
    return page["kid"], page["replaces"]["kid"]


def test_no_call_fails_while_both_sides_replace_the_keys_they_sign_with(tmp_path: Path) -> None:
    a, b = (organisation(tmp_path / name, f"{name}.example") for name in "ab")
    with middlebox(b.port) as box:
        acquaint(a, b, url=box.url)
        a.start()
        b.start()
        try:
            assert a.chat("hi", "@paid@b.example").status == 200
            with Stream(a) as stream:
                names = [rotate(a), rotate(b)]
                until(
                    lambda: (asked_with(box), answered_with(box)),
                    lambda seen: seen == (names[0][0], names[1][0]),
                )
            assert {reply.status for reply in stream.replies} == {200}
            assert a.chat("hi", "@paid@b.example").status == 200
            for gateway, (new, old) in zip((a, b), names, strict=True):
                assert shown(gateway) == [(new, True, False), (old, True, True)]
                states = [key["state"] for key in gateway.json("keys", "list")["keys"]]
                assert states == ["active", "retiring"]
            inspected = a.json("agents", "inspect", b.url)["keys"]
            assert [key["not_after"] is None for key in inspected] == [True, False]
            assert "until 2" in a.carnet("agents", "inspect", b.url).stdout
        finally:
            a.stop()
            b.stop()
