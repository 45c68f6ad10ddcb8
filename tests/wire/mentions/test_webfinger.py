"""WebFinger documents: ours are read back, and of others' only what was asked for is taken."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.people.address import Address
from carnet.errors import PeerUnreachable
from carnet.wire.grammar.query import read_query
from carnet.wire.mentions.webfinger import (
    CARD_REL,
    FORMER_CARD_REL,
    question_of,
    read_card_url,
    read_resource,
    write_document,
)

FOO = Address("Foo", "bar.test")
CARD = "https://bar.test/.well-known/agent-card/Foo"
NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)


def document(**more: Any) -> bytes:
    link = {"rel": CARD_REL, "href": CARD}
    return json.dumps({"subject": "acct:foo@bar.test", "links": [link], **more}).encode()


@given(NAMES)
def test_what_is_written_is_read(name: str) -> None:
    address = Address(name, "bar.test")
    written = write_document(address, card=CARD, page="https://bar.test/", rels=[])
    assert read_card_url(json.dumps(written).encode(), address) == CARD
    asked = read_resource(read_query(question_of(address).partition("?")[2]))
    assert asked == Address(name.lower(), "bar.test")


def test_the_links_stand_in_their_order_and_as_they_are_asked_for() -> None:
    written = write_document(FOO, card=CARD, page="https://bar.test/", rels=[])
    assert written["subject"] == "acct:foo@bar.test"
    assert [link["rel"] for link in written["links"]] == [
        CARD_REL,
        "http://webfinger.net/rel/profile-page",
    ]
    assert write_document(FOO, card=CARD, page="x", rels=["other"])["links"] == []


def test_the_former_relation_is_read_and_the_present_one_comes_first() -> None:
    former = {"rel": FORMER_CARD_REL, "href": "https://old.test/card"}
    assert read_card_url(document(links=[former]), FOO) == "https://old.test/card"
    both = [former, {"rel": CARD_REL, "href": CARD}]
    assert read_card_url(document(links=both), FOO) == CARD
    assert FORMER_CARD_REL not in json.dumps(write_document(FOO, card=CARD, page="x", rels=[]))


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"{}", b"nothing", document(subject="acct:other@bar.test")),
        *(document(subject="acct:foo@evil.test"), document(subject=None), document(subject=5)),
        *(document(links=None), document(links=[]), document(links=["x"])),
        document(links=[{"rel": "other", "href": CARD}]),
        document(links=[{"rel": CARD_REL, "href": "ftp://bar.test/"}]),
        document(links=[{"rel": CARD_REL, "href": 5}]),
        document(links=[{"rel": CARD_REL, "href": "https://bar.test/" + "x" * 3000}]),
        document(links=[{"rel": CARD_REL}]),
        document(links=[{"rel": "x"}] * 100),
    ],
)
def test_what_tells_of_nobody_that_was_asked_for_is_refused(body: bytes) -> None:
    with pytest.raises(PeerUnreachable):
        read_card_url(body, FOO)


@pytest.mark.parametrize(
    "query",
    [
        *("", "resource=", "resource=foo@bar.test", "resource=acct:foo", "resource=acct:a@b@c.de"),
        *("resource=acct:foo@localhost", "resource=acct:foo@bar.test&resource=acct:foo@bar.test"),
        *("resource=https://bar.test/foo", "resource=acct:%0afoo@bar.test"),
    ],
)
def test_a_question_about_nobody_is_none(query: str) -> None:
    assert read_resource(read_query(query)) is None
