"""The page about payments: what it tells people to type works, and is true."""

import base64
import json
import re
from pathlib import Path

from carnet.errors import refused_payment
from tests.docs.test_quickstart import ROOT, blocks_of
from tests.support.organisation import Organisation

PAGE = ROOT / "docs" / "payers.md"
AGENTS = '\n[agents.summarise]\ntarget = "agents:echo"\nprice = "0.0002"\n'


def blocks(language: str) -> list[str]:
    return [block.text for block in blocks_of(PAGE) if block.language == language]


def test_every_reason_is_on_the_page_and_no_other() -> None:
    table = PAGE.read_text().partition("| reason | what it is |")[2].partition("##")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    shown = {word for cell in first for word in re.findall(r"`(\w+)`", cell)}
    known = set(refused_payment._REASONS)  # noqa: SLF001  all there are
    assert shown == known


def test_its_commands_and_its_configuration_work(tmp_path: Path) -> None:
    acme = Organisation(tmp_path / "acme", "acme.example")
    globex = Organisation(tmp_path / "globex", "globex.example")
    taking, plugged, _ = blocks("toml")
    (globex.folder / "payments.py").write_text(blocks("python")[1])
    globex.configure(taking + plugged + AGENTS)
    assert globex.try_carnet("config", "check", "--load").returncode == 0
    listing, issuing, calling, looking, inspecting = blocks("sh")
    acme.start()
    globex.start()
    (listed,) = words_of(listing)
    globex.carnet(*[acme.url if word.startswith("http://") else word for word in listed])
    (issued,) = words_of(issuing)
    made = acme.json(*issued)
    (globex.folder / "voucher.txt").write_text(made["voucher"])
    (inspected,) = words_of(inspecting)
    assert globex.json(*inspected)["holds"] is True
    (called,) = words_of(calling)
    assert globex.carnet(*called).stdout == "Three lines, please.\n"
    (posting,) = globex.json("ledger")["entries"]
    assert posting["debit"] == f"alice#{made['id']}@acme.example"
    for command in words_of(looking):
        acme.carnet(*[made["id"] if word == "ID" else word for word in command])
    proof = {"scheme": "exact", "payload": {"from": "0xab", "nonce": "0x1"}}
    payment = "x402:" + base64.b64encode(json.dumps(proof).encode()).decode()
    assert globex.chat("hi", "summarise", headers=[("carnet-payment", payment)]).status == 200
    acme.stop()
    globex.stop()


def words_of(block: str) -> list[list[str]]:
    lines = [line for line in block.splitlines() if line and not line.startswith("#")]
    found = [re.findall(r'"[^"]*"|\S+', line)[1:] for line in lines]
    return [[word.strip('"') for word in words] for words in found]
