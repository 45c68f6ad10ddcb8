"""Addresses: one stored form, and nothing that only looks like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.people.address import (
    MOST_NAME,
    Address,
    Identities,
    check_domain,
    check_identity,
    check_local,
    check_name,
    handle_of,
    host_of,
    identity_of,
    is_agent_uri,
    is_handle,
    is_ip_identity,
    local_name,
    may_be_fetched,
    parse_acct,
    parse_agent_uri,
    parse_handle,
    skeleton,
    speaker_of,
)
from carnet.errors import AddressInvalid

LABELS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True).filter(
    lambda label: not label.startswith("xn--")
)
DOMAINS = st.builds(
    lambda labels, top: ".".join([*labels, top]),
    st.lists(LABELS, min_size=1, max_size=4),
    st.sampled_from(["example", "test", "io"]),
)
LOCALS = st.from_regex(r"[A-Za-z0-9_-]([A-Za-z0-9_-]{0,60}[A-Za-z0-9_-])?", fullmatch=True)


@given(local=LOCALS, domain=DOMAINS)
def test_an_address_is_read_as_it_was_written(local: str, domain: str) -> None:
    address = Address(local, domain)
    assert parse_handle(str(address)) == address


@pytest.mark.parametrize(
    "text", ["@agent@verse8.io", "agent@verse8.io", "acct:agent@verse8.io", "ACCT:agent@verse8.io"]
)
def test_the_three_spellings_of_a_handle_name_one_address(text: str) -> None:
    assert parse_handle(text) == Address("agent", "verse8.io")


@pytest.mark.parametrize(
    "text",
    [
        *("@verse8.io", "@@verse8.io", "@foo@bar@baz", "@foo@localhost", "acct:no-at-symbol", ""),
        *("acct:@foo@bar.test", "@foo@bar.test\n", "@foo bar@baz.test", "@foo@"),
    ],
)
def test_what_is_not_a_handle_is_refused(text: str) -> None:
    with pytest.raises(AddressInvalid):
        parse_handle(text)


def test_an_acct_is_one_by_its_scheme_alone() -> None:  # M05
    assert parse_acct("ACCT:foo@bar.test") == Address("foo", "bar.test")
    for text in ("foo@bar.test", "@foo@bar.test", "acct:no-at-symbol", "acct:"):
        with pytest.raises(AddressInvalid):
            parse_acct(text)


@pytest.mark.parametrize("local", ["foo", "foo.bar", "foo-bar", "foo_bar", "A1", "a" * 64])
def test_a_name_may_hold_letters_digits_dots_and_dashes(local: str) -> None:
    assert check_local(local) == local


@pytest.mark.parametrize(
    "local", ["", "foo@bar", "foo bar", "foo/bar", "foo\n", "a" * 65, ".", "..", "a..b", "é", ".a"]
)
def test_anything_else_is_no_name(local: str) -> None:
    with pytest.raises(AddressInvalid):
        check_local(local)


@pytest.mark.parametrize("text", ["agent://a.example", "agent://xn--bcher-kva.example"])
def test_an_agent_uri_gives_its_domain(text: str) -> None:
    assert is_agent_uri(text)
    assert parse_agent_uri(text) == text.removeprefix("agent://")


@pytest.mark.parametrize(
    "text",
    [
        "agent://A.example",
        "agent://a.example.",
        "agent://a..example",
        "agent://a_b.example",
        "agent://receiv\u0435r.com",
        "agent://\uff45xample.com",
        "agent://exam\u200bple.com",
        "agent://a.example/../b",
        "agent://user@a.example",
        "agent://a.example?x",
        "agent://a.example#x",
        "agent://a.example\n",
        "AGENT://a.example",
        "agent:/a.example",
        "agent://",
        "agent://127.0.0.1",
        "agent://[::1]",
        "agent://" + "a" * 64 + ".example",
        "agent://xn--a",
        "agent://xn--a.example",
        "agent://a.example:0",
        "agent://a.example:99999",
        "agent://a.example:080",
        "agent://a-b.example:8443",
        "agent://a.example/name",
    ],
)
def test_an_agent_uri_that_two_readers_could_read_differently_is_refused(text: str) -> None:
    with pytest.raises(AddressInvalid):
        parse_agent_uri(text)


@pytest.mark.parametrize("domain", ["127.1", "0x7f.1", "0x7f.0.0.1", "a.0x7f", "a.1", "1.2.3.4"])
def test_a_domain_that_a_resolver_takes_for_an_ip_address_is_refused(domain: str) -> None:
    with pytest.raises(AddressInvalid, match="IP address"):
        check_domain(domain)


@pytest.mark.parametrize(
    "domain",
    [
        "xn--receivr-dhg.example",  # one letter is Cyrillic
        "xn--xample-hy68a.example",  # one letter is a wide one, which is stored as the usual one
        "xn--0.example",  # does not decode
        "xn--a.example",  # decodes to a control character
        "xn--abc-.example",  # ends in a dash
        "example.xn--a-b",  # decodes to nothing that needed encoding
    ],
)
def test_a_domain_with_broken_punycode_is_refused(domain: str) -> None:
    with pytest.raises(AddressInvalid):
        check_domain(domain)


def test_a_domain_is_at_most_253_characters_long() -> None:
    label = "a" * 61 + "."
    assert check_domain(label * 4 + "abcde") == label * 4 + "abcde"
    with pytest.raises(AddressInvalid):
        check_domain(label * 4 + "abcdef")


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(AddressInvalid) as caught:
        parse_handle("@x@<script>")
    assert "script" not in str(caught.value)


def test_the_kind_of_a_model_name_is_seen_from_its_beginning() -> None:
    assert [is_handle(text) for text in ("@x@y.z", "Acct:x@y.z", "x@y.z", "echo")] == [
        *(True, True, False, False)
    ]
    assert [is_agent_uri(text) for text in ("agent://a.b", "AGENT://a.b", "agent:a")] == [
        *(True, True, False)
    ]


@pytest.mark.parametrize(
    ("model", "name"),
    [("bridge/sandbox/researcher", "researcher"), ("echo", "echo"), ("bridge/", "")],
)
def test_a_model_path_ends_in_the_name(model: str, name: str) -> None:
    assert local_name(model) == name


@pytest.mark.parametrize(
    ("text", "fetched"),
    [
        ("agent://a.example", True),
        ("agent://critic.a.example", True),
        ("agent://xn--bcher-kva.example", True),
        ("agent://xn--r8jz45g.example", True),
        ("agent://client-x", False),
        ("agent://client-x.example", True),
        ("agent://client-X.example", False),
        ("agent://client-My_Key.v1", False),
        ("agent://client-key.2026.01", False),
        ("agent://client-" + "k" * 128, False),
        ("agent://localhost", False),
        ("agent://xn--bcher-kva", False),
        ("agent://127.0.0.1", False),
    ],
)
def test_an_identity_may_have_one_label_and_is_looked_for_at_domains_alone(
    text: str,
    fetched: bool,  # noqa: FBT001  a column of the table
) -> None:
    assert check_identity(text) == text
    assert may_be_fetched(text) is fetched
    assert is_ip_identity(text) is text.endswith("127.0.0.1")
    assert host_of(text) == text.removeprefix("agent://")


@pytest.mark.parametrize(
    "text",
    [
        *("agent://", "agent:/a", "AGENT://a", "a", "agent://A", "agent://a.", "agent://a_b"),
        *("agent://a/b", "agent://a@b", "agent://a:1", "agent://a\n", "agent://xn--a", "agent://é"),
        *("agent://127", "agent://0x7f", "agent://127.1", "agent://127.0.0.256", "agent://[::1]"),
        *("agent://0127.0.0.1", "agent://" + "a" * 64, "agent://-a", "agent://a-"),
        *("agent://client-", "agent://client-.x", "agent://client-X.", "agent://client-a..B"),
        *("agent://client-X.xn--a", "agent://client-X.XN--a", "agent://client-\u0410"),
        *("agent://client-A:1", "agent://client-A/b", "agent://client-" + "K" * 129, "agent://X_a"),
    ],
)
def test_what_two_readers_could_read_differently_is_no_identity(text: str) -> None:
    with pytest.raises(AddressInvalid):
        check_identity(text)


def test_an_agent_has_an_address_if_its_name_can_stand_in_one() -> None:
    assert handle_of("own_pocket", "a.example") == "@own_pocket@a.example"
    for name in ("@critic@b.example", "a..b", ""):
        assert handle_of(name, "a.example") is None


def test_every_agent_of_a_gateway_has_one_identity() -> None:
    known = Identities(
        ["echo", "critic", "own_pocket", "own-pocket"], domain="a.example", default="echo"
    )
    assert known.of("") == known.of("echo") == "agent://a.example"
    assert known.of("critic") == "agent://critic.a.example"
    assert known.of("own_pocket") == "agent://own-pocket.a.example"
    assert known.of("own-pocket") is None  # what is signed for one is not taken by the other
    assert known.name("a.example") == "echo"
    assert known.name("critic.a.example") == "critic"
    assert known.name("own-pocket.a.example") == "own_pocket"  # the first of two keeps it
    assert known.name("echo.a.example") is None
    assert known.name("b.example") is None


def test_a_name_that_is_not_served_has_the_identity_that_it_would_have() -> None:
    known = Identities(["a b"], domain="a.example", default=None)
    assert known.of("nobody") == "agent://nobody.a.example"
    assert known.of("a b") is None
    assert known.of("") is None
    assert identity_of("@x@b.example", "a.example") is None


def test_hosts_that_a_hurried_reader_takes_for_one_another_have_one_skeleton() -> None:
    assert skeleton("paypal.example") == skeleton("paypa1.example")
    assert skeleton("rn.example") == skeleton("m.example")
    assert skeleton("a0.example") == skeleton("ao.example")
    assert skeleton("a.example") != skeleton("b.example")


@pytest.mark.parametrize("name", ["critic", "@critic@b.example", "ünï côde", "a" * MOST_NAME])
def test_a_name_that_can_be_recorded_is_kept_as_it_is(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["a" * (MOST_NAME + 1), "a\x00b", "a\nb", "\ud800"])
def test_a_name_that_no_store_could_hold_is_refused(name: str) -> None:
    with pytest.raises(AddressInvalid):
        check_name(name)


@pytest.mark.parametrize(
    ("to", "speaker"),
    [
        ("critic", "critic"),
        ("@critic@globex.example", "critic"),
        ("agent://critic.globex.example", "critic"),
    ],
)
def test_a_call_is_spoken_by_the_name_in_its_address(to: str, speaker: str) -> None:
    assert speaker_of(to) == speaker
