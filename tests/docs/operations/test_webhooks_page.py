"""What the page about webhooks shows works as it stands."""

import inspect
import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from carnet.errors import CarnetError
from carnet.runtime.egress.addresses import Allowed
from carnet.runtime.system import SystemClock
from carnet.runtime.webhooks import callbacks, dispatcher, payload, schedule
from carnet.stores.upkeep import retention
from tests.docs.test_quickstart import ROOT, blocks_of
from tests.runtime.webhooks.deliveries import BODY, SECRET, delivery
from tests.runtime.webhooks.deliveries import webhooks as signing_now
from tests.runtime.webhooks.test_payload import ENVELOPE, KEY

PAGE = ROOT / "docs" / "operations" / "webhooks.md"


def snippets() -> list[Callable[..., Any]]:
    """The functions that the page shows, with a secret that is one."""
    found = []
    for block in blocks_of(PAGE):
        if block.language == "python":
            scene: dict[str, Any] = {"__name__": "webhooks_page"}
            exec(block.text.replace("whsec_...", SECRET.reveal()), scene)  # noqa: S102  our own page
            found.append(scene["received"])
    return found


def test_its_snippets_verify_what_is_sent_and_refuse_what_was_changed() -> None:
    headers = dict(signing_now(SystemClock()).request(delivery()).headers)
    ours, standard, sdk = snippets()
    assert ours(headers, BODY) == ENVELOPE
    assert standard(headers, BODY) == ENVELOPE
    assert sdk("/in", headers, BODY, KEY) is True
    with pytest.raises(CarnetError):
        ours(headers, BODY + b" ")
    with pytest.raises(Exception, match="No matching signature found"):
        standard(headers, BODY + b" ")
    assert sdk("/in", headers, BODY + b" ", KEY) is False


def test_its_numbers_are_those_of_the_program() -> None:
    assert tuple(map(seconds, waits())) == schedule.SCHEDULE
    text = PAGE.read_text()
    assert f"{retention.DELIVERY_DAYS} days" in text
    assert f"{callbacks.MOST_WAITING:,} deliveries of a sender wait" in text
    assert (dispatcher.PER_RECEIVER, dispatcher.AT_ONCE, dispatcher.LEASE_SECONDS) == (2, 16, 60)
    assert (payload.TOLERANCE_SECONDS, payload.MOST_ANSWER) == (300, 64 * 1024)
    assert (schedule.FIRST_PAUSE_SECONDS, schedule.MOST_PAUSE_SECONDS) == (5, 300)


def waits() -> list[str]:
    """The row of its table that says how long is waited."""
    (row,) = [
        line for line in PAGE.read_text().splitlines() if line.startswith("| after the one before")
    ]
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


def seconds(words: str) -> int:
    if words == "at once":
        return 0
    number, unit = words.split()
    return int(number) * {"s": 1, "min": 60, "h": 3600}[unit]


def test_what_it_configures_and_what_it_shows_can_be_read() -> None:
    for block in blocks_of(PAGE):
        if block.language == "toml":
            shown = tomllib.loads(block.text)
            Allowed(shown.get("egress", {}).get("allow", ()))
            assert shown.keys() <= {"inbox", "egress"}
            assert shown.get("inbox", {"notify": True})["notify"]
        if block.language == "json":
            shown = json.loads(block.text)
            written = inspect.getsource(dispatcher.notice_of)
            assert all(f'"{name}"' in written for name in [*shown, *shown["data"]])
