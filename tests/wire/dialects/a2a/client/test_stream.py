"""The updates of a stream, from bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.errors import ProviderError, TaskNotFound
from carnet.wire.dialects.a2a.client import HTTP_JSON, Interface, UpdateReader
from carnet.wire.dialects.a2a.client.stream import MOST_EVENT_BYTES

RPC = Interface(url="https://x")
REST = Interface(url="https://x", binding=HTTP_JSON)
SAYS = {"message": {"messageId": "m", "parts": [{"text": "hi"}]}}
FRAME = b"data: " + json.dumps({"jsonrpc": "2.0", "id": "1", "result": SAYS}).encode() + b"\n\n"


@given(st.integers(0, 2 * len(FRAME)))
def test_where_the_bytes_are_cut_makes_no_difference(cut: int) -> None:
    whole, reader = FRAME * 2, UpdateReader(RPC)
    found = [*reader.feed(whole[:cut]), *reader.feed(whole[cut:]), *reader.close()]
    assert len(found) == 2


def test_an_event_of_either_binding_is_an_update() -> None:
    (by_rpc,) = UpdateReader(RPC).feed(FRAME)
    (by_rest,) = UpdateReader(REST).feed(b"data: " + json.dumps(SAYS).encode() + b"\n\n")
    assert by_rpc == by_rest


def test_what_is_held_of_an_event_is_known() -> None:
    reader = UpdateReader(RPC)
    assert list(reader.feed(FRAME[:20])) == []
    assert reader.held == 20
    assert len(list(reader.feed(FRAME[20:]))) == 1
    assert reader.held == 0


def test_an_error_in_a_stream_is_raised() -> None:
    error = {"jsonrpc": "2.0", "id": "1", "error": {"code": -32001, "message": "x"}}
    updates = UpdateReader(RPC).feed(b"data: " + json.dumps(error).encode() + b"\n\n")
    with pytest.raises(TaskNotFound):
        list(updates)


@pytest.mark.parametrize("data", [b"data: \xff\n\n", b"data: " + b"x" * (MOST_EVENT_BYTES + 1)])
def test_a_stream_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ProviderError):
        UpdateReader(RPC).feed(data)


def test_an_event_without_its_end_counts_if_it_is_whole() -> None:
    reader = UpdateReader(RPC)
    assert list(reader.feed(FRAME.rstrip())) == []
    assert len(list(reader.close())) == 1
    half = UpdateReader(RPC)
    assert list(half.feed(FRAME[:30])) == []
    assert list(half.close()) == []
    broken = UpdateReader(RPC)
    assert list(broken.feed(b"data: \xff")) == []
    assert list(broken.close()) == []
