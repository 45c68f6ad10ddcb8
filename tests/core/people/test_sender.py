"""Who sends a call, by what was proved of the caller and of its path."""

from carnet.core.people.identity import Actor, Caller, Standing
from carnet.core.people.sender import sender_of


def caller(name: str, how: str = "token", domain: str | None = None, by: str = "") -> Caller:
    standing = Standing(sender=by) if by else None
    actor = Actor(name=name, how=how, domain=domain)
    return Caller(actor=actor, scopes=frozenset(), standing=standing)


def test_a_person_has_an_address_and_a_machine_has_none() -> None:
    person = sender_of(caller("token:alice"), (), domain="a.example", person="@alice@a.example")
    assert (person.address, person.is_agent) == ("@alice@a.example", False)
    assert sender_of(caller("token:ci"), (), domain="a.example").address is None
    peer = sender_of(caller("peer:b.example", domain="b.example"), (), domain="a.example")
    assert (peer.address, peer.domain, peer.is_agent) == (None, "b.example", True)


def test_of_a_path_the_last_counts_where_it_is_of_the_signer() -> None:
    """What a signer says of others is no proof."""
    signed = caller("peer:b.example", "signature", "b.example", "agent://b.example")
    own = sender_of(signed, ("@x@c.example", "@y@b.example"), domain="a.example")
    assert own.address == "@y@b.example"
    for path in (("@x@c.example",), ("no handle",), ()):
        assert sender_of(signed, path, domain="a.example").address == "agent://b.example"


def test_who_calls_in_process_is_an_agent_of_ours() -> None:
    inside = caller("agent:relay", "in_process")
    assert sender_of(inside, (), domain="a.example").address == "@relay@a.example"
    assert sender_of(inside, ("@relay@a.example",), domain="").address == "@relay@a.example"
