"""What is known of a task beside what was said."""

from msgspec.structs import replace

from carnet.core.messages.events import RECEIPT, STATEMENT, UNKNOWN_COST, Extension, Text, Usage
from carnet.core.people.proof import Document
from carnet.wire.dialects.a2a.answers.facts import facts_of_call, facts_of_turn, with_events
from carnet.wire.dialects.a2a.form import Form
from tests.wire.dialects.a2a.scene import MESSAGE, call
from tests.wire.dialects.scene import turn

DOCUMENT = Document(
    issuer="globex.example",
    audience="acme.example",
    issued=1,
    expires=2,
    run="conv_1",
    turn="turn_1",
    depth=1,
    last_depth=3,
    digest="d",
    keyid="k",
    signed=b"signed",
)


def test_who_told_actors_is_told_those_whom_we_know() -> None:
    named = Form(message={**MESSAGE, "metadata": {"actorChain": [{"actor": "forged"}]}})
    found = facts_of_call(call(named), "t", "acme.example")
    assert (found.path, found.on_behalf_of, found.proof) == (("@echo@acme.example",), (), None)
    known = call(named)
    carnet = replace(known.carnet, path=("@front@globex.example",), on_behalf_of=("ann",))
    signed = facts_of_call(replace(known, carnet=carnet, document=DOCUMENT), "t", "acme.example")
    assert signed.path == ("@front@globex.example", "@echo@acme.example")
    assert signed.on_behalf_of == ("ann",)
    assert signed.proof is not None
    assert signed.proof.startswith("sha-256:")
    for other in (Form(message={**MESSAGE, "metadata": {}}), Form(message=MESSAGE), Form()):
        assert facts_of_call(call(other), "t", "acme.example").path == ()
    assert facts_of_call(call(named), "t", "").path == ()


def test_what_was_used_and_signed_is_found_among_events() -> None:
    facts = facts_of_call(call(), "t", "acme.example")
    assert (facts.run, facts.turn, facts.usage) == ("conv_1", "turn_1", None)
    full = with_events(facts, [Text("a"), Usage(1, 2, 3, 4), Extension(RECEIPT, "eyJ")], "credits")
    assert full.usage == Usage(1, 2, 3, 4, "credits")
    assert full.receipt == "eyJ"
    stated = with_events(
        facts, [Extension(STATEMENT, {"issuer": "did:web:acme.example"})], "credits"
    )
    assert stated.statement == {"issuer": "did:web:acme.example"}
    assert with_events(facts, [Usage(1)], "credits").usage == Usage(1)
    assert with_events(facts, [Usage(), Extension("other", 1)], "credits").usage is None


def test_a_record_knows_what_was_used() -> None:
    facts = facts_of_turn(turn(tokens_in=1, cost=3, run_cost=4), "t", "credits")
    assert facts.usage == Usage(1, None, 3, 4, "credits")
    unknown = with_events(facts, [Extension(UNKNOWN_COST, None)], "credits")
    assert unknown.usage == Usage(1, None, None, 4, "credits")
    bare = facts_of_turn(turn(), "t", "credits")
    assert bare.usage is None
    assert with_events(bare, [Extension(UNKNOWN_COST, None)], "credits").usage is None
