"""Addresses: one stored form, and nothing that only looks like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.address import (
    Address,
    check_domain,
    check_local,
    is_agent_uri,
    is_handle,
    local_name,
    parse_agent_uri,
    parse_handle,
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
