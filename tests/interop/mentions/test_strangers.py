"""Agents of organisations that are no peers, called by their addresses: R42."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from carnet.testing.stage import Organisation, Stage
from carnet.testing.wait import until
from tests.interop.mentions.conftest import speak
from tests.support.http import Reply, request

AGENTS = """
import json

import carnet


@carnet.agent("teller")
async def teller(visit):
    chain = visit.chain
    yield json.dumps([visit.text, chain.hop, chain.cap, visit.sender.address])


@carnet.agent("caller")
async def caller(visit):
    name, _, text = visit.text.partition(" ")
    yield await visit.peer(name).ask(text)
"""
PUBLIC = """
[agents.teller]
kind = "python"
target = "agents:teller"
trust = "public"

[agents.seller]
kind = "python"
target = "agents:echo"
trust = "public"
price = "0.25"
"""
LIMITS = """
[limits]
strangers = 1
"""
CALLER = """
[agents.caller]
kind = "python"
target = "agents:caller"
"""
TELLER = "@teller@globex.example"


class Strangers(NamedTuple):
    """One that calls strangers, one that does not, and a stranger."""

    acme: Organisation
    shy: Organisation
    globex: Organisation
    few: Organisation  # which remembers one for each caller


def enable(made: Organisation, *lines: str) -> None:
    path = made.folder / "carnet.toml"
    path.write_text(path.read_text().replace("[gateway]", "\n".join(("[gateway]", *lines)), 1))


def pin(at: Organisation, of: Organisation) -> None:
    """Let one verify the signed calls of the other, which no name server could lead it to."""
    key = of.json("keys", "list")["keys"][0]["key"]
    at.carnet("peers", "add", f"agent://{of.domain}", "--key", key)


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Strangers]:
    with Stage(tmp_path_factory.mktemp("strangers")) as stage:
        globex = stage.organisation("globex.example", config=PUBLIC, agents=AGENTS)
        place = f'[egress]\nfound_at = ["globex.example=http://127.0.0.1:{globex.port}"]\n'
        acme = stage.organisation("acme.example", config=CALLER + place, agents=AGENTS)
        enable(acme, "strangers = true")
        shy = stage.organisation("shy.example", config=CALLER + PUBLIC + place, agents=AGENTS)
        also = f'"shy.example=http://127.0.0.1:{shy.port}", '
        both = place.replace("found_at = [", f"found_at = [{also}")
        few = stage.organisation("few.example", config=CALLER + both + LIMITS, agents=AGENTS)
        enable(few, "strangers = true")
        pin(globex, acme)
        pin(globex, few)
        pin(shy, few)
        globex.carnet(
            "peers", "add", "acme.example", "--url", "http://127.0.0.1:9", "--credit", "5"
        )
        for each in (globex, acme, shy, few):
            each.start()
        yield Strangers(acme, shy, globex, few)


def chat(
    acme: Organisation, agent: str, text: str, *headers: tuple[str, str], token: str = ""
) -> Reply:
    bearer = token or acme.token
    fields = [("authorization", f"Bearer {bearer}"), ("content-type", "application/json")]
    body = {"model": agent, "messages": [{"role": "user", "content": text}]}
    url = f"http://127.0.0.1:{acme.port}/v1/chat/completions"
    return request("POST", url, [*fields, *headers], json.dumps(body).encode())


def test_an_agent_of_a_stranger_is_called_by_its_address(strangers: Strangers) -> None:
    stated = json.loads(strangers.acme.carnet("call", TELLER, "hi").stdout)
    assert stated == ["hi", 1, 4, "agent://acme.example"]
    (met,) = strangers.acme.json("peers", "list")["strangers"]
    assert (met["domain"], met["offered"], met["confirmed"]) == ("globex.example", None, False)
    assert met["keys"] == [strangers.globex.json("keys", "list")["keys"][0]["key"]]


def test_an_agent_and_a_person_in_a_chat_call_one_as_well(strangers: Strangers) -> None:
    stated = json.loads(strangers.acme.ask("caller", f"{TELLER} from an agent"))
    assert stated[:3] == ["from an agent", 1, 4]
    spoken = speak(strangers.acme, f"{TELLER} from a chat")
    assert json.loads(spoken.voices[0][1])[:3] == [f"{TELLER} from a chat", 1, 4]
    spoken = speak(strangers.acme, f"hear {TELLER}", agent="echo")
    author, text = spoken.voices[1]
    assert (author, json.loads(text)[1:3]) == (TELLER, [1, 4])


def test_without_the_setting_a_stranger_is_unknown(strangers: Strangers) -> None:
    ran = strangers.shy.try_carnet("call", TELLER, "hi")
    assert ran.returncode == 1
    assert "peer_unknown" in ran.stdout + ran.stderr
    assert strangers.shy.json("peers", "list")["strangers"] == []


def test_an_address_that_leads_to_nobody_is_told_so(strangers: Strangers) -> None:
    ran = strangers.acme.try_carnet("call", "@nobody@globex.example", "hi")
    assert "peer_agent_not_found" in ran.stdout + ran.stderr


def test_a_price_above_the_limit_asks_a_person_first(strangers: Strangers) -> None:
    acme, globex = strangers.acme, strangers.globex
    seller = "@seller@globex.example"
    before = len(globex.json("runs")["runs"])
    ran = acme.try_carnet("call", seller, "a report")
    assert "0.25 credits" in ran.stdout + ran.stderr
    assert len(globex.json("runs")["runs"]) == before  # nobody was called
    (asked,) = acme.json("inbox")["approvals"]
    acme.carnet("inbox", "deny", asked["id"])
    assert len(globex.json("runs")["runs"]) == before
    waits = chat(acme, seller, "another report")
    assert (waits.status, waits.json["code"]) == (403, "approval_required")
    assert waits.json["error"]["interrupt"]["amount"] == "0.25"
    (asked,) = acme.json("inbox")["approvals"]
    acme.carnet("inbox", "approve", asked["id"])
    same = [(name, waits.headers[name]) for name in ("x-tangle-runid", "x-tangle-turnid")]
    done = chat(acme, seller, "another report", *same)
    assert (done.status, done.text) == (200, "another report")
    assert done.json["usage"]["cost"] == "0.25"
    assert len(globex.json("runs")["runs"]) == before + 1


def test_a_price_that_was_agreed_to_is_set_aside(strangers: Strangers) -> None:
    acme, globex = strangers.acme, strangers.globex
    token = acme.new_token("thrifty", "--limit", "0.3")
    before = len(globex.json("runs")["runs"])
    asked = []
    for text in ("one report", "two reports"):
        waits = chat(acme, "@seller@globex.example", text, token=token)
        assert waits.json["code"] == "approval_required"
        asked.append(waits.json["error"]["interrupt"]["id"])
    acme.carnet("inbox", "approve", asked[0])
    second = acme.try_carnet("inbox", "approve", asked[1])
    assert "spending_limit_reached" in second.stdout + second.stderr
    ran = until(lambda: globex.json("runs")["runs"][: -before or None])
    assert len(ran) == 1  # nobody was called for what cannot be paid
    acme.carnet("inbox", "deny", asked[1])


def test_who_has_met_as_many_as_may_be_keeps_nobody_else_from_it(strangers: Strangers) -> None:
    few, other = strangers.few, "@teller@shy.example"
    token = few.new_token("another")
    assert chat(few, TELLER, "first").status == 200
    refused = chat(few, other, "second")
    assert (refused.status, refused.json["code"]) == (503, "overloaded")
    assert chat(few, other, "of another", token=token).status == 200
    assert chat(few, other, "whom she knows now").status == 200


def test_a_key_that_changed_is_refused_until_a_person_says_yes(strangers: Strangers) -> None:
    acme, globex = strangers.acme, strangers.globex
    acme.carnet("call", TELLER, "before")
    (old,) = acme.json("peers", "list")["strangers"][0]["keys"]
    (first,) = globex.json("keys", "list")["keys"]
    globex.carnet("keys", "rotate", "--at-once")
    acme.carnet("call", TELLER, "with both")
    globex.carnet("keys", "revoke", first["kid"])
    (new,) = [one["key"] for one in globex.json("keys", "list")["keys"] if one["key"] != old]
    globex.stop()
    globex.start()
    acme.stop()
    acme.start()  # it would look at the keys again in five minutes
    reply = chat(acme, TELLER, "x")
    assert (reply.status, reply.json["code"]) == (403, "stranger_key_changed")
    assert "carnet peers confirm globex.example" in reply.json["error"]["hint"]
    (met,) = acme.json("peers", "list")["strangers"]
    assert (met["keys"], met["offered"]) == ([old], [new])
    confirmed = acme.json("peers", "confirm", "globex.example")
    assert (confirmed["keys"], confirmed["confirmed"]) == ([new], True)
    assert json.loads(acme.carnet("call", TELLER, "after").stdout)[0] == "after"
    assert acme.try_carnet("peers", "confirm", "globex.example").returncode == 2
