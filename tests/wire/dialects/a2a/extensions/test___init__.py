"""All extensions together: what is read, written, negotiated and declared follows from the rows."""

from typing import Any

import pytest

from carnet.core.chain.carnet import Carnet, check_depth, merge
from carnet.core.messages.events import Usage
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.errors import ChainMismatch, DepthExceeded, InvalidRequest, MalformedCallerContext
from carnet.wire.dialects.a2a.extensions import (
    EXTENSIONS,
    NOTHING,
    InboundClaims,
    OutboundFacts,
    TaskFacts,
    activated,
    declared,
    echoed,
    read_answer,
    read_inbound,
    status_parts,
    unmet,
    wanted,
    write_outbound,
    write_reply,
    write_status,
    write_task,
)
from carnet.wire.dialects.a2a.extensions.actor_chain import KEY as ACTOR_CHAIN
from carnet.wire.dialects.a2a.extensions.ca2a import CA2A_URI, RECORD
from carnet.wire.dialects.a2a.extensions.datalayer import DATALAYER_URI
from carnet.wire.dialects.a2a.extensions.interrupt import INTERRUPT_URI
from carnet.wire.dialects.a2a.extensions.own import CHAIN_URI, TERMS_URI, USAGE_URI
from carnet.wire.dialects.a2a.extensions.questions.beeai import BEEAI_URI, KAGENTI_URI
from carnet.wire.dialects.a2a.extensions.questions.kagent import KAGENT_URI
from carnet.wire.dialects.a2a.extensions.questions.x402 import STATUS, X402_URI
from carnet.wire.dialects.a2a.extensions.trace_context import TRACE_URI
from carnet.wire.grammar.headers import Headers
from tests.wire.dialects.a2a.extensions.vectors import FOLDER, answered, cases, claimed

INBOUND, ANSWERS = cases("inbound"), cases("answer")
REFUSED, PASSED_OVER = cases("refused"), cases("passed_over")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CARNET = Carnet(run="r", turn="t", parent_turn="p", speaker="critic", depth=2, last_depth=3)
ASKED = Interrupt(kind="approval", id="int_1", state="s3cret", message="May it?")
URIS = tuple(uri for row in EXTENSIONS for uri in row.uris)


def read(message: object, request: object = None, **headers: str) -> InboundClaims:
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    return read_inbound(message, request, headers=Headers(fields), last_depth=3)


# ------------------------------------------------------------------ vectors


@pytest.mark.parametrize("name", INBOUND)
def test_what_a_message_says_is_read(name: str) -> None:
    _, case = INBOUND[name]
    assert claimed(case["metadata"]) == case["gives"]


