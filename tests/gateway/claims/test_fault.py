"""A call that is made to fail: for who may end runs, and for that call alone."""

from msgspec.structs import replace

from carnet.core.messages.events import Failed
from carnet.core.people.identity import Actor, Caller
from carnet.errors import FaultInjected, PermissionMissing
from carnet.gateway.claims.fault import made_to_fail
from tests.runtime.scene import Paper, make_call


async def test_a_call_is_made_to_fail_without_its_agent() -> None:
    call = make_call()
    paper = Paper()
    failing = made_to_fail(call)
    assert await failing.target.agent(failing, paper) == Failed.of(FaultInjected())
    assert failing == replace(call, target=failing.target)
    assert failing.target.name == call.target.name
    assert call.target.agent is not failing.target.agent  # another call of it is answered


async def test_who_may_end_no_run_has_no_call_made_to_fail() -> None:
    viewer = Caller(actor=Actor(name="viewer"), scopes=frozenset({"call:*", "run:read"}))
    call = replace(make_call(), caller=viewer)
    end = await made_to_fail(call).target.agent(call, Paper())
    assert end == Failed.of(PermissionMissing(permission="run:cancel"))
