"""Which addresses are public, which are ours, and which URLs have one reading."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.errors import ConfigInvalid, EgressRefused
from carnet.runtime.egress.addresses import (
    Allowed,
    find_route,
    is_global,
    is_private_or_loopback,
    parse_ip,
    read_destination,
    unwrap,
)

NOT_GLOBAL = [
    "0.0.0.0",  # noqa: S104  nothing is bound to it
    *("0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255"),
    *("127.0.0.1", "127.255.255.255", "169.254.169.254", "172.16.0.1", "172.31.255.255"),
    *("192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1"),
    *("239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1"),
    *("::127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:a9fe:a9fe", "::ffff:10.1.2.3"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1"),
    *("2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::"),
    *("2002:a00:1::1", "2002:c0a8:101::", "3ffe::1", "3fff::1", "5f00::1"),
    *("fc00::1", "fd00::1", "fe80::1", "fec0::1", "ff02::1"),
    "4000::1",
]

GLOBAL = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255"),
    *("100.128.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255"),
    *("198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1"),
    *("::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001:4860:4860::8888"),
]


@pytest.mark.parametrize("text", NOT_GLOBAL)
def test_an_address_that_is_not_one_host_of_the_internet_is_not_global(text: str) -> None:
    assert not is_global(ip_address(text))


@pytest.mark.parametrize("text", GLOBAL)
def test_a_host_of_the_internet_is_global_however_its_address_is_wrapped(text: str) -> None:
    assert is_global(ip_address(text))


METADATA = [
    *("169.254.169.254", "169.254.1.1", "192.0.0.192", "100.100.100.200", "168.63.129.16"),
    *("fe80::1", "fd00:ec2::254", "fd20:ce::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"),
]


@given(st.integers(0, 2**32 - 1))
def test_a_wrapped_address_is_judged_like_the_one_within(number: int) -> None:
    bare = IPv4Address(number)
    for prefix, shift in ((0xFFFF << 32, 0), (0x64FF9B << 96, 0), (0x2002 << 112, 80)):
        wrapped = IPv6Address(prefix | number << shift)
        assert unwrap(wrapped) == bare
        assert is_global(wrapped) == is_global(bare)
        assert is_private_or_loopback(wrapped) == is_private_or_loopback(bare)


@given(st.ip_addresses())
def test_no_address_is_both_global_and_private(ip: IPv4Address | IPv6Address) -> None:
    assert not (is_global(ip) and is_private_or_loopback(ip))


def test_private_is_loopback_and_the_networks_an_operator_numbers() -> None:
    ours = ["127.0.0.1", "127.1.2.3", "10.9.8.7", "172.20.0.1", "192.168.0.9", "::1", "fd12::1"]
    ours += ["100.64.0.1", "100.127.255.255"]
    others = ["0.1.2.3", "169.254.169.254", "100.128.0.1", "8.8.8.8", "fe80::1", "2606:4700::1"]
    assert all(is_private_or_loopback(ip_address(text)) for text in ours)
    assert not any(is_private_or_loopback(ip_address(text)) for text in others)


@pytest.mark.parametrize(
    "text", ["127.1", "0", "2130706433", "0x7f000001", "0177.0.0.1", "٣.1.1.1"]
)
def test_an_address_has_one_notation(text: str) -> None:
    assert parse_ip(text) is None


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("http://127.0.0.1:8702/v1", "127.0.0.1", 8702, "127.0.0.1:8702"),
        ("https://b.example/v1", "b.example", 443, "b.example"),
        ("https://b.example:443/v1", "b.example", 443, "b.example"),
        ("http://B.Example", "b.example", 80, "b.example"),
        ("http://[::1]:8080/", "::1", 8080, "[::1]:8080"),
        ("http://model_server:11434/v1?a=b", "model_server", 11434, "model_server:11434"),
    ],
)
def test_a_url_is_read_into_its_parts(url: str, host: str, port: int, authority: str) -> None:
    destination = read_destination(url)
    assert (destination.host, destination.port) == (host, port)
    assert destination.authority == authority


@pytest.mark.parametrize(
    "url",
    [
        *("", "b.example", "//b.example/", "ftp://b.example/", "https:///path", "https://:443/"),
        *("https://user@b.example/", "https://user:pw@b.example/", "https://b.example#@c.example/"),
        *("https://b.example\\@c.example/", "https://b.example/ x", "https://b.example/\r\nX: y"),
        *(
            "https://b.example:0/",
            "https://b.example:99999/",
            "https://b.example:x/",
            "https://[::1",
        ),
        *(
            "https://[fe80::1%25eth0]/",
            "https://1.2.3/",
            "https://0x7f.1/",
            "https://büro.example/",
        ),
    ],
)
def test_a_url_with_two_readings_or_none_is_refused(url: str) -> None:
    with pytest.raises(EgressRefused):
        read_destination(url)


def test_an_exception_names_a_host_and_port_or_a_network() -> None:
    allowed = Allowed(
        ["127.0.0.1:8702", "[::1]:9000", "Card.Example:8080", "10.1.0.0/16", "10.9.9.9"]
    )
    named = ["http://127.0.0.1:8702/", "http://[::1]:9000/x", "http://card.example:8080/"]
    within = ["http://10.1.2.3:77/", "http://10.9.9.9/", "http://[::ffff:10.1.0.1]/"]
    beyond = ["http://127.0.0.1:8703/", "http://card.example/", "http://10.2.0.1/"]
    assert all(allowed.names(read_destination(url)) for url in named + within)
    assert not any(allowed.names(read_destination(url)) for url in beyond)


def test_an_exception_may_be_a_host_with_all_of_its_ports() -> None:
    allowed = Allowed(["localhost:*"])
    assert allowed.names(read_destination("http://localhost:1/"))
    assert allowed.names(read_destination("http://LOCALHOST:65535/x"))
    assert not allowed.names(read_destination("http://localhost.example:1/"))


@pytest.mark.parametrize(
    "entry", ["", "b.example", "b.example:", "b.example:0", "10.0.0.1/8", "x/8"]
)
def test_an_exception_that_says_neither_is_named_with_its_key(entry: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"egress\.allow"):
        Allowed([entry])


def test_a_named_destination_may_be_anywhere_but_plain_http_stays_at_home() -> None:
    nothing = Allowed()
    for url in (
        "http://127.0.0.1:1/",
        "http://192.168.1.5/",
        "http://100.64.0.1/",
        "http://[fd00::1]/",
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "https://8.8.8.8/",
        "https://10.0.0.1/",
    ):
        assert find_route(url, "named", nothing).reuse
    for host in ("8.8.8.8", "192.0.0.192", "0.0.0.0"):  # noqa: S104  refused
        with pytest.raises(EgressRefused, match=rf'\[egress\] allow = \["{host}/32"\]'):
            find_route(f"http://{host}/", "named", nothing)
        assert find_route(f"http://{host}/", "named", Allowed([host])).reuse


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_name_that_was_written_down_leads_to_private_networks_and_to_no_metadata(
    scheme: str,
) -> None:
    """R52: those are dialled where the address itself was written down."""
    for allowed in (Allowed(), Allowed(["169.254.0.0/16", "b.example:80", "b.example:443"])):
        route = find_route(f"{scheme}://b.example/", "named", allowed)
        for text in ("127.0.0.1", "10.0.0.1", "100.64.0.1", "fd00::1", "::ffff:192.168.0.1"):
            assert route.may_dial(ip_address(text))
        for text in METADATA:
            with pytest.raises(EgressRefused, match="write the address itself"):
                route.check(ip_address(text))
        assert route.may_dial(ip_address("8.8.8.8")) is (scheme == "https")


def test_plain_http_leads_to_a_public_address_only_if_it_is_listed() -> None:
    """R52."""
    public = ip_address("8.8.8.8")
    with pytest.raises(EgressRefused, match=r'allow = \["8\.8\.8\.8/32"\]'):
        find_route("http://b.example/", "named", Allowed()).check(public)
    assert find_route("http://b.example/", "named", Allowed(["8.8.8.8/32"])).may_dial(public)
    learned = find_route("http://b.example/", "learned", Allowed(["b.example:80", "8.8.8.8/32"]))
    with pytest.raises(EgressRefused, match="needs https"):  # what others name is held to more
        learned.check(public)


def test_a_learned_name_is_judged_by_every_address_it_leads_to() -> None:
    route = find_route("https://b.example/card", "learned", Allowed(["10.1.0.0/16"]))
    assert route.may_dial(ip_address("8.8.8.8"))
    assert route.may_dial(ip_address("10.1.2.3"))  # the operator's exception
    assert not route.may_dial(ip_address("10.2.0.1"))
    assert not route.reuse
