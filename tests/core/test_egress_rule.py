"""Entries of `[egress] allow`: a host with its port, or a network, and nothing else."""

from ipaddress import ip_network

import pytest

from carnet.core.egress_rule import ANY_PORT, read_entry


def test_a_host_with_its_port_is_read_in_small_letters() -> None:
    assert read_entry("Hooks.example:9000") == ("hooks.example", 9000)
    assert read_entry("[::1]:443") == ("::1", 443)
    assert read_entry("localhost:*") == ("localhost", ANY_PORT)


def test_a_network_is_read_as_one() -> None:
    assert read_entry("10.0.0.0/8") == ip_network("10.0.0.0/8")
    assert read_entry("::1") == ip_network("::1")


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "http://127.0.0.1:9000",
        "127.0.0.1:99999",
        "a.example:0",
        "10.0.0.1/8",
        "a b:1",
        "*:1",
        "a.example:**",
    ],
)
def test_anything_else_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_entry(entry)
