"""What is stopped when what let it in has ended: by its row where it waits, else by its call."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Admitted
from carnet.core.people.delegation import Delegation
from carnet.core.people.identity import Actor, Caller, Payer, Standing
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.trust.trust import NewToken, Peer
from carnet.stores.open import Store
from tests.stores.support.scenes import ALICE, NOW, Place, a_claim, a_task, a_wait, claimed
from tests.support.signing.signed import Sender

SENDER = "agent://b.example"
THEIRS = Payer(account=ALICE.account, quota="p")
STATES = "SELECT r.id, t.state, t.code FROM turn t JOIN run r ON r.n = t.run ORDER BY t.n"
ASKED = "SELECT k.id, k.cancelled IS NOT NULL FROM task k ORDER BY k.turn"


async def ended_by(store: Store) -> None:
    """One look of a gateway, after somebody has written."""
    store.revocations.listen(lambda: None)
    store.revocations.read()
    await store.revocations.keep()


async def a_token(store: Store, name: str = "alice", **more: Any) -> str:
    token, _ = await store.tokens.create(
        NewToken(name=name, scopes=frozenset({"call:*"}), **more), NOW
    )
    return token.number


def shown(number: str | None, actor: str = "token:alice", **more: Any) -> Caller:
    return Caller(actor=Actor(name=actor), scopes=frozenset(), token=number, **more)


def by(claim: Any, caller: Caller) -> Any:
    return replace(claim, admitted=replace(claim.admitted, caller=caller))


def pinned(sender: str = SENDER) -> PinnedKey:
    return PinnedKey(
        sender=sender, kid=None, public=Sender(sender).public_raw, added=NOW, revoked=None
    )


async def test_a_task_that_waits_ends_with_its_own_token_and_not_with_one_of_that_name(
    store: Store, place: Place
) -> None:
    first = await a_token(store)
    await store.turns.claim(by(a_task("r1"), shown(first)))
    await store.tokens.revoke("alice", NOW)
    second = await a_token(store)
    await store.turns.claim(by(a_task("r2"), shown(second)))
    await ended_by(store)
    assert place.rows(ASKED) == [("task-r1", True), ("task-r2", False)]


async def test_a_task_of_a_command_goes_on_when_the_token_of_the_command_has_ended(
    store: Store, place: Place
) -> None:
    number = await a_token(store, "operator#1f2e3d4c")
    task = by(a_task("r1"), shown(number, "token:operator"))
    payer = Payer(account=ALICE.account, quota="token:operator")
    await store.turns.claim(replace(task, admitted=replace(task.admitted, payer=payer)))
    await store.tokens.revoke("operator#1f2e3d4c", NOW)
    await ended_by(store)
    assert place.rows(ASKED) == [("task-r1", False)]


async def test_a_task_of_the_former_release_ends_when_its_account_has_no_token(
    store: Store, place: Place
) -> None:
    payer = Payer(account=ALICE.account, quota="token:alice")
    await a_token(store, "alice#laptop")
    await store.turns.claim(a_task("r1", payer=payer))
    await ended_by(store)
    assert place.rows(ASKED) == [("task-r1", False)]
    await store.tokens.revoke("alice#laptop", NOW)
    await ended_by(store)
    assert place.rows(ASKED) == [("task-r1", True)]


async def test_tasks_of_a_peer_and_of_a_sender_end_with_the_peer_and_with_its_keys(
    store: Store, place: Place
) -> None:
    await store.peers.put(Peer(domain="c.example", url="https://c.example"))
    await store.pinned.pin(pinned())
    await store.turns.claim(a_task("r1", actor="peer:c.example", payer=THEIRS))
    await store.turns.claim(a_task("r2", actor=f"sender:{SENDER}", payer=THEIRS))
    await ended_by(store)
    assert place.rows(ASKED) == [("task-r1", False), ("task-r2", False)]
    await store.peers.remove("c.example")
    await store.pinned.revoke(SENDER, None, NOW)
    await ended_by(store)
    assert place.rows(ASKED) == [("task-r1", True), ("task-r2", True)]


async def test_a_turn_that_waits_for_an_answer_ends_as_cancelled(
    store: Store, place: Place
) -> None:
    number = await a_token(store)
    for run in ("r1", "r2"):
        token = number if run == "r1" else None
        turn = claimed(await store.turns.claim(by(a_claim(run, payer=THEIRS), shown(token))))
        await store.turns.finish(a_wait(turn, payer=THEIRS))
    await store.tokens.revoke("alice", NOW)
    await ended_by(store)
    assert place.rows(STATES) == [("r1", "failed", "cancelled"), ("r2", "waiting", None)]


async def test_nothing_is_ended_until_a_gateway_listens(store: Store, place: Place) -> None:
    await store.turns.claim(by(a_task("r1"), shown("77")))
    await store.revocations.keep()
    assert place.rows(ASKED) == [("task-r1", False)]


def admitted(caller: Caller, **more: Any) -> Admitted:
    return replace(a_claim("r1").admitted, caller=caller, **more)


async def test_a_call_has_ended_when_anything_that_let_it_in_has(store: Store) -> None:
    ended = store.revocations.has_ended
    number = await a_token(store)
    await store.peers.put(Peer(domain="c.example", url="https://c.example"))
    await store.pinned.pin(pinned())
    listed = shown(None, standing=Standing(sender="agent://x.c.example", peer="c.example"))
    known = shown(None, standing=Standing(sender=SENDER))
    forwarded = Payer(account=ALICE.account, quota="token:alice", by_forwarding=True)
    calls = [
        admitted(shown(number)),
        admitted(listed),
        admitted(known),
        admitted(shown(None), payer=forwarded),
    ]
    store.revocations.read()
    assert [ended(call) for call in calls] == [False] * 4
    await store.tokens.revoke("alice", NOW)
    await store.peers.remove("c.example")
    await store.pinned.revoke(SENDER, None, NOW)
    store.revocations.read()
    assert [ended(call) for call in calls] == [True] * 4


@pytest.mark.parametrize(("expires", "is_over"), [(1, True), (1 << 40, False)])
async def test_a_call_has_ended_with_its_delegation(
    store: Store, expires: int, *, is_over: bool
) -> None:
    delegation = Delegation(
        issuer=SENDER, subject=SENDER, scope=("*",), hops=1, issued=0, expires=expires
    )
    assert store.revocations.has_ended(admitted(shown(None), delegation=delegation)) is is_over


async def test_a_token_that_expires_is_noticed_without_a_look(store: Store) -> None:
    number = await a_token(store, expires=NOW)  # long ago, by the clock of the store
    assert store.revocations.has_ended(admitted(shown(number)))
