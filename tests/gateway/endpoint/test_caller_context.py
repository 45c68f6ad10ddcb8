"""The agents-api headers of real requests: where they put a call, and what is refused of them."""

from typing import Any

import pytest

import carnet
from tests.support.http import HeaderList, Reply
from tests.support.organisation import Organisation
from tests.support.served import executions

AGENT = ("X-Agents-Api-Caller-Agent", "source")
HOST = ("X-Agents-Api-Caller-Host", "https://source.example")
USER = ("X-Agents-Api-Caller-User", "7")
ROOT, DEPTH = "X-Agents-Api-Chain-Root", "X-Agents-Api-Chain-Depth"


def chain(root: str, depth: str = "2", *more: tuple[str, str]) -> list[tuple[str, str]]:
    """What a host sends along that names itself; `more` takes the place of what it said."""
    fields = dict((AGENT, HOST, USER, (ROOT, root), (DEPTH, depth)))
    return [(name, value) for name, value in (fields | dict(more)).items() if value]


def refuse(acme: Organisation, headers: HeaderList) -> None:
    """It is refused for its headers, and nothing runs."""
    before = executions(acme.folder, "echo")
    reply = acme.chat("hi", headers=headers)
    assert (reply.status, reply.json.get("code")) == (400, "malformed_caller_context")
    assert executions(acme.folder, "echo") == before


def turns_of(acme: Organisation, reply: Reply) -> list[dict[str, Any]]:
    """The turns of the run that an answer belongs to."""
    assert reply.status == 200
    turns: list[dict[str, Any]] = acme.get(f"/runs/{reply.headers['x-tangle-runid']}").json["turns"]
    return turns


def test_the_five_headers_place_a_call_in_its_chain(acme: Organisation) -> None:
    [turn] = turns_of(acme, acme.chat("hi", headers=chain("root-placed")))
    assert (turn["depth"], turn["context"]["root"]) == (2, "root-placed")


def test_what_is_called_for_a_call_of_a_chain_is_one_deeper(acme: Organisation) -> None:
    reply = acme.chat("echo hi", "relay", headers=chain("root-below", "1"))
    [turn] = turns_of(acme, reply)
    assert (turn["depth"], [below["depth"] for below in turn["children"]]) == (1, [2])


@pytest.mark.parametrize("headers", [[], [(ROOT, "root-top")], [(ROOT, "root-top"), (DEPTH, "0")]])
def test_without_a_depth_a_call_is_at_the_top_of_its_chain(
    acme: Organisation, headers: HeaderList
) -> None:
    [turn] = turns_of(acme, acme.chat("hi", headers=headers))
    assert turn["depth"] == 0
    assert turn["context"] is None or turn["context"]["root"] == "root-top"


@pytest.mark.parametrize("named", [AGENT, HOST, USER])
@pytest.mark.parametrize("depth", ["", "0"])
def test_nobody_may_be_named_at_the_top(
    acme: Organisation, named: tuple[str, str], depth: str
) -> None:
    refuse(acme, [named, (ROOT, "root-named"), (DEPTH, depth)])


@pytest.mark.parametrize("missing", [AGENT[0], HOST[0], ROOT])
def test_below_the_top_agent_host_and_root_must_be_named(acme: Organisation, missing: str) -> None:
    refuse(acme, chain("root-missing", "2", (missing, "")))


@pytest.mark.parametrize(
    "odd",
    [
        *[(DEPTH, value) for value in ("-1", "1.5", "two", "0x2", "1_0", "2, 2")],
        *[(USER[0], value) for value in ("-1", "1.5", "me", "9" * 17)],
        *[(ROOT, "r" * 129), (AGENT[0], "a" * 129)],
    ],
)
def test_a_header_that_is_not_in_its_form_is_refused(
    acme: Organisation, odd: tuple[str, str]
) -> None:
    refuse(acme, chain("root-odd", "2", odd))


def test_a_header_that_is_given_twice_is_refused(acme: Organisation) -> None:
    for name, value in chain("root-twice"):
        refuse(acme, [*chain("root-twice"), (name, value)])


@pytest.mark.parametrize(
    "host", ["self", "source.example", "ftp://source.example", "//x", "https://me@x.example"]
)
def test_a_host_that_is_no_absolute_url_is_refused(acme: Organisation, host: str) -> None:
    refuse(acme, chain("root-host", "2", (HOST[0], host)))


@pytest.mark.parametrize("host", ["http://10.0.0.1:8080/wp", "https://[::1]/a?b=c"])
def test_a_host_may_have_a_port_and_a_path(acme: Organisation, host: str) -> None:
    assert acme.chat("hi", headers=chain("root-port", "2", (HOST[0], host))).status == 200


def test_what_the_public_value_writes_is_read_by_a_gateway(acme: Organisation) -> None:
    context = carnet.CallerContext("source", 7, "https://source.example", 3, "root-public")
    [turn] = turns_of(acme, acme.chat("hi", headers=list(context.to_headers().items())))
    assert (turn["depth"], turn["context"]["root"]) == (3, "root-public")


def test_what_the_top_writes_is_read_as_the_top(acme: Organisation) -> None:
    top = carnet.CallerContext.top("root-of-all")
    [turn] = turns_of(acme, acme.chat("hi", headers=list(top.to_headers().items())))
    assert (turn["depth"], turn["context"]["root"]) == (0, "root-of-all")
