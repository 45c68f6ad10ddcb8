"""The actor chain: ours is told as far as we know it."""

from carnet.core.chain.carnet import Carnet
from carnet.wire.dialects.a2a.extensions.actor_chain import KEY, MOST_HOPS, read, send, task
from carnet.wire.dialects.a2a.extensions.row import OutboundFacts, TaskFacts

PATH = ("@front@acme.example", "@critic@acme.example")


def test_whom_a_call_is_for_comes_first_and_the_last_hop_refers_to_its_proof() -> None:
    carnet = Carnet(run="r", turn="t", path=PATH, on_behalf_of=("agent:b", "user:alice"))
    sending = OutboundFacts(carnet=carnet, scopes=("call:critic",), proof="sha-256=:AA==:")
    metadata = send(sending)
    assert [hop["actor"] for hop in metadata[KEY]] == ["user:alice", "agent:b", *PATH]
    assert metadata[KEY][-1] == {
        "actor": PATH[-1],
        "scopes": ["call:critic"],
        "proof_ref": "sha-256=:AA==:",
    }
    claimed = read([metadata], 3)
    assert claimed is not None
    assert claimed.shown == {"hops": metadata[KEY], "narrows": True}
    assert (claimed.mark, claimed.answer) == (None, None)


def test_a_task_tells_the_chain_that_it_was_run_for() -> None:
    facts = TaskFacts(task="task-1", run="r", turn="t", path=PATH, on_behalf_of=("user:alice",))
    assert [hop["actor"] for hop in task(facts)[KEY]] == ["user:alice", *PATH]
    assert task(TaskFacts(task="task-1", run="r", turn="t")) == {}


def test_a_chain_that_is_too_long_tells_its_last_hops() -> None:
    names = tuple(f"@a{number}@acme.example" for number in range(MOST_HOPS + 3))
    hops = send(OutboundFacts(carnet=Carnet(run="r", turn="t", path=names)))[KEY]
    assert [hop["actor"] for hop in hops] == list(names[3:])
