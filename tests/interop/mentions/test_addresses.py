"""Agents as others find them by their addresses: M01-M14, at a real gateway."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from carnet.testing.stage import Organisation, Stage
from carnet.wire.mentions.card import write_mode

SECTIONS = """
[agents.Foo-Bar]
kind = "python"
target = "agents:echo"
trust = "public"
description = "Says it again."
price = "0.01"

[agents.quiet]
kind = "python"
target = "agents:echo"
trust = "trusted-peers"

[agents.twin]
kind = "python"
target = "agents:echo"
trust = "public"

[agents.Twin]
kind = "python"
target = "agents:echo"
trust = "public"
"""
CARD_REL = "https://mentionable.dev/ns/rel/agent-card"
PROFILE_REL = "http://webfinger.net/rel/profile-page"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("addresses")) as stage:
        yield stage


@pytest.fixture(scope="module")
def acme(stage: Stage) -> Organisation:
    made = stage.organisation("acme.example", config=SECTIONS)
    made.start()
    return made


def get(organisation: Organisation, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{organisation.port}{path}", timeout=30)


def finger(acme: Organisation, resource: str, more: str = "") -> httpx.Response:
    query = str(httpx.QueryParams({"resource": resource}))
    return get(acme, f"/.well-known/webfinger?{query}{more}")


@pytest.mark.parametrize(
    "resource",
    ["acct:foo-bar@acme.example", "ACCT:FOO-BAR@ACME.EXAMPLE", "acct:Foo-Bar@acme.example"],
)
def test_an_address_leads_to_the_card_in_whatever_case(resource: str, acme: Organisation) -> None:
    found = finger(acme, resource)  # M07, M08
    assert found.status_code == 200
    assert found.headers["content-type"] == "application/jrd+json"
    base = f"http://127.0.0.1:{acme.port}"
    assert found.json() == {
        "subject": "acct:foo-bar@acme.example",
        "links": [
            {
                "rel": CARD_REL,
                "type": "application/json",
                "href": f"{base}/.well-known/agent-card/Foo-Bar",
            },
            {
                "rel": PROFILE_REL,
                "type": "text/html",
                "href": f"{base}/agents/Foo-Bar/.well-known/agent-card.json",
            },
        ],
    }
    only = finger(acme, resource, f"&rel={CARD_REL}").json()
    assert [link["rel"] for link in only["links"]] == [CARD_REL]


@pytest.mark.parametrize(
    "resource",
    [
        *("acct:nobody@acme.example", "acct:foo-bar@other.example", "foo-bar@acme.example"),
        *("acct:no-at-symbol", "acct:@acme.example", "acct:foo bar@acme.example"),
        *("acct:foo/bar@acme.example", "acct:..@acme.example", "acct:.@acme.example"),
        *("acct:a@b@acme.example", "acct:foo-bar@localhost", f"acct:{'a' * 65}@acme.example"),
        *("acct:twin@acme.example", "acct:Twin@acme.example", "x" * 2000, ""),  # M10
    ],
)
def test_what_leads_to_nobody_is_not_found(resource: str, acme: Organisation) -> None:
    found = finger(acme, resource)
    assert (found.status_code, found.json()["code"]) == (404, "agent_not_found")


def test_two_resources_or_none_are_nobody(acme: Organisation) -> None:
    assert get(acme, "/.well-known/webfinger").status_code == 404
    twice = "resource=acct:echo@acme.example&resource=acct:echo@acme.example"
    assert get(acme, f"/.well-known/webfinger?{twice}").status_code == 404


def test_the_card_of_an_address_has_the_shape_of_the_specification(acme: Organisation) -> None:
    card: dict[str, Any] = get(acme, "/.well-known/agent-card/foo-bar").json()  # M13
    base = f"http://127.0.0.1:{acme.port}/agents/Foo-Bar"
    assert (card["address"], card["name"]) == ("@Foo-Bar@acme.example", "Foo-Bar")
    assert (card["protocol_version"], card["description"]) == ("0.1", "Says it again.")
    a2a = card["a2a"]
    assert (a2a["endpoint"], a2a["transport"]) == (f"{base}/a2a", "https+sse")
    assert a2a["capabilities"]["streaming"] is True
    uris = [each["uri"] for each in a2a["capabilities"]["extensions"]]
    assert "urn:carnet:a2a:terms:v1" in uris
    assert a2a["input_modes"][0] == {"kind": "text", "mime": "text/plain"}
    assert [skill["id"] for skill in a2a["skills"]] == ["chat"]
    assert card["mentionable"]["a2a_card"] == f"{base}/.well-known/agent-card.json"
    for name in ("nobody", "twin", "Twin", "a b"):
        assert get(acme, f"/.well-known/agent-card/{name}").status_code == 404


def test_modes_have_their_kinds() -> None:  # M14
    assert write_mode("text") == {"kind": "text", "mime": "text/plain"}
    assert write_mode("text/markdown") == {"kind": "text", "mime": "text/markdown"}
    assert write_mode("image/png") == {"kind": "file", "mime": "image/png"}
    assert write_mode("link") == {"kind": "link"}


def test_the_directory_lists_those_alone_that_are_public(acme: Organisation) -> None:
    page = get(acme, "/.well-known/mentionable-agents.json").json()
    assert (page["@type"], page["name"]) == ("Organization", "acme.example")
    points = page["contactPoint"]
    assert {each["@type"] for each in points} == {"ContactPoint"}
    listed = {each["identifier"] for each in points}
    assert listed == {"@echo@acme.example", "@Foo-Bar@acme.example"}  # neither twins nor quiet


def test_nobody_is_led_to_an_address_without_https(stage: Stage) -> None:  # M11
    made = stage.organisation("plain.example")
    path, plain = made.folder / "carnet.toml", 'public_url = "http://gw.plain.example"'
    path.write_text(path.read_text().replace("[gateway]", f"[gateway]\n{plain}", 1))
    made.start()
    assert finger(made, "acct:echo@plain.example").status_code == 404
    assert get(made, "/.well-known/agent-card/echo").status_code == 404
    assert get(made, "/.well-known/mentionable-agents.json").status_code == 404
    assert get(made, "/.well-known/agent-card.json").status_code == 200
