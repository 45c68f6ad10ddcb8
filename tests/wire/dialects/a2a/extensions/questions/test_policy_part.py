"""Policy parts of Mentionable: which data is one, what it asks for, and how ours are written."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet import errors
from carnet.core.messages.interrupt import MOST_DATA_BYTES, Interrupt, check_together
from carnet.errors import CarnetError
from carnet.wire.dialects.a2a.extensions.questions.policy_part import (
    KINDS,
    MOST_CHALLENGES,
    MOST_KIND,
    MOST_LANGUAGES,
    MOST_TITLE,
    POLICY_ALIAS,
    POLICY_URI,
    STATUSES,
    authority_of,
    bound,
    failure_part,
    part_of,
    read_parts,
    state_as_carried,
    state_as_issued,
    write_part,
)
from carnet.wire.dialects.a2a.extensions.row import PayloadBroken
from carnet.wire.dialects.policy import MOST_INTERRUPTS
from carnet.wire.grammar import json
from tests.wire.dialects.openai.test_refusals import LEAVES, made

WORDS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)
NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**53 - 1) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
KIND = st.sampled_from(sorted(KINDS)) | NAMES.map(lambda name: f"com.example.{name}")
PARTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"kind": KIND, "message": WORDS},
    optional={
        "code": WORDS,
        "title": WORDS,
        "action_label": WORDS,
        "message_translations": st.dictionaries(
            st.sampled_from(["de", "de-CH", "zh-Hant"]),
            st.fixed_dictionaries({"message": WORDS}, optional={"title": WORDS}),
            min_size=1,
        ),
        "url": st.just("https://shop.example/pay"),
        "data": st.dictionaries(NAMES.map(lambda name: f"com.example.{name}"), VALUES, min_size=1),
        "auth_challenges": st.just([{"scheme": "Bearer", "realm": "x"}]),
        "retry_after_seconds": st.integers(0, 2**53 - 1),
        "state": st.text(min_size=1, max_size=20).filter(lambda text: "\x00" not in text),
        "puzzle": WORDS,
    },
)
ASKED = Interrupt(kind="consent", message="May I?", id="int_1", state="s", origin="@a@acme.example")


def read(**given: Any) -> Interrupt:
    (found,) = read_parts([{"kind": "consent_required", "message": "May I?", **given}], "credits")
    return found


def kept(**given: Any) -> dict[str, Any]:
    return read(**given).policy


# ------------------------------------------------------------------ read and written


@given(PARTS)
def test_a_part_that_is_passed_on_is_the_same(part: dict[str, Any]) -> None:
    (asked,) = read_parts([part], "credits")
    check_together([asked])
    (passed,) = [bound(asked, {"shop.example"})]
    challenges = {"auth_challenges": [{"scheme": "Bearer"}]}
    before = (challenges if part["kind"] == "unauthorized" else {}) | part
    assert write_part(passed) == before


@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("kind", "message", "url", "state", "data", "title", "code", "auth_challenges"),
                *("message_translations", "retry_after_seconds", "expires_at", "more"),
            ]
        ),
        VALUES,
    )
)
def test_whatever_comes_is_kept_or_broken(given_part: dict[str, Any]) -> None:
    try:
        found = read_parts([given_part], "credits")
    except PayloadBroken:
        return
    check_together(found)
    for asked in found:
        assert len(json.write(asked.more)) <= MOST_DATA_BYTES
        assert write_part(bound(asked, ()))["kind"] == given_part["kind"]


@pytest.mark.parametrize("kind", [None, 7, "", "two words", "é", "x" * (MOST_KIND + 1)])
def test_what_has_no_kind_is_no_part(kind: object) -> None:
    with pytest.raises(PayloadBroken):
        read_parts([{"kind": kind, "message": "?"}], "credits")


def test_no_more_are_read_than_can_be_asked() -> None:
    many = [{"kind": "x.y", "message": f"{n}"} for n in range(MOST_INTERRUPTS + 3)]
    assert len(read_parts(many, "credits")) == MOST_INTERRUPTS


def test_what_a_part_says_beside_is_bounded() -> None:
    assert kept(title="t" * 999)["title"] == "t" * MOST_TITLE
    assert kept(title="a\x1b[2Jb")["title"] == "a [2Jb"
    for nothing in (None, 7, "", " ", "\n"):
        assert "title" not in kept(title=nothing)
    languages = {f"x-{n}": {"message": "m"} for n in range(99)}
    assert len(kept(message_translations=languages)["message_translations"]) == MOST_LANGUAGES
    challenges = [{"scheme": "Bearer"}] * 99
    assert len(kept(auth_challenges=challenges)["auth_challenges"]) == MOST_CHALLENGES


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("message_translations", ["de"]),
        ("message_translations", {"de": "x"}),
        ("message_translations", {"de": {"title": "x"}}),
        ("message_translations", {"de": {"message": ""}}),
        ("message_translations", {"not a tag": {"message": "x"}}),
        ("auth_challenges", {"scheme": "x"}),
        ("auth_challenges", ["Bearer", {"realm": "x"}]),
        ("data", ["x"]),
        ("data", {"amount": 1, "": 2, "no spaces.here": 3}),
    ],
)
def test_what_is_not_in_its_form_was_not_said(name: str, value: object) -> None:
    assert name not in kept(**{name: value})


def test_the_widest_is_left_out_until_the_rest_can_be_kept() -> None:
    wide = {"com.example.x": "x" * 20_000}
    assert kept(data=wide, title="t") == {"kind": "consent_required", "title": "t"}
    assert kept(more="x" * 20_000, data={"a.b": 1})["data"] == {"a.b": 1}
    words = {f"x-{n}": {"message": "m" * 999} for n in range(MOST_LANGUAGES)}
    assert "message_translations" not in kept(message_translations=words)
    assert kept(title="t" * 99)["title"] == "t" * 99


# ------------------------------------------------------------------ states and links


@given(st.text(min_size=1, max_size=40))
def test_a_state_comes_back_as_it_was_issued(state: str) -> None:
    carried = state_as_carried(state)
    assert state_as_issued(carried) == state
    assert carried.isascii()
    assert not set(carried) & set(" ,;\n")


def test_most_states_are_carried_as_they_are() -> None:
    assert state_as_carried("st_8f2c-S") == "st_8f2c-S"
    assert state_as_carried("policy.x") != "policy.x"
    assert read(state="two words").state.startswith("policy.")
    assert read(state=7).state == ""


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://a.example/x", "a.example"),
        ("HTTPS://A.EXAMPLE:443/x", "a.example"),
        ("https://a.example:8443/x", "a.example:8443"),
        ("http://a.example/x", None),
        ("https://a.example@b.example/", None),
        ("https://a.example\\@b.example/", None),
        ("https:///x", None),
        ("https://[::1/x", None),
        ("https://a.example:99999/x", None),
        ("javascript:alert(1)", None),
        ("https://a.example/x y", None),
        ("https://é.example/", None),
    ],
)
def test_where_a_link_leads(url: str, authority: str | None) -> None:
    assert authority_of(url) == authority


def test_a_link_is_withheld_until_it_is_bound_to_its_agent() -> None:
    asked = read(url="https://shop.example/pay")
    assert asked.policy["withheld"] == "url"
    shown = bound(asked, {"shop.example"})
    assert (shown.url, "withheld" in shown.policy) == ("https://shop.example/pay", False)
    hidden = bound(asked, {"other.example"})
    assert (hidden.url, hidden.policy["withheld"]) == (None, "url")
    assert bound(ASKED, ()) is ASKED
    assert bound(read(url="http://shop.example/pay"), {"shop.example"}).url is None
    assert "url" not in write_part(hidden)


@pytest.mark.parametrize(
    ("url", "origin", "is_shown"),
    [
        ("https://acme.example/x", "@a@acme.example", True),
        ("https://pay.acme.example/x", "@a@acme.example", True),
        ("https://acme.example:8443/x", "@a@acme.example", True),
        ("https://notacme.example/x", "@a@acme.example", False),
        ("http://acme.example/x", "@a@acme.example", False),
        ("https://acme.example/x", None, False),
        ("https://acme.example/x", "agent://acme.example", False),
        (None, "@a@acme.example", False),
    ],
)
def test_a_link_of_ours_leads_to_us(url: str | None, origin: str | None, *, is_shown: bool) -> None:
    asked = Interrupt(kind="consent", message="?", url=url, origin=origin)
    assert ("url" in write_part(asked)) is is_shown


def test_our_own_interrupts_are_parts_of_their_kind() -> None:
    for kind, asked in KINDS.items():
        part = write_part(Interrupt(kind=asked, message="?", amount=5, currency="credits"))
        assert part["kind"] == kind
        assert ("auth_challenges" in part) is (kind == "unauthorized")
        assert "data" not in part  # what it costs stands beside, under our own extension
    assert write_part(ASKED) == {"kind": "consent_required", "message": "May I?", "state": "s"}


# ------------------------------------------------------------------ which data is a part

FORBIDDEN = {"kind": "forbidden", "message": "no"}
UNKNOWN = {"kind": "com.example.captcha", "message": "?"}


@pytest.mark.parametrize(
    ("value", "to_all", "advertised", "succeeded"),
    [
        (FORBIDDEN, True, True, True),
        (UNKNOWN, False, True, True),
        ({**UNKNOWN, "puzzle": 1}, False, True, False),
        ({**UNKNOWN, "puzzle": 1, "state": "s"}, False, True, True),
        ({"kind": "cat", "age": 3}, False, False, False),
        ({"kind": 7, "message": "?"}, False, False, False),
        ({"message": "?"}, False, False, False),
        ("forbidden", False, False, False),
        ([FORBIDDEN], False, False, False),
    ],
)
def test_which_data_is_a_part(
    value: object, *, to_all: bool, advertised: bool, succeeded: bool
) -> None:
    assert (part_of(value, is_advertised=False) is not None) is to_all
    assert part_of(value, is_advertised=False, has_succeeded=True) is None
    assert (part_of(value, is_advertised=True) is not None) is advertised
    assert (part_of(value, is_advertised=True, has_succeeded=True) is not None) is succeeded


@pytest.mark.parametrize("key", [POLICY_URI, POLICY_ALIAS, "policy"])
def test_what_says_that_it_is_a_part_is_one(key: str) -> None:
    assert part_of({key: UNKNOWN}, is_advertised=False, has_succeeded=True) == UNKNOWN
    assert part_of({key: {"kind": 7}}, is_advertised=True) is None
    assert part_of({key: "x"}, is_advertised=True) is None


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_failure_is_a_part_where_there_is_a_kind_for_its_status(leaf: type[CarnetError]) -> None:
    part = failure_part(made(leaf))
    is_deep = leaf.status == 429 and not leaf.retryable
    assert (part is not None) is (leaf.status in STATUSES and not is_deep)
    if part is not None:
        assert part["kind"] == STATUSES[leaf.status]
        assert part["code"] == f"carnet:{leaf.sent_as or leaf.code}"
        assert ("auth_challenges" in part) is (leaf.status == 401)


def test_a_failure_has_the_words_of_who_refuses_and_says_when_to_come_again() -> None:
    refused = errors.PolicyForbidden(said="Not for you.")
    assert (failure_part(refused) or {})["message"] == "Not for you."
    busy = errors.RateLimited(retry_after=7)
    assert (failure_part(busy) or {})["retry_after_seconds"] == 7
    silent = errors.PolicyForbidden()
    assert (failure_part(silent) or {})["message"] == silent.safe_text
