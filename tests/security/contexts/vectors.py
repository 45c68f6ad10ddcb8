"""What is played for each boundary vector of the model, by its number, and on which scene.

A vector takes the scenes that it names: `site`, whose agents tell who called them, on both stores;
`world`, a gateway beside a server of the A2A SDK; `three`, organisations that each list the next;
`edge`, a gateway as signed callers see it. Where a scene has a test that says just this, it is
played here too, so that the whole list stands in one place.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from msgspec import Struct

from carnet import errors
from carnet.testing.wait import until
from tests.interop.interrupts import test_openai as questions
from tests.interop.interrupts.scene import Scene as Three
from tests.interop.interrupts.scene import answer, same_turn
from tests.interop.mentions import test_chain as mentions
from tests.interop.mentions.conftest import World
from tests.security.callers import test_delegation as delegations
from tests.security.contexts.requests import chain, fresh, last_used
from tests.security.support.signing import SignedEdge
from tests.support.http import Reply
from tests.support.organisation import Organisation
from tests.support.served import executions
from tests.support.signing.delegations import sdk
from tests.support.signing.signed import Sender

DEPTH, RUN, TURN = "x-tangle-forwarded-depth", "x-tangle-runid", "x-tangle-turnid"
DEEP: Final = "bridge_depth_exceeded"

Play = Callable[..., None]


class Chained(Struct, frozen=True, kw_only=True):
    """Headers that are sent, and what must come of them."""

    tangle: dict[str, str] = {}
    context: dict[str, str] = {}
    code: str | None = None  # of the refusal
    status: int = 400  # of it
    depth: int = 0  # it is answered at
    facts: dict[str, Any] = {}  # of the refusal
    calls_on: bool = True  # or it is final

    def __call__(self, site: Organisation) -> None:
        fields = chain(**self.context) if self.context else []
        name = fresh("vector")
        token = site.new_token(name)
        before = executions(site.folder, "onward"), executions(site.folder, "echo")
        headers = [*self.tangle.items(), *fields]
        reply = site.chat("echo hi", "onward", token=token, headers=headers)
        if self.code is None:
            assert reply.status == 200, reply.body
            self._is_carried_on(site, reply, token)
            return
        assert (reply.status, reply.code) == (self.status, self.code)
        assert self.facts.items() <= reply.json["error"].items()
        assert (executions(site.folder, "onward"), executions(site.folder, "echo")) == before
        assert last_used(site, name) is None  # U13: it was not used

    def _is_carried_on(self, site: Organisation, reply: Reply, token: str) -> None:
        page = site.get(f"/runs/{reply.headers[RUN]}", token=token).json
        turn = next(each for each in page["turns"] if each["agent"] == "onward")
        assert turn["depth"] == self.depth
        if self.calls_on:  # U12: a child is one deeper, in the same run, under no larger limit
            [child] = turn["children"]
            assert reply.text == f"{self.depth} > hi"
            assert (child["agent"], child["depth"]) == ("echo", self.depth + 1)
            assert child["limit"] <= (turn["limit"] or child["limit"])
        else:
            assert reply.text == f"stopped at {self.depth + 1} of {self.depth + 1}"
            assert turn["children"] == []


def leaves(came: tuple[int, int] | None, left: tuple[int, int, bool]) -> Play:
    """A mentioned agent calls on: what it was sent, and what it sends."""
    return lambda world: mentions.test_a_chained_call_leaves_one_hop_further_under_the_same_cap(
        came, left, world
    )


def is_final(cap: int) -> Play:
    return lambda world: mentions.test_the_final_hop_is_answered_and_calls_nobody(cap, world)


def is_no_chain(hop: int, max_hops: int) -> Play:
    members = mentions.within(hop=hop, max_hops=max_hops)
    return lambda world: mentions.test_what_is_no_chain_is_refused_and_nothing_runs(members, world)


def is_recomputed(world: World) -> None:
    mentions.test_a_chain_that_contradicts_itself_is_recomputed_and_logged(world)


def may_be_called_and_calls_nobody(edge: SignedEdge, alice: Sender, bob: Sender) -> None:
    edge.accepts(edge.message(bob, delegationToken=sdk(alice, bob.identity, maxDepth=1)))
    delegations.test_one_hop_is_one_call(edge, alice, bob)


def may_not_be_called(edge: SignedEdge, alice: Sender, bob: Sender) -> None:
    token = sdk(alice, bob.identity, maxDepth=0)
    request = edge.message(bob, delegationToken=token)
    edge.refuses(request, errors.DelegationExceeded, delegations.EXCEEDED)


def names_no_actor(site: Organisation) -> None:
    reply = site.chat("hi", "about", headers=[("X-Actor-ID", "owner")])
    assert reply.status == 200
    assert '"auth_source": "user"' in reply.text  # of the token, and of nothing else


def forwards_no_payer(site: Organisation) -> None:
    canary = f"sk-tan-{fresh('canary')}"
    token = site.new_token(fresh("unlisted"))
    headers = [("x-tangle-forwarded-authorization", f"Bearer {canary}")]
    before = executions(site.folder, "paid")
    reply = site.chat("hi", "paid", token=token, headers=headers)
    assert (reply.status, reply.code) == (403, "forwarding_not_allowed")
    assert executions(site.folder, "paid") == before
    assert canary not in site.log.read_text()


def is_paid_at_the_origin(three: Three) -> None:
    questions.test_a_payment_asked_for_three_hops_down_reaches_the_origin_and_is_answered_there(
        three
    )


def is_resolved_once(three: Three) -> None:
    questions.test_a_resolution_is_good_once_and_for_nothing_else(three)


def runs_once(site: Organisation) -> None:
    run = fresh("duplicate")
    headers = [(RUN, run), (TURN, f"{run}.t0")]
    ask = partial(site.chat, "5", "slow", headers=headers)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask)
        until(lambda: f"{run}.t0" in executions(site.folder, "slow"))
        again = ask()  # while the first runs
    assert [first.result().status, again.status] == [200, 200]
    assert first.result().body == again.body
    assert executions(site.folder, "slow").count(f"{run}.t0") == 1


def waits_across_a_restart(three: Three) -> None:
    acme = three.acme
    waits = acme.chat("hi", "guard")  # its caller has hung up when this is over

    def asks(reply: Reply) -> str:
        return str(reply.json.get("error", {}).get("interrupt", {}).get("kind"))

    def answered(reply: Reply) -> None:
        name = reply.json["error"]["interrupt"]["id"]
        assert name in [each["id"] for each in acme.get("/approvals").json["approvals"]]
        assert answer(acme, name).status == 200

    def again() -> Reply:
        return acme.chat("hi", "guard", headers=same_turn(waits))

    assert asks(waits) == "approval"
    assert acme.stop() == 0
    acme.start()
    answered(waits)
    more = until(again, lambda reply: asks(reply) == "consent")
    answered(more)
    done = until(again, lambda reply: reply.status == 200)
    assert done.text == "accepted accepted"


VECTORS: Final[dict[str, Play]] = {
    "U01": Chained(),
    "U01-out": leaves(None, (1, 4, False)),
    "U02": Chained(tangle={DEPTH: "3", RUN: "u02"}, depth=3, calls_on=False),
    "U03": Chained(
        tangle={DEPTH: "4"},
        status=429,
        code=DEEP,
        facts={"observed": 4, "limit": 4, "stamp": "tangle"},
    ),
    "U04": Chained(context={"depth": "16"}, depth=16, calls_on=False),
    "U04-beyond": Chained(
        context={"depth": "17"},
        status=429,
        code=DEEP,
        facts={"observed": 17, "limit": 17, "stamp": "caller_context"},
    ),
    "U05": leaves((2, 4), (3, 4, False)),
    "U06": is_final(3),
    "U06-of-4": is_final(4),
    "U07": leaves((1, 99), (2, 4, False)),
    "U08": is_no_chain(5, 4),
    "U08-hop-0": is_no_chain(0, 4),
    "U09": is_recomputed,
    "U10": may_be_called_and_calls_nobody,
    "U10-none": may_not_be_called,
    "U11": Chained(tangle={DEPTH: "1", RUN: "u11"}, context={"root": "u11", "depth": "2"}, depth=2),
    "U11-other-run": Chained(
        tangle={DEPTH: "1", RUN: "u11"},
        context={"root": "other", "depth": "2"},
        code="chain_mismatch",
    ),
    "U11-depth-0": Chained(
        tangle={DEPTH: "0", RUN: "u11"},
        context={"root": "u11", "depth": "2"},
        code="chain_mismatch",
    ),
    "U12": Chained(tangle={DEPTH: "1", RUN: "u12"}, depth=1),
    "U13": Chained(
        tangle={DEPTH: "1", RUN: "u13"},
        context={"depth": "bogus"},
        code="malformed_caller_context",
    ),
    "U14": names_no_actor,
    "U15": forwards_no_payer,
    "U16": is_paid_at_the_origin,
    "U16-once": is_resolved_once,
    "U17": runs_once,
    "U18": waits_across_a_restart,
}