@pytest.mark.parametrize("name", ANSWERS)
def test_what_an_answer_says_is_read(name: str) -> None:
    _, case = ANSWERS[name]
    assert answered(case["metadata"]) == case["gives"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_broken_in_ours_or_a_depth_that_is_none_is_refused(name: str) -> None:
    extension, case = REFUSED[name]
    is_asked = extension in {
        "interrupt",
        "policy",
        "skill",
    }  # what is asked for, and no context of a caller
    with pytest.raises(InvalidRequest if is_asked else MalformedCallerContext, match="metadata"):
        claimed(case["metadata"])


@pytest.mark.parametrize("name", PASSED_OVER)
def test_what_else_is_broken_is_passed_over_and_shown_as_broken(name: str) -> None:
    extension, case = PASSED_OVER[name]
    found = (claimed if case["side"] == "inbound" else answered)(case["metadata"])
    assert list(found["claimed"]) == [extension]
    assert list(found["claimed"][extension]) == ["broken"]
    others = ("marks", "resolution", "interrupts", "usage", "receipt", "trace", "budget")
    assert not any(found.get(name) for name in others)


def test_every_extension_that_is_read_has_vectors_of_both_kinds() -> None:
    read_ones = {row.name for row in EXTENSIONS if row.read or row.answer}
    assert {path.stem for path in FOLDER.glob("*.json")} == read_ones
    assert {name for name, _ in (*INBOUND.values(), *ANSWERS.values())} == read_ones
    assert {name for name, _ in (*REFUSED.values(), *PASSED_OVER.values())} == read_ones


def test_no_vector_shows_a_secret() -> None:
    for _, case in (*INBOUND.values(), *ANSWERS.values()):
        assert "s3cret" not in str(case["gives"]["claimed"])
        assert "secret" not in str(case["gives"]["claimed"])


# ------------------------------------------------------------------ claims


@pytest.mark.parametrize("empty", [None, {}, [], "x", 7])
def test_metadata_that_is_none_says_nothing(empty: object) -> None:
    assert read(empty, empty) is NOTHING
    assert read_answer(empty, currency="credits").claimed == {}
    assert read({"other": 1}) == InboundClaims()


def foreign(depth: int) -> dict[str, Any]:
    return {"datalayer": {"execution": {"rootExecutionId": "made-up", "depth": depth}}}


def test_a_foreign_depth_only_raises_ours_and_names_no_run() -> None:
    ours = {CHAIN_URI: {"run": "conv_1", "depth": 2}}
    for depth in (0, 1, 2):
        position = merge(read(ours | foreign(depth)).marks)
        assert (position.depth, position.run) == (2, "conv_1")
    assert merge(read(ours | foreign(3)).marks).depth == 3
    with pytest.raises(DepthExceeded):
        check_depth(merge(read(ours | foreign(4)).marks))
    assert merge(read(foreign(1)).marks).run is None


def test_a_chain_that_is_told_twice_and_differently_is_refused() -> None:
    chain = {CHAIN_URI: {"depth": 1}}
    assert len(read(chain, chain).marks) == 1
    with pytest.raises(ChainMismatch):
        read(chain, {CHAIN_URI: {"depth": 2}})
    assert read({}, chain).marks == read(chain).marks


def test_two_foreign_payloads_that_differ_are_shown_as_broken() -> None:
    found = read(foreign(1), foreign(2))
    assert (found.marks, found.claimed["datalayer"]) == (
        (),
        {"broken": "is told twice and differently"},
    )


def test_the_header_of_a_trace_wins() -> None:
    traced = {TRACE_URI: {"traceparent": PARENT}}
    found = read(traced, traceparent=OTHER)
    assert found.trace is not None
    assert found.trace.trace_id.startswith("1af")
    assert read(traced, traceparent="broken").trace == read(traced).trace
    assert read(None, traceparent=OTHER) == InboundClaims(trace=found.trace)


def test_of_several_answers_ours_is_taken() -> None:
    both = {
        INTERRUPT_URI: {"id": "int_1", "outcome": "rejected"},
        KAGENT_URI: {
            "type": "tool_approval_response",
            "approvals": [{"id": "int_1", "approved": True}],
        },
    }
    only = read(both).resolution
    assert only is not None
    assert only.outcome == "rejected"
    assert repr(only) == "AnswerClaim(rejected, id=int_1)"


def test_what_is_shown_is_bounded_whatever_is_claimed() -> None:
    deep: Any = "x"
    for _ in range(30):
        deep = {"a": deep}
    wide = {f"n{i}": "v" * 900 for i in range(1000)}
    found = read({"datalayer": {"note": "\x1b[31m" + "é" * 999, "deep": deep, "wide": wide}})
    shown = found.claimed["datalayer"]
    assert len(str(shown)) < 8192
    assert "\x1b" not in str(shown)
    short = read({"datalayer": {"note": "\x1b[31m" + "é" * 999, "deep": deep, "list": [1] * 99}})
    assert len(short.claimed["datalayer"]["note"]) == 256
    assert short.claimed["datalayer"]["deep"] == {"a": {"a": {"a": "…"}}}
    assert len(short.claimed["datalayer"]["list"]) == 16


# ------------------------------------------------------------------ negotiation


def test_activated_extensions_are_read_from_all_lines_each_once() -> None:
    lines = [f"{CHAIN_URI}, https://other.example/x", f"{CHAIN_URI}", "", " , "]
    assert activated(lines) == (CHAIN_URI, "https://other.example/x")
    assert activated([]) == ()
    assert echoed((*activated(lines), CA2A_URI)) == (CHAIN_URI,)


def test_a_field_that_is_broken_does_not_hide_a_refusal() -> None:
    assert wanted(Headers([(b"a2a-extensions", CHAIN_URI.encode())])) == (CHAIN_URI,)
    assert wanted(Headers([(b"x-a2a-extensions", b"no uri")])) == ()


@pytest.mark.parametrize(
    "line",
    [
        "no-uri",
        "urn:",
        "urn:a b",
        "urn:é",
        "urn:a;urn:b\x7f",
        "urn:" + "a" * 300,
        "1:a",
        "urn:a\nb",
    ],
)
def test_a_list_of_extensions_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(InvalidRequest, match="a2a-extensions"):
        activated([line])


def test_more_extensions_than_anybody_needs_are_refused() -> None:
    for count in (33, 5000):
        with pytest.raises(InvalidRequest, match="a2a-extensions"):
            activated([",".join(f"urn:x:{number}" for number in range(count))])
    assert len(activated([",".join(f"urn:x:{number}" for number in range(32))])) == 32


def test_what_a_card_demands_and_nobody_offers_is_unmet() -> None:
    card = [
        {"uri": CHAIN_URI, "required": True},
        {"uri": "urn:new", "required": True},
        {"uri": "urn:may"},
        {"required": True},
        {"uri": 7, "required": True},
        "urn:x",
    ]
    assert unmet(card, URIS) == ("urn:new",)
    assert unmet([], ()) == ()


def test_what_we_declare_is_never_demanded_and_the_terms_have_params() -> None:
    entries = {entry["uri"]: entry for entry in declared({"max_depth": 4})}
    assert entries[TERMS_URI]["params"] == {"max_depth": 4}
    assert all("required" not in entry for entry in entries.values())
    assert all(entry["description"] for entry in entries.values())
    assert {KAGENT_URI, DATALAYER_URI, X402_URI, BEEAI_URI, CHAIN_URI} <= set(entries)
    assert CA2A_URI not in entries  # nothing of it is enforced here
    assert TERMS_URI not in [entry["uri"] for entry in declared()]


def test_rows_are_known_by_one_name_and_one_uri() -> None:
    assert len(set(URIS)) == len(URIS)
    assert len({row.name for row in EXTENSIONS}) == len(EXTENSIONS)
    assert [row.name for row in EXTENSIONS if row.is_own] == [
        *("chain", "interrupt", "usage", "receipt", "terms", "skill")
    ]


# ------------------------------------------------------------------ writing


def test_a_task_that_waits_tells_ours_always_and_others_where_they_were_activated() -> None:
    assert list(write_status([ASKED])) == [INTERRUPT_URI]
    assert set(write_status([ASKED], [KAGENT_URI, BEEAI_URI])) == {
        *(INTERRUPT_URI, KAGENT_URI, BEEAI_URI)
    }
    assert KAGENTI_URI in write_status([ASKED], [KAGENTI_URI])
    assert STATUS not in write_status([ASKED], [X402_URI])  # it asks for no payment
    assert write_status([]) == {}


def test_people_are_told_what_is_asked_what_it_costs_and_where_to_go() -> None:
    pay = Interrupt(kind="payment", message="Pay.", amount=500_000, currency="credits")
    other = Interrupt(kind="payment", message="Pay.", more={"amount": "3", "currency": "EUR"})
    bare = Interrupt(kind="payment", message="Pay.", amount=1_000_000)
    go = Interrupt(kind="sign_in", message="Sign in.", url="https://id.example/1")
    assert [part["text"] for part in status_parts([ASKED, pay, other, bare, go])] == [
        *("May it?", "Pay. (0.5 credits)", "Pay. (3 EUR)", "Pay. (1)"),
        "Sign in. https://id.example/1",
    ]


def test_a_task_tells_its_run_and_use_and_to_whom_it_is_told_in_other_words() -> None:
    usage = Usage(tokens_in=3, tokens_out=4, cost=200, run_cost=400, currency="credits")
    facts = TaskFacts(task="task-1", run="r", turn="t", usage=usage, receipt="eyJ")
    ours = write_task(facts)
    assert ours[CHAIN_URI] == {"run": "r", "turn": "t"}
    assert "datalayer" not in ours
    both = write_task(facts, [DATALAYER_URI])
    assert both["datalayer"]["usage"]["cost"] == 0.0002
    reading = read_answer(both, currency="credits")
    assert (reading.usage, reading.receipt) == (usage, "eyJ")
    bare = write_task(TaskFacts(task="task-1", run="r", turn="t"), URIS)
    assert set(bare) == {CHAIN_URI}


def test_an_agent_is_sent_what_its_card_advertises_and_nothing_else() -> None:
    sending = OutboundFacts(carnet=CARNET, trace={"traceparent": PARENT}, record="rec-1")
    assert write_outbound(sending, ()) == ({}, (), {})
    assert write_outbound(sending, ["urn:other"]) == ({}, (), {})
    metadata, uris, headers = write_outbound(sending, [CHAIN_URI, USAGE_URI, TERMS_URI])
    assert set(metadata) == {CHAIN_URI}
    assert uris == (CHAIN_URI, USAGE_URI)
    assert headers == {"a2a-extensions": f"{CHAIN_URI},{USAGE_URI}"}
    assert activated(headers.values()) == uris
    everything, _, _ = write_outbound(sending, URIS)
    assert {"datalayer", TRACE_URI, RECORD} <= set(everything)
    assert ACTOR_CHAIN not in everything  # nobody is known to be acted for


def test_what_is_sent_is_read_as_the_same_chain() -> None:
    metadata, _, _ = write_outbound(OutboundFacts(carnet=CARNET), URIS)
    position = merge(read(metadata).marks)
    assert (position.depth, position.last_depth) == (2, 3)
    assert (position.run, position.turn, position.parent_turn) == ("r", "t", "p")


@pytest.mark.parametrize("uri", [INTERRUPT_URI, KAGENT_URI, BEEAI_URI, KAGENTI_URI])
@pytest.mark.parametrize("outcome", ["accepted", "rejected"])
def test_a_question_comes_back_answered_in_the_form_it_was_asked_in(uri: str, outcome: Any) -> None:
    asked = write_status([ASKED], [uri])
    foreign_alone = {key: value for key, value in asked.items() if key == uri}
    (interrupt,) = read_answer(foreign_alone, currency="credits").interrupts
    metadata, uris = write_reply(interrupt.state, Resolution(outcome=outcome))
    assert uris == (uri,)
    answer = read(metadata).resolution
    assert answer is not None
    assert answer.outcome == outcome
    assert (answer.id or answer.state) in {"int_1", "s3cret", None}


def test_a_question_without_a_state_is_answered_in_words() -> None:
    assert write_reply("", Resolution(outcome="accepted")) == ({}, ())
