"""The contract of the conversation store, on each database."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.messages.events import Text, ToolCall, write_events
from carnet.errors import (
    CarnetError,
    ConversationBusy,
    ConversationFull,
    ConversationNotFound,
    Deleted,
    IdempotencyMismatch,
    MessageNotFound,
    TooManyConversations,
)
from carnet.ports.calls.conversations import (
    BegunAnswer,
    ConversationFilter,
    KeptConversation,
    NewAnswer,
    NewMessage,
    Settled,
)
from carnet.stores.conversations.words import words_of
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW, SECOND, Place, a_claim, claimed

ALICE, BOB = "person:1", "person:2"
ANY = ConversationFilter()


def sent(name: str, content: str = "hello", **changes: Any) -> NewMessage:  # noqa: ANN401, RUF100
    new = NewMessage(
        owner=ALICE,
        conversation=None,
        new_conversation=f"cnv_{name}",
        id=f"msg_{name}",
        answer=f"ans_{name}",
        agent="echo",
        content=content,
        title=content[:80],
        digest=content.encode(),
        run=f"conv_run_{name}",
        turn=f"turn_{name}",
        now=NOW,
    )
    return replace(new, **changes)


def whole(text: str = "good", **changes: Any) -> Settled:  # noqa: ANN401, RUF100
    settled = Settled(
        state="whole",
        parts=write_events([Text(text)]),
        text=text,
        tokens_in=3,
        tokens_out=5,
        cost=7,
        now=NOW + SECOND,
    )
    return replace(settled, **changes)


async def kept(store: Store, name: str, content: str = "hello", **changes: Any) -> BegunAnswer:  # noqa: ANN401, RUF100
    """A message with its whole answer."""
    begun = await store.conversations.begin(sent(name, content, **changes))
    now = changes.get("now", NOW) + SECOND
    await store.conversations.settle(begun.conversation.owner, begun.answer.id, whole(now=now))
    return begun


async def found(store: Store, id: str, owner: str = ALICE) -> KeptConversation:
    conversation = await store.conversations.find(owner, id)
    assert conversation is not None
    return conversation


async def ids(store: Store, matching: ConversationFilter = ANY, owner: str = ALICE) -> list[str]:
    page = await store.conversations.list(owner, matching, limit=50, before=None)
    return [each.id for each in page.found]


async def test_what_is_said_is_kept_with_a_place_for_its_answer(store: Store) -> None:
    begun = await store.conversations.begin(sent("a", "plan my finances", metadata=b'{"a":1}'))
    assert (begun.question.text, begun.question.state, begun.question.metadata) == (
        "plan my finances",
        "unanswered",
        b'{"a":1}',
    )
    answer = begun.answer
    assert (answer.state, answer.author, answer.parent) == ("unanswered", "echo", begun.question.n)
    conversation = await found(store, "cnv_a")
    assert (conversation.answering, conversation.head) == ("ans_a", answer.n)
    assert (conversation.title, conversation.trigger, conversation.size) == (
        "plan my finances",
        "message",
        2,
    )


async def test_an_answer_is_written_down_with_what_it_used_and_twice_is_once(store: Store) -> None:
    begun = await store.conversations.begin(sent("a"))
    for _ in range(2):
        await store.conversations.settle(ALICE, "ans_a", whole(is_seen=True))
    conversation = await found(store, "cnv_a")
    used = (conversation.tokens_in, conversation.tokens_out, conversation.cost)
    assert (used, conversation.answering, conversation.unread) == ((3, 5, 7), None, 0)
    answer, asked = await store.conversations.branch(conversation, last=None, limit=9)
    assert (answer.text, answer.state, answer.cost) == ("good", "whole", 7)
    assert (asked.id, asked.state) == (begun.question.id, "whole")
    await store.conversations.settle(ALICE, "ans_a", whole(cost=9))
    again = await found(store, "cnv_a")
    assert (again.cost, again.unread) == (9, 0)  # as it was seen


async def test_an_answer_that_several_settle_at_once_is_counted_once(store: Store) -> None:
    await store.conversations.begin(sent("a"))
    settling = [store.conversations.settle(ALICE, "ans_a", whole()) for _ in range(8)]
    await asyncio.gather(*settling)
    conversation = await found(store, "cnv_a")
    used = (conversation.tokens_in, conversation.tokens_out, conversation.cost)
    assert (used, conversation.unread) == ((3, 5, 7), 1)


async def test_the_same_id_of_a_client_is_the_same_message(store: Store) -> None:
    first = await kept(store, "a", client_id="c1")
    again = await store.conversations.begin(sent("b", client_id="c1"))
    assert (again.is_new, again.question.id, again.answer.text) == (
        False,
        first.question.id,
        "good",
    )
    there = await store.conversations.begin(sent("c", client_id="c1", conversation="cnv_a"))
    assert there.answer.id == "ans_a"
    with pytest.raises(IdempotencyMismatch):
        await store.conversations.begin(sent("d", "other", client_id="c1"))
    other = await store.conversations.begin(sent("e", client_id="c1", owner=BOB))
    assert other.is_new
    assert await ids(store) == ["cnv_a"]


async def test_of_many_who_send_the_same_at_once_one_is_first(store: Store) -> None:
    many = [store.conversations.begin(sent(f"m{i}", client_id="c1")) for i in range(8)]
    begun = await asyncio.gather(*many)
    assert [each.is_new for each in begun].count(True) == 1
    assert len({each.question.id for each in begun}) == 1
    assert len(await ids(store)) == 1


async def test_one_answer_is_given_at_a_time(store: Store) -> None:
    await store.conversations.begin(sent("a"))
    tries = [store.conversations.begin(sent(f"x{i}", conversation="cnv_a")) for i in range(4)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {ConversationBusy}
    await store.conversations.settle(ALICE, "ans_a", whole())
    tries = [store.conversations.begin(sent(f"y{i}", conversation="cnv_a")) for i in range(4)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sorted(type(each).__name__ for each in outcomes) == [
        "BegunAnswer",
        *["ConversationBusy"] * 3,
    ]
    assert (await found(store, "cnv_a")).size == 4


async def test_what_could_not_begin_is_released_and_stays_unanswered(store: Store) -> None:
    await store.conversations.begin(sent("a"))
    await store.conversations.release(ALICE, "ans_a", "payment_required")
    conversation = await found(store, "cnv_a")
    answer = await store.conversations.message(conversation, "ans_a")
    assert answer is not None
    assert (conversation.answering, answer.state, answer.code) == (
        None,
        "unanswered",
        "payment_required",
    )


async def test_another_answer_stands_beside_the_first_and_the_same_is_given_anew(
    store: Store,
) -> None:
    await kept(store, "a")
    new = NewAnswer(
        owner=ALICE,
        conversation="cnv_a",
        to="msg_a",
        id="ans_2",
        agent="critic",
        run="conv_run_2",
        turn="turn_2",
        now=NOW,
    )
    begun = await store.conversations.begin_answer(new)
    assert (begun.answer.id, begun.answer.author, begun.answer.run) == (
        "ans_2",
        "critic",
        "conv_run_2",
    )
    with pytest.raises(ConversationBusy):
        await store.conversations.begin_answer(replace(new, id="ans_3"))
    partial = whole("half", state="partial", code="cancelled")
    await store.conversations.settle(ALICE, "ans_2", partial)
    anew = await store.conversations.begin_answer(replace(new, turn="turn_3"))
    assert (anew.answer.id, anew.answer.turn, anew.answer.state) == (
        "ans_2",
        "turn_3",
        "unanswered",
    )
    conversation = await found(store, "cnv_a")
    assert (conversation.size, conversation.head) == (3, begun.answer.n)
    beside = await store.conversations.beside(conversation, [begun.question.n, None])
    assert beside == [(begun.question.n, "ans_a"), (begun.question.n, "ans_2"), (None, "msg_a")]
    with pytest.raises(MessageNotFound):
        await store.conversations.begin_answer(replace(new, to="ans_a"))
    await store.conversations.settle(ALICE, "ans_2", whole("all"))
    with pytest.raises(ConversationBusy):  # it was tried again by two, and one was first
        await store.conversations.begin_answer(replace(new, turn="turn_4"))
    answer = await store.conversations.message(conversation, "ans_2")
    assert answer is not None
    assert (answer.state, answer.turn, answer.text) == ("whole", "turn_3", "all")


async def test_an_edited_message_begins_a_branch_that_can_be_left_again(store: Store) -> None:
    await kept(store, "a", "one")
    await kept(store, "b", "two", conversation="cnv_a")
    await kept(store, "c", "two again", conversation="cnv_a", edits="msg_b")
    conversation = await found(store, "cnv_a")
    branch = await store.conversations.branch(conversation, last=None, limit=9)
    assert [each.id for each in branch] == ["ans_c", "msg_c", "ans_a", "msg_a"]
    old = await store.conversations.message(conversation, "ans_b")
    assert old is not None
    conversation = await store.conversations.change(conversation, head=old.n, now=NOW)
    branch = await store.conversations.branch(conversation, last=None, limit=3)
    assert [each.id for each in branch] == ["ans_b", "msg_b", "ans_a"]
    rest = await store.conversations.branch(conversation, last=branch[-1].parent, limit=3)
    assert [each.id for each in rest] == ["msg_a"]
    with pytest.raises(MessageNotFound):
        await store.conversations.begin(sent("d", conversation="cnv_a", edits="ans_a"))


async def test_the_last_that_changed_is_listed_first_page_by_page(store: Store) -> None:
    for i in range(5):
        await kept(store, f"c{i}", now=NOW + i * SECOND)
    await kept(store, "late", conversation="cnv_c1", now=NOW + 60 * SECOND)
    pages, before = [], None
    while True:
        page = await store.conversations.list(ALICE, ANY, limit=2, before=before)
        pages.append([each.id for each in page.found])
        before = page.following
        if before is None:
            break
    assert [id for page in pages for id in page] == [
        "cnv_c1",
        "cnv_c4",
        "cnv_c3",
        "cnv_c2",
        "cnv_c0",
    ]
    with pytest.raises(CarnetError):
        await store.conversations.list(ALICE, ANY, limit=2, before="x")


async def test_conversations_are_found_by_words_agent_trigger_time_and_marks(store: Store) -> None:
    await kept(store, "a", "The Budget of Zürich", agent="planner")
    await kept(store, "b", "budget and 東京都 hotels", trigger="schedule", now=NOW + 60 * SECOND)
    for words, expected in {
        "budget": ["cnv_b", "cnv_a"],
        "BUDGET zu\u0308rich": ["cnv_a"],
        "京都": ["cnv_b"],
        "good budget": ["cnv_b", "cnv_a"],  # the answers say it
        "budge": [],
        "budget tokyo": [],
    }.items():
        assert await ids(store, ConversationFilter(words=words_of(words))) == expected, words
    assert await ids(store, ConversationFilter(agent="planner")) == ["cnv_a"]
    assert await ids(store, ConversationFilter(trigger="schedule")) == ["cnv_b"]
    assert await ids(store, ConversationFilter(since=NOW + 30 * SECOND)) == ["cnv_b"]
    assert await ids(store, ConversationFilter(until=NOW + 30 * SECOND)) == ["cnv_a"]
    budget = ConversationFilter(words=("budget",), until=NOW + 30 * SECOND, agent="planner")
    assert await ids(store, budget) == ["cnv_a"]
    conversation = await found(store, "cnv_a")
    renamed = await store.conversations.change(
        conversation, title="Savings", archived=True, unread=False, now=NOW
    )
    assert (renamed.title, renamed.archived, renamed.unread) == ("Savings", NOW, 0)
    assert await ids(store) == ["cnv_b"] == await ids(store, ConversationFilter(unread=True))
    assert await ids(store, ConversationFilter(words=("savings",), archived=True)) == ["cnv_a"]
    assert await ids(store, ConversationFilter(words=("zürich",), archived=True)) == ["cnv_a"]
    first = await store.conversations.list(
        ALICE, ConversationFilter(words=("budget",)), limit=1, before=None
    )
    assert (first.found[0].id, first.following) == ("cnv_b", str(first.found[0].n))


async def test_nothing_of_one_owner_is_there_for_another(store: Store) -> None:
    begun = await store.conversations.begin(sent("a", "secret plan"))
    assert await store.conversations.find(BOB, "cnv_a") is None
    assert await ids(store, owner=BOB) == []
    assert await ids(store, ConversationFilter(words=("secret",)), owner=BOB) == []
    await store.conversations.settle(BOB, "ans_a", whole("mine now"))
    await store.conversations.release(BOB, "ans_a", "mine")
    with pytest.raises(ConversationNotFound):
        await store.conversations.begin(sent("b", conversation="cnv_a", owner=BOB))
    with pytest.raises(ConversationNotFound):
        await store.conversations.begin(
            sent("c", conversation="cnv_a", owner=BOB, edits=begun.question.id)
        )
    conversation = await found(store, "cnv_a")
    answer = await store.conversations.message(conversation, "ans_a")
    assert answer is not None
    assert (conversation.answering, answer.text, answer.code) == ("ans_a", "", None)
    bobs = (await kept(store, "bobs", owner=BOB)).conversation
    assert await store.conversations.message(bobs, "ans_a") is None
    assert await store.conversations.branch(bobs, last=answer.n, limit=9) == []


async def test_the_turn_of_an_answer_is_its_owners(store: Store) -> None:
    begun = await store.conversations.begin(sent("a", owner="token:alice"))
    assert await store.conversations.turn_of("token:alice", begun.answer) is None
    of_bob = a_claim("conv_run_a", turn="turn_a", actor="token:bob")
    await store.turns.claim(of_bob)
    assert await store.conversations.turn_of("token:alice", begun.answer) is None
    turn = claimed(await store.turns.claim(a_claim("conv_run_a", turn="turn_a")))
    found = await store.conversations.turn_of("token:alice", begun.answer)
    assert (found and found.n, found and found.actor) == (turn.n, "token:alice")


async def test_what_nobody_gives_any_more_is_found_of_everybody(store: Store, place: Place) -> None:
    owners = ("token:alice", "token:bob")
    for owner, name in zip(owners, "ab", strict=True):
        await store.conversations.begin(sent(name, owner=owner))
    await kept(store, "c")
    given_up = store.conversations.given_up

    async def left(begun: int = NOW, ended: int = NOW) -> list[tuple[str, str]]:
        found = await given_up(after=0, limit=9, begun=begun, ended=ended)
        assert all(each.is_given for each in found)
        return [(each.owner, each.answer.id) for each in found]

    assert await left() == [("token:alice", "ans_a"), ("token:bob", "ans_b")]  # without turns
    assert await left(begun=NOW - 1) == []  # which may be about to begin
    await store.turns.claim(a_claim("conv_run_a", turn="turn_a", actor="token:alice"))
    await store.turns.claim(a_claim("conv_run_b", turn="turn_b", actor="token:alice"))  # not bob's
    assert await left() == [("token:bob", "ans_b")]
    place.rows("UPDATE turn SET state = 'done', ended = ? WHERE turn = 'turn_a'", NOW)
    assert await left() == [("token:alice", "ans_a"), ("token:bob", "ans_b")]
    assert await left(ended=NOW - 1) == [("token:bob", "ans_b")]  # who shows it writes it down


async def test_what_waited_is_found_when_its_turn_has_ended_and_no_sooner(
    store: Store, place: Place
) -> None:
    parts = write_events([Text("may I?"), ToolCall("t1", "pay", "{}")])
    waits = whole(state="partial", waits=True, code="approval_required", parts=parts)
    for name in "abc":
        await store.conversations.begin(sent(name, owner="token:alice"))
        await store.turns.claim(
            a_claim(f"conv_run_{name}", turn=f"turn_{name}", actor="token:alice")
        )
        await store.conversations.settle("token:alice", f"ans_{name}", waits)
    place.rows("UPDATE turn SET state = 'waiting' WHERE turn <> 'turn_c'")  # which goes on

    async def look(after: int, limit: int = 9, most: int = 9) -> tuple[list[str], int]:
        gone_on = store.conversations.gone_on
        found, following = await gone_on(after=after, limit=limit, most=most)
        return [each.answer.id for each in found], following

    assert await look(0) == ([], 0)
    place.rows("UPDATE turn SET state = 'done' WHERE turn <> 'turn_b'")
    numbers = [row[0] for row in place.rows("SELECT n FROM message WHERE waits = 1 ORDER BY n")]
    assert await look(0) == (["ans_a", "ans_c"], 0)
    assert await look(0, limit=1) == (["ans_a"], numbers[0])
    assert await look(0, most=2) == (["ans_a"], numbers[1])  # and no further
    assert await look(numbers[1], most=2) == (["ans_c"], 0)


async def test_there_is_a_bound_to_everything(store: Store, place: Place) -> None:
    store.conversations.most_conversations, store.conversations.most_messages = 2, 4
    await kept(store, "a")
    await kept(store, "b")
    with pytest.raises(TooManyConversations):
        await store.conversations.begin(sent("c"))
    await kept(store, "a2", conversation="cnv_a")
    with pytest.raises(ConversationFull):
        await store.conversations.begin(sent("a3", conversation="cnv_a"))
    await kept(store, "d", owner=BOB)
    long = " ".join(f"word{i}" for i in range(2000))
    await kept(store, "e", long, owner=BOB)
    ((count,),) = place.rows("SELECT COUNT(*) FROM message_word WHERE owner = ?", BOB)
    assert count < 600
    place.rows("UPDATE conversation SET deleted = 1 WHERE id = 'cnv_a'")
    with pytest.raises(Deleted):
        await store.conversations.find(ALICE, "cnv_a")
