"""A person: her name, her addresses, and how she is called where somebody acts."""

import pytest

from carnet.core.people.identity import Actor, Token
from carnet.core.people.person import (
    Person,
    actor_id,
    check_display,
    check_person_address,
    check_person_name,
    check_unlike,
)
from carnet.errors import AddressInvalid

ACME = "acme.example"


@pytest.mark.parametrize("name", ["alice", "a", "alice-b", "a1", "x" * 63, "owner"])
def test_a_slug_is_a_name(name: str) -> None:
    assert check_person_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", "Alice", "1alice", "-a", "a-", "a_b", "a.b", "globex.example", "peer:globex.example"),
        *("agent:echo@acme.example", "service:x", "a:b", "@alice", "a@b", "al ice", "x" * 64),
        *("alice\n", "ali\u0441e", "xn--alice", "me", "operator", "peer", "agent", "service"),
    ],
)
def test_what_is_no_slug_or_names_a_machine_is_no_name(name: str) -> None:
    with pytest.raises(AddressInvalid):
        check_person_name(name)


@pytest.mark.parametrize("name", ["alice", "a1ice", "alicc-rn"])
def test_a_name_that_looks_like_another_is_refused(name: str) -> None:
    with pytest.raises(AddressInvalid):
        check_unlike(name, ["bob", "alice", "alicc-m"])
    assert check_unlike("carol", ["bob", "alice"]) == "carol"


@pytest.mark.parametrize(
    ("address", "stored"),
    [
        ("mailto:Alice@ACME.example", "mailto:Alice@acme.example"),
        ("MAILTO:alice@acme.example", "mailto:alice@acme.example"),
        ("@alice@elsewhere.example", "@alice@elsewhere.example"),
        ("https://alice.example/me", "https://alice.example/me"),
    ],
)
def test_another_address_has_one_stored_form(address: str, stored: str) -> None:
    assert check_person_address(address, domain=ACME) == stored


@pytest.mark.parametrize(
    "address",
    [
        *("alice", "mailto:", "mailto:alice", "http://alice.example", "javascript:1", "@bob"),
        *("@bob@acme.example", "mailto:a b@acme.example", "https://" + "x" * 400),
    ],
)
def test_what_is_no_address_or_one_of_our_own_names_is_refused(address: str) -> None:
    with pytest.raises(AddressInvalid):
        check_person_address(address, domain=ACME)


@pytest.mark.parametrize("text", ["", " Alice", "x" * 101, "a\x1b[31m"])
def test_what_cannot_be_shown_is_no_display_name(text: str) -> None:
    with pytest.raises(AddressInvalid):
        check_display(text)
    assert check_display("Alice Ärzte") == "Alice Ärzte"


def test_a_person_has_a_handle_rights_and_a_state() -> None:
    alice = Person(n=1, name="alice", roles=("viewer",), permissions=frozenset({"metrics"}))
    assert alice.handle(ACME) == "@alice@acme.example"
    assert alice.rights == {"run:read", "metrics"}
    assert (alice.state, Person(n=1, name="alice", ended=2).state) == ("live", "ended")


def a_token(name: str, **more: object) -> Token:
    fields = {"n": 1, "hash": b"", "prefix": "", "scopes": frozenset(), "created": 0}
    return Token(name=name, **fields, **more)  # type: ignore[arg-type]  # the rest has its types


def test_who_acts_is_a_bare_name_or_says_which_machine_it_is() -> None:
    hers = a_token("laptop", person=1, holder="alice")
    assert actor_id(Actor(name="token:laptop"), hers, domain=ACME) == "alice"
    assert actor_id(Actor(name="token:ci"), a_token("ci"), domain=ACME) == "service:ci"
    assert actor_id(Actor(name="token:ci"), None, domain=ACME) == "service:ci"
    assert actor_id(Actor(name="peer:b.example"), None, domain=ACME) == "peer:b.example"
    assert actor_id(Actor(name="agent:echo"), None, domain=ACME) == "agent:echo@acme.example"
    assert actor_id(Actor(name="sender:agent://x.example"), None, domain=ACME) == (
        "sender:agent://x.example"
    )
